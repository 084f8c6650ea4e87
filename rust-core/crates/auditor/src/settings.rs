//! What an auditor watches, and its patience.

use proofgate_ledger::{TrustPolicy, VerifyingKey};
use std::path::PathBuf;
use std::sync::Arc;

/// What an auditor watches, and its patience.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The ledger's directory.
    pub ledger: PathBuf,
    /// The ledger's key.
    pub key: VerifyingKey,
    /// The key of whoever may remove logs; without one nobody may.
    pub retention_key: Option<VerifyingKey>,
    /// Microseconds between two entries of a log that goes on.
    pub heartbeat: u64,
    /// Microseconds after which what looks wrong is looked at again; longer than a network file system caches.
    pub recheck_delay: u64,
    /// Microseconds until records that wait for a checkpoint are a stall.
    pub stall_timeout: u64,
    /// Whether the configurations that records name lie beside the logs: not so where each worker serves its own shard.
    pub check_configurations: bool,
    /// Who has to cosign the aggregate log before it is published.
    pub policy: Arc<TrustPolicy>,
}
