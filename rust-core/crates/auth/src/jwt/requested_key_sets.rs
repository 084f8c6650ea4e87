use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Issuer;

/// The issuers whose key set lacks a key that a token named. The hot path marks an issuer with one
/// store. Another thread reads the marks, fetches key sets and limits how often.
#[derive(Debug, Clone, Default)]
pub struct RequestedKeySets {
    issuers: Arc<[KeySetRequest]>,
}

#[derive(Debug)]
struct KeySetRequest {
    issuer: String,
    requested: AtomicBool,
}

impl RequestedKeySets {
    pub(super) fn for_issuers(issuers: &[Issuer]) -> Self {
        let wish = |issuer: &Issuer| KeySetRequest {
            issuer: issuer.issuer.clone(),
            requested: AtomicBool::new(false),
        };
        RequestedKeySets {
            issuers: issuers.iter().map(wish).collect(),
        }
    }

    pub(super) fn mark(&self, issuer: usize) {
        self.issuers[issuer].requested.store(true, Ordering::Relaxed);
    }

    /// Returns the issuers that were marked since the last call.
    pub fn take(&self) -> Vec<String> {
        self.issuers
            .iter()
            .filter(|wish| wish.requested.swap(false, Ordering::Relaxed))
            .map(|wish| wish.issuer.clone())
            .collect()
    }
}
