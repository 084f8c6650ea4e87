//! How a streamed answer is to end.

use std::ops::Range;

use proofgate_json::{Event, equals_ignore_case};

use super::walk::Walk;
use crate::bad_request::{BadRequest, Field};
use crate::call_fields::boolean;
use crate::field_names::KeyMeaning;

const INCLUDE_USAGE: &str = "include_usage";

/// The member `stream_options` of a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StreamOptions {
    Absent,
    /// `null`, which stands here.
    Null(Range<usize>),
    /// An object whose `include_usage` is `false` or `null`, which stands here.
    Declined(Range<usize>),
    /// An object that says nothing of usage, or asks for it; its first member would begin here.
    Object {
        begin: usize,
        empty: bool,
    },
}

impl StreamOptions {
    /// Reads an object whose first brace has been read. Returns also whether it asks for usage; `None` where it does not say.
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
