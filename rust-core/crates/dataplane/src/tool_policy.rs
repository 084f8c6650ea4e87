//! The tools that a plan guards.

use std::sync::Arc;

use proofgate_inspect::GuardedTools;

use crate::config::{self, OnFlag};

/// The tools that a plan guards.
pub(crate) struct ToolPolicy {
    pub(crate) tools: Arc<GuardedTools>,
    pub(crate) on_flag: OnFlag,
}

impl ToolPolicy {
    /// `None` where none is guarded.
    pub(crate) fn of(config: Option<&config::GuardedTools>) -> Option<Self> {
        let config = config.filter(|config| !config.names.is_empty())?;
        Some(Self {
            tools: Arc::new(GuardedTools::new(config.names.iter().map(String::as_str))),
            on_flag: config.on_flag,
        })
    }
}
