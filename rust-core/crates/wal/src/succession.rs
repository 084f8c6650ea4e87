//! Succession: how a log begins, and what it says of the one before.
//!
//! **After an end** ([`begin`]), in this order, so that nothing is signed that was not checked and nothing is served that
//! is not signed for:
//!
//! 1. keep the statements by which the ledger's key follows another one, so that no log is signed by a key that readers
//!    cannot come to; claim a directory: then whatever lists the shard sees it, and a listing made after it is fresh;
//! 2. inspect what is there ([`recovery`]): refuse to go on over what cannot be believed, or is behind what is held
//!    outside;
//! 3. give back space that the dead had prepared;
//! 4. make the files of the new log;
//! 5. sign what predecessors left beyond their own last checkpoint;
//! 6. write `open`, which names the predecessor, and the log before that if it is gone, then `takeover` for what the
//!    predecessor had not told yet, then `aborted` for each exchange without an end;
//! 7. sign a first checkpoint over all of that. Only then may the log serve: one that holds more than its beginning and
//!    has no checkpoint has been tampered with.
//!
//! **While the former one runs** ([`beside`]) the new log is made and its `open` signed ahead, naming the former's newest
//! checkpoint. The change is a `seal` in the one and the next record in the other. Once the former is signed to its end,
//! the new one tells its size and root in a `takeover` record.

use crate::give_back::give_back;
use crate::incarnation::{Claim, Incarnation, Options};
use crate::recovery::{self, PreviousLog, Recovered, Shard};
use crate::{Storage, WalError, checkpoint_file, replace_file};
use proofgate_evidence::key_successions::{self, KEY_SUCCESSIONS};
use proofgate_ledger::Checkpoint;
use proofgate_ledger::record::{Aborted, ConfigDigests, Open, Predecessor, Takeover};
use std::io;
use std::sync::Arc;
use ulid::Ulid;

/// What a log begins with.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// Where, and under whose key.
    pub shard: Shard<'a>,
    /// The last moment at which the key may begin a log, in unix microseconds, where another key follows it.
    pub until: Option<u64>,
    /// Statements of key succession for the ledger to keep, so that whoever knows an older key believes this one.
    pub successions: &'a [String],
    /// How it is laid out.
    pub options: Options,
    /// The configuration in force.
    pub config: ConfigDigests,
    /// Version of the gateway.
    pub version: &'a str,
    /// Now, in unix microseconds.
    pub now: u64,
}

/// A log that may serve.
#[derive(Debug)]
pub struct StartedLog {
    /// The log, for its two threads.
    pub log: Incarnation,
    /// What was found before it.
    pub recovered: Option<Recovered>,
    /// Bytes that the dead had prepared and that were given back.
    pub given_back: u64,
    /// A folder on the shard that is named for a time to come and that nobody has signed: it is no log of a worker's.
    pub passed_over: Option<Ulid>,
}

/// Begins a log on a shard whose former worker has ended, in one way or another.
///
/// # Errors
/// What [`recovery::inspect`] refuses, and what [`Incarnation`] cannot be made for; whatever was made of the new log by
/// then holds nothing that was served.
pub fn begin(
    storage: &Arc<dyn Storage>,
    terms: &Terms<'_>,
    held: Option<&Checkpoint>,
) -> Result<StartedLog, WalError> {
    let shard = &terms.shard;
    keep_successions(&**storage, terms)?;
    let claim = claim(storage, terms)?;
    let recovered = match recovery::inspect(&**storage, shard, Some(claim.incarnation), held) {
        Ok(recovered) => recovered,
        Err(error) => {
            claim.abandon(&**storage);
            return Err(error);
        }
    };
    let oldest = recovered.iter().flat_map(logs).map(|left| left.incarnation).min();
    let passed_over = claim.passed_over;
    let given_back = give_back(&**storage, shard.dir, oldest, Some(claim.incarnation));
    let mut log = Incarnation::create(storage, claim, shard, terms.options)?;
    for left in recovered.iter().flat_map(logs) {
        cover(&**storage, shard, &log, left)?;
    }
    let predecessor = recovered.as_ref().map(|found| Predecessor {
        incarnation: found.newest.incarnation.to_string().into(),
        size: found.newest.size,
        root: found.newest.root,
        sealed: found.newest.sealed,
        running: false,
        lost: found.newest.lost,
        missing: found
            .missing
            .map(|missing| missing.incarnation.to_string().into()),
    });
    append_open(&mut log, terms, predecessor)?;
    for left in recovered.iter().flat_map(|found| &found.untold) {
        log.writer.append(|seq, out| {
            let takeover = Takeover {
                seq,
                ts: terms.now,
                incarnation: left.incarnation.to_string().into(),
                size: left.size,
                root: left.root,
                config: terms.config.id(),
            };
            takeover.encode_into(out)
        })?;
    }
    for unended in recovered.iter().flat_map(|found| &found.unended) {
        log.writer.append(|seq, out| {
            let aborted = Aborted {
                seq,
                ts: terms.now,
                id: unended.id.as_str().into(),
                incarnation: unended.incarnation.to_string().into(),
                admission: unended.admission,
                config: terms.config.id(),
            };
            aborted.encode_into(out)
        })?;
    }
    sign_beginning(&mut log, shard)?;
    Ok(StartedLog {
        log,
        recovered,
        given_back,
        passed_over,
    })
}

/// Makes a log that is to continue one that still runs, whose newest checkpoint is `former`.
///
/// # Errors
/// As [`Incarnation::create`]; the running log is not concerned.
pub fn beside(
    storage: &Arc<dyn Storage>,
    terms: &Terms<'_>,
    running: Ulid,
    former: &Checkpoint,
) -> Result<Incarnation, WalError> {
    let claim = claim(storage, terms)?;
    let mut log = Incarnation::create(storage, claim, &terms.shard, terms.options)?;
    let predecessor = Predecessor {
        incarnation: running.to_string().into(),
        size: former.size,
        root: former.root,
        sealed: false,
        running: true,
        lost: 0,
        missing: None,
    };
    append_open(&mut log, terms, Some(predecessor))?;
    sign_beginning(&mut log, &terms.shard)?;
    Ok(log)
}

/// A directory for the new log, if its key may begin one now.
fn claim(storage: &Arc<dyn Storage>, terms: &Terms<'_>) -> Result<Claim, WalError> {
    let claim = Claim::make(&**storage, &terms.shard, terms.now)?;
    let begun = claim.incarnation.timestamp_ms().saturating_mul(1000);
    match terms.until.filter(|until| begun > *until) {
        None => Ok(claim),
        Some(until) => {
            claim.abandon(&**storage);
            Err(WalError::KeyEnded { until })
        }
    }
}

/// Keeps the statements of key succession beside the shards. Workers of other shards may do the same at the same time: a
/// file is named by what it holds, and put in its place whole.
fn keep_successions(storage: &dyn Storage, terms: &Terms<'_>) -> Result<(), WalError> {
    let Some(ledger) = terms.shard.dir.parent().filter(|_| !terms.successions.is_empty()) else {
        return Ok(());
    };
    let dir = ledger.join(KEY_SUCCESSIONS);
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

fn logs(recovered: &Recovered) -> impl Iterator<Item = &PreviousLog> {
    std::iter::once(&recovered.newest).chain(&recovered.untold)
}

/// Signs what a predecessor left beyond its own last checkpoint and keeps the note in the successor's directory, so that
/// its last records can be proved too.
fn cover(
    storage: &dyn Storage,
    shard: &Shard<'_>,
    log: &Incarnation,
    left: &PreviousLog,
) -> Result<(), WalError> {
    if left.checkpointed >= left.size {
        return Ok(());
    }
    let checkpoint = Checkpoint {
        origin: shard.origin(left.incarnation),
        size: left.size,
        root: left.root,
    };
    let key = recovery::key_of(storage, shard, &left.dir, left.incarnation)?;
    let note = checkpoint.sign(key)?;
    checkpoint_file::write_cover(storage, &log.dir, left.incarnation, &note)
}

fn append_open(
    log: &mut Incarnation,
    terms: &Terms<'_>,
    predecessor: Option<Predecessor<'_>>,
) -> Result<(), WalError> {
    let incarnation = log.incarnation.to_string();
    let key = terms.shard.key.verifying_key().to_text();
    log.writer.append(|seq, out| {
        let open = Open {
            seq,
            ts: terms.now,
            ledger: terms.shard.ledger.into(),
            shard: terms.shard.number,
            incarnation: incarnation.as_str().into(),
            version: terms.version.into(),
            config: terms.config.config,
            settings: terms.config.settings,
            key: Some(key.as_str().into()),
            predecessor,
        };
        open.encode_into(out)
    })?;
    Ok(())
}

fn sign_beginning(log: &mut Incarnation, shard: &Shard<'_>) -> Result<(), WalError> {
    log.writer.flush()?;
    while log.follower.step()?.behind {}
    log.follower.sync()?;
    log.follower.checkpoint(shard.key)?;
    Ok(())
}
