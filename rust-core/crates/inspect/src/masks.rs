//! Masks that replaced texts in a request, and the originals to restore in its response.

use std::collections::VecDeque;
use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind};

/// Maximum growth of a response, in bytes.
const MAX_ADDED_BYTES: usize = 32 * 1024;

/// Masks and their original texts. Of two masks that begin at the same position, the longer one counts.
///
/// A text that JSON would have to escape is not restored, because it may be within JSON in a JSON string.
#[derive(Debug)]
pub struct Masks {
    automaton: AhoCorasick,
    /// Pairs of mask and original, sorted so that masks with a common prefix are adjacent.
    masks: Vec<(String, String)>,
    /// The length of the longest one, in bytes.
    max_len: usize,
}

impl Masks {
    /// Creates masks from pairs of a mask, which is not empty, and its original text; `None` if none of them can be
    /// restored.
    #[must_use]
    pub fn new<'p>(pairs: impl Iterator<Item = (&'p str, &'p str)>) -> Option<Self> {
        let pairs = pairs.filter(|(mask, original)| !mask.is_empty() && original.chars().all(is_plain));
        let mut masks: Vec<(String, String)> = pairs.map(|(mask, by)| (mask.into(), by.into())).collect();
        masks.sort_unstable();
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(masks.iter().map(|(mask, _)| mask));
        Some(Masks {
            automaton: automaton.ok()?,
            max_len: masks.iter().map(|(mask, _)| mask.len()).max()?,
            masks,
        })
    }

    /// Returns the original text of a mask, by its index.
    pub(crate) fn original(&self, mask: usize) -> &str {
        self.masks.get(mask).map_or("", |(_, original)| original)
    }

    /// Restores the original texts in a document, until it has grown by the maximum.
    pub fn unmask(&self, document: &mut Vec<u8>) {
        let mut whole = Vec::new();
        let (mut from, mut added) = (0, 0);
        for found in self.automaton.find_iter(document.as_slice()) {
            let original = self.original(found.pattern().as_usize());
            let more = original.len().saturating_sub(found.len());
            if added + more > MAX_ADDED_BYTES {
                continue;
            }
            added += more;
            whole.extend_from_slice(&document[from..found.start()]);
            whole.extend_from_slice(original.as_bytes());
            from = found.end();
        }
        if from > 0 {
            whole.extend_from_slice(&document[from..]);
            *document = whole;
        }
    }

    /// Returns the first position from which the text is an incomplete beginning of a mask.
    fn partial_mask_start(&self, text: &str) -> Option<usize> {
        let first = text.len().saturating_sub(self.max_len.saturating_sub(1));
        (first..text.len())
            .filter(|at| text.is_char_boundary(*at))
            .find(|at| {
                let rest = &text[*at..];
                let next = self.masks.partition_point(|(mask, _)| mask.as_str() <= rest);
                self.masks
                    .get(next)
                    .is_some_and(|(mask, _)| mask.starts_with(rest))
            })
    }
}

/// Whether a character is unchanged in JSON, and in JSON within a JSON string.
pub(crate) fn is_plain(character: char) -> bool {
    !matches!(character, '"' | '\\') && !character.is_control()
}

/// A mask in a text.
#[derive(Debug, Clone)]
pub(crate) struct MaskedSpan {
    pub(crate) range: Range<usize>,
    /// The index of the mask.
    pub(crate) mask: usize,
}

/// The number of bytes by which the current response has grown.
#[derive(Debug, Default)]
pub(crate) struct ResponseGrowth(usize);

/// Finds masks in one text, however it is split into pieces.
#[derive(Debug, Default)]
pub(crate) struct MaskScan {
    /// A possible beginning of a mask, and its offset in the text.
    pending: String,
    pending_start: usize,
    found: VecDeque<MaskedSpan>,
}

impl MaskScan {
    pub(crate) fn clear(&mut self) {
        self.pending.clear();
        self.pending_start = 0;
        self.found.clear();
    }

    /// Adds the next piece. A possible beginning of a mask at its end stays undecided.
    pub(crate) fn push(&mut self, piece: &str, masks: &Masks, growth: &mut ResponseGrowth) {
        self.pending.push_str(piece);
        self.decide(masks, growth, false);
    }

    /// Decides everything, as if no text followed.
    pub(crate) fn finish(&mut self, masks: &Masks, growth: &mut ResponseGrowth) {
        self.decide(masks, growth, true);
    }

    fn decide(&mut self, masks: &Masks, growth: &mut ResponseGrowth, is_end: bool) {
        let mut at = 0;
        let left = loop {
            let rest = &self.pending[at..];
            let begun = masks.partial_mask_start(rest).filter(|_| !is_end);
            let found = masks.automaton.find(rest);
            // A mask after the possible beginning of another one is decided with that one.
            match found.filter(|found| begun.is_none_or(|begun| found.start() < begun)) {
                Some(found) => {
                    let mask = found.pattern().as_usize();
                    let more = masks.original(mask).len().saturating_sub(found.len());
                    if growth.0 + more <= MAX_ADDED_BYTES {
                        growth.0 += more;
                        let begin = self.pending_start + at;
                        let range = begin + found.start()..begin + found.end();
                        self.found.push_back(MaskedSpan { range, mask });
                    }
                    at += found.end();
                }
                None => break begun.map_or(self.pending.len(), |begun| at + begun),
            }
        };
        self.pending_start += left;
        self.pending.drain(..left);
    }

    /// Returns the position up to which the text is decided.
    pub(crate) fn decided_len(&self) -> usize {
        self.pending_start
    }

    /// Returns the masks that touch `range`.
    pub(crate) fn overlapping(&self, range: &Range<usize>) -> impl Iterator<Item = &MaskedSpan> + Clone {
        let range = range.clone();
        let found = self.found.iter();
        found
            .skip_while(move |found| found.range.end <= range.start)
            .take_while(move |found| found.range.start < range.end)
    }

    /// Removes the masks that are not restored.
    pub(crate) fn retain(&mut self, is_kept: impl Fn(&MaskedSpan) -> bool) {
        self.found.retain(is_kept);
    }

    /// Removes the masks that end at or before `offset`.
    pub(crate) fn discard_before(&mut self, offset: usize) {
        while self.found.front().is_some_and(|found| found.range.end <= offset) {
            self.found.pop_front();
        }
    }

    /// Returns the approximate memory in use, in bytes.
    pub(crate) fn capacity(&self) -> usize {
        self.pending.capacity() + self.found.capacity() * size_of::<MaskedSpan>()
    }
}

/// Returns the masks in a complete text.
pub(crate) fn find_masks(text: &str, masks: &Masks, growth: &mut ResponseGrowth) -> Vec<MaskedSpan> {
    let mut scan = MaskScan::default();
    scan.push(text, masks, growth);
    scan.finish(masks, growth);
    scan.found.into()
}
