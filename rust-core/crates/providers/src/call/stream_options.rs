//! How a streamed answer is to end, and the edit that makes it tell its usage.

use std::ops::Range;

use proofgate_json::{Event, equals_but_for_case};

use super::walk::Walk;
use super::{Call, boolean};
use crate::bad_request::{BadRequest, Field};
use crate::field_names::Meaning;

const INCLUDE_USAGE: &str = "include_usage";

/// The member `stream_options` of a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StreamOptions {
    Absent,
    /// `null`, which stands here.
    Null(Range<usize>),
    /// An object whose `include_usage` is `false` or `null`, which stands here.
    Refused(Range<usize>),
    /// An object that says nothing of usage, or asks for it; its first member would begin here.
    Object {
        begin: usize,
        empty: bool,
    },
}

impl<'b> Call<'b> {
    pub(super) fn stream_options(&mut self, walk: &mut Walk<'b, '_, '_>) -> Result<(), BadRequest> {
        let begin = walk.reader.offset();
        let mut empty = true;
        let mut refused = None;
        while let Event::Key(key) = walk.reader.read()? {
            empty = false;
            let event = walk.reader.read()?;
            let mut decoded = String::new();
            let name = key.decoded(&mut decoded);
            if name == INCLUDE_USAGE {
                self.include_usage = boolean(event, Field::IncludeUsage)?;
                let value = if event == Event::Null { "null" } else { "false" };
                refused = (!self.include_usage).then(|| walk.behind(value));
            } else if equals_but_for_case(name, INCLUDE_USAGE) {
                return Err(BadRequest::AmbiguousName(Field::IncludeUsage.name()));
            } else {
                walk.text.push_key(key);
                walk.collect(event, Meaning::Field)?;
            }
        }
        self.stream_options = match refused {
            Some(value) => StreamOptions::Refused(value),
            None => StreamOptions::Object { begin, empty },
        };
        Ok(())
    }

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
            StreamOptions::Refused(value) => (value.clone(), b"true"),
            StreamOptions::Object { begin, empty: true } => (*begin..*begin, br#""include_usage":true"#),
            StreamOptions::Object { begin, empty: false } => (*begin..*begin, br#""include_usage":true,"#),
        })
    }

    /// Whether the request says anything of `stream_options`.
    pub fn has_stream_options(&self) -> bool {
        self.stream_options != StreamOptions::Absent
    }
}
