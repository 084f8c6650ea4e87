//! A checkpoint of this shard that is stored where a writer of the volume cannot change it. At
//! start, the log on the volume must contain this checkpoint.

use std::io;
use std::path::{Path, PathBuf};

use proofgate_base::Error;
use proofgate_config::HeldBy;
use proofgate_ledger::{Checkpoint, VerifyingKey};
use proofgate_wal::Shard;

/// The location of the held checkpoint, and the process that writes it.
#[derive(Clone)]
pub struct HeldCheckpoint {
    path: PathBuf,
    holder: HeldBy,
}

impl HeldCheckpoint {
    /// Returns the file of a shard in a directory of held checkpoints.
    pub fn new(directory: &Path, shard: u32, by: HeldBy) -> Self {
        HeldCheckpoint {
            path: directory.join(shard.to_string()),
            holder: by,
        }
    }

    /// Reads the checkpoint, which `key` or another key of its lineage must have signed; `None`
    /// while no checkpoint is held for this shard.
    ///
    /// # Errors
    /// [`Error::Ledger`] if the checkpoint cannot be read, is not signed by the ledger's key, or
    /// belongs to another shard.
    pub fn read(&self, shard: &Shard<'_>, key: &VerifyingKey) -> Result<Option<Checkpoint>, Error> {
        let failed = |reason: String| {
            Error::Ledger(format!(
                "the checkpoint held outside the ledger, {}: {reason}",
                self.path.display()
            ))
        };
        let note = match std::fs::read_to_string(&self.path) {
            Ok(note) if note.is_empty() => return Ok(None),
            Ok(note) => note,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error.to_string())),
        };
        let held = Checkpoint::verify(&note, key);
        let held = held.map_err(|error| failed(error.to_string()))?;
        let own = format!("{}/{}/", shard.ledger, shard.number);
        if held.origin.starts_with(&own) {
            Ok(Some(held))
        } else {
            Err(failed(format!(
                "it belongs to {}, but this is shard {own}",
                held.origin
            )))
        }
    }

    /// Replaces the checkpoint atomically with a newer one, if this worker is the holder.
    ///
    /// # Errors
    /// Any I/O error.
    pub fn store(&self, note: &str) -> io::Result<()> {
        if self.holder != HeldBy::Worker {
            return Ok(());
        }
        let temporary = self.path.with_extension("tmp");
        let written = std::fs::write(&temporary, note)
            .and_then(|()| std::fs::File::open(&temporary)?.sync_all())
            .and_then(|()| std::fs::rename(&temporary, &self.path));
        if written.is_err() {
            let _ = std::fs::remove_file(&temporary);
        }
        written
    }
}
