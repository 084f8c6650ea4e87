//! Succession: starts a log, and records the end of its predecessor in it.
//!
//! **After the predecessor has ended** ([`start`]), a log starts in this order, so that nothing is
//! signed before it is checked and nothing is served before it is signed:
//!
//! 1. store the statements by which the ledger's key succeeds another key, so that no log is signed
//!    by a key that readers cannot trace; claim a directory, which every later listing of the shard
//!    shows, and after which a listing is up to date;
//! 2. inspect the existing logs ([`recovery`]), and refuse to continue from a log that cannot be
//!    verified, or that is behind the checkpoint stored outside the volume;
//! 3. release space that ended incarnations had prepared;
//! 4. create the files of the new log;
//! 5. sign the records of predecessors that follow their own last checkpoint;
//! 6. write `open`, which names the predecessor, and an earlier log if it is missing; then write
//!    `takeover` for each ended log whose end is not recorded yet, and `aborted` for each
//!    unfinished exchange;
//! 7. sign a first checkpoint over these opening records. Only then may the log serve. A log that
//!    holds more than these opening records and has no checkpoint has been tampered with.
//!
//! **While the former log runs** ([`start_successor`]), the new log is created in advance. Its
//! `open` record names the newest checkpoint of the former log, and is signed. To switch, the
//! writer appends a `seal` to the former log and the next record to the new log. Once the former
//! log is signed to its end, a `takeover` record in the new log states the former log's size and
//! root.

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

/// The options for starting a log.
#[derive(Clone, Copy, Debug)]
pub struct StartOptions<'a> {
    /// The shard and its key.
    pub shard: Shard<'a>,
    /// Last moment at which the key may start a log, in unix microseconds, if another key succeeds it.
    pub key_valid_until: Option<u64>,
    /// Statements of key succession to store in the ledger, so that a reader who knows an older key
    /// trusts this key.
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

/// A started log, which may serve.
#[derive(Debug)]
pub struct StartedLog {
    /// The log's writer and follower, for the two threads.
    pub log: Incarnation,
    /// Result of recovery; `None` when no log of the shard ever served.
    pub recovery: Option<RecoveryResult>,
    /// Number of released bytes that ended incarnations had prepared.
    pub released_bytes: u64,
    /// A directory on the shard whose name is in the future and that has no signed checkpoint. It
    /// is not a worker's log. `None` if there is no such directory.
    pub skipped: Option<Ulid>,
}

/// Starts a log on a shard whose former worker has ended, cleanly or not.
///
/// # Errors
/// The errors of [`recovery::inspect`], and those of creating an [`Incarnation`]. After an error,
/// the new log may partly exist, but it served nothing.
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

/// Creates a log that will continue the log `running`, whose newest checkpoint is
/// `previous_checkpoint`.
///
/// # Errors
/// Same as [`Incarnation::create`]. The running log is unaffected.
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

/// Claims a directory for the new log, if the key may start a log now.
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

/// Stores the statements of key succession next to the shards. Workers of other shards may do the
/// same concurrently, because a file is named after its content and replaced atomically.
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

/// Signs the records of a predecessor that follow its own last checkpoint, and stores the note in
/// the successor's directory, so that the predecessor's last records can be proved too.
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
