//! Replaces the parts of a request's text that a policy names.

use std::ops::Range;
use std::rc::Rc;

use proofgate_base::memory::{Buffer, MemoryBudget};
use proofgate_external_policies::{PolicyFailure, Replacement};
use proofgate_providers::{BodyText, StringKind};

use super::masks::{Masks, ReplacementError};
use crate::rewritten_body::RewrittenBody;

/// Maximum number of parts that one verdict replaces.
const MAX_REPLACEMENTS: usize = 10_000;
/// Maximum length of a replacement, in bytes.
const MAX_REPLACEMENT_BYTES: usize = 1024;
/// Maximum bytes of JSON for one byte of text. [`MAX_NUMBER_BYTES`] is the maximum for the number
/// that makes changed keys distinct, or for the quotes around a replaced number.
const MAX_ESCAPED_BYTES: usize = 6;
const MAX_NUMBER_BYTES: usize = 11;

/// Returns the body with the parts replaced; `text` was read from `body`. Adds the reversible replacements to
/// `masks`.
pub fn replace(
    budget: &Rc<MemoryBudget>,
    text: &BodyText,
    body: &[u8],
    replacements: &[Replacement],
    masks: Option<&mut Masks>,
) -> Result<RewrittenBody, ReplacementError> {
    let ranges =
        byte_ranges(text, replacements).ok_or(ReplacementError::InvalidRanges(PolicyFailure::BadVerdict))?;
    if let Some(masks) = masks {
        masks.add(text, &ranges, replacements)?;
    }
    let edits = ranges.into_iter().zip(replacements);
    let edits: Vec<_> = edits
        .map(|(range, replacement)| (range, replacement.replacement.as_str()))
        .collect();
    let most = edits.iter().fold(body.len(), |most, (range, by)| {
        let longest = by
            .len()
            .saturating_mul(MAX_ESCAPED_BYTES)
            .saturating_add(MAX_NUMBER_BYTES);
        most.saturating_add(text.max_replacements(range).saturating_mul(longest))
    });
    let mut rewritten = Buffer::new(budget);
    let model = rewritten.write(most, |out| text.rewrite(body, &edits, out))?;
    Ok(RewrittenBody {
        body: rewritten,
        model_range: model,
    })
}

/// Returns the byte ranges of the parts in the text. Returns `None` if the parts are not in order,
/// overlap, exceed their string, or are in the number of an API field.
fn byte_ranges(text: &BodyText, replacements: &[Replacement]) -> Option<Vec<Range<usize>>> {
    if replacements.is_empty() || replacements.len() > MAX_REPLACEMENTS || !replacements.iter().all(is_plain)
    {
        return None;
    }
    let mut strings = text.strings().enumerate();
    let mut current: Option<(usize, (Range<usize>, StringKind))> = None;
    // The position in the current string, in characters and in bytes.
    let mut walked = (0, 0);
    let mut ranges = Vec::with_capacity(replacements.len());
    for replacement in replacements {
        if current
            .as_ref()
            .is_none_or(|(number, _)| *number != replacement.text_index)
        {
            current = strings.find(|(number, _)| *number == replacement.text_index);
            walked = (0, 0);
        }
        let (_, (string, kind)) = current.as_ref()?;
        if *kind == StringKind::ApiNumber {
            // A number that the API requires cannot become a text.
            return None;
        }
        let value = text.text().get(string.clone())?;
        if replacement.start < walked.0 || replacement.start >= replacement.end {
            return None;
        }
        let start = walked.1 + byte_offset(value.get(walked.1..)?, replacement.start - walked.0)?;
        let end = start + byte_offset(value.get(start..)?, replacement.end - replacement.start)?;
        walked = (replacement.end, end);
        ranges.push(string.start + start..string.start + end);
    }
    Some(ranges)
}

/// Returns the byte offset of a character by its index, or the length of the text at its end.
fn byte_offset(text: &str, characters: usize) -> Option<usize> {
    let ends = std::iter::once(text.len());
    let mut starts = text.char_indices().map(|(at, _)| at).chain(ends);
    starts.nth(characters)
}

/// Whether the replacement reads the same in JSON and in JSON inside a string.
fn is_plain(replacement: &Replacement) -> bool {
    let plain = |character: char| !matches!(character, '"' | '\\') && !character.is_control();
    replacement.replacement.len() <= MAX_REPLACEMENT_BYTES && replacement.replacement.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use prometheus_client::metrics::gauge::Gauge;
    use proofgate_json::Workspace;
    use proofgate_providers::{BodyText, Dialect, ParsedRequest};

    use super::{Masks, PolicyFailure, Replacement, ReplacementError, replace};
    use proofgate_base::memory::MemoryBudget;

    const BODY: &str = r#"{ "messages": [{"role":"user","content":"Grüße \"an\" Ann und Bob"}],"model":"m"}"#;

    type Parts<'p> = [(usize, usize, usize, &'p str)];

    fn replaced(parts: &Parts<'_>) -> Result<String, ReplacementError> {
        replaced_with(parts, None)
    }

    fn replaced_with(parts: &Parts<'_>, masks: Option<&mut Masks>) -> Result<String, ReplacementError> {
        let budget = Rc::new(MemoryBudget::new(1 << 20, Gauge::default()));
        let mut text = BodyText::new();
        ParsedRequest::read_text(Dialect::Chat, BODY, &mut Workspace::new(), &mut text).unwrap();
        let number = text
            .strings()
            .position(|(range, _)| text.text()[range].contains("Ann"))
            .unwrap();
        let parts = parts.iter().map(|(text, start, end, by)| Replacement {
            text_index: number + text,
            start: *start,
            end: *end,
            replacement: (*by).to_owned(),
        });
        let parts: Vec<_> = parts.collect();
        let rewritten = replace(&budget, &text, BODY.as_bytes(), &parts, masks)?;
        assert_eq!(&rewritten.body[rewritten.model_range.clone()], br#""m""#);
        Ok(String::from_utf8(rewritten.body.to_vec()).unwrap())
    }

    #[test]
    fn parts_are_counted_in_characters_and_everything_else_stays_byte_for_byte() {
        let changed = replaced(&[(0, 11, 14, "[NAME_1]"), (0, 19, 22, "[NAME_2]")]);
        let expected = BODY.replace("Ann", "[NAME_1]").replace("Bob", "[NAME_2]");
        assert_eq!(changed, Ok(expected));
    }

    #[test]
    fn parts_that_do_not_fit_the_text_are_no_verdict() {
        for parts in [
            &[][..],
            &[(0, 3, 3, "x")],
            &[(0, 4, 3, "x")],
            &[(0, 20, 23, "x")],
            &[(0, usize::MAX - 1, usize::MAX, "x")],
            &[(9, 0, 1, "x")],
            &[(0, 5, 7, "x"), (0, 6, 8, "x")],
            &[(0, 5, 7, "x"), (0, 1, 2, "x")],
            &[(0, 0, 1, "\"")],
            &[(0, 0, 1, "\\")],
            &[(0, 0, 1, "\n")],
            &[(0, 0, 1, &"x".repeat(1025))],
        ] {
            assert_eq!(
                replaced(parts),
                Err(ReplacementError::InvalidRanges(PolicyFailure::BadVerdict)),
                "{parts:?}"
            );
        }
    }

    #[test]
    fn one_mask_stands_for_one_text() {
        let budget = Rc::new(MemoryBudget::new(1 << 20, Gauge::default()));
        let mut masks = Masks::new(&budget);
        assert!(replaced_with(&[(0, 11, 14, "[A]"), (0, 19, 22, "[B]")], Some(&mut masks)).is_ok());
        let mut answer = b"[B] and [A]".to_vec();
        masks.unmasker().unwrap().unmask(&mut answer);
        assert_eq!(answer, b"Bob and Ann");
        let same = replaced_with(
            &[(0, 11, 14, "[A]"), (0, 19, 22, "[A]")],
            Some(&mut Masks::new(&budget)),
        );
        assert_eq!(
            same,
            Err(ReplacementError::InvalidRanges(PolicyFailure::BadVerdict))
        );
    }
}
