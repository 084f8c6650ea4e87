use proofgate_dialect::json::write_all;

/// Why an answer ended, as OpenAI's API says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FinishReason {
    /// The `finish_reason`.
    pub(super) reason: &'static str,
    /// Converse's own word, where OpenAI's API has none for it.
    native_reason: Option<&'static str>,
}

impl FinishReason {
    /// That of a `stopReason`, given whether the answer has tool calls for the client.
    pub(super) fn from_stop_reason(stop_reason: &str, has_calls: bool) -> Self {
        let (reason, native) = match stop_reason {
            "max_tokens" | "model_context_window_exceeded" => ("length", None),
            "guardrail_intervened" | "content_filtered" => ("content_filter", None),
            // The provider could not read what the model wrote. That is an answer, and was paid for.
            "malformed_model_output" => ("content_filter", Some("malformed_model_output")),
            "malformed_tool_use" => ("content_filter", Some("malformed_tool_use")),
            // A client does not look for calls behind another reason; and finds none if only the provider's own tools ran.
            _ if has_calls => ("tool_calls", None),
            _ => ("stop", None),
        };
        FinishReason {
            reason,
            native_reason: native,
        }
    }

    /// Writes the member that names Converse's own word, if there is one, a comma before it.
    pub(super) fn write_native(self, out: &mut Vec<u8>) {
        if let Some(native) = self.native_reason {
            write_all(out, &[r#","native_finish_reason":""#, native, "\""]);
        }
    }
}
