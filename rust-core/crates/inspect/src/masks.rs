//! What took the place of texts in a request, and is put back in its answer.

use std::collections::VecDeque;
use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind};

/// How much longer an answer becomes at most, in bytes.
const MAX_ADDED_BYTES: usize = 32 * 1024;

/// Masks and the texts that they stand for. Of two masks that begin at one place, the longer one is meant.
///
/// What JSON would have to escape is not put back, since it may stand in JSON inside of JSON.
#[derive(Debug)]
pub struct Masks {
    automaton: AhoCorasick,
    /// In order, so that those that begin alike stand together.
    masks: Vec<(String, String)>,
    /// The length of the longest one, in bytes.
    max_len: usize,
}

impl Masks {
    /// Of pairs of a mask, which is not empty, and its text; `None` when nothing of it can be put back.
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

    /// The text that a mask stands for, by its number.
    pub(crate) fn original(&self, mask: usize) -> &str {
        self.masks.get(mask).map_or("", |(_, original)| original)
    }

    /// Puts back what the masks in a document stand for, until it has grown by as much as it may.
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

    /// The first place from which on a text is the beginning of a mask and not all of it.
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

/// Whether a character means the same in JSON and in JSON inside of a string.
pub(crate) fn is_plain(character: char) -> bool {
    !matches!(character, '"' | '\\') && !character.is_control()
}

/// A mask in a text.
#[derive(Debug, Clone)]
pub(crate) struct MaskedSpan {
    pub(crate) range: Range<usize>,
    /// Its number.
    pub(crate) mask: usize,
}

/// How much longer the answer at hand has become.
#[derive(Debug, Default)]
pub(crate) struct ResponseGrowth(usize);

/// Finds masks in one text, however that is cut into pieces.
#[derive(Debug, Default)]
pub(crate) struct MaskScan {
    /// What may be the beginning of a mask, and where it stands in the text.
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

    /// Takes the next piece. What is at most the beginning of a mask is undecided behind it.
    pub(crate) fn push(&mut self, piece: &str, masks: &Masks, growth: &mut ResponseGrowth) {
        self.pending.push_str(piece);
        self.decide(masks, growth, false);
    }

    /// Decides everything, as if nothing followed.
    pub(crate) fn finish(&mut self, masks: &Masks, growth: &mut ResponseGrowth) {
        self.decide(masks, growth, true);
    }

    fn decide(&mut self, masks: &Masks, growth: &mut ResponseGrowth, is_end: bool) {
        let mut at = 0;
        let left = loop {
            let rest = &self.pending[at..];
            let begun = masks.partial_mask_start(rest).filter(|_| !is_end);
            let found = masks.automaton.find(rest);
            // A mask that one began before is decided with that.
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

    /// Up to where the text is decided.
    pub(crate) fn decided_len(&self) -> usize {
        self.pending_start
    }

    /// The masks that touch `range`.
    pub(crate) fn within(&self, range: &Range<usize>) -> impl Iterator<Item = &MaskedSpan> + Clone {
        let range = range.clone();
        let found = self.found.iter();
        found
            .skip_while(move |found| found.range.end <= range.start)
            .take_while(move |found| found.range.start < range.end)
    }

    /// Forgets the masks that are not to be put back.
    pub(crate) fn retain(&mut self, is_kept: impl Fn(&MaskedSpan) -> bool) {
        self.found.retain(is_kept);
    }

    /// Forgets the masks that end at or before `offset`.
    pub(crate) fn discard_before(&mut self, offset: usize) {
        while self.found.front().is_some_and(|found| found.range.end <= offset) {
            self.found.pop_front();
        }
    }

    /// Bytes of memory that is taken, for the most part.
    pub(crate) fn capacity(&self) -> usize {
        self.pending.capacity() + self.found.capacity() * size_of::<MaskedSpan>()
    }
}

/// The masks in a text that came at once.
pub(crate) fn find_masks(text: &str, masks: &Masks, growth: &mut ResponseGrowth) -> Vec<MaskedSpan> {
    let mut scan = MaskScan::default();
    scan.push(text, masks, growth);
    scan.finish(masks, growth);
    scan.found.into()
}
