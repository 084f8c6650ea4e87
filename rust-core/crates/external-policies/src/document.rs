//! The text of a request as a policy gets it: a copy, so that nobody waits for whoever reads it.

use proofgate_policy::Scope;
use proofgate_providers::{BodyText, StringKind};

/// What Python's objects for one text take besides its characters, in bytes.
const PYTHON_OBJECT_BYTES: usize = 200;

/// The texts of one request, in the order of its body.
pub struct RequestTexts {
    text: String,
    parts: Vec<Part>,
}

/// One string, key or long number.
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

    /// Bytes of memory that the copies of a body's text take at most: this one, and Python's, in which one character
    /// outside of the first plane has all of its text take four bytes for each.
    pub fn max_copy_bytes(body: &BodyText) -> usize {
        let wide = if body.text().is_ascii() { 1 } else { 4 };
        let parts = body
            .strings()
            .count()
            .saturating_mul(size_of::<Part>() + PYTHON_OBJECT_BYTES);
        body.text().len().saturating_mul(1 + wide).saturating_add(parts)
    }

    /// The texts, what each is, and whether the model takes it for instructions.
    pub fn texts(&self) -> impl ExactSizeIterator<Item = (&str, StringKind, bool)> {
        self.parts.iter().map(|part| {
            let text = self.text.get(part.start as usize..part.end as usize);
            (text.unwrap_or_default(), part.kind, part.is_instructions)
        })
    }
}

/// Whether the model takes a text for instructions.
fn is_instructions(body: &BodyText, start: usize) -> bool {
    let passage = body.passage_at(start).and_then(|number| body.passage(number));
    passage.is_some_and(|passage| passage.scope == Scope::Instructions)
}
