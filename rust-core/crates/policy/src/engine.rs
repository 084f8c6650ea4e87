//! The compiled rules of a worker.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use serde::Serialize;

use crate::allow::Spared;
use crate::anchor::Anchor;
use crate::checks::{self, Check};
use crate::config::{check_budget, check_threshold};
use crate::fold::{self, plain_byte};
use crate::fold_table::{self, FoldTable};
use crate::hold::Hold;
use crate::linear::Weights;
use crate::marks::Marks;
use crate::needle::Offsets;
use crate::overrides::{self, Actions, Limit, Named};
use crate::pattern::Pattern;
use crate::prefilter::Prefilter;
use crate::private_key;
use crate::rule_set::{MOST_RULES, RuleSet};
use crate::scope::ScopeSet;
use crate::sieve::Sieve;
use crate::signs::{MOST_SIGNS, Signs};
use crate::token_tail::TokenTail;
use crate::undecided::Undecided;
use crate::wake::{MOST_NEEDLES, Wake};
use crate::{
    Action, Budget, Direction, Examples, Extent, Mode, Pack, PolicyConfig, PolicyError, Profile, RuleSpec,
    Scope, Target, TenantPolicy, View,
};

/// The number of a rule within its [`Engine`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleIndex(pub(crate) u16);

impl RuleIndex {
    pub(crate) fn position(self) -> usize {
        usize::from(self.0)
    }
}

/// What is known of a rule, for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RuleInfo {
    /// Its id.
    pub id: String,
    /// The pack that it comes from; absent for a rule of the user.
    pub pack: Option<String>,
    /// One sentence for the client.
    pub reason: String,
    /// The directions that it looks at.
    pub target: Target,
    /// The copy of the text that it looks at.
    pub view: View,
    /// How far what is replaced reaches.
    pub extent: Extent,
    /// What it adds to the score.
    pub score: u32,
    /// Whether it is written to flag by its pack: then an action for its pack or for all rules makes no more of it.
    pub is_sign: bool,
    /// What it does in each scope, by [`Scope`] as a number, for whoever has no policy of his own.
    pub actions: [Action; Scope::ALL.len()],
    /// Texts that it is tried on.
    pub examples: Examples,
}

impl RuleInfo {
    fn named(&self) -> Named<'_> {
        Named {
            id: &self.id,
            pack: self.pack.as_deref(),
            is_sign: self.is_sign,
        }
    }
}

/// Packs whose rules are about texts that give a model instructions.
const ABOUT_INSTRUCTIONS: [&str; 4] = ["prompt-injection", "jailbreak", "exfiltration", "obfuscation"];

/// A rule, ready to be applied.
pub(crate) struct Rule {
    pub(crate) info: RuleInfo,
    pub(crate) pattern: Pattern,
    pub(crate) view: View,
    /// Whether it is about instructions to a model.
    is_about_instructions: bool,
    /// A match has to contain one of these (plain), unless there are none.
    pub(crate) required: Vec<Vec<u8>>,
    pub(crate) check: Option<Check>,
    /// What it does not match after all.
    pub(crate) spared: Spared,
    pub(crate) wake: Wake,
    /// For each of its needles, what a match holds from there on.
    pub(crate) anchors: [Option<Anchor>; MOST_NEEDLES],
    /// The linear score from which on it matches, instead of by its pattern.
    pub(crate) least: Option<i32>,
    /// What may follow a match and belong to it, with [`Extent::Token`].
    tail: Option<TokenTail>,
    /// What it does in texts that cannot be changed, as [`RuleInfo::actions`].
    in_fixed_texts: Actions,
}

/// Where a rule comes from, and what holds for all rules of there.
struct Source {
    pack: Option<String>,
    scopes: ScopeSet,
    limits: Vec<Limit>,
    fixed_texts: Option<Action>,
    spares_documentation: bool,
}

impl Source {
    const OWN: Source = Source {
        pack: None,
        scopes: ScopeSet::ALL,
        limits: Vec::new(),
        fixed_texts: None,
        spares_documentation: false,
    };

    /// What a rule does where it looks, before a policy changes it.
    fn actions(&self, spec: &RuleSpec) -> Actions {
        let mut actions = overrides::own(spec.action, spec.extent, &self.limits);
        for (scope, action) in Scope::ALL.into_iter().zip(&mut actions) {
            if !self.scopes.contains(scope) || !spec.target.includes(scope.direction()) {
                *action = Action::Ignore;
            }
        }
        actions
    }

    /// The same in texts that cannot be changed.
    fn in_fixed_texts(&self, actions: Actions) -> Actions {
        let most = self.fixed_texts.unwrap_or(Action::Block);
        actions.map(|action| match action {
            Action::Mask | Action::Redact => action.min(most),
            _ => action,
        })
    }
}

/// Which rule a literal of the prefilter wakes.
pub(crate) struct Owner {
    pub(crate) rule: RuleIndex,
    pub(crate) view: View,
    pub(crate) needle: u8,
    pub(crate) offsets: Offsets,
    /// Whether a word has to begin with the literal.
    pub(crate) at_word: bool,
}

/// The needles of some rules, looked for in one pass.
pub(crate) struct Search {
    pub(crate) prefilter: Prefilter,
    /// For every literal of the prefilter, whom it wakes.
    pub(crate) owners: Vec<Vec<Owner>>,
}

impl Search {
    /// Looks for the needles of the rules with this view, or of all.
    fn of(rules: &[Rule], view: Option<View>) -> Self {
        let mut literals = Vec::<Vec<u8>>::new();
        let mut numbers = HashMap::<&[u8], usize>::new();
        let mut owners = Vec::<Vec<Owner>>::new();
        for (number, rule) in (0_u16..).zip(rules) {
            let Wake::Needles(needles) = &rule.wake else {
                continue;
            };
            if view.is_some_and(|view| view != rule.view) {
                continue;
            }
            for (number_of_needle, needle) in (0_u8..).zip(needles) {
                for literal in &needle.literals {
                    let number_of_literal = *numbers.entry(literal).or_insert_with(|| {
                        literals.push(literal.clone());
                        owners.push(Vec::new());
                        literals.len() - 1
                    });
                    owners[number_of_literal].push(Owner {
                        rule: RuleIndex(number),
                        view: rule.view,
                        needle: number_of_needle,
                        offsets: needle.offsets,
                        at_word: needle.is_at_word(literal),
                    });
                }
            }
        }
        Self {
            prefilter: Prefilter::new(&literals),
            owners,
        }
    }
}

/// Compiled rules. Immutable; shared by threads. Texts are given to [`Engine::scan`](crate::Engine::scan) or, in pieces, to
/// a [`StreamScan`](crate::StreamScan).
pub struct Engine {
    pub(crate) id: u64,
    pub(crate) table: &'static FoldTable,
    pub(crate) rules: Vec<Rule>,
    marks: Marks,
    /// The needles of all rules, of those with the view `Text` and of those with the view `Folded`.
    pub(crate) searches: [Search; 3],
    /// Rules with two needles, both of which have to be found.
    pub(crate) pairs: RuleSet,
    /// Of rules that digits wake.
    pub(crate) sieves: Vec<Sieve>,
    /// Rules that characters wake that are not ASCII.
    pub(crate) signs: Signs,
    /// Rules that are tried on every text with a long run of graphic characters.
    pub(crate) by_graphic_run: Vec<RuleIndex>,
    /// Rules that are tried on every text.
    pub(crate) always: Vec<RuleIndex>,
    pub(crate) has_text_rules: bool,
    has_token_tails: bool,
    /// Whether the needles of the rules with the view `Text` stand in the folded copy, too, wherever it is not odd.
    pub(crate) shares_needles: bool,
    /// How many bytes behind its beginning the outcome of a match can depend on.
    pub(crate) horizon: usize,
    pub(crate) undecided: [Undecided; 4],
    /// What scores a text, if a rule wants that, and the rule.
    pub(crate) linear: Option<(RuleIndex, Weights)>,
    /// What the profiles hold back.
    holds: Mutex<Vec<(RuleSet, Weak<Hold>)>>,
    mode: Mode,
    threshold: Option<u32>,
    flag_threshold: u32,
    budget: Duration,
    budget_per_kib: Duration,
    config: PolicyConfig,
}

impl Engine {
    /// Compiles the rules of `config`: those of its packs, then its own.
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

    /// As [`Engine::compile`], with these packs instead of the built-in ones that `config` names.
    ///
    /// # Errors
    /// As [`Engine::compile`].
    pub fn compile_packs(config: &PolicyConfig, packs: Vec<Pack>) -> Result<Self, PolicyError> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let threshold = config
            .threshold
            .map(|threshold| check_threshold("threshold", threshold));
        let threshold = threshold.transpose()?;
        let flag_threshold = check_threshold("flag_threshold", config.flag_threshold)?;
        let budget = Duration::from_micros(check_budget(config.budget_us)?);
        let table = fold_table::table()?;
        let spared = Spared::compile(&config.allow, table)?;

        let mut known = HashSet::new();
        let mut rules = Vec::new();
        let mut compile = |source: &Source, spec: RuleSpec| {
            if !known.insert(spec.id.clone()) {
                return Err(PolicyError::rule(
                    &spec.id,
                    "id",
                    "two rules have this id; it must be unique over all packs",
                ));
            }
            let rule = Rule::compile(spec, source, config, &spared, table)?;
            if rule.info.actions.iter().any(|action| *action != Action::Ignore) {
                rules.push(rule);
            }
            Ok(())
        };
        for pack in packs {
            let source = Source {
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
            compile(&Source::OWN, spec.clone())?;
        }
        overrides::check(&config.actions, |id| known.contains(id))?;
        if rules.len() > MOST_RULES {
            let reason = format!("{} rules are enabled; {MOST_RULES} at most", rules.len());
            return Err(PolicyError::Setting {
                field: "rules",
                reason,
            });
        }
        let undecided = |direction: Direction, view: View| {
            let selected = rules
                .iter()
                .filter(|rule| rule.view == view && rule.info.target.includes(direction))
                .filter(|rule| rule.least.is_none());
            Undecided::build(selected.map(|rule| &rule.pattern.hir))
        };
        let undecided = [
            undecided(Direction::Request, View::Text)?,
            undecided(Direction::Request, View::Folded)?,
            undecided(Direction::Response, View::Text)?,
            undecided(Direction::Response, View::Folded)?,
        ];
        let scored = (0_u16..).zip(&rules).filter(|(_, rule)| rule.least.is_some());
        let scored: Vec<_> = scored.map(|(number, _)| RuleIndex(number)).collect();
        let linear = match scored.as_slice() {
            [] => None,
            [rule] => Some((*rule, Weights::built_in()?)),
            [_, second, ..] => {
                let id = &rules[second.position()].info.id;
                return Err(PolicyError::rule(id, "likeness", "another rule has it already"));
            }
        };
        let mut engine = Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            table,
            searches: [None, Some(View::Text), Some(View::Folded)].map(|view| Search::of(&rules, view)),
            pairs: RuleSet::default(),
            sieves: Sieve::build_all(&rules)?,
            signs: Signs::default(),
            by_graphic_run: Vec::new(),
            always: Vec::new(),
            has_token_tails: rules.iter().any(|rule| rule.tail.is_some()),
            has_text_rules: rules.iter().any(|rule| rule.view == View::Text),
            shares_needles: rules
                .iter()
                .filter(|rule| rule.view == View::Text)
                .all(|rule| rule.wake.is_kept_by_folding()),
            // One character more, for a word boundary.
            horizon: rules.iter().map(|rule| rule.pattern.longest).max().unwrap_or(0) + 4,
            marks: Marks::of(rules.iter().map(|rule| &rule.info)),
            rules,
            undecided,
            linear,
            holds: Mutex::default(),
            mode: config.mode,
            threshold,
            flag_threshold,
            budget,
            budget_per_kib: Duration::from_micros(config.budget_us_per_kib),
            config: config.clone(),
        };
        engine.sort_by_wake();
        Ok(engine)
    }

    /// What looks for the needles of the rules with this view, or of all.
    pub(crate) fn search(&self, view: Option<View>) -> &Search {
        let [all, text, folded] = &self.searches;
        match view {
            None => all,
            Some(View::Text) => text,
            Some(View::Folded) => folded,
        }
    }

    fn sort_by_wake(&mut self) {
        let mut signs = Vec::new();
        for (number, rule) in (0_u16..).zip(&self.rules) {
            let index = RuleIndex(number);
            match &rule.wake {
                Wake::Needles(needles) => {
                    if needles.len() > 1 {
                        self.pairs.insert(index);
                    }
                }
                Wake::Digits(_) => {}
                Wake::Characters(ranges, offsets) if signs.len() < MOST_SIGNS => {
                    signs.push((index, ranges.as_slice(), *offsets));
                }
                Wake::Graphic => self.by_graphic_run.push(index),
                Wake::Characters(..) | Wake::Always => self.always.push(index),
            }
        }
        self.signs = Signs::new(&signs);
    }

    /// What applies to a tenant, or without one what the policy says.
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
                overrides::apply(&mut actions, info.named(), tenant.action, &tenant.actions);
                if rule.least.is_some() {
                    overrides::flag_at_most(&mut actions);
                }
                actions
            };
            let of_rule = of_tenant(info.actions);
            let fixed = of_tenant(rule.in_fixed_texts);
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
        // With a threshold what is only reported can deny, too.
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
            engine: self.id,
            mode,
            hold: self.hold(acting)?,
            threshold: threshold.transpose()?.or(self.threshold),
            flag_threshold: check_threshold("flag_threshold", flag_threshold)?,
            actions,
            in_fixed_texts,
            active,
        })
    }

    /// What tells where one of the `acting` rules can begin to match; profiles share it.
    fn hold(&self, acting: RuleSet) -> Result<Option<Arc<Hold>>, PolicyError> {
        if acting.is_empty() {
            return Ok(None);
        }
        let mut holds = self.holds.lock().unwrap_or_else(PoisonError::into_inner);
        holds.retain(|(_, hold)| hold.strong_count() > 0);
        let known = holds.iter().find(|(known, _)| *known == acting);
        if let Some(hold) = known.and_then(|(_, hold)| hold.upgrade()) {
            return Ok(Some(hold));
        }
        let hold = Arc::new(Hold::build(&self.rules, &acting)?);
        holds.push((acting, Arc::downgrade(&hold)));
        Ok(Some(hold))
    }

    /// The rule with this number.
    #[must_use]
    pub fn rule(&self, index: RuleIndex) -> &RuleInfo {
        &self.rules[index.position()].info
    }

    /// What may follow a match of a rule and belong to it, if anything may.
    #[must_use]
    pub fn token_tail(&self, index: RuleIndex) -> Option<TokenTail> {
        self.rules[index.position()].tail
    }

    /// Whether anything may follow matches and belong to them.
    #[must_use]
    pub fn has_token_tails(&self) -> bool {
        self.has_token_tails
    }

    /// Where what is replaced ends for a match of a rule that ends at `end`, in a text that goes no further than `text`.
    #[must_use]
    pub fn replaced_end(&self, index: RuleIndex, direction: Direction, text: &str, end: usize) -> usize {
        match (self.rule(index).extent, self.token_tail(index)) {
            (Extent::PrivateKey, _) if direction == Direction::Request => private_key::end(text, end),
            (_, Some(mut tail)) => tail.go_on(text.as_bytes(), end).end,
            _ => end,
        }
    }

    /// Whether a rule is about texts that give a model instructions, as an attack does: one of the packs `prompt-injection`,
    /// `jailbreak`, `exfiltration` and `obfuscation`.
    #[must_use]
    pub fn is_about_instructions(&self, index: RuleIndex) -> bool {
        self.rules[index.position()].is_about_instructions
    }

    /// The number of the rule with this id.
    #[must_use]
    pub fn index_of(&self, id: &str) -> Option<RuleIndex> {
        let numbers = (0_u16..).zip(self.rules());
        let mut found = numbers.filter(|(_, rule)| rule.id == id);
        found.next().map(|(number, _)| RuleIndex(number))
    }

    /// What stands in texts where they have replaced something.
    #[must_use]
    pub fn marks(&self) -> &Marks {
        &self.marks
    }

    /// All rules, in the order of their numbers.
    pub fn rules(&self) -> impl Iterator<Item = &RuleInfo> {
        self.rules.iter().map(|rule| &rule.info)
    }

    /// Whether a rule is a learned score, which counts for the flag of a message and never for its denial.
    pub(crate) fn is_scored(&self, rule: RuleIndex) -> bool {
        self.linear.as_ref().is_some_and(|(scored, _)| *scored == rule)
    }

    /// Whether there is no rule at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// What the evaluation of `bytes` bytes of text may take of the processor's time.
    #[must_use]
    pub fn budget(&self, bytes: usize) -> Budget {
        let kib = u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX);
        Budget::of(
            self.budget
                .saturating_add(self.budget_per_kib.saturating_mul(kib)),
        )
    }

    /// What it was compiled from. An equal one needs no other engine.
    #[must_use]
    pub fn config(&self) -> &PolicyConfig {
        &self.config
    }
}

impl Rule {
    fn compile(
        spec: RuleSpec,
        source: &Source,
        config: &PolicyConfig,
        spared: &Spared,
        table: &FoldTable,
    ) -> Result<Self, PolicyError> {
        let id = spec.id.clone();
        let refuse = |field, reason: &str| Err(PolicyError::rule(&id, field, reason));
        if !is_kebab_case(&id) {
            return refuse(
                "id",
                "must be lower-case words and digits joined by -, at most 64 characters",
            );
        }
        if spec.reason.trim().is_empty() {
            return refuse("reason", "must say in one sentence why the rule matched");
        }
        if spec.score > 1000 {
            return refuse("score", "must be 0 to 1000");
        }
        let check = match &spec.check {
            None => None,
            Some(name) => match checks::named(name) {
                Some(check) => Some(check),
                None => {
                    return refuse(
                        "check",
                        &format!("there is no check {name:?}; there are: {}", checks::names()),
                    );
                }
            },
        };
        let literals: Vec<String> = match (spec.view, &spec.regex) {
            (View::Text, Some(_)) => spec.literals.clone(),
            _ => spec
                .literals
                .iter()
                .map(|literal| fold::folded(table, literal))
                .collect(),
        };
        if literals.iter().any(String::is_empty) {
            return refuse(
                "literals",
                "must not be empty or consist of invisible characters only",
            );
        }
        let least = match spec.likeness {
            None => None,
            Some(_) if source.pack.is_none() => return refuse("likeness", "is for built-in packs"),
            Some(_) if spec.regex.is_some() || spec.check.is_some() || !literals.is_empty() => {
                return refuse("likeness", "stands instead of regex, literals and check");
            }
            Some(_) if spec.target != Target::Request => {
                return refuse("target", "must be request with likeness");
            }
            Some(likeness) => Some(Weights::built_in()?.threshold(likeness)),
        };
        let (pattern, view, required) = match &spec.regex {
            None if least.is_some() => (Pattern::never(), View::Text, Vec::new()),
            Some(regex) => {
                let plain = |literal: &String| literal.bytes().map(plain_byte).collect();
                (
                    Pattern::parse(regex, spec.view, table),
                    spec.view,
                    literals.iter().map(plain).collect(),
                )
            }
            None if literals.is_empty() => return refuse("regex", "a rule needs a regex, or literals"),
            None => (Pattern::of_literals(&literals), View::Folded, Vec::new()),
        };
        let field = if spec.regex.is_some() { "regex" } else { "literals" };
        let pattern = pattern.map_err(|reason| PolicyError::rule(&id, field, reason))?;
        let wake = match least {
            Some(_) => Wake::Needles(Vec::new()),
            None => Wake::derive(&pattern.hir, &required, view),
        };
        let anchors = wake.anchors().map_err(PolicyError::Internal)?;
        let tail = (spec.extent == Extent::Token).then(|| TokenTail::of(&pattern.hir));
        if tail.is_some_and(TokenTail::is_empty) {
            return refuse(
                "extent",
                "is token, and the regex ends with no repetition of characters",
            );
        }
        let mut info = RuleInfo {
            actions: source.actions(&spec),
            is_sign: source.pack.is_some() && spec.action <= Action::Flag,
            id: spec.id,
            pack: source.pack.clone(),
            reason: spec.reason,
            target: spec.target,
            view,
            extent: spec.extent,
            score: spec.score,
            examples: spec.examples,
        };
        let of_policy = |mut actions: Actions| {
            overrides::apply(&mut actions, info.named(), config.action, &config.actions);
            if least.is_some() {
                overrides::flag_at_most(&mut actions);
            }
            actions
        };
        let in_fixed_texts = of_policy(source.in_fixed_texts(info.actions));
        info.actions = of_policy(info.actions);
        let spared = spared.of_rule(view, source.pack.as_deref(), source.spares_documentation);
        Ok(Self {
            info,
            pattern,
            view,
            is_about_instructions: (source.pack.as_deref())
                .is_some_and(|pack| ABOUT_INSTRUCTIONS.contains(&pack)),
            required,
            check,
            spared,
            wake,
            anchors,
            least,
            tail,
            in_fixed_texts,
        })
    }
}

/// Whether an id has lower-case words of letters and digits, joined by single dashes, and 64 characters at most.
pub fn is_kebab_case(id: &str) -> bool {
    let word = |word: &str| {
        !word.is_empty()
            && word
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    id.len() <= 64 && id.split('-').all(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One search for two.
    #[test]
    fn both_copies_of_a_text_are_searched_at_once() {
        let packs = crate::pack_names().map(str::to_owned).collect();
        let engine = Engine::compile(&PolicyConfig {
            packs,
            ..PolicyConfig::default()
        });
        let engine = engine.unwrap();
        let rules = engine.rules.iter().filter(|rule| rule.view == View::Text);
        let others: Vec<_> = rules.filter(|rule| !rule.wake.is_kept_by_folding()).collect();
        let others: Vec<_> = others.iter().map(|rule| (&rule.info.id, &rule.wake)).collect();
        assert!(engine.shares_needles, "{others:?}");
    }
}
