//! The compiled rules of a worker.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use crate::allow_list::Exemptions;
use crate::character_triggers::{CharacterTriggers, MAX_TRIGGERS};
use crate::config::{check_budget, check_threshold};
use crate::digit_prefilter::DigitPrefilter;
use crate::fold_table::{self, FoldTable};
use crate::hold::HoldDetector;
use crate::linear::Weights;
use crate::marks::Marks;
use crate::needle_search::NeedleSearch;
use crate::overrides::{self, Actions};
use crate::private_key;
use crate::rule::{Rule, RuleIndex, RuleInfo, RuleOrigin};
use crate::rule_set::{MAX_RULES, RuleSet};
use crate::token_tail::TokenTail;
use crate::trigger::Trigger;
use crate::undecided::UndecidedAutomaton;
use crate::{
    Action, Budget, Direction, Extent, Mode, Pack, PolicyConfig, PolicyError, Profile, RuleSpec, Scope,
    TenantPolicy, View,
};

/// Compiled rules, immutable and shared by threads. Texts are passed to [`Engine::scan`](crate::Engine::scan) or, in pieces,
/// to a [`StreamScan`](crate::StreamScan).
pub struct Engine {
    pub(crate) id: u64,
    pub(crate) fold_table: &'static FoldTable,
    pub(crate) rules: Vec<Rule>,
    marks: Marks,
    /// The needles of all rules, of rules with the view `Text`, and of rules with the view
    /// `Folded`.
    pub(crate) needle_searches: [NeedleSearch; 3],
    /// Rules with two needles, both of which must be found.
    pub(crate) two_needle_rules: RuleSet,
    /// Prefilters for rules that digits trigger.
    pub(crate) digit_prefilters: Vec<DigitPrefilter>,
    /// Rules that non-ASCII characters trigger.
    pub(crate) character_triggers: CharacterTriggers,
    /// Rules that are tried on every text with a long run of graphic characters.
    pub(crate) graphic_run_rules: Vec<RuleIndex>,
    /// Rules that are tried on every text.
    pub(crate) unconditional_rules: Vec<RuleIndex>,
    pub(crate) has_text_rules: bool,
    has_token_tails: bool,
    /// Whether the needles of the rules with the view `Text` also occur in the folded copy, outside irregular ranges.
    pub(crate) shares_needles: bool,
    /// Maximum number of bytes, from the beginning of a match, on which its outcome can depend.
    pub(crate) horizon: usize,
    pub(crate) undecided_automata: [UndecidedAutomaton; 4],
    /// The model that scores a text, and the rule that uses it, if there is one.
    pub(crate) linear_model: Option<(RuleIndex, Weights)>,
    /// The hold detectors that profiles share.
    hold_detectors: Mutex<Vec<(RuleSet, Weak<HoldDetector>)>>,
    mode: Mode,
    threshold: Option<u32>,
    flag_threshold: u32,
    budget: Duration,
    budget_per_kib: Duration,
    config: PolicyConfig,
}

impl Engine {
    /// Compiles the rules of `config`: the rules of its packs, then its own rules.
    ///
    /// # Errors
    /// [`PolicyError`] names the rule and the field, or the setting, that has to be changed.
    pub fn compile(config: &PolicyConfig) -> Result<Self, PolicyError> {
        let packs = config
            .packs
            .iter()
            .map(|name| Pack::built_in(name))
            .collect::<Result<Vec<_>, _>>()?;
        Self::compile_packs(config, packs)
    }

    /// Like [`Engine::compile`], with these packs instead of the built-in ones that `config` names.
    ///
    /// # Errors
    /// Like [`Engine::compile`].
    pub fn compile_packs(config: &PolicyConfig, packs: Vec<Pack>) -> Result<Self, PolicyError> {
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        let threshold = config
            .threshold
            .map(|threshold| check_threshold("threshold", threshold));
        let threshold = threshold.transpose()?;
        let flag_threshold = check_threshold("flagThreshold", config.flag_threshold)?;
        let budget = Duration::from_micros(check_budget(config.budget_us)?);
        let table = fold_table::table()?;
        let spared = Exemptions::compile(&config.allow.clone().unwrap_or_default(), table)?;

        let mut known = HashSet::new();
        let mut rules = Vec::new();
        let mut compile = |source: &RuleOrigin, spec: RuleSpec| {
            if !known.insert(spec.id.clone()) {
                return Err(PolicyError::invalid_rule(
                    &spec.id,
                    "id",
                    "two rules have this id; it must be unique across all packs",
                ));
            }
            let rule = Rule::compile(spec, source, config, &spared, table)?;
            if rule.info.actions.iter().any(|action| *action != Action::Ignore) {
                rules.push(rule);
            }
            Ok(())
        };
        for pack in packs {
            let source = RuleOrigin {
                pack: Some(pack.name),
                scopes: pack.scopes,
                limits: pack.limits,
                fixed_texts: pack.fixed_texts,
                spares_documentation: pack.spares_documentation,
            };
            for spec in pack.rules {
                compile(&source, spec)?;
            }
        }
        for spec in &config.rules {
            compile(&RuleOrigin::CUSTOM, spec.clone())?;
        }
        overrides::check(&config.actions, |id| known.contains(id))?;
        if rules.len() > MAX_RULES {
            let reason = format!(
                "{} rules are enabled; at most {MAX_RULES} are allowed",
                rules.len()
            );
            return Err(PolicyError::InvalidSetting {
                field: "rules",
                reason,
            });
        }
        let undecided = |direction: Direction, view: View| {
            let selected = rules
                .iter()
                .filter(|rule| rule.view == view && rule.info.target.includes(direction))
                .filter(|rule| rule.min_linear_score.is_none());
            UndecidedAutomaton::build(selected.map(|rule| &rule.pattern.hir))
        };
        let undecided = [
            undecided(Direction::Request, View::Text)?,
            undecided(Direction::Request, View::Folded)?,
            undecided(Direction::Response, View::Text)?,
            undecided(Direction::Response, View::Folded)?,
        ];
        let scored = (0_u16..)
            .zip(&rules)
            .filter(|(_, rule)| rule.min_linear_score.is_some());
        let scored: Vec<_> = scored.map(|(number, _)| RuleIndex(number)).collect();
        let linear = match scored.as_slice() {
            [] => None,
            [rule] => Some((*rule, Weights::built_in()?)),
            [_, second, ..] => {
                let id = &rules[second.position()].info.id;
                return Err(PolicyError::invalid_rule(
                    id,
                    "likeness",
                    "is already set in another rule; only one rule may set it",
                ));
            }
        };
        let mut engine = Self {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            fold_table: table,
            needle_searches: [None, Some(View::Text), Some(View::Folded)]
                .map(|view| NeedleSearch::for_rules(&rules, view)),
            two_needle_rules: RuleSet::default(),
            digit_prefilters: DigitPrefilter::build_all(&rules)?,
            character_triggers: CharacterTriggers::default(),
            graphic_run_rules: Vec::new(),
            unconditional_rules: Vec::new(),
            has_token_tails: rules.iter().any(|rule| rule.token_tail.is_some()),
            has_text_rules: rules.iter().any(|rule| rule.view == View::Text),
            shares_needles: rules
                .iter()
                .filter(|rule| rule.view == View::Text)
                .all(|rule| rule.trigger.survives_folding()),
            // One extra character for a word boundary.
            horizon: rules.iter().map(|rule| rule.pattern.max_len).max().unwrap_or(0) + 4,
            marks: Marks::from_rules(rules.iter().map(|rule| &rule.info)),
            rules,
            undecided_automata: undecided,
            linear_model: linear,
            hold_detectors: Mutex::default(),
            mode: config.mode,
            threshold,
            flag_threshold,
            budget,
            budget_per_kib: Duration::from_micros(config.budget_us_per_kib),
            config: config.clone(),
        };
        engine.group_by_trigger();
        Ok(engine)
    }

    /// Returns the search for the needles of the rules with this view, or of all rules.
    pub(crate) fn needle_search(&self, view: Option<View>) -> &NeedleSearch {
        let [all, text, folded] = &self.needle_searches;
        match view {
            None => all,
            Some(View::Text) => text,
            Some(View::Folded) => folded,
        }
    }

    fn group_by_trigger(&mut self) {
        let mut signs = Vec::new();
        for (number, rule) in (0_u16..).zip(&self.rules) {
            let index = RuleIndex(number);
            match &rule.trigger {
                Trigger::Needles(needles) => {
                    if needles.len() > 1 {
                        self.two_needle_rules.insert(index);
                    }
                }
                Trigger::Digits(_) => {}
                Trigger::Characters(ranges, offsets) if signs.len() < MAX_TRIGGERS => {
                    signs.push((index, ranges.as_slice(), *offsets));
                }
                Trigger::Graphic => self.graphic_run_rules.push(index),
                Trigger::Characters(..) | Trigger::Always => self.unconditional_rules.push(index),
            }
        }
        self.character_triggers = CharacterTriggers::new(&signs);
    }

    /// Returns the profile of a tenant, or the policy's own profile without a tenant.
    ///
    /// # Errors
    /// [`PolicyError`] names the setting that has to be changed.
    pub fn profile(&self, tenant: Option<&TenantPolicy>) -> Result<Profile, PolicyError> {
        let unchanged = TenantPolicy::default();
        let tenant = tenant.unwrap_or(&unchanged);
        let is_own = |id: &str| self.config.rules.iter().any(|rule| rule.id == id);
        overrides::check(&tenant.actions, |id| {
            is_own(id) || self.rules().any(|rule| rule.id == id)
        })?;
        let mut active: [RuleSet; Scope::ALL.len()] = Default::default();
        let mut actions = Vec::with_capacity(self.rules.len());
        let mut in_fixed_texts = Vec::new();
        for (number, rule) in (0_u16..).zip(&self.rules) {
            let info = &rule.info;
            let of_tenant = |mut actions: Actions| {
                overrides::apply(&mut actions, info.rule_name(), tenant.action, &tenant.actions);
                if rule.min_linear_score.is_some() {
                    overrides::flag_at_most(&mut actions);
                }
                actions
            };
            let of_rule = of_tenant(info.actions);
            let fixed = of_tenant(rule.fixed_text_actions);
            if fixed != of_rule {
                in_fixed_texts.push((RuleIndex(number), fixed));
            }
            for scope in Scope::ALL {
                if of_rule[scope as usize] != Action::Ignore && info.target.includes(scope.direction()) {
                    active[scope as usize].insert(RuleIndex(number));
                }
            }
            actions.push(of_rule);
        }
        let threshold = tenant
            .threshold
            .map(|threshold| check_threshold("threshold", threshold));
        let flag_threshold = tenant.flag_threshold.unwrap_or(self.flag_threshold);
        let mode = tenant.mode.unwrap_or(self.mode);
        let mut acting = RuleSet::default();
        // With a threshold, rules that only report can deny, too.
        let has_threshold = tenant.threshold.is_some() || self.threshold.is_some();
        let mildest = if has_threshold {
            Action::Ignore
        } else {
            Action::Mask
        };
        for (number, of_rule) in (0_u16..).zip(&actions).filter(|_| mode == Mode::Enforce) {
            let acts = |scope: &Scope| of_rule[*scope as usize] > mildest;
            let mut answers = Scope::ALL
                .into_iter()
                .filter(|scope| scope.direction() == Direction::Response);
            if answers.any(|scope| acts(&scope) && active[scope as usize].contains(RuleIndex(number))) {
                acting.insert(RuleIndex(number));
            }
        }
        Ok(Profile {
            engine_id: self.id,
            mode,
            hold_detector: self.hold_detector(acting)?,
            threshold: threshold.transpose()?.or(self.threshold),
            flag_threshold: check_threshold("flagThreshold", flag_threshold)?,
            actions,
            fixed_text_actions: in_fixed_texts,
            active_rules: active,
        })
    }

    /// Returns the detector of positions where one of the `acting` rules can begin to match; profiles share it.
    fn hold_detector(&self, acting: RuleSet) -> Result<Option<Arc<HoldDetector>>, PolicyError> {
        if acting.is_empty() {
            return Ok(None);
        }
        let mut holds = self.hold_detectors.lock().unwrap_or_else(PoisonError::into_inner);
        holds.retain(|(_, hold)| hold.strong_count() > 0);
        let known = holds.iter().find(|(known, _)| *known == acting);
        if let Some(hold) = known.and_then(|(_, hold)| hold.upgrade()) {
            return Ok(Some(hold));
        }
        let hold = Arc::new(HoldDetector::build(&self.rules, &acting)?);
        holds.push((acting, Arc::downgrade(&hold)));
        Ok(Some(hold))
    }

    /// Returns the rule with this index.
    #[must_use]
    pub fn rule(&self, index: RuleIndex) -> &RuleInfo {
        &self.rules[index.position()].info
    }

    /// Returns the token tail of a rule: the characters that can follow its match and belong to it.
    /// `None` if there are none.
    #[must_use]
    pub fn token_tail(&self, index: RuleIndex) -> Option<TokenTail> {
        self.rules[index.position()].token_tail
    }

    /// Whether any rule has a token tail.
    #[must_use]
    pub fn has_token_tails(&self) -> bool {
        self.has_token_tails
    }

    /// Returns the end of the replaced range for a match of a rule that ends at `end`, if the text ends with `text`.
    #[must_use]
    pub fn replacement_end(&self, index: RuleIndex, direction: Direction, text: &str, end: usize) -> usize {
        match (self.rule(index).extent, self.token_tail(index)) {
            (Extent::PrivateKey, _) if direction == Direction::Request => private_key::key_end(text, end),
            (_, Some(mut tail)) => tail.advance(text.as_bytes(), end).end,
            _ => end,
        }
    }

    /// Whether a rule detects instructions to a model, as attacks use them: one of the packs `prompt-injection`,
    /// `jailbreak`, `exfiltration` and `obfuscation`.
    #[must_use]
    pub fn is_instruction_rule(&self, index: RuleIndex) -> bool {
        self.rules[index.position()].is_about_instructions
    }

    /// Returns the index of the rule with this id.
    #[must_use]
    pub fn index_of(&self, id: &str) -> Option<RuleIndex> {
        let numbers = (0_u16..).zip(self.rules());
        let mut found = numbers.filter(|(_, rule)| rule.id == id);
        found.next().map(|(number, _)| RuleIndex(number))
    }

    /// Returns the marks that replace values in texts.
    #[must_use]
    pub fn marks(&self) -> &Marks {
        &self.marks
    }

    /// Returns all rules, in index order.
    pub fn rules(&self) -> impl Iterator<Item = &RuleInfo> {
        self.rules.iter().map(|rule| &rule.info)
    }

    /// Whether a rule is a learned score, which counts toward the flag of a message and never toward its denial.
    pub(crate) fn is_linear_rule(&self, rule: RuleIndex) -> bool {
        self.linear_model
            .as_ref()
            .is_some_and(|(scored, _)| *scored == rule)
    }

    /// Whether the engine has no rules.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns the CPU time budget for evaluating `bytes` bytes of text.
    #[must_use]
    pub fn budget(&self, bytes: usize) -> Budget {
        let kib = u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX);
        Budget::new(
            self.budget
                .saturating_add(self.budget_per_kib.saturating_mul(kib)),
        )
    }

    /// Returns the configuration it was compiled from. An equal configuration needs no new engine.
    #[must_use]
    pub fn config(&self) -> &PolicyConfig {
        &self.config
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One search serves both views.
    #[test]
    fn both_copies_of_a_text_are_searched_at_once() {
        let packs = crate::pattern_pack_names().map(str::to_owned).collect();
        let engine = Engine::compile(&PolicyConfig {
            packs,
            ..PolicyConfig::default()
        });
        let engine = engine.unwrap();
        let rules = engine.rules.iter().filter(|rule| rule.view == View::Text);
        let others: Vec<_> = rules.filter(|rule| !rule.trigger.survives_folding()).collect();
        let others: Vec<_> = others.iter().map(|rule| (&rule.info.id, &rule.trigger)).collect();
        assert!(engine.shares_needles, "{others:?}");
    }
}
