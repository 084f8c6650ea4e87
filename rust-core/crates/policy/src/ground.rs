//! The part of a text, or of its folded copy, in which matches begin.

use crate::View;

/// What a rule is applied to: beginnings from `from` up to `to`.
pub(crate) struct MatchRange<'t> {
    pub(crate) bytes: &'t [u8],
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// Where `bytes` begin in the whole text, or in its whole folded copy.
    pub(crate) origin: usize,
}

impl<'t> MatchRange<'t> {
    /// What of it is undecided, for the rules of this view.
    pub(crate) fn undecided_text(&self, view: View) -> UndecidedText<'t> {
        UndecidedText {
            bytes: &self.bytes[self.from..],
            limit: self.to - self.from,
            view: Some(view),
        }
    }
}

/// A copy of a text from the first undecided place on.
pub(crate) struct UndecidedText<'t> {
    pub(crate) bytes: &'t [u8],
    /// Matches that begin here or later are not looked for.
    pub(crate) limit: usize,
    /// The view whose rules are tried, or none if the copy serves both.
    pub(crate) view: Option<View>,
}

impl UndecidedText<'_> {
    pub(crate) fn applies_to(&self, of_rule: View) -> bool {
        self.view.is_none_or(|view| view == of_rule)
    }
}
