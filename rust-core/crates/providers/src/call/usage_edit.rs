//! The edit that makes a streamed answer report its usage.

use std::ops::Range;

use super::ParsedRequest;
use super::stream_options::StreamOptions;

impl ParsedRequest<'_> {
    /// The edit by which a streamed answer brings its usage: a range of the body and what takes its place there. `None`
    /// when it does anyway, or is not streamed.
    ///
    /// `model_value` is where the value of `model` stands in the body that is edited. When that is not the body that was
    /// read, because rules have replaced text in it, the edit is known only for a request without `stream_options`: read
    /// the other body to know it.
    pub fn usage_edit(&self, model_value: &Range<usize>) -> Option<(Range<usize>, &'static [u8])> {
        if !self.stream || self.include_usage || !self.dialect.has_stream_options() {
            return None;
        }
        Some(match &self.stream_options {
            // Behind a member that every request has.
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

    /// Whether the request says anything of `stream_options`.
    pub fn has_stream_options(&self) -> bool {
        self.stream_options != StreamOptions::Absent
    }
}
