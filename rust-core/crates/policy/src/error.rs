//! What can be wrong with a policy's configuration.

use thiserror::Error;

/// A configuration that is refused; nothing was changed. Its text is meant for the person who wrote the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PolicyError {
    /// A rule cannot be used as it is written.
    #[error("rule {rule}: {field}: {reason}")]
    InvalidRule {
        /// The rule's id.
        rule: String,
        /// The field of the rule that is to be changed.
        field: &'static str,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// `packs` names a pack that does not exist.
    #[error("packs: there is no pack {name:?}; the packs are: {known}")]
    UnknownPack {
        /// The name that was asked for.
        name: String,
        /// The names that exist, separated by commas.
        known: String,
    },
    /// The text of a pack is not a pack.
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
        /// The id that was given.
        rule: String,
    },
    /// Another setting is out of its bounds.
    #[error("{field}: {reason}")]
    InvalidSetting {
        /// The setting.
        field: &'static str,
        /// Its bounds.
        reason: String,
    },
    /// A defect of this library: what it carries or builds does not fit together.
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
