//! The `policy` section of a worker's configuration, and the part of it that a tenant can override.

use serde::Deserialize;
use serde::de::{Deserializer, Error};

use crate::allow_list::PolicyAllowList;
use crate::overrides::ActionOverride;
use crate::{Action, PolicyError, RuleSpec};

/// The longest accepted budget: an hour.
const LONGEST_MILLISECONDS: f64 = 3_600_000.0;

/// Whether a policy is enforced or only reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum Mode {
    /// Rules block, redact and flag.
    #[default]
    Enforce,
    /// Everything is evaluated and reported; nothing is blocked or redacted.
    DryRun,
}

/// The handling of images, recordings and files in a request by rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum Attachments {
    /// Scan attachments that decode to text.
    #[default]
    ScanText,
    /// Scan no attachments.
    Skip,
}

/// The policy of a worker.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct PolicyConfig {
    /// Names of built-in packs.
    pub packs: Vec<String>,
    /// Whether the policy is enforced.
    pub mode: Mode,
    /// Replaces every rule's own action where the rule is not off. Pack rules that only flag
    /// continue to only flag.
    pub action: Option<Action>,
    /// Replaces the actions of some rules, or of all rules of some packs, in all scopes or in some.
    pub actions: Vec<ActionOverride>,
    /// Values that no rule matches; absent: none.
    pub allow: Option<PolicyAllowList>,
    /// The score at which a message is denied, at least 1; absent: no score denies.
    pub threshold: Option<u32>,
    /// The score at which a message is reported as flagged, at least 1.
    pub flag_threshold: u32,
    /// CPU time for evaluating a text of any length, in microseconds; at least 1.
    #[serde(rename = "budgetMilliseconds", deserialize_with = "microseconds")]
    pub budget_us: u64,
    /// Additional CPU time for every KiB of the text, in microseconds.
    #[serde(rename = "budgetMicrosecondsPerKibibyte")]
    pub budget_us_per_kib: u64,
    /// The handling of attachments by rules.
    pub attachments: Attachments,
    /// The user's own rules.
    pub rules: Vec<RuleSpec>,
}

impl Default for PolicyConfig {
    fn default() -> Self {
        Self {
            packs: Vec::new(),
            mode: Mode::Enforce,
            action: None,
            actions: Vec::new(),
            allow: None,
            threshold: None,
            flag_threshold: 50,
            budget_us: 10_000,
            budget_us_per_kib: 200,
            attachments: Attachments::ScanText,
            rules: Vec::new(),
        }
    }
}

/// A tenant's overrides of the worker's policy. An absent field keeps the policy's value.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct TenantPolicy {
    /// Whether the policy is enforced.
    pub mode: Option<Mode>,
    /// Replaces every rule's action, except where the policy turns the rule off.
    pub action: Option<Action>,
    /// Action overrides, applied after those of the policy. A rule that the policy turns off in all
    /// scopes stays off.
    pub actions: Vec<ActionOverride>,
    /// The score at which a message is denied; at least 1.
    pub threshold: Option<u32>,
    /// The score at which a message is reported as flagged; at least 1.
    pub flag_threshold: Option<u32>,
}

/// Reads a number of milliseconds and converts it to microseconds.
fn microseconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let milliseconds = f64::deserialize(deserializer)?;
    if !(0.0..=LONGEST_MILLISECONDS).contains(&milliseconds) {
        let reason = format!("a budget must be from 0 to {LONGEST_MILLISECONDS} milliseconds");
        return Err(D::Error::custom(reason));
    }
    Ok((milliseconds * 1000.0).round() as u64)
}

pub(crate) fn check_threshold(field: &'static str, threshold: u32) -> Result<u32, PolicyError> {
    if threshold == 0 {
        let reason = "must be at least 1".to_owned();
        return Err(PolicyError::InvalidSetting { field, reason });
    }
    Ok(threshold)
}

pub(crate) fn check_budget(budget_us: u64) -> Result<u64, PolicyError> {
    if budget_us == 0 {
        let reason = "must be at least 0.001".to_owned();
        return Err(PolicyError::InvalidSetting {
            field: "budgetMilliseconds",
            reason,
        });
    }
    Ok(budget_us)
}
