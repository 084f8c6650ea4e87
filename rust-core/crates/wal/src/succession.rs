//! Succession: how a log begins, and what it says of the one before.
//!
//! **After an end** ([`begin`]), in this order, so that nothing is signed that was not checked and nothing is served that
//! is not signed for:
//!
//! 1. claim a directory: then whatever lists the shard sees it, and a listing made after it is fresh;
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
use crate::recovery::{self, Left, Recovered, Shard};
use crate::{Storage, WalError, checkpoint_file};
use proofgate_ledger::Checkpoint;
use proofgate_ledger::record::{Aborted, ConfigDigests, Open, Predecessor, Takeover};
use std::sync::Arc;
use ulid::Ulid;

/// What a log begins with.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// Where, and under whose key.
    pub shard: Shard<'a>,
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
pub struct Begun {
    /// The log, for its two threads.
    pub log: Incarnation,
    /// What was found before it.
    pub recovered: Option<Recovered>,
    /// Bytes that the dead had prepared and that were given back.
    pub given_back: u64,
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
) -> Result<Begun, WalError> {
    let shard = &terms.shard;
    let claim = Claim::make(&**storage, shard.dir, terms.now)?;
    let recovered = match recovery::inspect(&**storage, shard, Some(claim.incarnation), held) {
        Ok(recovered) => recovered,
        Err(error) => {
            claim.abandon(&**storage);
            return Err(error);
        }
    };
    let oldest = recovered.iter().flat_map(logs).map(|left| left.incarnation).min();
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
    Ok(Begun {
        log,
        recovered,
        given_back,
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
    let claim = Claim::make(&**storage, terms.shard.dir, terms.now)?;
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

fn logs(recovered: &Recovered) -> impl Iterator<Item = &Left> {
    std::iter::once(&recovered.newest).chain(&recovered.untold)
}

/// Signs what a predecessor left beyond its own last checkpoint and keeps the note in the successor's directory, so that
/// its last records can be proved too.
fn cover(storage: &dyn Storage, shard: &Shard<'_>, log: &Incarnation, left: &Left) -> Result<(), WalError> {
    if left.checkpointed >= left.size {
        return Ok(());
    }
    let checkpoint = Checkpoint {
        origin: shard.origin(left.incarnation),
        size: left.size,
        root: left.root,
    };
    let note = checkpoint.sign(shard.key)?;
    checkpoint_file::write_cover(storage, &log.dir, left.incarnation, &note)
}

fn append_open(
    log: &mut Incarnation,
    terms: &Terms<'_>,
    predecessor: Option<Predecessor<'_>>,
) -> Result<(), WalError> {
    let incarnation = log.incarnation.to_string();
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
