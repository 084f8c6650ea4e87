//! Betas sent to Bedrock, and answers received by a client.

use super::*;
use proofgate_translate::anthropic_invoke;

#[test]
fn betas_and_their_fields_go_to_bedrock_together() {
    let keep = json!({"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]});
    let mut body = asking(json!({"context_management": keep}));
    body["max_tokens"] = json!(20);
    let target = Target {
        model: "anthropic.claude-sonnet-4-5",
        max_output_tokens: 4096,
        untranslatable: REFUSE,
    };
    let mut out = Vec::new();
    let beta = "context-management-2025-06-27";
    anthropic_invoke::translate_request(body.to_string().as_bytes(), &target, &[beta], &mut out).unwrap();
    let written: Value = serde_json::from_slice(&out).unwrap();
    Row {
        about: "07: a beta and its field",
        outcome: Ok((written, Vec::new())),
    }
    .has(&[("/anthropic_beta", json!([beta])), ("/context_management", keep)]);
}

#[test]
fn answers_that_are_valid_are_answers() {
    let heard = |about, out: Vec<u8>| Row {
        about,
        outcome: Ok((serde_json::from_slice(&out).unwrap(), Vec::new())),
    };
    let call =
        json!({"id": "k", "type": "function", "function": {"name": "look_up", "arguments": "{\"q\": \"lo"}});
    let cut = json!({"id": "c", "object": "chat.completion", "choices": [{"index": 0, "finish_reason": "length",
        "message": {"role": "assistant", "content": null, "tool_calls": [call]}}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 20, "total_tokens": 29}});
    let mut out = Vec::new();
    anthropic_openai::translate_response(cut.to_string().as_bytes(), &RequestContext::default(), &mut out)
        .unwrap();
    heard("18: cut within a call, it ends at its limit", out).has(&[("/stop_reason", json!("max_tokens"))]);

    let drawn = json!({"candidates": [{"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": [
        {"text": "a line"}, {"inlineData": {"mimeType": "image/png", "data": PIXEL}}]}}],
        "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 20, "totalTokenCount": 29}});
    let mut out = Vec::new();
    openai_gemini::translate_response(
        drawn.to_string().as_bytes(),
        &RequestContext::default(),
        1,
        &mut out,
    )
    .unwrap();
    heard("32: a picture", out).has(&[
        ("/choices/0/message/content", json!("a line")),
        ("/choices/0/message/images/0/type", json!("image_url")),
    ]);
}
