//! A configuration as it is archived: the engine, and what holds for each tenant.

use std::collections::BTreeMap;
use std::sync::Arc;

use proofgate_inspect::GuardedTools;
use proofgate_ledger::record::GuardVerdict;
use proofgate_policy::{
    Action, Attachments, Direction, Engine, Mode, PolicyConfig, PolicyError, Profile, Scope, TenantPolicy,
};
use serde::Deserialize;

use crate::side::{DirectionVerdict, GuardedToolCall};

/// How many times as much of the processor's time as in the worker an evaluation may take.
pub const TIME_BUDGET_FACTOR: u64 = 10;
/// And how much for any text at least and at most, in microseconds: no configuration makes its verdicts irreplayable.
const TIME_BUDGET_RANGE: (u64, u64) = (1_000_000, 10_000_000);
/// And in addition for every KiB of it at most, in microseconds.
const MAX_TIME_PER_KIB: u64 = 1_000_000;

/// A configuration cannot be used for a replay.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// It is not what this version reads.
    #[error("the configuration cannot be read at line {line}, column {column}")]
    Unreadable {
        /// Of the JSON text.
        line: usize,
        /// Of that line.
        column: usize,
    },
    /// Its rules are refused.
    #[error("its rules are refused: {0}")]
    Policy(#[from] PolicyError),
}

/// Whose rules these are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleSource {
    /// Those that a record names: its verdict has to follow from them.
    Recorded,
    /// Others: tenants that they do not name have the policy of everybody, and what else would be asked is left out.
    Other,
}

/// What a replay reads of a configuration.
#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    policy: Option<PolicyConfig>,
    #[serde(default)]
    tenants: Vec<PolicyOwner>,
    #[serde(default)]
    plans: Vec<PolicyOwner>,
    limits: Limits,
}

#[derive(Deserialize)]
struct PolicyOwner {
    name: String,
    #[serde(default)]
    policy: Option<TenantPolicy>,
    /// Names of what is asked beside the rules.
    #[serde(default)]
    policies: Vec<String>,
    #[serde(default)]
    guarded_tools: Option<GuardedToolsConfig>,
}

/// Tools that may not be called after a flagged text of a tool.
#[derive(Deserialize, PartialEq, Eq)]
struct GuardedToolsConfig {
    names: Vec<String>,
    on_flag: FlagAction,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum FlagAction {
    Refuse,
    RequireApproval,
}

#[derive(Deserialize)]
struct Limits {
    body_bytes: u64,
}

/// What holds for a tenant.
pub(crate) struct PolicyTerms {
    pub(crate) profile: Profile,
    /// The same, but that no score denies.
    pub(crate) unscored: Profile,
    /// Whether others are asked beside the rules.
    pub(crate) asks_others: bool,
    /// Tools that may not be called after a flagged text of a tool, and what becomes of a call; `None` where all may be.
    pub(crate) guarded: Option<(Arc<GuardedTools>, GuardVerdict)>,
}

impl PolicyTerms {
    /// Whether a call is refused so as a record says.
    pub(crate) fn refuses_as_recorded(&self, call: &GuardedToolCall) -> bool {
        self.guarded.as_ref().is_some_and(|(tools, verdict)| {
            self.profile.mode() == Mode::Enforce
                && *verdict == call.verdict
                && tools.entries().any(|entry| entry == call.tool)
        })
    }
}

/// The rules of a configuration, compiled, and whom they hold for.
pub(crate) struct Configuration {
    pub(crate) engine: Engine,
    pub(crate) attachments: proofgate_providers::AttachmentPolicy,
    /// Most bytes of an answer that are held.
    pub(crate) body_bytes: usize,
    tenants: BTreeMap<String, PolicyTerms>,
    /// What holds for all others; `None` where that is not known.
    others: Option<PolicyTerms>,
}

impl Configuration {
    /// Reads a configuration and compiles its rules.
    pub(crate) fn parse(json: &[u8], basis: RuleSource) -> Result<Self, ReplayError> {
        let document: Document = serde_json::from_slice(json).map_err(|error| ReplayError::Unreadable {
            line: error.line(),
            column: error.column(),
        })?;
        let mut policy = document.policy.unwrap_or_default();
        let (least, most) = TIME_BUDGET_RANGE;
        let patient = |time: u64| time.saturating_mul(TIME_BUDGET_FACTOR);
        policy.budget_us = patient(policy.budget_us).clamp(least, most);
        policy.budget_us_per_kib = patient(policy.budget_us_per_kib).min(MAX_TIME_PER_KIB);
        let engine = Engine::compile(&policy)?;
        let others = match basis {
            RuleSource::Other => Some(terms(&engine, None)?),
            // Which plan a tenant of a shard had, stands in no archive: all of them have to say the same.
            RuleSource::Recorded => match &document.plans[..] {
                [first, rest @ ..] if rest.iter().all(|plan| plan.has_same_terms(first)) => {
                    Some(owner_terms(&engine, first)?)
                }
                _ => None,
            },
        };
        let mut tenants = BTreeMap::new();
        for tenant in &document.tenants {
            let terms = owner_terms(&engine, tenant)?;
            tenants.insert(tenant.name.clone(), terms);
        }
        Ok(Self {
            attachments: match policy.attachments {
                Attachments::ScanText => proofgate_providers::AttachmentPolicy::ScanText,
                Attachments::Skip => proofgate_providers::AttachmentPolicy::Skip,
            },
            engine,
            body_bytes: usize::try_from(document.limits.body_bytes).unwrap_or(usize::MAX),
            tenants,
            others,
        })
    }

    /// What holds for a tenant; `None` where the configuration does not tell.
    pub(crate) fn terms(&self, tenant: &str) -> Option<&PolicyTerms> {
        self.tenants.get(tenant).or(self.others.as_ref())
    }

    /// Whether a rule masks what it finds in requests.
    pub(crate) fn masks(&self, terms: &PolicyTerms, id: &str) -> bool {
        let Some(index) = self.engine.index_of(id) else {
            return false;
        };
        let mut scopes = Scope::ALL.into_iter();
        scopes.any(|scope| terms.profile.action(index, scope) == Some(Action::Mask))
    }

    /// Whether any rule does.
    pub(crate) fn masks_any(&self, terms: &PolicyTerms) -> bool {
        self.engine.rules().any(|rule| self.masks(terms, &rule.id))
    }

    /// The least score of an answer of which `seen` is left, where `whole` names the rules that matched in all of it. Of
    /// matches that overlap, the one with the highest score counts: if that is not there any more, others count in its place.
    /// `None`: no rule that could have outweighed another is missing.
    pub(crate) fn min_score(
        &self,
        terms: &PolicyTerms,
        seen: &DirectionVerdict,
        whole: &DirectionVerdict,
    ) -> Option<u32> {
        if whole.unnamed > 0 {
            return Some(0);
        }
        let missing = whole.rules.iter().filter(|id| !seen.rules.contains(id));
        let outweighing = missing
            .filter_map(|id| self.score_contribution(terms, id))
            .max()?;
        let scores = seen
            .rules
            .iter()
            .filter_map(|id| self.score_contribution(terms, id));
        Some(
            scores
                .filter(|score| *score > outweighing)
                .fold(0, u32::saturating_add),
        )
    }

    /// What a rule adds to the score of an answer; `None` where it replaces what it finds, or takes no part.
    fn score_contribution(&self, terms: &PolicyTerms, id: &str) -> Option<u32> {
        let index = self.engine.index_of(id)?;
        let mut answers = Scope::ALL
            .into_iter()
            .filter(|scope| scope.direction() == Direction::Response);
        answers
            .any(|scope| {
                matches!(
                    terms.profile.action(index, scope),
                    Some(Action::Flag | Action::Block)
                )
            })
            .then(|| self.engine.rule(index).score)
    }

    /// Whether the rules that a verdict names can deny: one by itself, or the score that it tells, which can be no more than
    /// theirs together. `None` where it does not name them all.
    pub(crate) fn can_deny(
        &self,
        terms: &PolicyTerms,
        direction: Direction,
        side: &DirectionVerdict,
    ) -> Option<bool> {
        if side.unnamed > 0 || side.has_external_policies() {
            return None;
        }
        let profile = &terms.profile;
        let scopes = || {
            Scope::ALL
                .into_iter()
                .filter(|scope| scope.direction() == direction)
        };
        let mut most = 0_u32;
        let mut blocks = false;
        for id in &side.rules {
            let Some(index) = self.engine.index_of(id) else {
                return Some(false);
            };
            let mut actions = scopes()
                .filter_map(|scope| profile.action(index, scope))
                .peekable();
            if actions.peek().is_none() {
                return Some(false);
            }
            most = most.saturating_add(self.engine.rule(index).score);
            blocks |= actions.any(|action| action == Action::Block);
        }
        let by_score = profile
            .threshold()
            .is_some_and(|threshold| side.score >= threshold);
        Some(side.score <= most && (blocks || by_score))
    }
}

impl PolicyOwner {
    fn has_same_terms(&self, other: &Self) -> bool {
        self.policy == other.policy
            && self.policies == other.policies
            && self.guarded_tools == other.guarded_tools
    }
}

fn owner_terms(engine: &Engine, named: &PolicyOwner) -> Result<PolicyTerms, PolicyError> {
    let guarded = named.guarded_tools.as_ref().map(|guarded| {
        let tools = GuardedTools::new(guarded.names.iter().map(String::as_str));
        let verdict = match guarded.on_flag {
            FlagAction::Refuse => GuardVerdict::Refused,
            FlagAction::RequireApproval => GuardVerdict::ApprovalRequired,
        };
        (Arc::new(tools), verdict)
    });
    Ok(PolicyTerms {
        asks_others: !named.policies.is_empty(),
        guarded,
        ..terms(engine, named.policy.as_ref())?
    })
}

/// The terms of a tenant that has this policy, whom nothing else is asked for.
fn terms(engine: &Engine, policy: Option<&TenantPolicy>) -> Result<PolicyTerms, PolicyError> {
    let unscored = TenantPolicy {
        threshold: Some(u32::MAX),
        ..policy.cloned().unwrap_or_default()
    };
    Ok(PolicyTerms {
        profile: engine.profile(policy)?,
        unscored: engine.profile(Some(&unscored))?,
        asks_others: false,
        guarded: None,
    })
}
