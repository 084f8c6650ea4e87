//! Pieces of a body that something else stands for, all other bytes as they came.

use std::ops::Range;

use serde_json::value::RawValue;

/// Replacements in a text, each of a value that was read from it.
#[derive(Debug, Default)]
pub(crate) struct Edits(Vec<(Range<usize>, String)>);

impl Edits {
    /// Puts `text` in the place of a value that was read from `body`.
    pub(crate) fn replace(&mut self, body: &str, value: &RawValue, text: String) {
        self.0.extend(value_range(body, value).map(|place| (place, text)));
    }

    /// Appends the body with all replacements; `None` where two of them overlap.
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

/// Where a value stands in the text that it was read from.
pub(crate) fn value_range(text: &str, value: &RawValue) -> Option<Range<usize>> {
    let start = value.get().as_ptr().addr().checked_sub(text.as_ptr().addr())?;
    let place = start..start.checked_add(value.get().len())?;
    (text.get(place.clone()) == Some(value.get())).then_some(place)
}
