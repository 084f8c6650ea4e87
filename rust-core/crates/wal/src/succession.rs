//! Succession: how a log starts, and what it records about its predecessor.
//!
//! **After the predecessor has ended** ([`start`]), in this order, so that nothing is signed without a check and
//! nothing is served without a signature:
//!
//! 1. store the statements by which the ledger's key succeeds another one, so that no log is signed by a key that
//!    readers cannot trace; claim a directory: every later listing of the shard shows it, and a listing made after the
//!    claim is fresh;
//! 2. inspect the existing logs ([`recovery`]): refuse to continue from a log that cannot be verified, or that is
//!    behind the checkpoint stored outside;
//! 3. release space that dead incarnations had prepared;
//! 4. create the files of the new log;
//! 5. sign the records of predecessors after their own last checkpoint;
//! 6. write `open`, which names the predecessor, and the log before that if it is gone, then `takeover` for each ended
//!    log that the predecessor had not recorded yet, then `aborted` for each unfinished exchange;
//! 7. sign a first checkpoint over all of that. Only then may the log serve: a log that holds more than these opening
//!    records and has no checkpoint has been tampered with.
//!
//! **While the former log runs** ([`start_successor`]), the new log is created and its `open` signed in advance, naming
//! the former's newest checkpoint. The switch is a `seal` in the former log and the next record in the new one. Once
//! the former log is signed to its end, the new one records its size and root in a `takeover` record.

use crate::incarnation::{ClaimedDirectory, Incarnation, LogOptions};
use crate::recovery::{self, PreviousLog, RecoveryResult, Shard};
use crate::release_space::release_unused_space;
use crate::{Storage, WalError, checkpoint_file, replace_file};
use proofgate_evidence::key_successions::{self, KEY_SUCCESSIONS_DIR};
use proofgate_ledger::Checkpoint;
use proofgate_ledger::record::{Abort, ConfigDigests, Open, Predecessor, Takeover};
use std::io;
use std::sync::Arc;
use ulid::Ulid;

/// Options with which a log starts.
#[derive(Clone, Copy, Debug)]
pub struct StartOptions<'a> {
    /// The shard and its key.
    pub shard: Shard<'a>,
    /// Last moment at which the key may start a log, in unix microseconds, if another key succeeds it.
    pub key_valid_until: Option<u64>,
    /// Statements of key succession for the ledger to store, so that a reader who knows an older key trusts this one.
    pub successions: &'a [String],
    /// Layout of the log.
    pub options: LogOptions,
    /// The configuration in force.
    pub config: ConfigDigests,
    /// Version of the gateway.
    pub version: &'a str,
    /// Current time, in unix microseconds.
    pub now: u64,
}

/// A log that may serve.
#[derive(Debug)]
pub struct StartedLog {
    /// The log, for its two threads.
    pub log: Incarnation,
    /// What recovery found on the shard; `None` when no log ever served there.
    pub recovery: Option<RecoveryResult>,
    /// Bytes released that dead incarnations had prepared.
    pub released_bytes: u64,
    /// A directory on the shard whose name lies in the future and that has no signed checkpoint: it is no worker's log.
    pub skipped: Option<Ulid>,
}

/// Starts a log on a shard whose former worker has ended, cleanly or not.
///
/// # Errors
/// The errors of [`recovery::inspect`], and those of creating an [`Incarnation`]; whatever then exists of the new log
/// holds nothing that was served.
pub fn start(
    storage: &Arc<dyn Storage>,
    start_options: &StartOptions<'_>,
    held: Option<&Checkpoint>,
) -> Result<StartedLog, WalError> {
    let shard = &start_options.shard;
    store_successions(&**storage, start_options)?;
    let claim = claim_directory(storage, start_options)?;
    let recovered = match recovery::inspect(&**storage, shard, Some(claim.incarnation), held) {
        Ok(recovered) => recovered,
        Err(error) => {
            claim.abandon(&**storage);
            return Err(error);
        }
    };
    let oldest = recovered
        .iter()
        .flat_map(previous_logs)
        .map(|left| left.incarnation)
        .min();
    let passed_over = claim.skipped;
    let given_back = release_unused_space(&**storage, shard.dir, oldest, Some(claim.incarnation));
    let mut log = Incarnation::create(storage, claim, shard, start_options.options)?;
    for left in recovered.iter().flat_map(previous_logs) {
        sign_predecessor_tail(&**storage, shard, &log, left)?;
    }
    let predecessor = recovered.as_ref().map(|found| Predecessor {
        incarnation: found.newest.incarnation.to_string().into(),
        size: found.newest.size,
        root: found.newest.root,
        sealed: found.newest.sealed,
        running: false,
        lost: found.newest.lost_records,
        missing: found
            .missing
            .map(|missing| missing.incarnation.to_string().into()),
    });
    append_open(&mut log, start_options, predecessor)?;
    for left in recovered.iter().flat_map(|found| &found.logs_with_unrecorded_end) {
        log.writer.append(|seq, out| {
            let takeover = Takeover {
                seq,
                ts: start_options.now,
                incarnation: left.incarnation.to_string().into(),
                size: left.size,
                root: left.root,
                config: start_options.config.id(),
            };
            takeover.encode_into(out)
        })?;
    }
    for unended in recovered.iter().flat_map(|found| &found.unfinished_exchanges) {
        log.writer.append(|seq, out| {
            let aborted = Abort {
                seq,
                ts: start_options.now,
                id: unended.id.as_str().into(),
                incarnation: unended.incarnation.to_string().into(),
                admission: unended.admission,
                config: start_options.config.id(),
            };
            aborted.encode_into(out)
        })?;
    }
    sign_start(&mut log, shard)?;
    Ok(StartedLog {
        log,
        recovery: recovered,
        released_bytes: given_back,
        skipped: passed_over,
    })
}

/// Creates a log that is to continue the log `running`, whose newest checkpoint is `previous_checkpoint`.
///
/// # Errors
/// Same as [`Incarnation::create`]; the running log is unaffected.
pub fn start_successor(
    storage: &Arc<dyn Storage>,
    start_options: &StartOptions<'_>,
    running: Ulid,
    previous_checkpoint: &Checkpoint,
) -> Result<Incarnation, WalError> {
    let claim = claim_directory(storage, start_options)?;
    let mut log = Incarnation::create(storage, claim, &start_options.shard, start_options.options)?;
    let predecessor = Predecessor {
        incarnation: running.to_string().into(),
        size: previous_checkpoint.size,
        root: previous_checkpoint.root,
        sealed: false,
        running: true,
        lost: 0,
        missing: None,
    };
    append_open(&mut log, start_options, Some(predecessor))?;
    sign_start(&mut log, &start_options.shard)?;
    Ok(log)
}

/// Claims a directory for the new log, if the key may start one now.
fn claim_directory(
    storage: &Arc<dyn Storage>,
    terms: &StartOptions<'_>,
) -> Result<ClaimedDirectory, WalError> {
    let claim = ClaimedDirectory::acquire(&**storage, &terms.shard, terms.now)?;
    let begun = claim.incarnation.timestamp_ms().saturating_mul(1000);
    match terms.key_valid_until.filter(|until| begun > *until) {
        None => Ok(claim),
        Some(until) => {
            claim.abandon(&**storage);
            Err(WalError::KeySuperseded { until })
        }
    }
}

/// Stores the statements of key succession next to the shards. Workers of other shards may do the same concurrently: a
/// file is named after its content and replaced atomically.
fn store_successions(storage: &dyn Storage, terms: &StartOptions<'_>) -> Result<(), WalError> {
    let Some(ledger) = terms.shard.dir.parent().filter(|_| !terms.successions.is_empty()) else {
        return Ok(());
    };
    let dir = ledger.join(KEY_SUCCESSIONS_DIR);
    let kept = key_successions::read(storage, ledger)?;
    let known: Vec<&String> = kept.signed.iter().map(|(_, note)| note).collect();
    if terms.successions.iter().all(|note| known.contains(&note)) {
        return Ok(());
    }
    match storage.create_dir(&dir) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        other => other.map_err(WalError::io("create", &dir))?,
    }
    let above = storage.open_dir(ledger).map_err(WalError::io("open", ledger))?;
    above.sync().map_err(WalError::io("sync", ledger))?;
    let directory = storage.open_dir(&dir).map_err(WalError::io("open", &dir))?;
    for note in terms.successions {
        let name = key_successions::file_name(note);
        let temporary = format!("{name}.{}.tmp", terms.shard.number);
        replace_file(storage, &*directory, &dir, (&temporary, &name), note.as_bytes())?;
    }
    Ok(())
}

fn previous_logs(recovered: &RecoveryResult) -> impl Iterator<Item = &PreviousLog> {
    std::iter::once(&recovered.newest).chain(&recovered.logs_with_unrecorded_end)
}

/// Signs the records of a predecessor after its own last checkpoint and stores the note in the successor's directory,
/// so that its last records can be proved too.
fn sign_predecessor_tail(
    storage: &dyn Storage,
    shard: &Shard<'_>,
    log: &Incarnation,
    previous: &PreviousLog,
) -> Result<(), WalError> {
    if previous.checkpointed >= previous.size {
        return Ok(());
    }
    let checkpoint = Checkpoint {
        origin: shard.origin(previous.incarnation),
        size: previous.size,
        root: previous.root,
    };
    let key = recovery::log_key(storage, shard, &previous.dir, previous.incarnation)?;
    let note = checkpoint.sign(key)?;
    checkpoint_file::write_successor_note(storage, &log.dir, previous.incarnation, &note)
}

fn append_open(
    log: &mut Incarnation,
    start_options: &StartOptions<'_>,
    predecessor: Option<Predecessor<'_>>,
) -> Result<(), WalError> {
    let incarnation = log.incarnation.to_string();
    let key = start_options.shard.key.verifying_key().to_text();
    log.writer.append(|seq, out| {
        let open = Open {
            seq,
            ts: start_options.now,
            ledger: start_options.shard.ledger.into(),
            shard: start_options.shard.number,
            incarnation: incarnation.as_str().into(),
            version: start_options.version.into(),
            config: start_options.config.config,
            settings: start_options.config.settings,
            key: Some(key.as_str().into()),
            predecessor,
        };
        open.encode_into(out)
    })?;
    Ok(())
}

fn sign_start(log: &mut Incarnation, shard: &Shard<'_>) -> Result<(), WalError> {
    log.writer.flush()?;
    while log.follower.step()?.has_more {}
    log.follower.sync()?;
    log.follower.sign_checkpoint(shard.key)?;
    Ok(())
}
