//! The cost of a turn depends only on its new text: text that a tenant has sent before is not
//! scanned again.

use serde_json::{Value, json};

use crate::client::{Client, post, post_as, read};
use crate::gateway::{GLOBEX, Gateway, MODEL};

fn rules(document: &mut Value, word: &str) {
    document["policy"] = json!({"mode": "Enforce", "rules": [{
        "id": "word", "reason": "a word", "target": "Request", "literals": [word], "score": 1, "action": "Redact",
    }]});
}

/// Returns a session of `turns` turns, each with a name.
fn session(turns: usize) -> Vec<u8> {
    let texts = (0..turns).map(|turn| format!("{turn}: johndoe {}", "has a word to say. ".repeat(1000)));
    let messages: Vec<Value> = (texts.enumerate())
        .map(|(turn, text)| json!({"role": (["user", "assistant"][turn % 2]), "content": text}))
        .collect();
    serde_json::to_vec(&json!({"model": MODEL, "messages": messages})).unwrap()
}

/// Returns the counts of hits and misses, and their bytes of text.
fn counted(gateway: &Gateway) -> [u64; 4] {
    [
        r#"proofgate_prefix_verdicts_total{result="hit"}"#,
        r#"proofgate_prefix_verdicts_total{result="miss"}"#,
        r#"proofgate_prefix_verdict_text_bytes_total{result="hit"}"#,
        r#"proofgate_prefix_verdict_text_bytes_total{result="miss"}"#,
    ]
    .map(|series| gateway.metric(series))
}

/// Sends a session. Returns whether the name was sent to the provider.
async fn send(gateway: &mut Gateway, key: Option<&str>, turns: usize) -> bool {
    let mut client = Client::connect(gateway).await;
    let body = session(turns);
    let request = match key {
        None => post(Some(body.len())),
        Some(key) => post_as(key, Some(body.len())),
    };
    let answer = client.send(request, &body).await;
    let exchange = gateway.upstream.exchange().await;
    let sent = String::from_utf8(exchange.body.clone()).unwrap();
    assert_eq!(sent.matches("has a word to say").count(), turns * 1000);
    assert!(sent.contains("[redacted:word]") != sent.contains("johndoe"));
    exchange.answer(b"{}").await;
    assert_eq!(read(answer).await.unwrap().status, 200);
    sent.contains("johndoe")
}

#[tokio::test]
async fn the_second_turn_is_redacted_and_only_what_is_new_in_it_is_scanned() {
    let mut gateway = Gateway::with(|document| rules(document, "johndoe")).await;
    assert!(!send(&mut gateway, None, 3).await);
    let [hits, misses, hit_bytes, miss_bytes] = counted(&gateway);
    assert_eq!((hits, misses, hit_bytes), (0, 3, 0));
    assert!(miss_bytes > 3 * 19_000, "{miss_bytes}");
    assert!(!send(&mut gateway, None, 5).await);
    let [hits, misses, hit_bytes, _] = counted(&gateway);
    assert_eq!((hits, misses, hit_bytes), (3, 5, miss_bytes));
    assert!(gateway.metric("proofgate_prefix_verdict_memory_bytes") > 0);
    assert_eq!(gateway.metric("proofgate_prefix_verdict_evictions_total"), 0);
}

#[tokio::test]
async fn another_tenant_and_other_rules_begin_anew() {
    let mut gateway = Gateway::with(|document| rules(document, "johndoe")).await;
    for (key, hits, misses) in [(None, 0, 2), (Some(GLOBEX), 0, 4), (None, 2, 4)] {
        assert!(!send(&mut gateway, key, 2).await);
        assert_eq!(counted(&gateway)[..2], [hits, misses]);
    }
    // A change that does not affect the rules does not clear the cache.
    gateway.change(|document| document["timeouts"]["answerSeconds"] = json!(700));
    assert!(!send(&mut gateway, None, 2).await);
    assert_eq!(counted(&gateway)[..2], [4, 4]);
    gateway.change(|document| rules(document, "janedoe"));
    assert_eq!(gateway.metric("proofgate_prefix_verdict_memory_bytes"), 0);
    assert!(send(&mut gateway, None, 2).await);
    assert_eq!(counted(&gateway)[..2], [4, 6]);
}
