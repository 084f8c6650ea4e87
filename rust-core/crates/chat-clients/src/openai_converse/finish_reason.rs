use proofgate_dialect::json::write_all;

/// The end of an answer, in OpenAI's terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FinishReason {
    /// The `finish_reason`.
    pub(super) reason: &'static str,
    /// Converse's stop reason, if OpenAI's API has no counterpart.
    native_reason: Option<&'static str>,
}

impl FinishReason {
    /// Returns the finish reason for a `stopReason`. `has_calls` is whether the answer has tool calls for the client.
    pub(super) fn from_stop_reason(stop_reason: &str, has_calls: bool) -> Self {
        let (reason, native) = match stop_reason {
            "max_tokens" | "model_context_window_exceeded" => ("length", None),
            "guardrail_intervened" | "content_filtered" => ("content_filter", None),
            // The provider could not read the model's output. It still is an answer, and was charged.
            "malformed_model_output" => ("content_filter", Some("malformed_model_output")),
            "malformed_tool_use" => ("content_filter", Some("malformed_tool_use")),
            // Clients look for calls only with this reason, and find none if only the provider's own tools ran.
            _ if has_calls => ("tool_calls", None),
            _ => ("stop", None),
        };
        FinishReason {
            reason,
            native_reason: native,
        }
    }

    /// Writes the member with Converse's stop reason, if there is one, with a comma before it.
    pub(super) fn write_native(self, out: &mut Vec<u8>) {
        if let Some(native) = self.native_reason {
            write_all(out, &[r#","native_finish_reason":""#, native, "\""]);
        }
    }
}
