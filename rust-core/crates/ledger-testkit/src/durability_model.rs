//! A model of the durability guarantees that a worker received, and the result of recovery to
//! compare with it.

use crate::{key, root_of, shard, vkey};
use proofgate_ledger::Checkpoint;
use proofgate_wal::{PreviousLog, RecoveryResult, Storage, Ulid, WalError, recovery};
use std::path::PathBuf;

/// The result of a successor's recovery on the shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InspectionResult(pub RecoveryResult);

impl std::ops::Deref for InspectionResult {
    type Target = PreviousLog;

    fn deref(&self) -> &PreviousLog {
        &self.0.newest
    }
}

/// Runs recovery on the shard, like a successor.
pub fn inspect(disk: &dyn Storage) -> Result<Option<InspectionResult>, WalError> {
    let key = key();
    let found = recovery::inspect(disk, &shard(&key), None, None)?;
    Ok(found.map(InspectionResult))
}

/// The durability guarantees that a worker received, which must hold after any failure.
#[derive(Clone, Debug, Default)]
pub struct DurabilityModel {
    pub incarnation: Option<Ulid>,
    pub dir: PathBuf,
    /// Every record that was ever appended to a batch, in order.
    pub appended: Vec<Vec<u8>>,
    /// Number of these records that a flush has acknowledged.
    pub written: u64,
    /// Number of these records that a sync has acknowledged.
    pub durable: u64,
    /// Every note that was signed and returned.
    pub notes: Vec<String>,
}

impl DurabilityModel {
    /// Checks a recovery after a power loss: all durable and all checkpointed records exist, and no
    /// record is invented.
    pub fn check(&self, recovered: Option<&InspectionResult>) {
        let Some(recovered) = recovered.filter(|found| Some(found.incarnation) == self.incarnation) else {
            assert_eq!(self.durable, 0, "durable records are gone");
            assert!(self.signed_size() == 0, "a signed log is gone");
            return;
        };
        let size = recovered.size as usize;
        assert!(
            recovered.size >= self.durable,
            "I1: {size} of {} durable records",
            self.durable
        );
        assert!(size <= self.appended.len(), "records are invented");
        assert_eq!(
            recovered.root,
            root_of(&self.appended[..size]),
            "I1: other records"
        );
        assert!(
            recovered.size >= self.signed_size(),
            "I2: shorter than a published checkpoint"
        );
    }

    /// Returns the largest signed size, after a check that every signed root belongs to the
    /// appended records.
    pub fn signed_size(&self) -> u64 {
        let sizes = self
            .notes
            .iter()
            .map(|note| Checkpoint::verify(note, &vkey()).unwrap());
        sizes
            .map(|checkpoint| {
                let covered = &self.appended[..checkpoint.size as usize];
                assert_eq!(
                    checkpoint.root,
                    root_of(covered),
                    "I4: a root of something else was signed"
                );
                checkpoint.size
            })
            .max()
            .unwrap_or(0)
    }
}
