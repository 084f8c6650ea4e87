use crate::AnswerError;

/// OpenAI's `finish_reason` of Converse's `stopReason`, given whether the answer has tool calls for the client.
///
/// # Errors
/// [`AnswerError::Failed`] if the model's output could not be read by the provider.
pub(super) fn finish_reason(stop_reason: &str, has_calls: bool) -> Result<&'static str, AnswerError> {
    Ok(match stop_reason {
        "max_tokens" | "model_context_window_exceeded" => "length",
        "guardrail_intervened" | "content_filtered" => "content_filter",
        "malformed_model_output" => return Err(AnswerError::Failed("malformed model output")),
        "malformed_tool_use" => return Err(AnswerError::Failed("malformed tool use")),
        // A client does not look for calls behind another reason; and finds none if only the provider's own tools ran.
        _ if has_calls => "tool_calls",
        _ => "stop",
    })
}
