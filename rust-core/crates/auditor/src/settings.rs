//! The settings of an auditor: the ledger that it follows, and its time limits.

use proofgate_ledger::{TrustPolicy, VerifyingKey};
use std::path::PathBuf;
use std::sync::Arc;

/// The settings of an auditor: the ledger that it follows, and its time limits.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The ledger's directory.
    pub ledger: PathBuf,
    /// The ledger's key.
    pub key: VerifyingKey,
    /// The key of the retention job, which may remove logs. Without this key, no log may be
    /// removed.
    pub retention_key: Option<VerifyingKey>,
    /// Microseconds between two entries of a running log.
    pub heartbeat: u64,
    /// Microseconds after which a suspected problem is checked again; longer than the cache time of
    /// a network file system.
    pub recheck_delay: u64,
    /// Microseconds after which records that wait for a checkpoint count as stalled.
    pub stall_timeout: u64,
    /// Whether the configurations that records name are stored beside the logs. They are not if
    /// each worker serves its own shard.
    pub check_configurations: bool,
    /// The witnesses that must cosign the aggregate log before publication.
    pub policy: Arc<TrustPolicy>,
}
