//! The Responses API in front of an OpenAI-compatible provider that has only chat completions.

use serde_json::{Value, json};

use crate::bedrock::answer_with;
use crate::client::read;
use crate::dialects::{admission, begin};
use crate::gateway::{Gateway, MODEL};
use crate::relayed::{completion, id};

const PATH: &str = "/v1/responses";
const CHAT: &str = "POST /v1/chat/completions HTTP/1.1\r\n";
const SAID: &[u8] = br#"{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hello","reasoning_content":"Hm"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}"#;
const STREAM: &str = "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"Hello\"},\"finish_reason\":null}]}\n\n\
data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2,\"total_tokens\":7}}\n\n\
data: [DONE]\n\n";

async fn translated() -> Gateway {
    Gateway::with(|config| config["providers"][0]["responses"] = "Translated".into()).await
}

fn asked(stream: bool) -> Value {
    json!({"model": MODEL, "stream": stream, "instructions": "Be kind.", "input": [
        {"role": "user", "content": "Hi"},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "r"}]},
    ], "tools": [{"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}],
        "max_output_tokens": 50})
}

#[tokio::test]
async fn a_request_reaches_it_as_chat_completions_and_its_answer_is_a_response() {
    let mut gateway = translated().await;
    let (_client, answer, exchange) = begin(&mut gateway, PATH, &asked(false)).await;
    assert!(exchange.head.starts_with(CHAT), "{}", exchange.head);
    let sent: Value = serde_json::from_slice(&exchange.body).unwrap();
    assert_eq!(
        sent["messages"][0],
        json!({"role": "system", "content": "Be kind."})
    );
    assert_eq!(sent["messages"][3]["content"], "r");
    assert_eq!(sent["tools"][0]["function"]["name"], "f");
    // The field in the form that the model accepts.
    assert_eq!(sent["max_completion_tokens"], 50);
    exchange.answer(SAID).await;
    let answer = read(answer).await.unwrap();
    let response: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(
        (&response["object"], &response["model"]),
        (&json!("response"), &json!(MODEL))
    );
    assert_eq!(response["output"][0]["type"], "reasoning");
    assert_eq!(response["output"][1]["content"][0]["text"], "Hello");
    assert_eq!(admission(&gateway, id(&answer)).await["endpoint"], PATH);
    assert_eq!(
        completion(&gateway, id(&answer)).await["usage"]["prompt_tokens"],
        5
    );
}

#[tokio::test]
async fn a_stream_of_it_becomes_one_of_a_response() {
    let mut gateway = translated().await;
    let (_client, answer, mut exchange) = begin(&mut gateway, PATH, &asked(true)).await;
    let sent: Value = serde_json::from_slice(&exchange.body).unwrap();
    assert_eq!(sent["stream_options"]["include_usage"], true);
    let head = "200 OK\r\nContent-Type: text/event-stream";
    answer_with(&mut exchange, head, STREAM.as_bytes()).await;
    let answer = read(answer).await.unwrap();
    let body = String::from_utf8(answer.body.clone()).unwrap();
    for part in [
        "event: response.created",
        "response.output_text.delta",
        "\"Hello\"",
        "event: response.completed",
    ] {
        assert!(body.contains(part), "{part}: {body}");
    }
    let record = completion(&gateway, id(&answer)).await;
    assert_eq!(
        (&record["outcome"], &record["usage"]["completion_tokens"]),
        (&json!("complete"), &json!(2))
    );
}

#[tokio::test]
async fn a_provider_that_has_nothing_at_the_path_is_told_by_the_setting_that_helps() {
    let mut gateway = Gateway::start().await;
    for (status, body) in [
        ("404 Not Found", r#"{"detail":"Not Found"}"#),
        ("405 Method Not Allowed", "{}"),
        ("404 Not Found", "404 page not found"),
    ] {
        let (_client, answer, mut exchange) = begin(&mut gateway, PATH, &asked(false)).await;
        assert!(exchange.head.starts_with("POST /v1/responses HTTP/1.1\r\n"));
        answer_with(&mut exchange, status, body.as_bytes()).await;
        let answer = read(answer).await.unwrap();
        assert_eq!(
            (answer.status.as_u16(), &*answer.code()),
            (400, "provider_without_responses")
        );
        let told = String::from_utf8(answer.body.clone()).unwrap();
        assert!(told.contains("responses: Translated"), "{told}");
        let record = completion(&gateway, id(&answer)).await;
        let status: u64 = status[..3].parse().unwrap();
        assert_eq!(
            (&record["outcome"], &record["upstream_status"]),
            (&json!("upstream_error"), &json!(status))
        );
    }
}

#[tokio::test]
async fn what_a_provider_says_of_its_models_passes() {
    let mut gateway = Gateway::start().await;
    let said = br#"{"error":{"message":"The model `m` does not exist","code":"model_not_found"}}"#;
    let (_client, answer, mut exchange) = begin(&mut gateway, PATH, &asked(false)).await;
    answer_with(&mut exchange, "404 Not Found", said).await;
    let answer = read(answer).await.unwrap();
    assert_eq!((answer.status.as_u16(), &answer.body[..]), (404, &said[..]));
}
