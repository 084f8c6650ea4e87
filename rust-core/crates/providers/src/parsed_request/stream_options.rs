//! Reads the `stream_options` of a request.

use std::ops::Range;

use proofgate_json::{Event, equals_ignore_case};

use super::walk::Walk;
use crate::bad_request::{BadRequest, Field};
use crate::field_names::KeyMeaning;
use crate::request_fields::boolean;

const INCLUDE_USAGE: &str = "include_usage";

/// The value of `stream_options` in a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StreamOptions {
    Absent,
    /// `null`, at this range.
    Null(Range<usize>),
    /// An object whose `include_usage` is `false` or `null`, at this range.
    Declined(Range<usize>),
    /// An object without `include_usage`, or with `true`; its first member would begin at this offset.
    Object {
        begin: usize,
        empty: bool,
    },
}

impl StreamOptions {
    /// Reads an object after its opening brace. Also returns the value of `include_usage`, or `None` if it is absent.
    pub(super) fn read(walk: &mut Walk<'_, '_, '_>) -> Result<(Self, Option<bool>), BadRequest> {
        let begin = walk.reader.offset();
        let mut empty = true;
        let (mut include_usage, mut refused) = (None, None);
        while let Event::Key(key) = walk.reader.read_event()? {
            empty = false;
            let event = walk.reader.read_event()?;
            let mut decoded = String::new();
            let name = key.decode(&mut decoded);
            if name == INCLUDE_USAGE {
                let is_asked_for = boolean(event, Field::IncludeUsage)?;
                let value = if event == Event::Null { "null" } else { "false" };
                refused = (!is_asked_for).then(|| walk.last_word_range(value));
                include_usage = Some(is_asked_for);
            } else if equals_ignore_case(name, INCLUDE_USAGE) {
                return Err(BadRequest::AmbiguousName(Field::IncludeUsage.name()));
            } else {
                walk.text.push_key(key);
                walk.collect(event, KeyMeaning::Field)?;
            }
        }
        let options = match refused {
            Some(value) => StreamOptions::Declined(value),
            None => StreamOptions::Object { begin, empty },
        };
        Ok((options, include_usage))
    }
}
