//! The range of a text, or of its folded copy, in which matches begin.

use crate::View;

/// The range a rule is applied to: matches begin between `from` and `to`.
pub(crate) struct MatchRange<'t> {
    pub(crate) bytes: &'t [u8],
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// The offset of `bytes` in the whole text, or in its whole folded copy.
    pub(crate) origin: usize,
}

impl<'t> MatchRange<'t> {
    /// Returns its undecided part, for the rules of this view.
    pub(crate) fn undecided_text(&self, view: View) -> UndecidedText<'t> {
        UndecidedText {
            bytes: &self.bytes[self.from..],
            limit: self.to - self.from,
            view: Some(view),
        }
    }
}

/// A copy of a text, starting at the first undecided position.
pub(crate) struct UndecidedText<'t> {
    pub(crate) bytes: &'t [u8],
    /// The end, exclusive, of the positions at which matches are searched for.
    pub(crate) limit: usize,
    /// The view whose rules are tried; `None` if the copy serves both.
    pub(crate) view: Option<View>,
}

impl UndecidedText<'_> {
    pub(crate) fn applies_to(&self, of_rule: View) -> bool {
        self.view.is_none_or(|view| view == of_rule)
    }
}
