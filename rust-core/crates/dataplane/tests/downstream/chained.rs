//! Clients of Anthropic's messages before models that no single pair of dialects leads to: Bedrock's of other vendors.

use serde_json::{Value, json};

use crate::bedrock::{NOVA, answer_with, begin, converse_stream, documents, gateway_with, message, streamed};
use crate::client::read;
use crate::frames::{event, exception};
use crate::relayed::{completion, id};

const PATH: &str = "/v1/messages";

#[tokio::test]
async fn a_message_reaches_a_model_of_converse_and_its_answer_is_a_message() {
    let mut gateway = gateway_with(|_| ()).await;
    let mut asked = message(NOVA, false);
    asked["system"] = "Be kind.".into();
    asked["tools"] = json!([{"name": "weather", "input_schema": {"type": "object", "properties": {}}}]);
    let (_client, answer, mut exchange) = begin(&mut gateway, PATH, &asked).await;
    assert!(
        exchange
            .head
            .starts_with("POST /model/us.amazon.nova-pro-v1%3A0/converse HTTP/1.1\r\n"),
        "{}",
        exchange.head
    );
    assert!(!exchange.head.contains("anthropic"), "{}", exchange.head);
    let sent: Value = serde_json::from_slice(&exchange.body).unwrap();
    assert_eq!(sent["system"][0]["text"], "Be kind.");
    assert_eq!(sent["inferenceConfig"]["maxTokens"], 10);
    assert_eq!(sent["toolConfig"]["tools"][0]["toolSpec"]["name"], "weather");
    let said = br#"{"output":{"message":{"role":"assistant","content":[{"text":"Let me see."},{"toolUse":{"toolUseId":"t1","name":"weather","input":{"city":"Oslo"}}}]}},"stopReason":"tool_use","usage":{"inputTokens":9,"outputTokens":2,"totalTokens":11},"metrics":{"latencyMs":1}}"#;
    answer_with(&mut exchange, "200 OK\r\nContent-Type: application/json", said).await;
    let answer = read(answer).await.unwrap();
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!((&body["type"], &body["model"]), (&json!("message"), &json!(NOVA)));
    assert_eq!(body["content"][0], json!({"type": "text", "text": "Let me see."}));
    assert_eq!(
        body["content"][1],
        json!({"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Oslo"}})
    );
    assert_eq!(body["stop_reason"], "tool_use");
    assert_eq!(body["usage"]["input_tokens"], 9);
    let record = completion(&gateway, id(&answer)).await;
    assert_eq!(record["usage"]["prompt_tokens"], 9);
}

#[tokio::test]
async fn a_stream_of_converse_becomes_one_of_a_message_however_it_is_cut() {
    let mut gateway = gateway_with(|_| ()).await;
    for size in [1, 7, 10_000] {
        let (_client, answer, exchange) = begin(&mut gateway, PATH, &message(NOVA, true)).await;
        let (body, whole, _) = streamed(answer, exchange, &converse_stream(), size).await;
        assert!(whole);
        let events = documents(&body);
        let text: String = events
            .iter()
            .filter_map(|event| event["delta"]["text"].as_str())
            .collect();
        assert_eq!(text, "Hello");
        assert_eq!(events.first().unwrap()["type"], "message_start");
        assert_eq!(events.last().unwrap()["type"], "message_stop");
        let end = &events[events.len() - 2];
        assert_eq!(end["delta"]["stop_reason"], "end_turn");
        assert_eq!(end["usage"]["output_tokens"], 2);
    }
}

#[tokio::test]
async fn what_goes_wrong_in_a_stream_is_one_error_of_messages_and_no_good_end() {
    let mut gateway = gateway_with(|_| ()).await;
    let begun = event("messageStart", r#"{"role":"assistant"}"#);
    let said = event(
        "contentBlockDelta",
        r#"{"contentBlockIndex":0,"delta":{"text":"Hel"}}"#,
    );
    let throttled = exception("throttlingException", r#"{"message":"too many tokens"}"#);
    for (frames, told) in [
        ([&begun[..], &said, &throttled].concat(), "too many tokens"),
        ([&begun[..], &said].concat(), "before the answer was whole"),
    ] {
        let (_client, answer, exchange) = begin(&mut gateway, PATH, &message(NOVA, true)).await;
        let (body, _, _) = streamed(answer, exchange, &frames, 10_000).await;
        let events = documents(&body);
        let errors = events.iter().filter(|event| event["type"] == "error").count();
        assert_eq!(errors, 1, "{body}");
        let last = events.last().unwrap();
        assert!(
            last["error"]["message"].as_str().unwrap().contains(told),
            "{last}"
        );
        assert!(!body.contains("message_stop"), "{body}");
    }
}

#[tokio::test]
async fn an_error_of_converse_has_the_shape_of_messages() {
    let mut gateway = gateway_with(|_| ()).await;
    let (_client, answer, mut exchange) = begin(&mut gateway, PATH, &message(NOVA, false)).await;
    let head = "400 Bad Request\r\nContent-Type: application/json\r\nx-amzn-ErrorType: ValidationException";
    answer_with(&mut exchange, head, br#"{"message":"That is too long."}"#).await;
    let answer = read(answer).await.unwrap();
    assert_eq!(answer.status.as_u16(), 400);
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(body["type"], "error");
    assert_eq!(body["error"]["type"], "invalid_request_error");
    assert_eq!(body["error"]["message"], "That is too long.");
}

#[tokio::test]
async fn what_a_far_dialect_lacks_is_named_as_the_client_calls_it() {
    let mut gateway = gateway_with(|config| config["providers"][0]["untranslatable"] = "drop".into()).await;
    let mut asked = message(NOVA, false);
    asked["thinking"] = json!({"type": "enabled", "budget_tokens": 1024});
    asked["metadata"] = json!({"user_id": "u"});
    let (_client, answer, mut exchange) = begin(&mut gateway, PATH, &asked).await;
    let said = br#"{"output":{"message":{"role":"assistant","content":[{"text":"Hello"}]}},"stopReason":"end_turn","usage":{"inputTokens":9,"outputTokens":2,"totalTokens":11},"metrics":{"latencyMs":1}}"#;
    answer_with(&mut exchange, "200 OK\r\nContent-Type: application/json", said).await;
    let answer = read(answer).await.unwrap();
    let dropped = answer.headers["x-proofgate-dropped-fields"].to_str().unwrap();
    assert_eq!(dropped, "thinking, metadata.user_id");
}
