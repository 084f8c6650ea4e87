//! A compiled rule.

use crate::allow_list::Exemptions;
use crate::anchor::Anchor;
use crate::checks::{self, Check};
use crate::fold;
use crate::fold_table::{FoldTable, plain_byte};
use crate::linear::Weights;
use crate::overrides::{self, Actions, RuleName};
use crate::pattern::Pattern;
use crate::scope::ScopeSet;
use crate::token_tail::TokenTail;
use crate::trigger::{MAX_NEEDLES, Trigger};
use crate::{
    Action, ActionLimit, Examples, Extent, PolicyConfig, PolicyError, RuleSpec, Scope, Target, View,
};

/// The index of a rule within its [`Engine`](crate::Engine).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleIndex(pub(crate) u16);

impl RuleIndex {
    pub(crate) fn position(self) -> usize {
        usize::from(self.0)
    }
}

/// Public metadata of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleInfo {
    /// The rule's id in kebab-case.
    pub id: String,
    /// The pack that contains it; `None` for a rule of the user.
    pub pack: Option<String>,
    /// The reason as one sentence for the client.
    pub reason: String,
    /// The directions that it applies to.
    pub target: Target,
    /// The copy of the text that it searches.
    pub view: View,
    /// The extent of a replacement.
    pub extent: Extent,
    /// The score that it adds.
    pub score: u32,
    /// Whether its pack defines it to flag only: an action for its pack or for all rules cannot make it stricter.
    pub is_flag_only: bool,
    /// Its action in each scope, indexed by [`Scope`] as a number, for tenants without their own policy.
    pub actions: [Action; Scope::ALL.len()],
    /// Texts with which it is tested.
    pub examples: Examples,
}

impl RuleInfo {
    pub(crate) fn rule_name(&self) -> RuleName<'_> {
        RuleName {
            id: &self.id,
            pack: self.pack.as_deref(),
            is_flag_only: self.is_flag_only,
        }
    }
}

/// Packs whose rules detect instructions to a model.
const INSTRUCTION_PACKS: [&str; 4] = ["prompt-injection", "jailbreak", "exfiltration", "obfuscation"];

/// A rule that is ready to be applied.
pub(crate) struct Rule {
    pub(crate) info: RuleInfo,
    pub(crate) pattern: Pattern,
    pub(crate) view: View,
    /// Whether it detects instructions to a model.
    pub(crate) is_about_instructions: bool,
    /// Literals (plain) of which a match has to contain one; empty if there is no such condition.
    pub(crate) required: Vec<Vec<u8>>,
    pub(crate) check: Option<Check>,
    /// Values that it does not match.
    pub(crate) exemptions: Exemptions,
    pub(crate) trigger: Trigger,
    /// For each of its needles, the anchor that checks the text from a literal on.
    pub(crate) anchors: [Option<Anchor>; MAX_NEEDLES],
    /// The minimum linear score of a match; `None` if the rule matches by its pattern.
    pub(crate) min_linear_score: Option<i32>,
    /// The characters that can follow a match and belong to it, with [`Extent::Token`].
    pub(crate) token_tail: Option<TokenTail>,
    /// Its actions in texts that cannot be changed, as in [`RuleInfo::actions`].
    pub(crate) fixed_text_actions: Actions,
}

/// The origin of a rule, and the settings that all rules of that origin share.
pub(crate) struct RuleOrigin {
    pub(crate) pack: Option<String>,
    pub(crate) scopes: ScopeSet,
    pub(crate) limits: Vec<ActionLimit>,
    pub(crate) fixed_texts: Option<Action>,
    pub(crate) spares_documentation: bool,
}

impl RuleOrigin {
    pub(crate) const CUSTOM: RuleOrigin = RuleOrigin {
        pack: None,
        scopes: ScopeSet::ALL,
        limits: Vec::new(),
        fixed_texts: None,
        spares_documentation: false,
    };

    /// Returns the actions of a rule before a policy changes them.
    fn actions(&self, spec: &RuleSpec) -> Actions {
        let mut actions = overrides::own_actions(spec.action, spec.extent, &self.limits);
        for (scope, action) in Scope::ALL.into_iter().zip(&mut actions) {
            if !self.scopes.contains(scope) || !spec.target.includes(scope.direction()) {
                *action = Action::Ignore;
            }
        }
        actions
    }

    /// Returns the actions in texts that cannot be changed.
    fn fixed_text_actions(&self, actions: Actions) -> Actions {
        let most = self.fixed_texts.unwrap_or(Action::Block);
        actions.map(|action| match action {
            Action::Mask | Action::Redact => action.min(most),
            _ => action,
        })
    }
}

impl Rule {
    pub(crate) fn compile(
        spec: RuleSpec,
        source: &RuleOrigin,
        config: &PolicyConfig,
        spared: &Exemptions,
        table: &FoldTable,
    ) -> Result<Self, PolicyError> {
        let id = spec.id.clone();
        let refuse = |field, reason: &str| Err(PolicyError::invalid_rule(&id, field, reason));
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
            Some(name) => match checks::by_name(name) {
                Some(check) => Some(check),
                None => {
                    return refuse(
                        "check",
                        &format!("there is no check {name:?}; the checks are: {}", checks::names()),
                    );
                }
            },
        };
        let literals: Vec<String> = match (spec.view, &spec.regex) {
            (View::Text, Some(_)) => spec.literals.clone(),
            _ => spec
                .literals
                .iter()
                .map(|literal| fold::fold_text(table, literal))
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
            Some(_) if source.pack.is_none() => {
                return refuse("likeness", "is allowed in built-in packs only");
            }
            Some(_) if spec.regex.is_some() || spec.check.is_some() || !literals.is_empty() => {
                return refuse("likeness", "cannot be combined with regex, literals or check");
            }
            Some(_) if spec.target != Target::Request => {
                return refuse("target", "must be Request when likeness is set");
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
            None if literals.is_empty() => return refuse("regex", "a rule needs a regex or literals"),
            None => (Pattern::from_literals(&literals), View::Folded, Vec::new()),
        };
        let field = if spec.regex.is_some() { "regex" } else { "literals" };
        let pattern = pattern.map_err(|reason| PolicyError::invalid_rule(&id, field, reason))?;
        let wake = match least {
            Some(_) => Trigger::Needles(Vec::new()),
            None => Trigger::derive(&pattern.hir, &required, view),
        };
        let anchors = wake.anchors().map_err(PolicyError::Internal)?;
        let tail = (spec.extent == Extent::Token).then(|| TokenTail::from_pattern(&pattern.hir));
        if tail.is_some_and(TokenTail::is_empty) {
            return refuse(
                "extent",
                "is token, but the regex does not end with a repetition of characters",
            );
        }
        let mut info = RuleInfo {
            actions: source.actions(&spec),
            is_flag_only: source.pack.is_some() && spec.action <= Action::Flag,
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
            overrides::apply(&mut actions, info.rule_name(), config.action, &config.actions);
            if least.is_some() {
                overrides::flag_at_most(&mut actions);
            }
            actions
        };
        let in_fixed_texts = of_policy(source.fixed_text_actions(info.actions));
        info.actions = of_policy(info.actions);
        let spared = spared.for_rule(view, source.pack.as_deref(), source.spares_documentation);
        Ok(Self {
            info,
            pattern,
            view,
            is_about_instructions: (source.pack.as_deref())
                .is_some_and(|pack| INSTRUCTION_PACKS.contains(&pack)),
            required,
            check,
            exemptions: spared,
            trigger: wake,
            anchors,
            min_linear_score: least,
            token_tail: tail,
            fixed_text_actions: in_fixed_texts,
        })
    }
}

/// Whether an id consists of lower-case words of letters and digits, joined by single dashes, with at most 64 characters.
pub fn is_kebab_case(id: &str) -> bool {
    let word = |word: &str| {
        !word.is_empty()
            && word
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    id.len() <= 64 && id.split('-').all(word)
}
