use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use proofgate_base::Error;
use proofgate_base::clock::unix_micros;
use proofgate_config::Ledger;
use proofgate_ledger::Checkpoint;
use proofgate_ledger::record::{ConfigDigests, Seal};
use proofgate_wal::succession::{self, StartOptions, StartedLog};
use proofgate_wal::{FileStorage, Incarnation, LogOptions, Shard, Storage, Ulid, WalError, Writer};

use crate::held_checkpoint::HeldCheckpoint;
use crate::ledger_keys::LedgerKeys;

/// A factory for the logs of this worker run.
#[derive(Clone)]
pub struct LogFactory {
    shard_directory: PathBuf,
    ledger: String,
    shard: u32,
    options: LogOptions,
    keys: LedgerKeys,
    ledger_directory: PathBuf,
    /// The configuration at the start of the run. If another configuration is in force in a new
    /// log, a `config` record follows.
    pub config: ConfigDigests,
}

impl LogFactory {
    pub fn new(ledger: &Ledger, config: ConfigDigests, keys: &LedgerKeys) -> Self {
        LogFactory {
            shard_directory: PathBuf::from(&ledger.directory).join(ledger.shard.to_string()),
            ledger: ledger.name.clone(),
            shard: ledger.shard,
            options: LogOptions {
                segment_bytes: ledger.segment_bytes,
                ..LogOptions::default()
            },
            keys: keys.clone(),
            ledger_directory: PathBuf::from(&ledger.directory),
            config,
        }
    }

    /// Returns the directory of the shard's logs.
    pub fn shard_directory(&self) -> &Path {
        &self.shard_directory
    }

    fn terms(&self, until: Option<u64>) -> StartOptions<'_> {
        StartOptions {
            shard: Shard {
                dir: &self.shard_directory,
                ledger: &self.ledger,
                number: self.shard,
                key: &self.keys.signing,
                previous_key: self.keys.former_key.as_ref(),
            },
            key_valid_until: until,
            successions: &self.keys.successions,
            options: self.options,
            config: self.config,
            version: env!("CARGO_PKG_VERSION"),
            now: unix_micros(),
        }
    }

    /// Starts the first log: reads the logs of the predecessor on this shard, commits to their
    /// state, and closes the exchanges that the predecessor never completed. Problems are logged to
    /// standard error.
    ///
    /// # Errors
    /// [`Error::Ledger`] if the log cannot continue from the existing logs.
    pub fn start_first(&self, held: Option<&HeldCheckpoint>) -> Result<StartedLog, Error> {
        let line = self.keys.verifying_key(&self.ledger_directory)?;
        let terms = self.terms(self.keys.log_start_deadline(&self.ledger_directory)?);
        let held = held
            .map(|held| held.read(&terms.shard, &line))
            .transpose()?
            .flatten();
        let begun = succession::start(&storage(), &terms, held.as_ref());
        let begun = begun.map_err(|error| Error::Ledger(error.to_string()))?;
        report_start(&begun);
        Ok(begun)
    }

    /// Creates the successor of the log `running`, on a separate thread.
    ///
    /// # Errors
    /// An I/O error if the thread cannot be started.
    pub fn create_next(
        &self,
        running: Ulid,
        newest: &Checkpoint,
    ) -> std::io::Result<JoinHandle<Result<Incarnation, WalError>>> {
        let (next, newest) = (self.clone(), newest.clone());
        let thread = std::thread::Builder::new().name("proofgate-next-log".to_owned());
        thread.spawn(move || {
            proofgate_base::priority::lower_priority();
            // Another worker may have added the key that succeeds this worker's key.
            let until = next.keys.log_start_deadline(&next.ledger_directory);
            let until = until.map_err(|error| WalError::InvalidOptions(error.to_string()))?;
            succession::start_successor(&storage(), &next.terms(until), running, &newest)
        })
    }
}

/// Returns the storage of the logs: the operating system's file system.
pub fn storage() -> Arc<dyn Storage> {
    Arc::new(FileStorage)
}

fn report_start(begun: &StartedLog) {
    if begun.released_bytes > 0 {
        let bytes = begun.released_bytes;
        proofgate_log::info!("released {bytes} bytes of log space that a killed worker had prepared");
    }
    if let Some(name) = begun.skipped {
        proofgate_log::warning!(
            "the folder {name} on the ledger's volume is ignored: the time in its name is in the future, and it has \
             no signed checkpoint"
        );
    }
    let Some(found) = &begun.recovery else { return };
    if let Some(missing) = found.missing {
        proofgate_log::warning!(
            "the log of {} continues the log of {}, which is missing: it was moved or removed",
            missing.named_by,
            missing.incarnation
        );
    }
    for left in std::iter::once(&found.newest).chain(&found.logs_with_unrecorded_end) {
        if let Some(torn) = &left.torn {
            proofgate_log::warning!(
                "the log of {} ends early, in {} at byte {}: {}",
                left.incarnation,
                torn.path.display(),
                torn.offset,
                torn.reason
            );
        }
        if left.lost_records > 0 {
            proofgate_log::error!(
                "the log of {} ends after {} records, and {} records that followed are missing: \
                 they were written, but the machine or its storage lost these records",
                left.incarnation,
                left.size,
                left.lost_records
            );
        }
    }
}

/// Seals a log that was never used.
///
/// # Errors
/// Same as [`Writer::seal`] and [`Writer::flush`].
pub(crate) fn seal_unused(writer: &mut Writer, config: &ConfigDigests) -> Result<(), WalError> {
    writer.seal(|seq, out| {
        let seal = Seal {
            seq,
            ts: unix_micros(),
            reason: "unused".into(),
            records: seq,
            successor: None,
            config: config.id(),
        };
        seal.encode_into(out)
    })?;
    writer.flush()
}
