//! Checkpoints that are kept outside the volume.

use proofgate_ledger::Checkpoint;
use std::path::PathBuf;

/// A checkpoint kept out of reach of anyone who can write to the volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldCheckpoint {
    /// Where it is kept, for messages.
    pub file: PathBuf,
    /// The checkpoint. The caller that read it has verified its signature.
    pub checkpoint: Checkpoint,
}
