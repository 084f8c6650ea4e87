//! Clients of models that no single translation between dialects reaches: their requests are
//! translated through chat completions.

use serde_json::{Value, json};

use crate::bedrock::{NOVA, answer_with, begin, converse_stream, documents, gateway_with, message, streamed};
use crate::client::read;
use crate::frames::{event, exception};
use crate::gateway::{Gateway, MODEL};
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
        ([&begun[..], &said].concat(), "before the answer was complete"),
    ] {
        let (_client, answer, exchange) = begin(&mut gateway, PATH, &message(NOVA, true)).await;
        let (body, _, _) = streamed(answer, exchange, &frames, 10_000).await;
        // The error is an event, or the whole response if nothing of it has been sent.
        assert_eq!(body.matches(r#""type":"error""#).count(), 1, "{body}");
        assert!(body.contains(told) && !body.contains("message_stop"), "{body}");
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
    let mut gateway =
        gateway_with(|config| config["providers"][0]["untranslatableFields"] = "Drop".into()).await;
    let mut asked = message(NOVA, false);
    asked["metadata"] = json!({"user_id": "u"});
    let (_client, answer, mut exchange) = begin(&mut gateway, PATH, &asked).await;
    let said = br#"{"output":{"message":{"role":"assistant","content":[{"text":"Hello"}]}},"stopReason":"end_turn","usage":{"inputTokens":9,"outputTokens":2,"totalTokens":11},"metrics":{"latencyMs":1}}"#;
    answer_with(&mut exchange, "200 OK\r\nContent-Type: application/json", said).await;
    let answer = read(answer).await.unwrap();
    let dropped = answer.headers["x-proofgate-dropped-fields"].to_str().unwrap();
    assert_eq!(dropped, "metadata.user_id");
}

#[tokio::test]
async fn a_request_of_responses_reaches_a_model_of_converse_and_its_answer_is_a_response() {
    let mut gateway = gateway_with(|_| ()).await;
    let asked = json!({"model": NOVA, "store": false, "instructions": "Be kind.", "input": "Hi", "tools": [
        {"type": "function", "name": "weather", "parameters": {"type": "object", "properties": {}}, "strict": false}]});
    let (_client, answer, mut exchange) = begin(&mut gateway, "/v1/responses", &asked).await;
    assert!(
        exchange
            .head
            .starts_with("POST /model/us.amazon.nova-pro-v1%3A0/converse HTTP/1.1\r\n")
    );
    let sent: Value = serde_json::from_slice(&exchange.body).unwrap();
    assert_eq!(sent["system"][0]["text"], "Be kind.");
    assert_eq!(sent["toolConfig"]["tools"][0]["toolSpec"]["name"], "weather");
    let said = br#"{"output":{"message":{"role":"assistant","content":[{"text":"Hello"}]}},"stopReason":"end_turn","usage":{"inputTokens":9,"outputTokens":2,"totalTokens":11},"metrics":{"latencyMs":1}}"#;
    answer_with(&mut exchange, "200 OK\r\nContent-Type: application/json", said).await;
    let answer = read(answer).await.unwrap();
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(
        (&body["object"], &body["model"]),
        (&json!("response"), &json!(NOVA))
    );
    assert_eq!(body["status"], "completed");
    assert_eq!(body["output"][0]["content"][0]["text"], "Hello");
    assert_eq!(body["usage"]["input_tokens"], 9);
}

#[tokio::test]
async fn a_custom_tool_of_chat_completions_reaches_converse_and_its_call_is_a_custom_one() {
    let mut gateway = gateway_with(|_| ()).await;
    let asked = json!({"model": NOVA, "messages": [{"role": "user", "content": "Hi"}],
        "tools": [{"type": "custom", "custom": {"name": "apply_patch", "format": {"type": "text"}}}]});
    let (_client, answer, mut exchange) = begin(&mut gateway, "/v1/chat/completions", &asked).await;
    let sent: Value = serde_json::from_slice(&exchange.body).unwrap();
    assert_eq!(sent["toolConfig"]["tools"][0]["toolSpec"]["name"], "apply_patch");
    let said = br#"{"output":{"message":{"role":"assistant","content":[{"toolUse":{"toolUseId":"t1","name":"apply_patch","input":{"input":"*** Begin"}}}]}},"stopReason":"tool_use","usage":{"inputTokens":9,"outputTokens":2,"totalTokens":11},"metrics":{"latencyMs":1}}"#;
    answer_with(&mut exchange, "200 OK\r\nContent-Type: application/json", said).await;
    let answer = read(answer).await.unwrap();
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(body["model"], NOVA);
    assert_eq!(
        body["choices"][0]["message"]["tool_calls"][0],
        json!({"id": "t1", "type": "custom", "custom": {"name": "apply_patch", "input": "*** Begin"}})
    );
}

#[tokio::test]
async fn a_stream_of_converse_becomes_one_of_a_response_however_it_is_cut() {
    let mut gateway = gateway_with(|_| ()).await;
    for size in [1, 10_000] {
        let asked = json!({"model": NOVA, "stream": true, "input": "Hi"});
        let (_client, answer, exchange) = begin(&mut gateway, "/v1/responses", &asked).await;
        let (body, whole, _) = streamed(answer, exchange, &converse_stream(), size).await;
        assert!(whole);
        let events = documents(&body);
        assert_eq!(events.first().unwrap()["type"], "response.created");
        let text: String = events
            .iter()
            .filter(|event| event["type"] == "response.output_text.delta")
            .filter_map(|event| event["delta"].as_str())
            .collect();
        assert_eq!(text, "Hello");
        let last = events.last().unwrap();
        assert_eq!(last["type"], "response.completed");
        assert_eq!(last["response"]["usage"]["output_tokens"], 2);
    }
}

/// A worker in front of OpenAI's newest model, which accepts tools only at `/v1/responses`.
async fn before_openai() -> Gateway {
    Gateway::with(|config| {
        config["models"][0]["routes"][0]["upstreamModel"] = "gpt-5.6".into();
    })
    .await
}

const RESPONSE: &[u8] = br#"{"id":"resp_1","object":"response","created_at":1,"status":"completed","model":"gpt-5.6","output":[
    {"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"c2VjcmV0"},
    {"type":"function_call","id":"fc_1","call_id":"call_1","name":"weather","arguments":"{\"city\":\"Oslo\"}","status":"completed"}],
    "usage":{"input_tokens":9,"output_tokens":2,"total_tokens":11,"input_tokens_details":{"cached_tokens":0},"output_tokens_details":{"reasoning_tokens":0}}}"#;

#[tokio::test]
async fn tools_reach_openais_newest_models_by_responses_from_either_dialect() {
    let mut gateway = before_openai().await;
    let chat_tool =
        json!({"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}});
    let chat = json!({"model": MODEL, "messages": [{"role": "user", "content": "Hi"}], "tools": [chat_tool]});
    let message = json!({"model": MODEL, "max_tokens": 100, "messages": [{"role": "user", "content": "Hi"}],
        "output_config": {"effort": "high"}, "thinking": {"type": "adaptive"}, "context_management": {"edits": []},
        "tools": [{"name": "weather", "input_schema": {"type": "object"}}]});
    for (path, asked) in [("/v1/chat/completions", chat), (PATH, message)] {
        let (_client, answer, mut exchange) = begin(&mut gateway, path, &asked).await;
        assert!(
            exchange.head.starts_with("POST /v1/responses HTTP/1.1\r\n"),
            "{}",
            exchange.head
        );
        let sent: Value = serde_json::from_slice(&exchange.body).unwrap();
        assert_eq!(
            (&sent["model"], &sent["store"]),
            (&json!("gpt-5.6"), &json!(false))
        );
        assert_eq!(sent["tools"][0]["name"], "weather");
        answer_with(
            &mut exchange,
            "200 OK\r\nContent-Type: application/json",
            RESPONSE,
        )
        .await;
        let answer = read(answer).await.unwrap();
        let body: Value = serde_json::from_slice(&answer.body).unwrap();
        let call = match path {
            PATH => body["content"].as_array().unwrap().last().unwrap()["input"].clone(),
            _ => {
                let arguments = &body["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"];
                serde_json::from_str(arguments.as_str().unwrap()).unwrap()
            }
        };
        assert_eq!(call, json!({"city": "Oslo"}), "{body}");
        let record = completion(&gateway, id(&answer)).await;
        assert_eq!(record["usage"]["prompt_tokens"], 9);
    }
}

#[tokio::test]
async fn a_chat_request_without_tools_passes_as_it_came() {
    let mut gateway = before_openai().await;
    let asked = json!({"model": MODEL, "messages": [{"role": "user", "content": "Hi"}]});
    let (_client, _answer, exchange) = begin(&mut gateway, "/v1/chat/completions", &asked).await;
    assert!(
        exchange
            .head
            .starts_with("POST /v1/chat/completions HTTP/1.1\r\n"),
        "{}",
        exchange.head
    );
    let sent: Value = serde_json::from_slice(&exchange.body).unwrap();
    assert_eq!(sent["messages"], asked["messages"]);
}
