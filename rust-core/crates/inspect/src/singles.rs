//! The texts of one answer that come at once, each scanned by itself: those of a whole answer in blocks or items, and in a
//! stream those that no other event goes on with.

use std::time::Duration;

use proofgate_policy::{Scope, Step};

use crate::denial::Denial;
use crate::findings::{Findings, Rules, TOGETHER};
use crate::marked::WholeScan;
use crate::masks::MaskedSpan;
use crate::spans::Spans;

/// What scanning a text costs at least, in bytes of a longer one.
const LEAST: usize = 64;

/// A text that came at once.
#[derive(Debug, Default)]
pub(crate) struct Single {
    pub(crate) value: String,
    scope: Scope,
    pub(crate) spans: Spans,
    /// Masks that are put back.
    pub(crate) masked: Vec<MaskedSpan>,
}

/// All of them, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Singles {
    singles: Vec<Single>,
    /// Bytes of their values.
    bytes: usize,
    /// How many are scanned, and how far the scan of the next one is.
    scanned: usize,
    scan: WholeScan,
}

impl Singles {
    pub(crate) fn clear(&mut self) {
        self.singles.clear();
        self.bytes = 0;
        self.scanned = 0;
        self.scan = WholeScan::default();
    }

    /// Bytes of memory that is taken, for the most part.
    pub(crate) fn capacity(&self) -> usize {
        self.bytes + self.singles.capacity() * size_of::<Single>()
    }

    /// Forgets everything, and gives back the memory of what has more than `most` bytes.
    pub(crate) fn give_back(&mut self, most: usize) {
        self.clear();
        self.singles.shrink_to(most / size_of::<Single>());
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
        rules: &mut Rules<'_>,
        findings: &mut Findings,
    ) -> Result<Option<usize>, Denial> {
        let mut spans = Spans::default();
        findings.whole(rules, (value, scope), None, &mut spans)?;
        masked.retain(|masked| !spans.touch(&masked.range));
        if spans.is_empty() && masked.is_empty() {
            return Ok(None);
        }
        self.scanned += 1;
        Ok(Some(self.push((value, scope), spans, masked)))
    }

    /// Scans those that were added, for a slice of time.
    pub(crate) fn finish(
        &mut self,
        rules: &mut Rules<'_>,
        slice: Duration,
        findings: &mut Findings,
    ) -> Result<Step, Denial> {
        let mut scanned = 0;
        while let Some(Single {
            value, scope, spans, ..
        }) = self.singles.get_mut(self.scanned)
        {
            let text = (value.as_str(), *scope);
            if scanned > TOGETHER
                || findings.step(&mut self.scan, rules, slice, text, None, spans)? == Step::Pending
            {
                return Ok(Step::Pending);
            }
            self.scanned += 1;
            scanned += value.len().max(LEAST);
        }
        Ok(Step::Done)
    }

    pub(crate) fn get(&self, number: usize) -> &Single {
        &self.singles[number]
    }

    /// A text has left.
    pub(crate) fn released(&mut self, number: usize) {
        let Single { value, .. } = std::mem::take(&mut self.singles[number]);
        self.bytes -= value.len();
    }

    fn push(&mut self, (value, scope): (&str, Scope), spans: Spans, masked: Vec<MaskedSpan>) -> usize {
        self.bytes += value.len();
        self.singles.push(Single {
            value: value.to_owned(),
            scope,
            spans,
            masked,
        });
        self.singles.len() - 1
    }
}
