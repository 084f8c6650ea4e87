//! What of a policy applies to one tenant.

use std::sync::Arc;

use crate::hold::{HoldDetector, HoldMode};
use crate::overrides::Actions;
use crate::rule_set::RuleSet;
use crate::{Action, Direction, Mode, RuleIndex, Scope};

/// The effective policy of a tenant: what each rule does in each scope, from which score on a message is flagged or denied.
/// Belongs to the [`Engine`](crate::Engine) that made it.
#[derive(Debug, Clone)]
pub struct Profile {
    pub(crate) engine_id: u64,
    pub(crate) mode: Mode,
    pub(crate) threshold: Option<u32>,
    pub(crate) flag_threshold: u32,
    /// By the numbers of rules.
    pub(crate) actions: Vec<Actions>,
    /// What some do less in texts that cannot be changed; in a profile for these, what they do in others.
    pub(crate) fixed_text_actions: Vec<(RuleIndex, Actions)>,
    /// By scopes as numbers.
    pub(crate) active_rules: [RuleSet; Scope::ALL.len()],
    /// For streamed answers; none if no rule does anything to an answer but flag it.
    pub(crate) hold_detector: Option<Arc<HoldDetector>>,
}

impl Profile {
    /// Whether matches have consequences.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The score from which on a message is denied; `None`: no score denies.
    #[must_use]
    pub fn threshold(&self) -> Option<u32> {
        self.threshold
    }

    /// The score from which on a message is flagged.
    #[must_use]
    pub fn flag_threshold(&self) -> u32 {
        self.flag_threshold
    }

    /// What a rule does in a scope for this tenant, if it takes part there.
    #[must_use]
    pub fn action(&self, rule: RuleIndex, scope: Scope) -> Option<Action> {
        let takes_part = self.active(scope).contains(rule);
        takes_part.then(|| self.actions[rule.position()][scope as usize])
    }

    /// The profile for texts that cannot be changed, such as a form. What a pack's rules replace elsewhere without a policy saying so,
    /// some of them flag there; what others would replace denies.
    #[must_use]
    pub fn for_fixed_texts(&self) -> Box<Self> {
        let mut fixed = Box::new(self.clone());
        for (rule, actions) in &mut fixed.fixed_text_actions {
            std::mem::swap(actions, &mut fixed.actions[rule.position()]);
        }
        fixed
    }

    /// Whether a rule flags what it would replace in a text that can be changed.
    pub(crate) fn leaves_unreplaced(&self, rule: RuleIndex, scope: Scope) -> bool {
        let of_rule = self.fixed_text_actions.iter().find(|(known, _)| *known == rule);
        of_rule.is_some_and(|(_, elsewhere)| {
            elsewhere[scope as usize] > self.actions[rule.position()][scope as usize]
        })
    }

    /// Whether no rule takes part in any scope of `direction`: then texts need not be scanned.
    #[must_use]
    pub fn is_idle(&self, direction: Direction) -> bool {
        let mut scopes = Scope::ALL.into_iter();
        scopes.all(|scope| scope.direction() != direction || self.is_idle_in(scope))
    }

    /// Whether answers that arrive in pieces are held back, since a rule can do more to one than flag it.
    #[must_use]
    pub fn buffers_responses(&self) -> bool {
        self.hold_detector.is_some()
    }

    /// What holds a text back that arrives in pieces: the beginnings of what is replaced or denied.
    pub(crate) fn hold_mode(&self, direction: Direction) -> HoldMode<'_> {
        match (direction, &self.hold_detector) {
            (Direction::Request, _) => HoldMode::All,
            (Direction::Response, Some(hold)) => HoldMode::Acting(hold),
            (Direction::Response, None) => HoldMode::Off,
        }
    }

    /// Whether no rule takes part in a scope.
    #[must_use]
    pub fn is_idle_in(&self, scope: Scope) -> bool {
        self.active(scope).is_empty()
    }

    /// Appends all that decides, beside a text, what a scan finds in it in a scope: with equal bytes it finds the same. There
    /// are always as many, and they are good for this process only.
    pub fn write_conditions(&self, scope: Scope, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.engine_id.to_le_bytes());
        out.push(scope as u8);
        self.active(scope).write(out);
    }

    pub(crate) fn active(&self, scope: Scope) -> &RuleSet {
        &self.active_rules[scope as usize]
    }
}
