//! The text of a request as an external policy receives it: a copy, so that the request never waits for its reader.

use proofgate_policy::Scope;
use proofgate_providers::{BodyText, StringKind};

/// Bytes that the Python objects for one text take besides its characters.
const PYTHON_OBJECT_BYTES: usize = 200;

/// The texts of one request, in the order of its body.
pub struct RequestTexts {
    text: String,
    parts: Vec<Part>,
}

/// A string, key or long number of a request.
struct Part {
    start: u32,
    end: u32,
    kind: StringKind,
    is_instructions: bool,
}

impl RequestTexts {
    pub fn from_body(body: &BodyText) -> Self {
        let number = |at| u32::try_from(at).unwrap_or(u32::MAX);
        let parts = body.strings().map(|(range, kind)| Part {
            start: number(range.start),
            end: number(range.end),
            kind,
            is_instructions: !range.is_empty() && is_instructions(body, range.start),
        });
        RequestTexts {
            parts: parts.collect(),
            text: body.text().to_owned(),
        }
    }

    /// Upper bound of the memory, in bytes, that copies of a body's text take: this copy and Python's. In Python, one
    /// character outside the Basic Multilingual Plane makes every character of its text take four bytes.
    pub fn max_copy_bytes(body: &BodyText) -> usize {
        let wide = if body.text().is_ascii() { 1 } else { 4 };
        let parts = body
            .strings()
            .count()
            .saturating_mul(size_of::<Part>() + PYTHON_OBJECT_BYTES);
        body.text().len().saturating_mul(1 + wide).saturating_add(parts)
    }

    /// Returns each text with its kind, and whether it is instructions for the model.
    pub fn texts(&self) -> impl ExactSizeIterator<Item = (&str, StringKind, bool)> {
        self.parts.iter().map(|part| {
            let text = self.text.get(part.start as usize..part.end as usize);
            (text.unwrap_or_default(), part.kind, part.is_instructions)
        })
    }
}

/// Whether a text is instructions for the model.
fn is_instructions(body: &BodyText, start: usize) -> bool {
    let passage = body.passage_at(start).and_then(|number| body.passage(number));
    passage.is_some_and(|passage| passage.scope == Scope::Instructions)
}
