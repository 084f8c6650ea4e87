//! What an auditor watches, and its time limits.

use proofgate_ledger::{TrustPolicy, VerifyingKey};
use std::path::PathBuf;
use std::sync::Arc;

/// What an auditor watches, and its time limits.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The ledger's directory.
    pub ledger: PathBuf,
    /// The ledger's key.
    pub key: VerifyingKey,
    /// The key of the retention job, which may remove logs; without it no log may be removed.
    pub retention_key: Option<VerifyingKey>,
    /// Microseconds between two entries of a running log.
    pub heartbeat: u64,
    /// Microseconds after which something that looks wrong is checked again; longer than a network file system caches.
    pub recheck_delay: u64,
    /// Microseconds after which records that wait for a checkpoint count as stalled.
    pub stall_timeout: u64,
    /// Whether the configurations that records name are stored beside the logs; they are not where each worker serves its
    /// own shard.
    pub check_configurations: bool,
    /// Who must cosign the aggregate log before it is published.
    pub policy: Arc<TrustPolicy>,
}
