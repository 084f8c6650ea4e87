//! From matches to a decision about one direction of an exchange.

use crate::rule_set::RuleSet;
use crate::{Action, Engine, Mode, Profile, RuleIndex};

/// What is to be done because a rule matched; ordered from mild to strict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Decision {
    /// Report it.
    Flag,
    /// Replace the matched text.
    Redact,
    /// Deny the exchange.
    Block {
        /// The rule that matched last.
        rule: RuleIndex,
        /// Whether the sum of scores denies it, and not the rule's own action.
        by_score: bool,
    },
}

/// The matched rules of one direction of an exchange, and their score. Owns no heap memory.
#[derive(Debug, Clone, Default)]
pub struct Judgement {
    matched: RuleSet,
    score: u32,
    decision: Option<Decision>,
    enforced: bool,
}

impl Judgement {
    /// Nothing matched yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts a match and says what it asks for. A rule adds its score once, however often it matches. In
    /// [`Mode::DryRun`] that is always [`Decision::Flag`].
    pub fn add(&mut self, engine: &Engine, profile: &Profile, rule: RuleIndex) -> Decision {
        if self.matched.insert(rule) {
            self.score = self.score.saturating_add(engine.rule(rule).score);
        }
        let decision = match profile.action(rule) {
            Some(Action::Block) => Decision::Block {
                rule,
                by_score: false,
            },
            _ if self.score >= profile.threshold => Decision::Block { rule, by_score: true },
            Some(Action::Redact) => Decision::Redact,
            Some(Action::Flag) | None => Decision::Flag,
        };
        // The first rule that denies is the one that is named.
        let denied = matches!(self.decision, Some(Decision::Block { .. }));
        if !denied {
            self.decision = self.decision.max(Some(decision));
        }
        self.enforced = profile.mode == Mode::Enforce;
        if self.enforced { decision } else { Decision::Flag }
    }

    /// The sum of the scores of the rules that matched.
    #[must_use]
    pub fn score(&self) -> u32 {
        self.score
    }

    /// The rules that matched, in the order of their numbers.
    pub fn matched(&self) -> impl Iterator<Item = RuleIndex> {
        self.matched.iter()
    }

    /// The strictest decision so far, as it is to be carried out; none if nothing matched.
    #[must_use]
    pub fn decision(&self) -> Option<Decision> {
        if self.enforced {
            self.decision
        } else {
            self.decision.map(|_| Decision::Flag)
        }
    }

    /// The strictest decision so far as [`Mode::Enforce`] would carry it out.
    #[must_use]
    pub fn if_enforced(&self) -> Option<Decision> {
        self.decision
    }

    /// Whether the exchange is denied, or would be if the policy were enforced.
    #[must_use]
    pub fn would_block(&self) -> bool {
        matches!(self.decision, Some(Decision::Block { .. }))
    }
}
