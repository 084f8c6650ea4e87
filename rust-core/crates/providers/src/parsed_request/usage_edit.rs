//! The edit that makes a streamed response report its usage.

use std::ops::Range;

use super::ParsedRequest;
use super::stream_options::StreamOptions;

impl ParsedRequest<'_> {
    /// Returns the edit that makes a streamed response report its usage: a range of the body and
    /// its replacement. Returns `None` if the response reports its usage anyway, or is not
    /// streamed.
    ///
    /// `model_value` is the range of the value of `model` in the body to edit. If that body differs from the one that
    /// was read, because rules have replaced text in it, the edit is correct only for a request without
    /// `stream_options`; otherwise the new body must be read first.
    pub fn usage_edit(&self, model_value: &Range<usize>) -> Option<(Range<usize>, &'static [u8])> {
        if !self.stream || self.include_usage || !self.dialect.has_stream_options() {
            return None;
        }
        Some(match &self.stream_options {
            // After a member that every request has.
            StreamOptions::Absent => (
                model_value.end..model_value.end,
                br#","stream_options":{"include_usage":true}"#,
            ),
            StreamOptions::Null(value) => (value.clone(), br#"{"include_usage":true}"#),
            StreamOptions::Declined(value) => (value.clone(), b"true"),
            StreamOptions::Object { begin, empty: true } => (*begin..*begin, br#""include_usage":true"#),
            StreamOptions::Object { begin, empty: false } => (*begin..*begin, br#""include_usage":true,"#),
        })
    }

    /// Whether the request has `stream_options`.
    pub fn has_stream_options(&self) -> bool {
        self.stream_options != StreamOptions::Absent
    }
}
