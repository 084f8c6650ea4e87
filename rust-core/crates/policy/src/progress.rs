//! How far a text has been decided.

use crate::RuleIndex;

/// How far the beginnings of matches are decided by a window.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reach {
    /// To the end: nothing follows.
    End,
    /// Up to the engine's horizon before the end, whatever follows.
    Horizon,
    /// Up to the first place that depends on what follows.
    Undecided,
}

/// How far a text has been decided. Offsets are those of the text that is given to [`Evaluation::scan_window`].
#[derive(Debug, Clone, Default)]
pub(crate) struct Progress {
    /// In the view `Text`: the first undecided byte.
    pub(crate) text_position: usize,
    /// In the folded copy: the character of the text whose copy holds the first undecided byte,
    pub(crate) folded_position: usize,
    /// how many bytes of that character's copy are decided,
    pub(crate) skip: usize,
    /// the byte of the copy before that character,
    pub(crate) previous_byte: Option<u8>,
    /// and how long the copy before that character is.
    pub(crate) folded_length: usize,
    /// Where the text has to wait, behind a window that [reached](Reach::Undecided) as far as it could.
    pub(crate) hold_start: usize,
    /// Rules whose last match reaches beyond what is decided, with the end of that match: counted from the beginning of the
    /// whole text or, by the rule's view, of its whole folded copy.
    pub(crate) consumed: Vec<(RuleIndex, usize)>,
}

impl Progress {
    /// The first byte that is undecided in any view.
    pub(crate) fn first_undecided(&self) -> usize {
        self.text_position.min(self.folded_position)
    }

    /// The first byte that is undecided in every view: white space can keep one view far behind the other.
    pub(crate) fn first_undecided_in_all(&self) -> usize {
        self.text_position.max(self.folded_position)
    }

    /// From where on the text has to wait for what follows.
    pub(crate) fn waits(&self) -> usize {
        self.hold_start
    }

    /// Accounts for `count` bytes that were taken away from the beginning of the text.
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
