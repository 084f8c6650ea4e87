//! Checkpoints that are kept outside of the volume.

use proofgate_ledger::Checkpoint;
use std::path::PathBuf;

/// A checkpoint that was kept where whoever writes the volume cannot reach it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldCheckpoint {
    /// Where it is kept, for messages.
    pub file: PathBuf,
    /// What it states. Its signature has been verified by whoever read it.
    pub checkpoint: Checkpoint,
}
