//! Replacements in the texts of a response.

use std::borrow::Cow;
use std::ops::Range;

use proofgate_policy::Engine;
use proofgate_providers::{
    Edit, JsonEditTracker, PartEncoding, TextReplacement, UniqueKeyNames, edits_within_json,
};

use crate::complete_texts::CompleteText;
use crate::masks::{MaskedSpan, Masks};
use crate::spans::Redaction;
use crate::texts::ResponseText;

/// A part of a text, and the text that replaces it.
pub(crate) struct Change<'b> {
    pub(crate) range: Range<usize>,
    pub(crate) replacement: Cow<'b, str>,
}

/// Returns the replacements in `range` of a text, in order and without overlaps, including a part that began before it.
pub(crate) fn for_text<'m>(
    text: &mut ResponseText,
    masks: Option<&'m Masks>,
    range: &Range<usize>,
    engine: &Engine,
) -> Vec<Change<'m>> {
    let mut keys = std::mem::take(&mut text.keys);
    let touched = extended_range(&text.json, range);
    let spans = text.spans.overlapping(&touched);
    let cuts = cuts(text, spans);
    let cuts = cuts
        .iter()
        .filter(|cut| cut.range.start < range.end && range.start < cut.range.end);
    let mut changes: Vec<Change<'m>> = cuts
        .map(|cut| {
            let by = match cut.range.start >= range.start {
                true => cut.replacement_text(&spans[cut.edit_index].replacement(engine).into(), &mut keys),
                // The replacement is written where the part begins.
                false => Cow::Borrowed(""),
            };
            Change {
                range: cut.range.clone(),
                replacement: Cow::Owned(by.into_owned()),
            }
        })
        .collect();
    if let Some(masks) = masks {
        restore_masks(&mut changes, text.restored_masks(range), masks);
    }
    text.keys = keys;
    changes
}

/// Whether anything in `range` of a text is replaced.
pub(crate) fn has_changes_in(text: &ResponseText, range: &Range<usize>) -> bool {
    text.spans.overlaps(&extended_range(&text.json, range)) || text.restored_masks(range).next().is_some()
}

/// Returns the replacements in a complete text. Changed keys are numbered from the second one on, so that they stay
/// distinct.
pub(crate) fn for_complete_text<'m>(
    complete_text: &CompleteText,
    masks: Option<&'m Masks>,
    written: PartEncoding,
    keys: &mut UniqueKeyNames,
    engine: &Engine,
) -> Vec<Change<'m>> {
    let value = &complete_text.value;
    let spans = complete_text.spans.overlapping(&(0..value.len()));
    let edits: Vec<Edit<'_>> = spans
        .iter()
        .map(|span| (span.range.clone(), span.replacement(engine).into()))
        .collect();
    let edits = match written {
        PartEncoding::String => edits_within_json(value, &edits).unwrap_or(edits),
        PartEncoding::Key => edits
            .into_iter()
            .map(|(range, by)| (range, keys.make_unique(&by)))
            .collect(),
        // A number can only be replaced as a whole.
        PartEncoding::Number => edits
            .into_iter()
            .take(1)
            .map(|(_, by)| (0..value.len(), by))
            .collect(),
    };
    let mut changes: Vec<Change<'m>> = edits
        .into_iter()
        .map(|(range, by)| Change {
            range,
            replacement: Cow::Owned(by.into_owned()),
        })
        .collect();
    if let Some(masks) = masks.filter(|_| written != PartEncoding::Number) {
        restore_masks(&mut changes, complete_text.masked_spans.iter(), masks);
    }
    changes
}

/// Returns the parts of a text to replace for some of its spans.
fn cuts(text: &ResponseText, spans: &[Redaction]) -> Vec<TextReplacement> {
    let ranges = spans.iter().map(|span| span.range.clone());
    match text.full_text() {
        Some(whole) => {
            let edits: Vec<Edit<'_>> = ranges.clone().map(|range| (range, "".into())).collect();
            JsonEditTracker::from_edits(whole, &edits).replacements(ranges)
        }
        None => text.json.replacements(ranges),
    }
}

/// Extends `range` to include all of the numbers and escapes at its ends.
fn extended_range(json: &JsonEditTracker, range: &Range<usize>) -> Range<usize> {
    json.floor_boundary(range.start)..json.ceil_boundary(range.end)
}

/// Adds the original texts of masks, except masks that a rule partly replaces.
fn restore_masks<'m>(
    changes: &mut Vec<Change<'m>>,
    masked: impl Iterator<Item = impl std::borrow::Borrow<MaskedSpan>>,
    masks: &'m Masks,
) {
    let known = changes.len();
    for masked in masked {
        let masked = masked.borrow();
        let mut replaced = changes[..known].iter();
        if replaced
            .all(|change| change.range.end <= masked.range.start || masked.range.end <= change.range.start)
        {
            changes.push(Change {
                range: masked.range.clone(),
                replacement: masks.original(masked.mask).into(),
            });
        }
    }
    changes.sort_by_key(|change| change.range.start);
}
