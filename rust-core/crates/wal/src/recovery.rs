//! Recovery: what the incarnation before this one left behind, and whether it can be believed.
//!
//! Nothing that a predecessor wrote is ever changed. Its files are synced and dropped from the page cache before they are read,
//! so that what is found is what the disk holds.
//!
//! **Torn tail.** A bad record `s` is where the log ends only if nothing proves that `s` was durable: no checkpoint
//! covers it and no whole record behind it says that `s` was synced when it was framed. Otherwise it is corruption, and
//! recovery refuses. ("Any later record proves corruption" would refuse a legal crash that reorders one unsynced batch.)

use crate::checkpoint_file::{self, CHECKPOINT};
use crate::log_reader::{Flaw, Found, LogReader};
use crate::{Storage, WalError};
use proofgate_ledger::record::{self, Record};
use proofgate_ledger::{Checkpoint, Hash, Mmr, SigningKey, VerifyingKey, leaf_hash};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use ulid::Ulid;

/// An exchange that was admitted and never completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orphan {
    /// The incarnation that admitted it.
    pub incarnation: Ulid,
    /// Request id.
    pub id: String,
    /// Number of its admission record there.
    pub admission: u64,
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

/// What recovery found of the newest incarnation that holds records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
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
    /// Records that its checkpoint covers; 0 without one.
    pub checkpointed: u64,
    /// Where it was cut, if it was.
    pub torn: Option<TornTail>,
    /// Exchanges to close with `aborted` records, oldest first: its own, and those of earlier incarnations if it ended
    /// before it had closed them. The gateway writes all `aborted` records directly after `open`.
    pub orphans: Vec<Orphan>,
}

/// Signs what the predecessor left beyond its own last checkpoint and keeps the note in the successor's directory, so that
/// its last records can be proved too. `origin` is the predecessor's. Nothing is written when its checkpoint covers all.
///
/// # Errors
/// [`WalError::Ledger`] when the key does not speak for the origin; [`WalError::Io`].
pub fn cover_predecessor(
    storage: &dyn Storage,
    successor_dir: &Path,
    origin: &str,
    predecessor: &Recovered,
    key: &SigningKey,
) -> Result<(), WalError> {
    if predecessor.checkpointed >= predecessor.size {
        return Ok(());
    }
    let checkpoint = Checkpoint {
        origin: origin.to_owned(),
        size: predecessor.size,
        root: predecessor.root,
    };
    checkpoint_file::write_predecessor(storage, successor_dir, &checkpoint.sign(key)?)
}

/// Inspects a shard before a new incarnation starts on it. `None` when nothing was ever recorded there. Memory grows
/// with the number of open exchanges, not with the log.
///
/// # Errors
/// [`WalError::Corruption`] when the stored log contradicts what is known to be durable or signed;
/// [`WalError::Ledger`] when a checkpoint is not signed by `key`; [`WalError::Io`].
pub fn inspect(
    storage: &dyn Storage,
    shard_dir: &Path,
    key: &VerifyingKey,
) -> Result<Option<Recovered>, WalError> {
    let mut incarnations = match storage.list(shard_dir) {
        Ok(names) => names
            .iter()
            .filter_map(|name| parse_incarnation(name))
            .collect::<Vec<_>>(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(WalError::io("list", shard_dir)(error)),
    };
    incarnations.sort_unstable();
    while let Some(newest) = incarnations.pop() {
        let Some(Inspected {
            mut recovered,
            mut closing,
        }) = read(storage, shard_dir, newest, key)?
        else {
            continue;
        };
        // While a log holds nothing but `open` and `aborted`, it may have ended before all orphans were closed.
        while let Some(Closing {
            predecessor: Some(before),
            mut aborted,
        }) = closing
        {
            if !incarnations.contains(&before) {
                break;
            }
            let Some(earlier) = read(storage, shard_dir, before, key)? else {
                break;
            };
            let open = earlier.recovered.orphans;
            recovered.orphans.splice(
                0..0,
                open.into_iter()
                    .filter(|orphan| !aborted.contains(&(orphan.incarnation, orphan.admission))),
            );
            closing = earlier.closing.map(|mut earlier| {
                earlier.aborted.append(&mut aborted);
                earlier
            });
        }
        return Ok(Some(recovered));
    }
    Ok(None)
}

/// The ULID that a directory name is; other names are not incarnations.
pub(crate) fn parse_incarnation(name: &str) -> Option<Ulid> {
    Ulid::from_string(name)
        .ok()
        .filter(|ulid| ulid.to_string() == name)
}

/// Gives `take` the records of one incarnation's log, in order, up to its end or its first flaw: what a successor needs
/// to work out anew what the incarnation knew. Nothing is verified that [`inspect`] has not verified.
///
/// # Errors
/// [`WalError::Io`]; [`WalError::Ledger`] when a record is not one.
pub fn replay(
    storage: &dyn Storage,
    shard_dir: &Path,
    incarnation: Ulid,
    mut take: impl FnMut(&Record<'_>),
) -> Result<(), WalError> {
    let dir = shard_dir.join(incarnation.to_string());
    let mut log = LogReader::open(storage, &dir, incarnation, false)?;
    while let Found::Record(stored) = log.next()? {
        take(&record::parse(log.payload(&stored))?);
    }
    Ok(())
}

struct Inspected {
    recovered: Recovered,
    closing: Option<Closing>,
}

/// What a log that has not begun to serve says about orphans of others.
struct Closing {
    predecessor: Option<Ulid>,
    aborted: Vec<(Ulid, u64)>,
}

/// Reads one incarnation; `None` when it holds no record and nothing says that it should.
fn read(
    storage: &dyn Storage,
    shard_dir: &Path,
    incarnation: Ulid,
    key: &VerifyingKey,
) -> Result<Option<Inspected>, WalError> {
    let dir = shard_dir.join(incarnation.to_string());
    let mut log = LogReader::open(storage, &dir, incarnation, true)?;
    let checkpoint = match checkpoint_file::read(storage, &dir, true)? {
        Some(note) => Some(check_checkpoint(&note, &dir, incarnation, log.origin(), key)?),
        None => None,
    };
    let covered = checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.size);
    let mut scan = Scan::new(incarnation);
    let mut cut: Option<Flaw> = None;
    loop {
        match log.next()? {
            Found::End => break,
            Found::Flaw(flaw) => {
                if flaw.seq < covered {
                    let reason = format!("{}, but the checkpoint covers {covered} records", flaw.reason);
                    return Err(corruption(&flaw, reason));
                }
                cut.get_or_insert(flaw);
            }
            Found::Record(stored) => {
                if let Some(flaw) = &cut {
                    if stored.durable > flaw.seq {
                        let reason =
                            format!("{}, but record {} proves it was durable", flaw.reason, stored.seq);
                        return Err(corruption(flaw, reason));
                    }
                    if !flaw.residue || stored.seq != flaw.seq {
                        continue;
                    }
                    cut = None;
                }
                let (seq, offset) = (stored.seq, stored.offset);
                let taken = scan.take(seq, log.payload(&stored));
                let signed = checkpoint.as_ref().filter(|signed| signed.size == seq + 1);
                let diverged = signed.is_some_and(|signed| signed.root != scan.mmr.root());
                let refused = match taken {
                    Err(reason) => Some(reason),
                    Ok(()) if diverged => Some(format!("records 0 to {seq} do not lead to the signed root")),
                    Ok(()) => None,
                };
                if let Some(reason) = refused {
                    return Err(WalError::Corruption {
                        path: log.path().to_owned(),
                        offset,
                        reason,
                    });
                }
            }
        }
    }
    let size = scan.mmr.size();
    if size < covered {
        let reason = format!("it covers {covered} records, the log has {size}");
        return Err(WalError::Corruption {
            path: dir.join(CHECKPOINT),
            offset: 0,
            reason,
        });
    }
    if size == 0 {
        return Ok(None);
    }
    let torn = cut.map(|flaw| TornTail {
        path: flaw.path,
        offset: flaw.offset,
        reason: flaw.reason,
    });
    Ok(Some(scan.finish(dir, covered, torn)))
}

fn corruption(flaw: &Flaw, reason: String) -> WalError {
    WalError::Corruption {
        path: flaw.path.clone(),
        offset: flaw.offset,
        reason,
    }
}

/// Believes a checkpoint: signed by the key, and about this log.
fn check_checkpoint(
    note: &str,
    dir: &Path,
    incarnation: Ulid,
    origin: Option<[u8; 32]>,
    key: &VerifyingKey,
) -> Result<Checkpoint, WalError> {
    let checkpoint = Checkpoint::verify(note, key)?;
    let digest: [u8; 32] = Sha256::digest(checkpoint.origin.as_bytes()).into();
    let named = checkpoint.origin.ends_with(&format!("/{incarnation}"));
    if !named || origin.is_some_and(|origin| origin != digest) {
        return Err(WalError::Corruption {
            path: dir.join(CHECKPOINT),
            offset: 0,
            reason: format!("it is a checkpoint of {:?}", checkpoint.origin),
        });
    }
    Ok(checkpoint)
}

/// What is kept of the records while they pass.
struct Scan {
    incarnation: Ulid,
    mmr: Mmr,
    open: BTreeMap<u64, String>,
    closing: Option<Closing>,
    sealed: bool,
}

impl Scan {
    fn new(incarnation: Ulid) -> Self {
        let closing = Some(Closing {
            predecessor: None,
            aborted: Vec::new(),
        });
        Self {
            incarnation,
            mmr: Mmr::new(),
            open: BTreeMap::new(),
            closing,
            sealed: false,
        }
    }

    fn take(&mut self, seq: u64, payload: &[u8]) -> Result<(), String> {
        let record = record::parse(payload).map_err(|error| format!("record {seq}: {error}"))?;
        if record.seq() != seq {
            return Err(format!("record {seq} says that it is record {}", record.seq()));
        }
        if self.sealed {
            return Err(format!("record {seq} follows a seal"));
        }
        if (seq == 0) != matches!(record, Record::Open(_)) {
            return Err(format!("record {seq} is of the kind {}", record.kind()));
        }
        self.mmr.push(leaf_hash(payload), &mut |_| {});
        match record {
            Record::Open(open) => {
                if open.incarnation != self.incarnation.to_string() {
                    return Err(format!("the log was opened by incarnation {}", open.incarnation));
                }
                let before = open
                    .predecessor
                    .and_then(|before| parse_incarnation(&before.incarnation));
                self.closing = Some(Closing {
                    predecessor: before,
                    aborted: Vec::new(),
                });
            }
            Record::Aborted(aborted) => {
                if let (Some(closing), Some(incarnation)) =
                    (&mut self.closing, parse_incarnation(&aborted.incarnation))
                {
                    closing.aborted.push((incarnation, aborted.admission));
                }
            }
            other => {
                self.closing = None;
                match other {
                    Record::Admission(admission) => {
                        self.open.insert(seq, admission.id.into_owned());
                    }
                    Record::Completion(completion) => {
                        self.open.remove(&completion.admission);
                    }
                    Record::Seal(_) => self.sealed = true,
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn finish(self, dir: PathBuf, checkpointed: u64, torn: Option<TornTail>) -> Inspected {
        let incarnation = self.incarnation;
        let orphans = self
            .open
            .into_iter()
            .map(|(admission, id)| Orphan {
                incarnation,
                id,
                admission,
            })
            .collect();
        let recovered = Recovered {
            incarnation,
            dir,
            size: self.mmr.size(),
            root: self.mmr.root(),
            sealed: self.sealed,
            checkpointed,
            torn,
            orphans,
        };
        Inspected {
            recovered,
            closing: self.closing,
        }
    }
}
