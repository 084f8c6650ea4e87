//! A pack's limits for the actions of its rules.

use serde::Deserialize;

use crate::{Action, ScopeSet};

/// A pack's limit for all its rules in some scopes: the strictest action they can take.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActionLimit {
    /// The scopes in which it applies.
    #[serde(default = "everywhere")]
    pub scopes: ScopeSet,
    /// The strictest action.
    pub action: Action,
}

fn everywhere() -> ScopeSet {
    ScopeSet::ALL
}
