use std::ops::Range;

use proofgate_policy::{Engine, RuleIndex};

/// Maximum number of matches of one text: each of them and its replacement take some hundred bytes of memory.
pub(crate) const MAX_MATCHES: usize = 100_000;

/// A part of a text that is replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redaction {
    /// Its range in the text, in bytes.
    pub range: Range<usize>,
    /// The rule named in the replacement: of overlapping matches, that of the first one.
    pub rule: RuleIndex,
    /// Whether all of the rules that matched here mask it.
    pub(crate) is_masked: bool,
    /// The index of its placeholder, if it is masked.
    pub(crate) mask: Option<usize>,
}

impl Redaction {
    pub(crate) fn new(rule: RuleIndex, range: Range<usize>, is_masked: bool) -> Self {
        Self {
            range,
            rule,
            is_masked,
            mask: None,
        }
    }

    /// Returns the length of [`Redaction::replacement`] in bytes.
    pub(crate) fn replacement_length(&self, engine: &Engine) -> usize {
        "[redacted:]".len() + engine.rule(self.rule).id.len()
    }

    /// Returns the replacement: `[redacted:<rule id>]`.
    pub fn replacement(&self, engine: &Engine) -> String {
        format!("[redacted:{}]", engine.rule(self.rule).id)
    }
}

/// The parts of one text that are replaced, in order and without overlaps.
///
/// The result does not depend on the order in which matches are added.
#[derive(Debug, Default)]
pub(crate) struct Spans {
    spans: Vec<Redaction>,
}

impl Spans {
    /// Adds a match. Overlapping matches become one span. The span is named after the match that
    /// begins first; of several that begin at the same position, the match whose rule has the
    /// smallest index. The span is redacted unless all of its matches are masked.
    pub(crate) fn add(&mut self, rule: RuleIndex, found: Range<usize>, is_masked: bool) {
        if found.start >= found.end {
            return;
        }
        let first = self.spans.partition_point(|span| span.range.end <= found.start);
        let behind = self.spans.partition_point(|span| span.range.start < found.end);
        let mut merged = Redaction::new(rule, found, is_masked);
        for span in &self.spans[first..behind] {
            if (span.range.start, span.rule) < (merged.range.start, merged.rule) {
                merged.rule = span.rule;
            }
            merged.range.start = merged.range.start.min(span.range.start);
            merged.range.end = merged.range.end.max(span.range.end);
            merged.is_masked &= span.is_masked;
        }
        self.spans.splice(first..behind, [merged]);
    }

    pub(crate) fn clear(&mut self) {
        self.spans.clear();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Returns the start of the first span.
    pub(crate) fn first_start(&self) -> Option<usize> {
        self.spans.first().map(|span| span.range.start)
    }

    /// Returns the spans that touch `range`.
    pub(crate) fn overlapping(&self, range: &Range<usize>) -> &[Redaction] {
        let first = self.spans.partition_point(|span| span.range.end <= range.start);
        let behind = self.spans.partition_point(|span| span.range.start < range.end);
        self.spans.get(first..behind).unwrap_or_default()
    }

    /// Whether any span overlaps `range`.
    pub(crate) fn overlaps(&self, range: &Range<usize>) -> bool {
        !self.overlapping(range).is_empty()
    }

    /// Removes the spans that end at or before `offset`.
    pub(crate) fn discard_before(&mut self, offset: usize) {
        let count = self.spans.partition_point(|span| span.range.end <= offset);
        self.spans.drain(..count);
    }

    pub(crate) fn as_slice(&self) -> &[Redaction] {
        &self.spans
    }

    pub(crate) fn into_redactions(self) -> Vec<Redaction> {
        self.spans
    }
}
