//! Replacements of parts of a body that keep all other bytes.

use std::ops::Range;

use serde_json::value::RawValue;

/// Replacements in a text, each for a value that was read from it.
#[derive(Debug, Default)]
pub(crate) struct Edits(Vec<(Range<usize>, String)>);

impl Edits {
    /// Replaces a value that was read from `body` with `text`.
    pub(crate) fn replace(&mut self, body: &str, value: &RawValue, text: String) {
        self.0.extend(value_range(body, value).map(|place| (place, text)));
    }

    /// Appends the body with all replacements; `None` if two of them overlap.
    pub(crate) fn write(mut self, body: &str, out: &mut Vec<u8>) -> Option<()> {
        self.0.sort_unstable_by_key(|(place, _)| place.start);
        let mut at = 0;
        for (place, text) in &self.0 {
            out.extend_from_slice(body.get(at..place.start)?.as_bytes());
            out.extend_from_slice(text.as_bytes());
            at = place.end;
        }
        out.extend_from_slice(body.get(at..)?.as_bytes());
        Some(())
    }
}

/// Returns the position of a value in the text from which it was read.
pub(crate) fn value_range(text: &str, value: &RawValue) -> Option<Range<usize>> {
    let start = value.get().as_ptr().addr().checked_sub(text.as_ptr().addr())?;
    let place = start..start.checked_add(value.get().len())?;
    (text.get(place.clone()) == Some(value.get())).then_some(place)
}
