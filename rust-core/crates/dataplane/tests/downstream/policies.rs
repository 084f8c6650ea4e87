//! External policies, with these tests as their evaluator.

use std::sync::Arc;

use proofgate_dataplane::{PolicyItem, PolicyQueue, Replacement, Verdict};
use serde_json::{Value, json};

use crate::client::{Client, next, post, post_as, read};
use crate::gateway::{ACME, GLOBEX, Gateway, MODEL, PATIENCE, chat};
use crate::uploads::{field, form};
use http::Request;

/// Configures a policy for the first tenant, acme, with a timeout longer than any test.
fn asking(document: &mut Value, on_failure: &str) {
    document["policies"] = json!([
        {"name": "p", "revision": "1", "deadlineMilliseconds": 60_000, "onFailure": on_failure}
    ]);
    document["tenants"][0]["policies"] = json!(["p"]);
}

async fn governed() -> (Gateway, Arc<PolicyQueue>) {
    let gateway = Gateway::with(|document| asking(document, "Deny")).await;
    let queue = Arc::new(gateway.worker.policy_queue("p").unwrap());
    (gateway, queue)
}

/// Returns the only request that waits for the policy.
async fn taken(queue: &Arc<PolicyQueue>) -> PolicyItem {
    let queue = Arc::clone(queue);
    let batch = tokio::task::spawn_blocking(move || queue.take_batch(8, PATIENCE));
    let mut batch = batch.await.unwrap().unwrap();
    assert_eq!(batch.len(), 1);
    batch.remove(0)
}

#[tokio::test]
async fn while_a_request_waits_for_its_policy_nothing_of_it_leaves_and_others_are_served() {
    let (mut gateway, queue) = governed().await;
    let mut client = Client::connect(&gateway).await;
    let body = chat(10, false);
    let waits = client.send(post(Some(body.len())), &body).await;
    let item = taken(&queue).await;
    assert_eq!(item.texts().last().unwrap().0, "x".repeat(10));
    for _ in 0..3 {
        let other = client.send(post_as(GLOBEX, Some(body.len())), &body).await;
        gateway.upstream.exchange().await.answer(b"{}").await;
        assert_eq!(read(other).await.unwrap().status, 200);
    }
    assert_eq!(gateway.upstream.requests(), 3);
    assert!(item.respond(Verdict::Allow));
    gateway.upstream.exchange().await.answer(b"{}").await;
    assert_eq!(read(waits).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_configuration_that_leaves_the_policy_as_it_is_leaves_those_who_wait_for_it() {
    let (mut gateway, queue) = governed().await;
    let mut client = Client::connect(&gateway).await;
    let body = chat(10, false);
    let waits = client.send(post(Some(body.len())), &body).await;
    let item = taken(&queue).await;
    gateway.reload(|document| document["timeouts"]["answerSeconds"] = json!(700));
    assert!(gateway.worker.policy_queue("p").is_err(), "its queue was taken");
    assert!(item.respond(Verdict::Allow));
    gateway.upstream.exchange().await.answer(b"{}").await;
    assert_eq!(read(waits).await.unwrap().status, 200);
    // The next request waits in the same queue.
    let denied = client.send(post(Some(body.len())), &body).await;
    let (code, reason) = ("no".to_owned(), "No.".to_owned());
    assert!(taken(&queue).await.respond(Verdict::Deny { code, reason }));
    assert_eq!(read(denied).await.unwrap().code(), "policy_blocked");
}

#[tokio::test]
async fn a_copy_without_room_is_refused_whatever_becomes_of_failures() {
    const BODY: usize = 600_000;
    let gateway = Gateway::with(|document| {
        asking(document, "Allow");
        // Enough for a body and its text, but not for the copy, which needs as much as both.
        document["limits"]["bufferedBytes"] = json!(4 * BODY);
    });
    let mut gateway = gateway.await;
    let mut client = Client::connect(&gateway).await;
    let body = chat(BODY, false);
    let refused = client.exchange(post(Some(body.len())), &body).await;
    assert_eq!((refused.status.as_u16(), &*refused.code()), (503, "overloaded"));
    let other = client.send(post_as(GLOBEX, Some(body.len())), &body).await;
    gateway.upstream.exchange().await.answer(b"{}").await;
    assert_eq!(read(other).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_policy_of_a_removed_evaluator_fails_at_once() {
    let (gateway, queue) = governed().await;
    drop(queue);
    let mut client = Client::connect(&gateway).await;
    let body = chat(10, false);
    let refused = client.exchange(post(Some(body.len())), &body).await;
    assert_eq!(
        (refused.status.as_u16(), &*refused.code()),
        (403, "policy_unavailable")
    );
    assert_eq!(gateway.upstream.requests(), 0);
}

#[tokio::test]
async fn what_a_policy_has_replaced_is_put_back_in_a_stream_and_holds_nothing_else() {
    let (mut gateway, queue) = governed().await;
    let mut client = Client::connect(&gateway).await;
    let body = chat(10, true);
    let answer = client.send(post(Some(body.len())), &body).await;
    let item = taken(&queue).await;
    let text = item.texts().len() - 1;
    let replacement = Replacement {
        text_index: text,
        start: 0,
        end: 10,
        replacement: "[NAME_1]".to_owned(),
    };
    assert!(item.respond(Verdict::Replace {
        rule: "names".to_owned(),
        replacements: vec![replacement],
        reversible: true,
    }));
    let mut exchange = gateway.upstream.exchange().await;
    assert!(String::from_utf8_lossy(&exchange.body).contains("[NAME_1]"));
    exchange.begin_events().await;
    let event = |text: &str| {
        format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
    };
    let mut stream = answer.await.unwrap().into_body();
    for plain in ["Dear", " [NAM"] {
        exchange.send_chunk(&event(plain)).await;
    }
    assert_eq!(next(&mut stream).await.unwrap().unwrap(), event("Dear"));
    exchange.send_chunk(&event("E_1], hi")).await;
    let mut rest = Vec::new();
    while rest.len() < event(" xxxxxxxxxx, hi").len() + event("").len() {
        rest.extend_from_slice(&next(&mut stream).await.unwrap().unwrap());
    }
    assert_eq!(
        String::from_utf8(rest).unwrap(),
        event(" xxxxxxxxxx") + &event(", hi")
    );
    exchange.send_chunk("data: [DONE]\n\n").await;
    exchange.send(b"0\r\n\r\n").await;
    assert_eq!(next(&mut stream).await.unwrap().unwrap(), "data: [DONE]\n\n");
    assert_eq!(next(&mut stream).await.unwrap(), None);
}

/// Returns a form request of acme.
fn post_form(path: &str, length: usize) -> Request<()> {
    Request::post(format!("https://gateway.test{path}"))
        .header("authorization", format!("Bearer {ACME}"))
        .header("content-type", "multipart/form-data; boundary=limit")
        .header("content-length", length)
        .body(())
        .unwrap()
}

fn file(content: &str) -> Vec<u8> {
    let disposition = "Content-Disposition: form-data; name=\"file\"; filename=\"a\"";
    format!("--limit\r\n{disposition}\r\n\r\n{content}\r\n").into_bytes()
}

#[tokio::test]
async fn each_of_several_policies_is_asked_of_a_form() {
    let mut gateway = Gateway::with(|document| {
        asking(document, "Deny");
        let mut second = document["policies"][0].clone();
        second["name"] = "q".into();
        document["policies"].as_array_mut().unwrap().push(second);
        document["tenants"][0]["policies"] = json!(["p", "q"]);
    })
    .await;
    let queues = ["p", "q"].map(|name| Arc::new(gateway.worker.policy_queue(name).unwrap()));
    let mut client = Client::connect(&gateway).await;
    let body = form(&[field("model", MODEL), field("prompt", "Hello"), file("x")]);
    let waits = client
        .send(post_form("/v1/audio/transcriptions", body.len()), &body)
        .await;
    for queue in &queues {
        let item = taken(queue).await;
        assert_eq!(item.texts().next().unwrap().0, "Hello\na\n");
        assert!(item.respond(Verdict::Allow));
    }
    gateway.upstream.exchange().await.answer(b"{}").await;
    assert_eq!(read(waits).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_policy_is_asked_of_each_line_of_a_batch_and_can_deny_the_upload() {
    let gateway = Gateway::with(|document| {
        asking(document, "Deny");
        document["providers"][0]["objectsOf"] = "acme".into();
    })
    .await;
    let queue = Arc::new(gateway.worker.policy_queue("p").unwrap());
    let mut client = Client::connect(&gateway).await;
    let line = |content: &str| {
        let message = json!({"role": "user", "content": content});
        let body = json!({"model": MODEL, "messages": [message]});
        json!({"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": body}).to_string()
    };
    let lines = [line("One"), line("Two")].join("\n");
    let body = form(&[field("purpose", "batch"), file(&lines)]);
    let waits = client.send(post_form("/v1/files", body.len()), &body).await;
    for (text, verdict) in [
        ("a\n", Verdict::Allow),
        ("One", Verdict::Allow),
        (
            "Two",
            Verdict::Deny {
                code: "no".to_owned(),
                reason: "No.".to_owned(),
            },
        ),
    ] {
        let item = taken(&queue).await;
        assert!(item.texts().any(|(found, ..)| found.contains(text)), "{text}");
        assert!(item.respond(verdict));
    }
    let answer = read(waits).await.unwrap();
    assert_eq!((answer.status.as_u16(), &*answer.code()), (403, "policy_blocked"));
    assert_eq!(gateway.upstream.requests(), 0);
}
