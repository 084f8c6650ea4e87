//! Turns matches into a decision about one direction of an exchange.

use crate::rule_set::RuleSet;
use crate::scope::ScopeSet;
use crate::{Action, Engine, Match, Mode, Profile, RuleIndex, Scope};

/// The consequence of a matched rule; ordered from mild to strict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Decision {
    /// Report the match.
    Flag,
    /// Replace the matched text with a placeholder, and restore it in the response.
    Mask,
    /// Replace the matched text.
    Redact,
    /// Deny the exchange.
    Block {
        /// The rule that denies the exchange; for a denial by score, the strongest of the counted rules.
        rule: RuleIndex,
        /// Whether the score of a message denies the exchange, rather than the rule's own action.
        by_score: bool,
    },
}

/// The result of the rules for one message: in a request, a message, a tool result, the arguments of a tool call or the
/// description of a tool; or a response.
///
/// The score is the sum of the scores of the counted rules, each counted once. Of overlapping matches only the one with the
/// highest score counts. Replaced matches, and matches within them, do not count. Owns no heap memory.
#[derive(Debug, Clone, Default)]
pub struct MessageJudgement {
    counted_rules: RuleSet,
    score: u32,
    /// The part of the score that comes from rules about instructions.
    instruction_score: u32,
    /// The part of the score that cannot deny.
    learned_score: u32,
    strongest_rule: Option<RuleIndex>,
    denied_by: Option<RuleIndex>,
    is_masked: bool,
    is_redacted: bool,
    /// Whether a match remains that would be replaced if the text could be changed.
    has_unreplaced: bool,
    has_matches: bool,
}

impl MessageJudgement {
    /// Records a match in a text of the message, and returns the decision for this match alone; `None` if the rule is off.
    pub fn record(&mut self, profile: &Profile, scope: Scope, rule: RuleIndex) -> Option<Decision> {
        let decision = match profile.action(rule, scope)? {
            Action::Ignore => return None,
            Action::Flag => {
                self.has_unreplaced |= profile.flags_instead_of_replacing(rule, scope);
                Decision::Flag
            }
            Action::Mask => {
                self.is_masked = true;
                Decision::Mask
            }
            Action::Redact => {
                self.is_redacted = true;
                Decision::Redact
            }
            Action::Block => {
                // The first rule that denies is reported.
                self.denied_by.get_or_insert(rule);
                Decision::Block {
                    rule,
                    by_score: false,
                }
            }
        };
        self.has_matches = true;
        Some(decision)
    }

    /// Counts the matches in one text of the message, sorted by where they begin. They do not overlap matches of other
    /// calls.
    pub fn count(&mut self, engine: &Engine, profile: &Profile, scope: Scope, found: &[Match]) {
        let learned = found.iter().filter(|found| engine.is_linear_rule(found.rule));
        let Some(first) = learned.clone().next() else {
            return self.count_matches(engine, profile, scope, found);
        };
        // A learned score covers a whole part of the text and does not displace matches that rules
        // find in this part.
        self.count_rule(engine, profile, scope, first.rule);
        let others = found.iter().filter(|found| !engine.is_linear_rule(found.rule));
        self.count_matches(engine, profile, scope, &others.copied().collect::<Vec<_>>());
    }

    fn count_matches(&mut self, engine: &Engine, profile: &Profile, scope: Scope, found: &[Match]) {
        let mut rest = found;
        while let Some((first, others)) = rest.split_first() {
            let mut end = first.end;
            let overlapping = others.iter().take_while(|next| {
                let overlaps = next.start < end;
                end = end.max(next.end);
                overlaps
            });
            let count = 1 + overlapping.count();
            match count {
                1 => self.count_rule(engine, profile, scope, first.rule),
                _ => self.count_overlapping(engine, profile, scope, &rest[..count]),
            }
            rest = &rest[count..];
        }
    }

    fn count_rule(&mut self, engine: &Engine, profile: &Profile, scope: Scope, rule: RuleIndex) {
        if counts_for_score(profile.action(rule, scope)) {
            self.add_rule(engine, rule);
        }
    }

    fn count_overlapping(&mut self, engine: &Engine, profile: &Profile, scope: Scope, found: &[Match]) {
        let action = |found: &Match| profile.action(found.rule, scope);
        let mut replaced = Intervals::default();
        for found in found
            .iter()
            .filter(|found| matches!(action(found), Some(Action::Redact | Action::Mask)))
        {
            replaced.merge(found.start, found.end);
        }
        let mut counting: Vec<&Match> = (found.iter())
            .filter(|found| counts_for_score(action(found)) && !replaced.covers(found.start, found.end))
            .collect();
        counting.sort_unstable_by_key(|found| {
            let score = engine.rule(found.rule).score;
            (std::cmp::Reverse(score), found.start, found.end, found.rule)
        });
        let mut taken = Intervals::default();
        for found in counting {
            if taken.insert(found.start, found.end) {
                self.add_rule(engine, found.rule);
            }
        }
    }

    fn add_rule(&mut self, engine: &Engine, rule: RuleIndex) {
        if !self.counted_rules.insert(rule) {
            return;
        }
        let score = engine.rule(rule).score;
        self.score = self.score.saturating_add(score);
        if engine.is_instruction_rule(rule) {
            self.instruction_score = self.instruction_score.saturating_add(score);
        }
        if engine.is_linear_rule(rule) {
            self.learned_score = self.learned_score.saturating_add(score);
            return;
        }
        let strength = |rule: RuleIndex| (engine.rule(rule).score, std::cmp::Reverse(rule));
        if self
            .strongest_rule
            .is_none_or(|known| strength(known) < strength(rule))
        {
            self.strongest_rule = Some(rule);
        }
    }

    /// Returns the sum of the scores of the counted rules.
    #[must_use]
    pub fn score(&self) -> u32 {
        self.score
    }

    /// Whether the message is flagged for the instructions in it: [instruction rules](crate::Engine::is_instruction_rule)
    /// alone reach the threshold.
    #[must_use]
    pub fn is_flagged_as_instructions(&self, profile: &Profile) -> bool {
        self.instruction_score > 0 && self.instruction_score >= profile.flag_threshold()
    }

    /// Returns the decision for the message under [`Mode::Enforce`]; `None` if nothing matched.
    #[must_use]
    pub fn enforced_decision(&self, profile: &Profile) -> Option<Decision> {
        let by_score = || {
            let reached = profile
                .threshold()
                .is_some_and(|threshold| self.score - self.learned_score >= threshold);
            self.strongest_rule.filter(|_| reached)
        };
        match (self.denied_by, by_score()) {
            (Some(rule), _) => Some(Decision::Block {
                rule,
                by_score: false,
            }),
            (None, Some(rule)) => Some(Decision::Block { rule, by_score: true }),
            (None, None) if self.is_redacted => Some(Decision::Redact),
            (None, None) if self.is_masked => Some(Decision::Mask),
            (None, None) => self.has_matches.then_some(Decision::Flag),
        }
    }
}

/// Whether a match of a rule with this action counts toward the score.
fn counts_for_score(action: Option<Action>) -> bool {
    matches!(action, Some(Action::Flag | Action::Block))
}

/// Disjoint intervals, in order.
#[derive(Default)]
struct Intervals(Vec<(usize, usize)>);

impl Intervals {
    fn overlapping(&self, start: usize, end: usize) -> std::ops::Range<usize> {
        let first = self.0.partition_point(|known| known.1 <= start);
        let behind = self.0.partition_point(|known| known.0 < end);
        first..behind.max(first)
    }

    /// Adds an interval unless it overlaps an existing one; returns whether it was added.
    fn insert(&mut self, start: usize, end: usize) -> bool {
        let at = self.overlapping(start, end);
        if at.is_empty() {
            self.0.insert(at.start, (start, end));
        }
        at.is_empty()
    }

    /// Adds an interval, merging it with those that it overlaps.
    fn merge(&mut self, start: usize, end: usize) {
        let at = self.overlapping(start, end);
        let known = &self.0[at.clone()];
        let start = known.first().map_or(start, |known| known.0.min(start));
        let end = known.last().map_or(end, |known| known.1.max(end));
        self.0.splice(at, [(start, end)]);
    }

    fn covers(&self, start: usize, end: usize) -> bool {
        let at = self.overlapping(start, end);
        self.0[at].iter().any(|known| known.0 <= start && end <= known.1)
    }
}

/// The result of the rules for one direction of an exchange: for all of its messages. Owns no heap memory.
#[derive(Debug, Clone, Default)]
pub struct Judgement {
    matched_rules: RuleSet,
    worst: Option<WorstMessage>,
    decision: Option<Decision>,
    flagged: ScopeSet,
    has_unreplaced: bool,
    is_enforced: bool,
}

/// The message that determines the result: the first that is denied, or else the one with the highest score.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorstMessage {
    /// The index of the message.
    pub message: u32,
    /// The scope of the message.
    pub scope: Scope,
    /// The score of the message.
    pub score: u32,
}

impl Judgement {
    /// Creates a judgement without matches.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Records a rule that matched.
    pub fn record(&mut self, rule: RuleIndex) {
        self.matched_rules.insert(rule);
    }

    /// Adds the judgement of a message. A message that is added again, with more matches, replaces its earlier result.
    pub fn add(&mut self, profile: &Profile, message: u32, scope: Scope, judged: &MessageJudgement) {
        self.is_enforced = profile.mode() == Mode::Enforce;
        let Some(decision) = judged.enforced_decision(profile) else {
            return;
        };
        self.has_unreplaced |= judged.has_unreplaced;
        let score = judged.score();
        if score >= profile.flag_threshold() {
            self.flagged.insert(scope);
        }
        let is_known = self.worst.is_some_and(|worst| worst.message == message);
        // The first denied message is reported, with the first rule that denies it.
        let is_denied = self.would_block();
        if is_denied && !is_known {
            return;
        }
        let denies = matches!(decision, Decision::Block { .. });
        if !is_denied {
            self.decision = self.decision.max(Some(decision));
        }
        if denies || is_known || self.worst.is_none_or(|worst| score > worst.score) {
            self.worst = Some(WorstMessage {
                message,
                scope,
                score,
            });
        }
    }

    /// Returns the score of the determining message.
    #[must_use]
    pub fn score(&self) -> u32 {
        self.worst.map_or(0, |worst| worst.score)
    }

    /// Returns the determining message; `None` if nothing matched.
    #[must_use]
    pub fn worst(&self) -> Option<WorstMessage> {
        self.worst
    }

    /// Whether the score of any message reaches the threshold for flagging.
    #[must_use]
    pub fn is_flagged(&self) -> bool {
        self.flagged != ScopeSet::default()
    }

    /// Returns the scopes of the flagged messages.
    pub fn flagged_scopes(&self) -> impl Iterator<Item = Scope> + use<> {
        let flagged = self.flagged;
        Scope::ALL
            .into_iter()
            .filter(move |scope| flagged.contains(*scope))
    }

    /// Whether a match was flagged that would be replaced if the text could be changed.
    #[must_use]
    pub fn has_unreplaced_matches(&self) -> bool {
        self.has_unreplaced && self.is_enforced
    }

    /// Returns the rules that matched, in index order.
    pub fn matched_rules(&self) -> impl Iterator<Item = RuleIndex> {
        self.matched_rules.iter()
    }

    /// Returns the strictest decision so far, as the policy's mode applies it; `None` if nothing matched.
    #[must_use]
    pub fn decision(&self) -> Option<Decision> {
        if self.is_enforced {
            self.decision
        } else {
            self.decision.map(|_| Decision::Flag)
        }
    }

    /// Returns the strictest decision so far under [`Mode::Enforce`].
    #[must_use]
    pub fn enforced_decision(&self) -> Option<Decision> {
        self.decision
    }

    /// Whether the exchange is denied, or would be if the policy were enforced.
    #[must_use]
    pub fn would_block(&self) -> bool {
        matches!(self.decision, Some(Decision::Block { .. }))
    }
}
