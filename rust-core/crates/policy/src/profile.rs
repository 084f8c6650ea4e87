//! What of a policy applies to one tenant.

use std::sync::Arc;

use crate::hold::{Hold, Holding};
use crate::rule_set::RuleSet;
use crate::{Action, Direction, Mode, RuleIndex};

/// The effective policy of a tenant: which rules take part, what each does, from which score on an exchange is denied.
/// Belongs to the [`Engine`](crate::Engine) that made it.
#[derive(Debug, Clone)]
pub struct Profile {
    pub(crate) engine: u64,
    pub(crate) mode: Mode,
    pub(crate) threshold: u32,
    pub(crate) actions: Vec<Action>,
    pub(crate) request: RuleSet,
    pub(crate) response: RuleSet,
    /// For streamed answers; none if no rule does anything to an answer but flag it.
    pub(crate) hold: Option<Arc<Hold>>,
}

impl Profile {
    /// Whether matches have consequences.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The score from which on an exchange is denied.
    #[must_use]
    pub fn threshold(&self) -> u32 {
        self.threshold
    }

    /// What a rule does for this tenant, if it takes part in any direction.
    #[must_use]
    pub fn action(&self, rule: RuleIndex) -> Option<Action> {
        let takes_part = self.request.contains(rule) || self.response.contains(rule);
        takes_part.then(|| self.actions[rule.position()])
    }

    /// Whether no rule takes part in `direction`: then texts need not be scanned.
    #[must_use]
    pub fn is_idle(&self, direction: Direction) -> bool {
        self.active(direction).is_empty()
    }

    /// What holds a text back that arrives in pieces: the beginnings of what is replaced or denied.
    pub(crate) fn holding(&self, direction: Direction) -> Holding<'_> {
        match (direction, &self.hold) {
            (Direction::Request, _) => Holding::All,
            (Direction::Response, Some(hold)) => Holding::Acting(hold),
            (Direction::Response, None) => Holding::Nothing,
        }
    }

    pub(crate) fn active(&self, direction: Direction) -> &RuleSet {
        match direction {
            Direction::Request => &self.request,
            Direction::Response => &self.response,
        }
    }
}
