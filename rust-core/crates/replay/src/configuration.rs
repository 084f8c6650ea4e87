//! An archived configuration: the engine, and the terms of each tenant.

use std::collections::BTreeMap;
use std::sync::Arc;

use proofgate_inspect::GuardedTools;
use proofgate_ledger::record::GuardVerdict;
use proofgate_policy::{
    Action, Attachments, Direction, Engine, Mode, PolicyConfig, PolicyError, Profile, Scope, TenantPolicy,
};
use serde::Deserialize;

use crate::direction_verdict::{DirectionVerdict, GuardedToolCall};

/// Factor by which the CPU time of an evaluation may exceed a worker's.
pub const TIME_BUDGET_FACTOR: u64 = 10;
/// Lower and upper limit of that time for any text, in microseconds, so that no configuration makes its verdicts
/// irreplayable.
const TIME_BUDGET_RANGE: (u64, u64) = (1_000_000, 10_000_000);
/// Upper limit of the additional time for every KiB of text, in microseconds.
const MAX_TIME_PER_KIB: u64 = 1_000_000;

/// Why a configuration cannot be used for a replay.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// This version cannot read it.
    #[error("the configuration cannot be read at line {line}, column {column}")]
    Unreadable {
        /// Line in the JSON text.
        line: usize,
        /// Column in that line.
        column: usize,
    },
    /// An earlier version archived it in another format.
    #[error(
        "the configuration was archived by an earlier version, in a form that this version does not read"
    )]
    EarlierFormat,
    /// Its rules are refused.
    #[error("its rules are refused: {0}")]
    Policy(#[from] PolicyError),
}

/// Where the rules of a replay come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleSource {
    /// The configuration that a record names: its verdict must follow from these rules.
    Recorded,
    /// Another configuration: tenants that it does not name have the default policy, and external policies are not asked.
    Other,
}

/// The format version of archived configurations that can be read. Earlier ones had no version.
pub const FORMAT: u32 = 2;

/// The format version of a configuration.
#[derive(Deserialize)]
struct Form {
    #[serde(default)]
    format: Option<u32>,
}

/// The parts of a configuration that a replay reads.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
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
#[serde(rename_all = "camelCase")]
struct PolicyOwner {
    name: String,
    #[serde(default)]
    policy: Option<TenantPolicy>,
    /// Names of its external policies.
    #[serde(default)]
    policies: Vec<String>,
    #[serde(default)]
    guarded_tools: Option<GuardedToolsConfig>,
}

/// Tools that must not be called after a flagged tool text.
#[derive(Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
struct GuardedToolsConfig {
    names: Vec<String>,
    on_flag: FlagAction,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
enum FlagAction {
    Refuse,
    RequireApproval,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Limits {
    body_bytes: u64,
}

/// The policy terms of a tenant.
pub(crate) struct ReplayPolicy {
    pub(crate) profile: Profile,
    /// The same profile, but without denials by score.
    pub(crate) profile_without_scores: Profile,
    /// Whether external policies are asked in addition to the rules.
    pub(crate) has_external_policies: bool,
    /// Tools that must not be called after a flagged tool text, and the verdict on a call; `None` when all are allowed.
    pub(crate) guarded_tools: Option<(Arc<GuardedTools>, GuardVerdict)>,
}

impl ReplayPolicy {
    /// Returns whether a call would be refused as recorded.
    pub(crate) fn refuses_as_recorded(&self, call: &GuardedToolCall) -> bool {
        self.guarded_tools.as_ref().is_some_and(|(tools, verdict)| {
            self.profile.mode() == Mode::Enforce
                && *verdict == call.verdict
                && tools.entries().any(|entry| entry == call.tool)
        })
    }
}

/// The compiled rules of a configuration, and the terms of its tenants.
pub(crate) struct Configuration {
    pub(crate) engine: Engine,
    pub(crate) attachments: proofgate_providers::AttachmentPolicy,
    /// Maximum bytes of an answer that are buffered.
    pub(crate) body_bytes: usize,
    tenants: BTreeMap<String, ReplayPolicy>,
    /// The terms of all other tenants; `None` when unknown.
    others: Option<ReplayPolicy>,
}

impl Configuration {
    /// Reads a configuration and compiles its rules.
    pub(crate) fn parse(json: &[u8], basis: RuleSource) -> Result<Self, ReplayError> {
        let unreadable = |error: serde_json::Error| ReplayError::Unreadable {
            line: error.line(),
            column: error.column(),
        };
        let form: Form = serde_json::from_slice(json).map_err(unreadable)?;
        if form.format != Some(FORMAT) {
            return Err(ReplayError::EarlierFormat);
        }
        let document: Document = serde_json::from_slice(json).map_err(unreadable)?;
        let mut policy = document.policy.unwrap_or_default();
        let (least, most) = TIME_BUDGET_RANGE;
        let patient = |time: u64| time.saturating_mul(TIME_BUDGET_FACTOR);
        policy.budget_us = patient(policy.budget_us).clamp(least, most);
        policy.budget_us_per_kib = patient(policy.budget_us_per_kib).min(MAX_TIME_PER_KIB);
        let engine = Engine::compile(&policy)?;
        let others = match basis {
            RuleSource::Other => Some(terms(&engine, None)?),
            // The archive does not record which plan a tenant of a shard had, so all plans must have the same terms.
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

    /// Returns the terms of a tenant; `None` when the configuration does not contain them.
    pub(crate) fn replay_policy(&self, tenant: &str) -> Option<&ReplayPolicy> {
        self.tenants.get(tenant).or(self.others.as_ref())
    }

    /// Returns whether a rule masks its matches in requests.
    pub(crate) fn is_masking_rule(&self, terms: &ReplayPolicy, id: &str) -> bool {
        let Some(index) = self.engine.index_of(id) else {
            return false;
        };
        let mut scopes = Scope::ALL.into_iter();
        scopes.any(|scope| terms.profile.action(index, scope) == Some(Action::Mask))
    }

    /// Returns whether any rule masks its matches in requests.
    pub(crate) fn has_masking_rule(&self, terms: &ReplayPolicy) -> bool {
        self.engine
            .rules()
            .any(|rule| self.is_masking_rule(terms, &rule.id))
    }

    /// Returns the lowest possible score of an answer of which only the part `seen` remains.
    /// `whole` names the rules that matched in the complete answer. Among overlapping matches, only
    /// the match with the highest score counts. If that match is missing, others count instead.
    /// `None` if no missing rule could have outweighed another.
    pub(crate) fn min_score(
        &self,
        terms: &ReplayPolicy,
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

    /// Returns the score that a rule adds to an answer; `None` when it replaces its matches or does not apply.
    fn score_contribution(&self, terms: &ReplayPolicy, id: &str) -> Option<u32> {
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

    /// Returns whether the rules in a verdict can deny: one rule alone, or their recorded score,
    /// which cannot exceed the sum of their scores. `None` if the verdict does not name all rules.
    pub(crate) fn can_deny(
        &self,
        terms: &ReplayPolicy,
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

fn owner_terms(engine: &Engine, named: &PolicyOwner) -> Result<ReplayPolicy, PolicyError> {
    let guarded = named.guarded_tools.as_ref().map(|guarded| {
        let tools = GuardedTools::new(guarded.names.iter().map(String::as_str));
        let verdict = match guarded.on_flag {
            FlagAction::Refuse => GuardVerdict::Refused,
            FlagAction::RequireApproval => GuardVerdict::ApprovalRequired,
        };
        (Arc::new(tools), verdict)
    });
    Ok(ReplayPolicy {
        has_external_policies: !named.policies.is_empty(),
        guarded_tools: guarded,
        ..terms(engine, named.policy.as_ref())?
    })
}

/// Returns the terms of a tenant that has this policy and no external policies.
fn terms(engine: &Engine, policy: Option<&TenantPolicy>) -> Result<ReplayPolicy, PolicyError> {
    let unscored = TenantPolicy {
        threshold: Some(u32::MAX),
        ..policy.cloned().unwrap_or_default()
    };
    Ok(ReplayPolicy {
        profile: engine.profile(policy)?,
        profile_without_scores: engine.profile(Some(&unscored))?,
        has_external_policies: false,
        guarded_tools: None,
    })
}
