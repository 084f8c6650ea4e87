//! Errors in a policy's configuration.

use thiserror::Error;

/// A rejected configuration; nothing was changed. The message is for the author of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PolicyError {
    /// A rule is not valid.
    #[error("rule {rule}: {field}: {reason}")]
    InvalidRule {
        /// The rule's id.
        rule: String,
        /// The field of the rule that has to be changed.
        field: &'static str,
        /// What is wrong, and how to fix it.
        reason: String,
    },
    /// `packs` names a pack that does not exist.
    #[error("packs: there is no pack {name:?}; the packs are: {known}")]
    UnknownPack {
        /// The requested name.
        name: String,
        /// The existing names, separated by commas.
        known: String,
    },
    /// The text of a pack cannot be parsed.
    #[error("pack {pack}: {reason}")]
    InvalidPack {
        /// The pack's name.
        pack: String,
        /// What is wrong with it.
        reason: String,
    },
    /// `actions` names a rule that does not exist, in this policy or in any pack.
    #[error("actions: there is no rule {rule:?}")]
    UnknownRule {
        /// The unknown id.
        rule: String,
    },
    /// Another setting is out of range.
    #[error("{field}: {reason}")]
    InvalidSetting {
        /// The setting.
        field: &'static str,
        /// Its valid range.
        reason: String,
    },
    /// A defect in this library: its embedded data, or data that it builds, is inconsistent.
    #[error("internal: {0}")]
    Internal(String),
}

impl PolicyError {
    pub(crate) fn invalid_rule(rule: &str, field: &'static str, reason: impl Into<String>) -> Self {
        Self::InvalidRule {
            rule: rule.to_owned(),
            field,
            reason: reason.into(),
        }
    }
}
