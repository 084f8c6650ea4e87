//! A policy as it applies to one tenant.

use std::sync::Arc;

use crate::hold::{HoldDetector, HoldMode};
use crate::overrides::Actions;
use crate::rule_set::RuleSet;
use crate::{Action, Direction, Mode, RuleIndex, Scope};

/// The effective policy of a tenant: the action of each rule in each scope, and the scores at which a message is flagged or
/// denied. Belongs to the [`Engine`](crate::Engine) that created it.
#[derive(Debug, Clone)]
pub struct Profile {
    pub(crate) engine_id: u64,
    pub(crate) mode: Mode,
    pub(crate) threshold: Option<u32>,
    pub(crate) flag_threshold: u32,
    /// The actions of the rules, indexed by rule.
    pub(crate) actions: Vec<Actions>,
    /// Actions that differ in texts that cannot be changed; in a profile for such texts, the actions in other texts.
    pub(crate) fixed_text_actions: Vec<(RuleIndex, Actions)>,
    /// The active rules, indexed by scope.
    pub(crate) active_rules: [RuleSet; Scope::ALL.len()],
    /// The hold detector for streamed responses; `None` if no rule does more to a response than
    /// flag it.
    pub(crate) hold_detector: Option<Arc<HoldDetector>>,
}

impl Profile {
    /// Returns whether the policy is enforced or only reports.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns the score at which a message is denied; `None` if no score denies.
    #[must_use]
    pub fn threshold(&self) -> Option<u32> {
        self.threshold
    }

    /// Returns the score at which a message is flagged.
    #[must_use]
    pub fn flag_threshold(&self) -> u32 {
        self.flag_threshold
    }

    /// Returns the action of a rule in a scope for this tenant, if the rule is active there.
    #[must_use]
    pub fn action(&self, rule: RuleIndex, scope: Scope) -> Option<Action> {
        let takes_part = self.active_rules(scope).contains(rule);
        takes_part.then(|| self.actions[rule.position()][scope as usize])
    }

    /// Returns the profile for texts that cannot be changed, such as a form. In such texts, some
    /// pack rules only flag the values that they replace in other texts, unless a policy overrides
    /// them; all other replacing rules deny.
    #[must_use]
    pub fn for_fixed_texts(&self) -> Box<Self> {
        let mut fixed = Box::new(self.clone());
        for (rule, actions) in &mut fixed.fixed_text_actions {
            std::mem::swap(actions, &mut fixed.actions[rule.position()]);
        }
        fixed
    }

    /// Whether a rule flags a match that it would replace in a text that can be changed.
    pub(crate) fn flags_instead_of_replacing(&self, rule: RuleIndex, scope: Scope) -> bool {
        let of_rule = self.fixed_text_actions.iter().find(|(known, _)| *known == rule);
        of_rule.is_some_and(|(_, elsewhere)| {
            elsewhere[scope as usize] > self.actions[rule.position()][scope as usize]
        })
    }

    /// Whether no rule is active in any scope of `direction`, so that texts need not be scanned.
    #[must_use]
    pub fn is_idle(&self, direction: Direction) -> bool {
        let mut scopes = Scope::ALL.into_iter();
        scopes.all(|scope| scope.direction() != direction || self.is_idle_in(scope))
    }

    /// Whether streamed responses are held back, because a rule can do more to one than flag it.
    #[must_use]
    pub fn buffers_responses(&self) -> bool {
        self.hold_detector.is_some()
    }

    /// Returns which part of a streamed text is held back: the beginnings of what is replaced or denied.
    pub(crate) fn hold_mode(&self, direction: Direction) -> HoldMode<'_> {
        match (direction, &self.hold_detector) {
            (Direction::Request, _) => HoldMode::All,
            (Direction::Response, Some(hold)) => HoldMode::MatchStarts(hold),
            (Direction::Response, None) => HoldMode::Off,
        }
    }

    /// Whether no rule is active in a scope.
    #[must_use]
    pub fn is_idle_in(&self, scope: Scope) -> bool {
        self.active_rules(scope).is_empty()
    }

    /// Appends everything, besides the text, that determines the matches of a scan in a scope:
    /// equal bytes mean equal matches. The number of bytes is constant, and they are valid only in
    /// this process.
    pub fn write_conditions(&self, scope: Scope, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.engine_id.to_le_bytes());
        out.push(scope as u8);
        self.active_rules(scope).write(out);
    }

    pub(crate) fn active_rules(&self, scope: Scope) -> &RuleSet {
        &self.active_rules[scope as usize]
    }
}
