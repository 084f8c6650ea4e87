use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Issuer;

/// Issuers of which a token named a key that is not in their key set. The hot path marks them with one store; whoever
/// fetches key sets looks at them from another thread and decides how often.
#[derive(Debug, Clone, Default)]
pub struct WantedKeySets {
    issuers: Arc<[Wish]>,
}

#[derive(Debug)]
struct Wish {
    issuer: String,
    wanted: AtomicBool,
}

impl WantedKeySets {
    pub(super) fn of(issuers: &[Issuer]) -> Self {
        let wish = |issuer: &Issuer| Wish {
            issuer: issuer.issuer.clone(),
            wanted: AtomicBool::new(false),
        };
        WantedKeySets {
            issuers: issuers.iter().map(wish).collect(),
        }
    }

    pub(super) fn mark(&self, issuer: usize) {
        self.issuers[issuer].wanted.store(true, Ordering::Relaxed);
    }

    /// The issuers that were marked since the last call.
    pub fn take(&self) -> Vec<String> {
        self.issuers
            .iter()
            .filter(|wish| wish.wanted.swap(false, Ordering::Relaxed))
            .map(|wish| wish.issuer.clone())
            .collect()
    }
}
