//! Checkpoints that are stored outside the volume.

use proofgate_ledger::Checkpoint;
use std::path::PathBuf;

/// A checkpoint that is stored where no writer of the volume can change it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldCheckpoint {
    /// Path of its file, for messages.
    pub file: PathBuf,
    /// The checkpoint. The caller that read it has verified its signature.
    pub checkpoint: Checkpoint,
}
