//! Recovery: what the incarnations before this one left behind, and whether it can be believed.
//!
//! Nothing that a predecessor wrote is ever changed. What is read of its log is synced first, and the system asked to drop
//! it from the page cache, so that what is found is what the disk holds, as far as that advice is followed.
//!
//! **What is read.** The newest log that ever served, from where its `resume` file says, or whole without one; and the
//! one before, when the newest continues it and did not live to tell its end. A log serves only once its first
//! checkpoint is on the disk. So one without a checkpoint that holds no more than a start does is passed over, and one
//! that holds more has been tampered with.
//!
//! **What is told.** Of what is not read, whether the log before is still there: its `open` names it, and it can be moved
//! away by right.
//!
//! **Whose it is.** The volume is not trusted. Every frame that is read must carry the tag of a holder of the signing key,
//! and lead to what the checkpoint signs: nothing else is signed, or chained to.
//!
//! **Torn tail.** A bad record `s` is where the log ends only if nothing proves that `s` was durable: no checkpoint
//! covers it and no whole record behind it says that `s` was synced when it was framed. Otherwise it is corruption, and
//! recovery refuses. ("Any later record proves corruption" would refuse a legal crash that reorders one unsynced batch.)

mod key;
mod log;
mod replay;

pub(crate) use self::key::key_of;
pub use self::replay::{life, place_to_resume, replay};

use self::log::{Log, corruption, predecessor, read};
use crate::{Storage, WalError};
use proofgate_evidence::TreeFile;
use proofgate_evidence::layout::parse_incarnation;
use proofgate_evidence::log_reader::{Found, LogReader};
use proofgate_evidence::segment::SegmentName;
use proofgate_ledger::{Checkpoint, Hash, Mmr, SigningKey, consistency_proof, leaf_hash, verify_consistency};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use ulid::Ulid;

/// The shard that a successor starts on, and the key that speaks for it.
#[derive(Clone, Copy, Debug)]
pub struct Shard<'a> {
    /// Its directory.
    pub dir: &'a Path,
    /// Name of the ledger, the first part of every origin.
    pub ledger: &'a str,
    /// Its number, the second part.
    pub number: u32,
    /// The ledger's key.
    pub key: &'a SigningKey,
    /// The one before it, for as long as the newest log of the shard may be that one's. The ledger's key then knows its line.
    pub former: Option<&'a SigningKey>,
}

impl Shard<'_> {
    /// The origin of an incarnation's checkpoints.
    #[must_use]
    pub fn origin(&self, incarnation: Ulid) -> String {
        format!("{}/{}/{incarnation}", self.ledger, self.number)
    }
}

/// An exchange that was admitted and has no end in any log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unended {
    /// The incarnation that admitted it.
    pub incarnation: Ulid,
    /// Number of its admission record there.
    pub admission: u64,
    /// When it was admitted, in unix microseconds.
    pub ts: u64,
    /// Request id.
    pub id: String,
    /// Tenant.
    pub tenant: String,
    /// Its key or subject, as in the admission record.
    pub key: String,
    /// Tokens set aside for it in its tenant's limits; `None` when the tenant has none.
    pub reserved: Option<u64>,
    /// Nanodollars set aside for it in its tenant's budgets; `None` when it counts in none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved_nanodollars: Option<u64>,
    /// The plan whose limits the tenants of its namespace share; `None` when it counts in none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_plan: Option<String>,
    /// Model asked for; empty where a version before this one noted the exchange.
    #[serde(default)]
    pub model: String,
}

/// The end of a log that was cut short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TornTail {
    /// The segment.
    pub path: PathBuf,
    /// First byte that is not part of the log.
    pub offset: u64,
    /// What is there.
    pub reason: String,
}

/// A log as its last writer left it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Which one.
    pub incarnation: Ulid,
    /// Its directory.
    pub dir: PathBuf,
    /// Its number of records.
    pub size: u64,
    /// Its root at that size.
    pub root: Hash,
    /// Whether its last record is a seal.
    pub sealed: bool,
    /// Records that its checkpoint covers.
    pub checkpointed: u64,
    /// Where it was cut, if it was.
    pub torn: Option<TornTail>,
    /// Records that were written and are gone, as far as the tree remembers them.
    pub lost: u64,
}

/// A log that is named and not there: moved away, or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Which one.
    pub incarnation: Ulid,
    /// The log whose `open` names it as its predecessor.
    pub named_by: Ulid,
}

/// What recovery found on a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// The newest log that served.
    pub newest: Left,
    /// Logs that it continues and whose end it did not live to tell, newest first.
    pub untold: Vec<Left>,
    /// Exchanges to close with `aborted` records, oldest first.
    pub unended: Vec<Unended>,
    /// Records that had to be read.
    pub read: u64,
    /// The log before the oldest of those that were read, if it is not there.
    pub missing: Option<Missing>,
}

impl Recovered {
    /// Records that were written and are gone with the power: the tree knows of them, the logs do not hold them.
    #[must_use]
    pub fn lost(&self) -> u64 {
        let lost = self.untold.iter().map(|left| left.lost);
        lost.fold(self.newest.lost, u64::saturating_add)
    }
}

/// Inspects a shard before the incarnation `own` starts on it. `None` when nothing ever served there. Time and memory
/// grow with the number of open exchanges and with what lies behind the newest `resume` file, not with the log.
///
/// `held` is a checkpoint that somebody kept where no writer of the volume could change it, its signature verified: what
/// is found must contain it.
///
/// # Errors
/// [`WalError::Behind`] when the volume holds less than `held`, or something else; [`EvidenceError::Corruption`] when the
/// stored log contradicts what is known to be durable, signed or framed by a holder of the key;
/// [`EvidenceError::Ledger`] when a checkpoint is not signed by the key; [`EvidenceError::Io`].
pub fn inspect(
    storage: &dyn Storage,
    shard: &Shard<'_>,
    own: Option<Ulid>,
    held: Option<&Checkpoint>,
) -> Result<Option<Recovered>, WalError> {
    let incarnations = incarnations(storage, shard.dir, own)?;
    let mut newest = None;
    for incarnation in incarnations.iter().rev() {
        newest = read(storage, shard, *incarnation)?;
        if newest.is_some() {
            break;
        }
    }
    if let Some(held) = held {
        contain(storage, shard, &incarnations, newest.as_ref(), held)?;
    }
    let Some(newest) = newest else { return Ok(None) };
    let mut before: Vec<Log> = Vec::new();
    while let Some(incarnation) = before.last().unwrap_or(&newest).depends_on() {
        let gone = || {
            let reason = format!("it continues the log of {incarnation}, which is gone");
            corruption(&newest.left.dir, 0, reason)
        };
        if !incarnations.contains(&incarnation) {
            return Err(gone());
        }
        before.push(read(storage, shard, incarnation)?.ok_or_else(gone)?);
    }
    let missing = missing(
        storage,
        shard,
        &incarnations,
        &before.last().unwrap_or(&newest).left,
    )?;
    Ok(Some(join(newest, before, missing)))
}

/// The log before the oldest one that was read, if it holds nothing any more.
fn missing(
    storage: &dyn Storage,
    shard: &Shard<'_>,
    incarnations: &[Ulid],
    oldest: &Left,
) -> Result<Option<Missing>, WalError> {
    let Some(incarnation) = predecessor(storage, shard, oldest)? else {
        return Ok(None);
    };
    let missing = Missing {
        incarnation,
        named_by: oldest.incarnation,
    };
    if !incarnations.contains(&incarnation) {
        return Ok(Some(missing));
    }
    let dir = shard.dir.join(incarnation.to_string());
    let names = storage.list(&dir).map_err(WalError::io("list", &dir))?;
    let holds_records = names.iter().any(|name| SegmentName::parse(name).is_some());
    Ok((!holds_records).then_some(missing))
}

/// The incarnations that have a directory on the shard, oldest first, without `own`.
fn incarnations(storage: &dyn Storage, dir: &Path, own: Option<Ulid>) -> Result<Vec<Ulid>, WalError> {
    let names = match storage.list(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        other => other.map_err(WalError::io("list", dir))?,
    };
    let mut found: Vec<Ulid> = names
        .iter()
        .filter_map(|name| parse_incarnation(name))
        .filter(|incarnation| Some(*incarnation) != own)
        .collect();
    found.sort_unstable();
    Ok(found)
}

/// What the newest log and those before it that it continues, newest first, come to together.
fn join(newest: Log, before: Vec<Log>, missing: Option<Missing>) -> Recovered {
    let read = newest.read + before.iter().map(|log| log.read).sum::<u64>();
    let mut open = BTreeMap::new();
    for log in before.iter().rev().chain([&newest]) {
        if log.knows_all_open {
            open.clear();
        }
        for ended in &log.ended_elsewhere {
            open.remove(ended);
        }
        open.extend(log.open.clone());
    }
    let mut untold = Vec::new();
    let mut told = newest.settled;
    for log in before {
        if told {
            break;
        }
        told = log.settled;
        untold.push(log.left);
    }
    Recovered {
        newest: newest.left,
        untold,
        unended: open.into_values().collect(),
        read,
        missing,
    }
}

/// Checks that the volume contains what a checkpoint held elsewhere says.
fn contain(
    storage: &dyn Storage,
    shard: &Shard<'_>,
    incarnations: &[Ulid],
    newest: Option<&Log>,
    held: &Checkpoint,
) -> Result<(), WalError> {
    let behind = |found: String| WalError::Behind {
        origin: held.origin.clone(),
        size: held.size,
        found,
    };
    let Some(incarnation) = incarnations
        .iter()
        .find(|incarnation| shard.origin(**incarnation) == held.origin)
    else {
        return Err(behind("the volume has no such log".to_owned()));
    };
    let own;
    let log = match newest {
        Some(newest) if newest.left.incarnation == *incarnation => newest,
        _ => match read(storage, shard, *incarnation)? {
            Some(log) => {
                own = log;
                &own
            }
            None => return Err(behind("the volume has nothing of it".to_owned())),
        },
    };
    let Left { size, root, dir, .. } = &log.left;
    if *size < held.size {
        return Err(behind(format!("the volume has {size} records of it")));
    }
    let proved = TreeFile::open(storage, dir)
        .and_then(|tree| consistency_proof(&tree, held.size, *size))
        .is_ok_and(|proof| verify_consistency(held.size, &held.root, *size, root, &proof).is_ok());
    let other = || behind("the volume has other records in their place".to_owned());
    if proved || root_at(storage, dir, *incarnation, held.size)? == held.root {
        Ok(())
    } else {
        Err(other())
    }
}

/// The root of the first `size` records of a log, from the records themselves.
fn root_at(storage: &dyn Storage, dir: &Path, incarnation: Ulid, size: u64) -> Result<Hash, WalError> {
    let mut log = LogReader::open(storage, dir, incarnation)?;
    let mut mmr = Mmr::new();
    while mmr.size() < size {
        match log.next()? {
            Found::Record(stored) if stored.seq == mmr.size() => {
                mmr.push(leaf_hash(log.payload(&stored)), &mut |_| {});
            }
            Found::Flaw(flaw) if flaw.residue => {}
            _ => break,
        }
    }
    Ok(mmr.root())
}
