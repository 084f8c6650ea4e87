//! The progress of a scan.

use crate::RuleIndex;

/// The end of the part of a window in which the positions of matches are decided.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reach {
    /// The end of the text: no text follows.
    End,
    /// The engine's horizon before the end, independently of the following text.
    Horizon,
    /// The first position that depends on the following text.
    Undecided,
}

/// The progress of a scan: which matches in a text are decided. Offsets are relative to the text
/// that is passed to [`Evaluation::scan_window`](crate::scan::Evaluation::scan_window).
#[derive(Debug, Clone, Default)]
pub(crate) struct Progress {
    /// In the view `Text`: the first undecided byte.
    pub(crate) text_position: usize,
    /// In the folded copy: the character of the text whose copy contains the first undecided byte.
    pub(crate) folded_position: usize,
    /// Number of decided bytes of that character's copy.
    pub(crate) skip: usize,
    /// The byte of the copy before that character.
    pub(crate) previous_byte: Option<u8>,
    /// Length of the copy before that character.
    pub(crate) folded_length: usize,
    /// The position from which the text is held back, after a window with [`Reach::Undecided`].
    pub(crate) hold_start: usize,
    /// Rules whose last match extends beyond the decided part, with the end of that match: an offset in the whole text or,
    /// depending on the rule's view, in its whole folded copy.
    pub(crate) consumed: Vec<(RuleIndex, usize)>,
}

impl Progress {
    /// Returns the first byte that is undecided in any view.
    pub(crate) fn first_undecided(&self) -> usize {
        self.text_position.min(self.folded_position)
    }

    /// Returns the first byte that is undecided in every view: because of white space, one view can
    /// be decided much later than the other.
    pub(crate) fn first_undecided_in_all(&self) -> usize {
        self.text_position.max(self.folded_position)
    }

    /// Returns the position from which the text is held back until more text arrives.
    pub(crate) fn hold_start(&self) -> usize {
        self.hold_start
    }

    /// Accounts for `count` bytes that were removed from the beginning of the text.
    pub(crate) fn discard_prefix(&mut self, count: usize) {
        self.text_position = self.text_position.saturating_sub(count);
        self.folded_position = self.folded_position.saturating_sub(count);
        self.hold_start = self.hold_start.saturating_sub(count);
    }

    pub(crate) fn consumed_end(&self, rule: RuleIndex) -> usize {
        self.consumed
            .iter()
            .find(|(known, _)| *known == rule)
            .map_or(0, |(_, end)| *end)
    }

    pub(crate) fn consume(&mut self, rule: RuleIndex, end: usize) {
        match self.consumed.iter_mut().find(|(known, _)| *known == rule) {
            Some((_, known)) => *known = end,
            None => self.consumed.push((rule, end)),
        }
    }
}
