//! The texts of one answer that come at once, each scanned by itself: those of a whole answer in blocks or items, and in a
//! stream those that no other event goes on with.

use std::time::Duration;

use proofgate_policy::{Scope, Step};

use crate::denial::Denial;
use crate::findings::{Findings, MAX_SLICE_BYTES, RuleContext};
use crate::marked::FullScan;
use crate::masks::MaskedSpan;
use crate::spans::Spans;

/// What scanning a text costs at least, in bytes of a longer one.
const MIN_SCAN_COST: usize = 64;

/// A text that came at once.
#[derive(Debug, Default)]
pub(crate) struct CompleteText {
    pub(crate) value: String,
    scope: Scope,
    pub(crate) spans: Spans,
    /// Masks that are put back.
    pub(crate) masked_spans: Vec<MaskedSpan>,
}

/// All of them, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct CompleteTexts {
    texts: Vec<CompleteText>,
    /// Bytes of their values.
    bytes: usize,
    /// How many are scanned, and how far the scan of the next one is.
    scanned_count: usize,
    scan: FullScan,
}

impl CompleteTexts {
    pub(crate) fn clear(&mut self) {
        self.texts.clear();
        self.bytes = 0;
        self.scanned_count = 0;
        self.scan = FullScan::default();
    }

    /// Bytes of memory that is taken, for the most part.
    pub(crate) fn capacity(&self) -> usize {
        self.bytes + self.texts.capacity() * size_of::<CompleteText>()
    }

    /// Forgets everything, and gives back the memory of what has more than `most` bytes.
    pub(crate) fn release_memory(&mut self, most: usize) {
        self.clear();
        self.texts.shrink_to(most / size_of::<CompleteText>());
    }

    /// Takes a text that is scanned [at the end](Singles::finish); its number.
    pub(crate) fn add(&mut self, value: &str, scope: Scope) -> usize {
        self.push((value, scope), Spans::default(), Vec::new())
    }

    /// Scans a text, in which `masked` stands; its number if something of it is to be replaced, or else it is forgotten.
    pub(crate) fn scan(
        &mut self,
        (value, scope): (&str, Scope),
        mut masked: Vec<MaskedSpan>,
        rules: &mut RuleContext<'_>,
        findings: &mut Findings,
    ) -> Result<Option<usize>, Denial> {
        let mut spans = Spans::default();
        findings.scan_text(rules, (value, scope), None, &mut spans)?;
        masked.retain(|masked| !spans.overlaps(&masked.range));
        if spans.is_empty() && masked.is_empty() {
            return Ok(None);
        }
        self.scanned_count += 1;
        Ok(Some(self.push((value, scope), spans, masked)))
    }

    /// Scans those that were added, for a slice of time.
    pub(crate) fn finish(
        &mut self,
        rules: &mut RuleContext<'_>,
        slice: Duration,
        findings: &mut Findings,
    ) -> Result<Step, Denial> {
        let mut scanned = 0;
        while let Some(CompleteText {
            value, scope, spans, ..
        }) = self.texts.get_mut(self.scanned_count)
        {
            let text = (value.as_str(), *scope);
            if scanned > MAX_SLICE_BYTES
                || findings.step_scan(&mut self.scan, rules, slice, text, None, spans)? == Step::Pending
            {
                return Ok(Step::Pending);
            }
            self.scanned_count += 1;
            scanned += value.len().max(MIN_SCAN_COST);
        }
        Ok(Step::Done)
    }

    pub(crate) fn get(&self, number: usize) -> &CompleteText {
        &self.texts[number]
    }

    /// A text has left.
    pub(crate) fn mark_released(&mut self, number: usize) {
        let CompleteText { value, .. } = std::mem::take(&mut self.texts[number]);
        self.bytes -= value.len();
    }

    fn push(&mut self, (value, scope): (&str, Scope), spans: Spans, masked: Vec<MaskedSpan>) -> usize {
        self.bytes += value.len();
        self.texts.push(CompleteText {
            value: value.to_owned(),
            scope,
            spans,
            masked_spans: masked,
        });
        self.texts.len() - 1
    }
}
