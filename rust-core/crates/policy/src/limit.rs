//! What a pack lets its rules do at most.

use serde::Deserialize;

use crate::{Action, ScopeSet};

/// What a pack says of all of its rules, for some scopes: they do no more than this.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// Where.
    #[serde(default = "everywhere")]
    pub scopes: ScopeSet,
    /// The strictest action.
    pub action: Action,
}

fn everywhere() -> ScopeSet {
    ScopeSet::ALL
}
