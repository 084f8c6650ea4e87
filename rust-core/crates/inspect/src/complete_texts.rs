//! Complete texts of one response, each scanned separately: the texts of a whole response in blocks
//! or items, and in a stream the texts that no other event continues.

use std::time::Duration;

use proofgate_policy::{Scope, Step};

use crate::denial::Denial;
use crate::findings::{Findings, MAX_SLICE_BYTES, RuleContext};
use crate::masks::MaskedSpan;
use crate::spans::Spans;
use crate::text_scan::FullScan;

/// Minimum cost of scanning a text, in bytes of a longer one.
const MIN_SCAN_COST: usize = 64;

/// A text that arrives complete.
#[derive(Debug, Default)]
pub(crate) struct CompleteText {
    pub(crate) value: String,
    scope: Scope,
    pub(crate) spans: Spans,
    /// Masks that are restored.
    pub(crate) masked_spans: Vec<MaskedSpan>,
}

/// All complete texts, by index.
#[derive(Debug, Default)]
pub(crate) struct CompleteTexts {
    texts: Vec<CompleteText>,
    /// Total bytes of their values.
    bytes: usize,
    /// The number of scanned texts, and the scan of the next one.
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

    /// Returns the approximate memory in use, in bytes.
    pub(crate) fn capacity(&self) -> usize {
        self.bytes + self.texts.capacity() * size_of::<CompleteText>()
    }

    /// Clears all texts, and releases the memory of buffers with more than `most` bytes.
    pub(crate) fn release_memory(&mut self, most: usize) {
        self.clear();
        self.texts.shrink_to(most / size_of::<CompleteText>());
    }

    /// Adds a text that is scanned [at the end](CompleteTexts::finish); returns its index.
    pub(crate) fn add(&mut self, value: &str, scope: Scope) -> usize {
        self.push((value, scope), Spans::default(), Vec::new())
    }

    /// Scans a text that contains the masks `masked`; returns its index if something in it has to be replaced, or else
    /// discards it.
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

    /// Scans the texts that were added, for a time slice.
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

    /// Marks a text as released.
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
