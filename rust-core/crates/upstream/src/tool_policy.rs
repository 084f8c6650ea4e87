//! The tools that a plan guards.

use std::sync::Arc;

use proofgate_config::FlagAction;
use proofgate_inspect::GuardedTools;

/// The tools that a plan guards.
pub struct ToolPolicy {
    pub tools: Arc<GuardedTools>,
    /// The action for a call of a guarded tool after a tool text was flagged.
    pub on_flag: FlagAction,
}

impl ToolPolicy {
    /// Creates the policy; `None` if no tool is guarded.
    pub fn from_config(config: Option<&proofgate_config::GuardedTools>) -> Option<Self> {
        let config = config.filter(|config| !config.names.is_empty())?;
        Some(Self {
            tools: Arc::new(GuardedTools::new(config.names.iter().map(String::as_str))),
            on_flag: config.on_flag,
        })
    }
}
