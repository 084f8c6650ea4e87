//! Answers that follow the provider's API and once were not translated.

use super::*;
use proofgate_translate::StreamStatus;

const CREATED: u64 = 1_750_000_000;

fn cut(reason: &str) -> Value {
    let call =
        json!({"id": "t", "type": "function", "function": {"name": "f", "arguments": "{\"city\": \"Os"}});
    json!({"id": "c", "choices": [{"index": 0, "message": {"role": "assistant", "content": "I look",
        "tool_calls": [call]}, "finish_reason": reason}]})
}

/// 18-whole-answer-cut-in-a-call.
#[test]
fn an_answer_that_was_cut_in_a_call_ends_as_its_stream_does() {
    let mut out = Vec::new();
    anthropic_openai::translate_response(
        cut("length").to_string().as_bytes(),
        &RequestContext::default(),
        &mut out,
    )
    .unwrap();
    let whole: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(whole["stop_reason"], "max_tokens");
    assert_eq!(whole["content"][1]["input"], json!({}));

    let mut chunk = cut("length");
    chunk["choices"][0]["delta"] = chunk["choices"][0]["message"].take();
    let (mut stream, mut out) = (
        anthropic_openai::Stream::new(&RequestContext::default(), 1),
        Vec::new(),
    );
    stream
        .push_event("", chunk.to_string().as_bytes(), &mut out)
        .unwrap();
    assert_eq!(
        stream.push_event("", b"[DONE]", &mut out),
        Ok(StreamStatus::Finished)
    );
    let streamed = String::from_utf8(out).unwrap();
    assert!(streamed.contains(r#""stop_reason":"max_tokens""#) && streamed.contains(r#""type":"tool_use""#));
}

#[test]
fn a_call_that_is_no_object_and_was_not_cut_is_malformed() {
    let body = cut("tool_calls").to_string();
    assert!(
        anthropic_openai::translate_response(body.as_bytes(), &RequestContext::default(), &mut Vec::new())
            .is_err()
    );
}

fn generated(parts: Value, reason: &str) -> Value {
    json!({"responseId": "r", "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": reason}],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 2, "totalTokenCount": 3}})
}

fn received(generated: &Value) -> Value {
    let mut out = Vec::new();
    openai_gemini::translate_response(
        generated.to_string().as_bytes(),
        &RequestContext::default(),
        CREATED,
        &mut out,
    )
    .unwrap();
    serde_json::from_slice(&out).unwrap()
}

fn streamed(generated: &Value) -> String {
    let (mut stream, mut out) = (
        openai_gemini::Stream::new(&RequestContext::default(), CREATED),
        Vec::new(),
    );
    stream
        .push_event("", generated.to_string().as_bytes(), &mut out)
        .unwrap();
    assert_eq!(stream.finish(&mut out), Ok(StreamStatus::Finished));
    String::from_utf8(out).unwrap()
}

/// 32-gemini-image-in-answer.
#[test]
fn a_picture_of_an_answer_stands_in_its_images() {
    let drawn = generated(
        json!([{"text": "here"}, {"inlineData": {"mimeType": "image/png", "data": PIXEL}},
            {"fileData": {"mimeType": "image/png", "fileUri": "https://example.org/a.png"}}]),
        "STOP",
    );
    let url = format!("data:image/png;base64,{PIXEL}");
    let answer = received(&drawn);
    let message = &answer["choices"][0]["message"];
    assert_eq!(message["content"], "here");
    assert_eq!(
        message["images"][0],
        json!({"type": "image_url", "image_url": {"url": url}})
    );
    assert_eq!(
        message["images"][1]["image_url"]["url"],
        "https://example.org/a.png"
    );
    assert!(streamed(&drawn).contains(&url));

    let next = json!({"model": "m", "messages": [{"role": "user", "content": "draw"}, message, {"role": "user", "content": "more"}]});
    let (sent, _) = written(
        openai_gemini::translate_request,
        "gemini-3-pro-image",
        REFUSE,
        &next,
    )
    .unwrap();
    assert_eq!(sent["contents"][1]["parts"][1]["inlineData"]["data"], PIXEL);
}

#[test]
fn an_end_without_a_word_of_openais_is_an_answer_that_names_it() {
    let failed = generated(json!([{"text": "a"}]), "MALFORMED_FUNCTION_CALL");
    let choice = &received(&failed)["choices"][0];
    assert_eq!(choice["finish_reason"], "content_filter");
    assert_eq!(choice["native_finish_reason"], "MALFORMED_FUNCTION_CALL");
    assert!(streamed(&failed).contains(r#""native_finish_reason":"MALFORMED_FUNCTION_CALL""#));

    let said = json!({"output": {"message": {"role": "assistant", "content": [{"text": "a"}]}},
        "stopReason": "malformed_tool_use", "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}});
    let mut out = Vec::new();
    openai_converse::translate_response(
        said.to_string().as_bytes(),
        &RequestContext::default(),
        CREATED,
        &mut out,
    )
    .unwrap();
    let answer: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(answer["choices"][0]["native_finish_reason"], "malformed_tool_use");
}
