/// Returns OpenAI's `finish_reason` for Anthropic's `stop_reason`.
///
/// Some backends end a turn with tool calls with `end_turn`; clients run the calls only if the reason reports them. An
/// unknown reason counts as a normal end.
pub(super) fn finish_reason(stop_reason: &str, has_calls: bool) -> &'static str {
    match stop_reason {
        "max_tokens" | "model_context_window_exceeded" => "length",
        "refusal" => "content_filter",
        _ if has_calls => "tool_calls",
        _ => "stop",
    }
}
