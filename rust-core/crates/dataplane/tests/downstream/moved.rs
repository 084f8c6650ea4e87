//! Conversations that moved from one provider to another: a provider does not get data that only
//! another provider can read.

use serde_json::{Value, json};

use crate::bedrock::gateway_with as bedrock;
use crate::client::{Answer, Client, read};
use crate::dialects::{admission, begin};
use crate::gateway::{Gateway, MODEL};
use crate::relayed::id;

const DROPPED: &str = "x-proofgate-dropped-fields";
const SEALED: &str = "reasoning_details:eyJkYXRhIjoiZCJ9";

/// Sends a request and lets the provider send an empty response. Returns the provider's request,
/// the response and the admission.
async fn sent(gateway: &mut Gateway, path: &str, document: &Value) -> (Value, Answer, Value) {
    let (_client, answer, exchange) = begin(gateway, path, document).await;
    let sent = serde_json::from_slice(&exchange.body).unwrap();
    exchange.answer(b"{}").await;
    let answer = read(answer).await.unwrap();
    let admission = admission(gateway, id(&answer)).await;
    (sent, answer, admission)
}

async fn anthropic() -> Gateway {
    Gateway::with(|config| config["providers"][0]["type"] = "Anthropic".into()).await
}

fn items(input: Value) -> Value {
    json!({"model": MODEL, "input": input, "max_output_tokens": 9})
}

#[tokio::test]
async fn thoughts_that_another_provider_had_are_kept_from_responses() {
    let mut gateway = Gateway::start().await;
    let said = json!({"role": "user", "content": "Hi"});
    let ours =
        json!({"type": "reasoning", "id": "rs_a_0", "summary": [], "encrypted_content": "proofgate-1:{}"});
    let theirs = json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"});
    let (got, answer, admission) = sent(
        &mut gateway,
        "/v1/responses",
        &items(json!([said, ours, theirs, said])),
    )
    .await;
    assert_eq!(got, items(json!([said, theirs, said])));
    assert_eq!(answer.headers[DROPPED], "input[].encrypted_content");
    assert_eq!(admission["dropped"], json!(["input[].encrypted_content"]));
    let (got, answer, _) = sent(&mut gateway, "/v1/responses", &items(json!([said, theirs, said]))).await;
    assert_eq!(got, items(json!([said, theirs, said])));
    assert!(!answer.headers.contains_key(DROPPED));
}

#[tokio::test]
async fn a_reference_to_thoughts_that_nobody_stores_is_left_out() {
    let input = json!([
        {"role": "user", "content": "Hi"}, {"type": "item_reference", "id": "rs_abc_0"},
        {"role": "assistant", "content": "Hello"}, {"role": "user", "content": "And?"},
    ]);
    let mut gateway = anthropic().await;
    let (got, answer, admission) = sent(&mut gateway, "/v1/responses", &items(input.clone())).await;
    assert_eq!(got["messages"].as_array().unwrap().len(), 3, "{got}");
    assert_eq!(answer.headers[DROPPED], "item_reference");
    assert_eq!(admission["dropped"], json!(["item_reference"]));
    let mut gateway = Gateway::start().await;
    let (got, ..) = sent(&mut gateway, "/v1/responses", &items(input)).await;
    assert_eq!(got["input"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn what_is_stored_is_refused_beside_thoughts_that_are_not() {
    let gateway = anthropic().await;
    let thought = json!({"type": "item_reference", "id": "rs_abc_0"});
    for (stored, param) in [
        (json!({"type": "item_reference", "id": "msg_1"}), "item_reference"),
        (
            json!({"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}),
            "file_id",
        ),
    ] {
        let body = items(json!([thought, stored])).to_string().into_bytes();
        let mut request = crate::client::post(Some(body.len()));
        *request.uri_mut() = "https://gateway.test/v1/responses".parse().unwrap();
        let refused = Client::connect(&gateway).await.exchange(request, &body).await;
        assert_eq!(
            (refused.status.as_u16(), &*refused.code()),
            (400, "unserved_field")
        );
        let told: Value = serde_json::from_slice(&refused.body).unwrap();
        assert_eq!(told["error"]["param"], param);
    }
    assert_eq!(gateway.upstream.requests(), 0);
}

fn turns(model: &str, blocks: Value) -> Value {
    json!({"model": model, "max_tokens": 9, "messages": [
        {"role": "user", "content": "Hi"}, {"role": "assistant", "content": blocks}, {"role": "user", "content": "And?"}]})
}

#[tokio::test]
async fn thinking_that_claude_has_not_signed_is_kept_from_it() {
    let text = json!({"type": "text", "text": "Hello"});
    let signed = json!({"type": "thinking", "thinking": "t", "signature": "Eq=="});
    let sealed = json!({"type": "thinking", "thinking": "t", "signature": SEALED});
    let unsigned = json!({"type": "thinking", "thinking": "t", "signature": ""});
    let blocks = json!([sealed, unsigned, signed, text]);
    let mut gateway = Gateway::with(|config| {
        config["providers"][0]["type"] = "Anthropic".into();
        config["models"][0]["routes"][0]["upstreamModel"] = "claude-sonnet-5".into();
    })
    .await;
    for path in ["/v1/messages", "/v1/messages/count_tokens"] {
        let (got, answer, admission) = sent(&mut gateway, path, &turns(MODEL, blocks.clone())).await;
        assert_eq!(got, turns("claude-sonnet-5", json!([signed, text])));
        assert_eq!(answer.headers[DROPPED], "thinking");
        assert_eq!(admission["dropped"], json!(["thinking"]));
    }
    let (got, answer, _) = sent(&mut gateway, "/v1/messages", &turns(MODEL, json!([signed, text]))).await;
    assert_eq!(got, turns("claude-sonnet-5", json!([signed, text])));
    assert!(!answer.headers.contains_key(DROPPED));

    let mut gateway = bedrock(|_| ()).await;
    let (got, answer, _) = sent(&mut gateway, "/v1/messages", &turns("claude", blocks)).await;
    assert_eq!(got["messages"], turns("", json!([signed, text]))["messages"]);
    assert_eq!(answer.headers[DROPPED], "thinking");
}
