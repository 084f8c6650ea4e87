//! Header and body fields that are added to all requests to a provider.

use serde_json::{Value, json};

use crate::client::{Client, post, read};
use crate::gateway::{Gateway, MODEL};

const ANSWER: &[u8] = br#"{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}"#;

fn set(document: &mut Value) {
    let provider = &mut document["providers"][0];
    provider["headers"] = json!([
        {"name": "OpenAI-Organization", "value": "org-1", "secret": false},
        {"name": "X-Gateway-Secret", "value": "plain secret", "secret": true},
    ]);
    provider["bodyFields"] = json!({"provider": {"data_collection": "deny"}, "store": false});
}

#[tokio::test]
async fn a_provider_is_sent_the_header_and_body_fields_that_are_set_and_no_others_of_their_names() {
    let mut gateway = Gateway::with(|document| {
        set(document);
        document["models"][0]["routes"][0]["upstreamModel"] = json!("there");
    })
    .await;
    let mut client = Client::connect(&gateway).await;
    let own = format!(
        r#"{{"model":"{MODEL}","store":true,"messages":[{{"role":"user","content":"hi"}}],"temperature":1.50e0}}"#
    );
    let sent = client.send(post(Some(own.len())), own.as_bytes()).await;
    let exchange = gateway.upstream.exchange().await;
    for line in [
        "OpenAI-Organization: org-1\r\n",
        "X-Gateway-Secret: plain secret\r\n",
    ] {
        assert_eq!(exchange.head.matches(line).count(), 1, "{}", exchange.head);
    }
    assert_eq!(
        String::from_utf8_lossy(&exchange.body),
        concat!(
            r#"{"model":"there","messages":[{"role":"user","content":"hi"}],"temperature":1.50e0,"#,
            r#""provider":{"data_collection":"deny"},"store":false}"#
        )
    );
    exchange.answer(ANSWER).await;
    let answer = read(sent).await.unwrap();
    assert_eq!(answer.status, 200);
    assert_eq!(answer.headers["x-proofgate-dropped-fields"], "store");
    // Without these fields, the body is forwarded unchanged.
    gateway.change(|document| {
        document["providers"][0]["bodyFields"] = json!({});
        document["models"][0]["routes"][0]["upstreamModel"] = json!(MODEL);
    });
    let sent = client.send(post(Some(own.len())), own.as_bytes()).await;
    let exchange = gateway.upstream.exchange().await;
    assert_eq!(String::from_utf8_lossy(&exchange.body), own);
    exchange.answer(ANSWER).await;
    assert_eq!(read(sent).await.unwrap().status, 200);
}

#[tokio::test]
async fn fields_are_set_in_requests_that_are_translated_too() {
    let mut gateway = Gateway::with(|document| {
        set(document);
        document["providers"][0]["type"] = json!("Anthropic");
    })
    .await;
    let mut client = Client::connect(&gateway).await;
    let sent = client.send_chat(false).await;
    let exchange = gateway.upstream.exchange().await;
    let body: Value = serde_json::from_slice(&exchange.body).unwrap();
    assert_eq!(body["provider"], json!({"data_collection": "deny"}));
    assert_eq!((&body["store"], &body["model"]), (&json!(false), &json!(MODEL)));
    assert!(exchange.head.contains("OpenAI-Organization: org-1\r\n"));
    exchange
        .answer(br#"{"id":"m","type":"message","role":"assistant","model":"x","content":[{"type":"text","text":"yes"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}"#)
        .await;
    let answer = read(sent).await.unwrap();
    assert_eq!(answer.status, 200);
    assert!(answer.headers.get("x-proofgate-dropped-fields").is_none());
}

#[tokio::test]
async fn a_header_that_would_be_two_is_refused_without_its_value() {
    let gateway = Gateway::start().await;
    let refused = gateway.try_reload(|document| {
        let header = json!({"name": "X-A", "value": "secret\r\nX-B: c", "secret": true});
        document["providers"][0]["headers"] = json!([header]);
    });
    let message = refused.unwrap_err().to_string();
    assert!(
        message.contains("X-A") && !message.contains("secret\r"),
        "{message}"
    );
}
