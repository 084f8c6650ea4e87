//! Restores the original texts in a response that rules masked, or a policy replaced, in its
//! request.

use std::ops::Range;
use std::rc::Rc;

use proofgate_base::memory::{MemoryBudget, MemoryExhausted, MemoryReservation};
use proofgate_external_policies::{PolicyFailure, Replacement};
use proofgate_inspect::Placeholder;
use proofgate_providers::BodyText;

/// Maximum number of different originals restored in one response.
const MAX_MASKS: usize = 256;
/// Maximum length of an original that is restored, in bytes.
const MAX_ORIGINAL_BYTES: usize = 1024;

/// The reason why nothing was replaced.
#[derive(Debug, PartialEq, Eq)]
pub enum ReplacementError {
    /// The parts do not match the text.
    InvalidRanges(PolicyFailure),
    Exhausted,
}

impl From<MemoryExhausted> for ReplacementError {
    fn from(_: MemoryExhausted) -> Self {
        ReplacementError::Exhausted
    }
}

/// The masks of one request and their originals.
pub struct Masks {
    masks: Vec<String>,
    originals: Vec<String>,
    reservation: MemoryReservation,
}

impl Masks {
    /// Creates an empty set.
    pub fn new(budget: &Rc<MemoryBudget>) -> Self {
        Masks {
            masks: Vec::new(),
            originals: Vec::new(),
            reservation: MemoryReservation::new(budget),
        }
    }

    /// Returns the masks that rules have set; `None` if there are none.
    ///
    /// # Errors
    /// [`MemoryExhausted`] if the budget has no capacity for them.
    pub fn from_placeholders(
        budget: &Rc<MemoryBudget>,
        placeholders: &[Placeholder],
    ) -> Result<Option<Self>, MemoryExhausted> {
        if placeholders.is_empty() {
            return Ok(None);
        }
        let (masks, originals): (Vec<_>, Vec<_>) = placeholders
            .iter()
            .map(|placeholder| (placeholder.name.clone(), placeholder.value.clone()))
            .unzip();
        let mut room = MemoryReservation::new(budget);
        room.resize(masks.iter().chain(&originals).map(String::capacity).sum())?;
        Ok(Some(Masks {
            masks,
            originals,
            reservation: room,
        }))
    }

    /// Adds the parts of a request that a policy replaces; `ranges` are their ranges in `text`.
    ///
    /// # Errors
    /// [`ReplacementError`] if one mask would represent two originals, if there are too many
    /// originals or one is too long, or if there is no memory for them. After an error, nothing was
    /// added.
    pub(super) fn add(
        &mut self,
        text: &BodyText,
        ranges: &[Range<usize>],
        by: &[Replacement],
    ) -> Result<(), ReplacementError> {
        let before = self.masks.len();
        let added = self.try_add(text, ranges, by);
        let bytes = self
            .masks
            .iter()
            .chain(&self.originals)
            .map(String::capacity)
            .sum();
        let added = added.and(self.reservation.resize(bytes).map_err(ReplacementError::from));
        if added.is_err() {
            self.masks.truncate(before);
            self.originals.truncate(before);
        }
        added
    }

    fn try_add(
        &mut self,
        text: &BodyText,
        ranges: &[Range<usize>],
        by: &[Replacement],
    ) -> Result<(), ReplacementError> {
        for (range, replacement) in ranges.iter().zip(by) {
            let original = text.text().get(range.clone()).unwrap_or_default();
            match self
                .masks
                .iter()
                .position(|mask| *mask == replacement.replacement)
            {
                Some(known) if self.originals[known] == original => {}
                None if self.masks.len() < MAX_MASKS
                    && original.len() <= MAX_ORIGINAL_BYTES
                    && !replacement.replacement.is_empty() =>
                {
                    self.masks.push(replacement.replacement.clone());
                    self.originals.push(original.to_owned());
                }
                Some(_) | None => return Err(ReplacementError::InvalidRanges(PolicyFailure::BadVerdict)),
            }
        }
        Ok(())
    }

    /// Returns the masks with their originals, which unmask a response; `None` if none can be
    /// restored.
    pub(crate) fn unmasker(&self) -> Option<proofgate_inspect::Masks> {
        let pairs = self.masks.iter().zip(&self.originals);
        proofgate_inspect::Masks::new(pairs.map(|(mask, original)| (&**mask, &**original)))
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use prometheus_client::metrics::gauge::Gauge;

    use super::Masks;
    use proofgate_base::memory::MemoryBudget;

    fn masks(pairs: &[(&str, &str)]) -> Masks {
        let budget = Rc::new(MemoryBudget::new(1 << 20, Gauge::default()));
        Masks {
            masks: pairs.iter().map(|(mask, _)| (*mask).to_owned()).collect(),
            originals: pairs.iter().map(|(_, original)| (*original).to_owned()).collect(),
            ..Masks::new(&budget)
        }
    }

    fn put_back(pairs: &[(&str, &str)], answer: &str) -> String {
        let mut answer = answer.as_bytes().to_vec();
        if let Some(masks) = masks(pairs).unmasker() {
            masks.unmask(&mut answer);
        }
        String::from_utf8(answer).unwrap()
    }

    #[test]
    fn every_mask_becomes_its_own_text_also_where_one_begins_like_another() {
        let pairs = [
            ("[A_1]", "ann@a.example"),
            ("[A_10]", "Grüße"),
            ("X", "y"),
            ("XX", "z"),
        ];
        let answer = r#"{"a":"[A_1], [A_10] and [A_1]","b":"XX","c":"{\"d\":\"[A_1]\"}"}"#;
        let expected =
            r#"{"a":"ann@a.example, Grüße and ann@a.example","b":"z","c":"{\"d\":\"ann@a.example\"}"}"#;
        assert_eq!(put_back(&pairs, answer), expected);
        assert_eq!(put_back(&pairs, "nothing of it"), "nothing of it");
    }

    #[test]
    fn a_text_that_json_would_have_to_escape_stays_masked() {
        for original in ["say \"hi\"", "a\\b", "two\nlines"] {
            assert_eq!(
                put_back(&[("[A_1]", original)], r#"{"a":"[A_1]"}"#),
                r#"{"a":"[A_1]"}"#
            );
        }
    }

    #[test]
    fn an_answer_that_repeats_a_mask_grows_no_more_than_it_may() {
        let original = "x".repeat(1000);
        let answer = "[A_1]".repeat(10_000);
        let whole = put_back(&[("[A_1]", &original)], &answer);
        assert!(whole.len() > answer.len() && whole.len() <= answer.len() + 32 * 1024);
        assert!(whole.ends_with("[A_1]"));
    }
}
