//! Finds records and proves them to strangers, from the files alone: the worker that wrote them need not run.

use crate::checkpoint_file::{self, CHECKPOINT};
use crate::layout::shards;
use crate::log_reader::{Found, LogReader};
use crate::recovery::parse_incarnation;
use crate::tree_file::TreeFile;
use crate::{Storage, WalError};
use memchr::memmem;
use proofgate_ledger::{
    Checkpoint, Hash, LedgerError, Mmr, NodeReader, TlogProof, VerifyingKey, inclusion_proof, leaf_hash,
    record, verify_inclusion,
};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use ulid::Ulid;

/// A record that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundRecord {
    /// Directory of its incarnation.
    pub dir: PathBuf,
    /// Its number there.
    pub seq: u64,
    /// Its stored bytes: the leaf.
    pub record: Vec<u8>,
}

/// All records of one request id, under a gateway's, a shard's or an incarnation's directory; reads everything once and
/// keeps only what it finds. Damaged stretches are passed over: `fsck` tells of them.
///
/// # Errors
/// [`WalError::NotALog`] or [`WalError::Io`].
pub fn find(storage: &dyn Storage, path: &Path, request_id: &str) -> Result<Vec<FoundRecord>, WalError> {
    let mut found = Vec::new();
    // An id with an escape in its JSON form does not contain itself; such a record is parsed whatever it holds.
    let finder = memmem::Finder::new(request_id.as_bytes());
    for shard in shards(storage, path)? {
        for incarnation in shard.incarnations {
            let dir = shard.dir.join(incarnation.to_string());
            let mut log = LogReader::open(storage, &dir, incarnation, false)?;
            loop {
                match log.next()? {
                    Found::End => break,
                    Found::Flaw(_) => {}
                    Found::Record(stored) => {
                        let payload = log.payload(&stored);
                        if finder.find(payload).is_none() && memchr::memchr(b'\\', payload).is_none() {
                            continue;
                        }
                        if record::parse(payload).is_ok_and(|record| record.id() == Some(request_id)) {
                            let (dir, record) = (dir.clone(), payload.to_vec());
                            found.push(FoundRecord {
                                dir,
                                seq: stored.seq,
                                record,
                            });
                        }
                    }
                }
            }
        }
    }
    Ok(found)
}

/// The stored bytes of record `seq` of an incarnation.
///
/// # Errors
/// [`WalError::NoSuchRecord`], also when it is damaged; [`WalError::NotALog`] or [`WalError::Io`].
pub fn read_record(storage: &dyn Storage, incarnation_dir: &Path, seq: u64) -> Result<Vec<u8>, WalError> {
    let mut log = LogReader::open(storage, incarnation_dir, incarnation_of(incarnation_dir)?, false)?;
    log.seek(seq);
    loop {
        match log.next()? {
            Found::Record(stored) if stored.seq == seq => return Ok(log.payload(&stored).to_vec()),
            Found::Record(stored) if stored.seq < seq => {}
            Found::Flaw(_) => {}
            Found::Record(_) | Found::End => {
                return Err(WalError::NoSuchRecord {
                    dir: incarnation_dir.to_owned(),
                    seq,
                });
            }
        }
    }
}

/// The proof that record `seq` is in the log, under its persisted checkpoint. Nodes come from the tree file, or from the
/// records where that is missing, short or wrong. The proof has been verified before it is returned, and so has the
/// checkpoint's signature if `key` is given.
///
/// # Errors
/// [`WalError::NotCovered`] when no checkpoint covers the record yet (a crashed incarnation's last records are covered by
/// a note that its successor signs), [`WalError::NoSuchRecord`], [`WalError::Corruption`] when the
/// records do not lead to the signed root, [`WalError::Ledger`] when the checkpoint is refused, [`WalError::Io`].
pub fn proof(
    storage: &dyn Storage,
    incarnation_dir: &Path,
    seq: u64,
    key: Option<&VerifyingKey>,
) -> Result<TlogProof, WalError> {
    let leaf = leaf_hash(&read_record(storage, incarnation_dir, seq)?);
    let not_covered = |size| WalError::NotCovered {
        dir: incarnation_dir.to_owned(),
        seq,
        size,
    };
    let covering = |note: String| -> Result<(String, Checkpoint), WalError> {
        let signed = match key {
            Some(key) => Checkpoint::verify(&note, key)?,
            None => Checkpoint::parse_unverified(&note)?,
        };
        Ok((note, signed))
    };
    let own = checkpoint_file::read(storage, incarnation_dir, false)?
        .map(covering)
        .transpose()?;
    let own_size = own.as_ref().map_or(0, |(_, signed)| signed.size);
    let (note, signed) = match own {
        Some(own) if seq < own_size => own,
        _ => {
            let note = successors_note(storage, incarnation_dir)?.ok_or_else(|| not_covered(own_size))?;
            let (note, signed) = covering(note)?;
            if seq >= signed.size {
                return Err(not_covered(signed.size));
            }
            (note, signed)
        }
    };
    let leads_to_root =
        |hashes: &Vec<Hash>| verify_inclusion(&leaf, seq, signed.size, hashes, &signed.root).is_ok();
    let stored = TreeFile::open(storage, incarnation_dir)
        .and_then(|tree| inclusion_proof(&tree, seq, signed.size))
        .ok()
        .filter(leads_to_root);
    let hashes = match stored {
        Some(hashes) => hashes,
        None => {
            let nodes = rebuild(storage, incarnation_dir, seq, signed.size)?;
            let hashes = inclusion_proof(&nodes, seq, signed.size)?;
            if !leads_to_root(&hashes) {
                return Err(WalError::Corruption {
                    path: incarnation_dir.join(CHECKPOINT),
                    offset: 0,
                    reason: format!("the records do not lead to the root it signs at {}", signed.size),
                });
            }
            hashes
        }
    };
    Ok(TlogProof {
        extra: None,
        index: seq,
        hashes,
        checkpoint: note,
    })
}

/// The checkpoint that the next incarnation signed for what this one left.
fn successors_note(storage: &dyn Storage, incarnation_dir: &Path) -> Result<Option<String>, WalError> {
    let own = incarnation_of(incarnation_dir)?;
    let Some(shard) = incarnation_dir.parent() else {
        return Ok(None);
    };
    let names = storage.list(shard).map_err(WalError::io("list", shard))?;
    let later = names
        .iter()
        .filter_map(|name| parse_incarnation(name))
        .filter(|incarnation| *incarnation > own);
    for successor in later.collect::<BTreeSet<_>>() {
        let note = checkpoint_file::read_predecessor(storage, &shard.join(successor.to_string()))?;
        let speaks_for_own = |note: &String| {
            let signed = Checkpoint::parse_unverified(note);
            signed.is_ok_and(|signed| signed.origin.ends_with(&format!("/{own}")))
        };
        if let Some(note) = note.filter(speaks_for_own) {
            return Ok(Some(note));
        }
    }
    Ok(None)
}

/// Writes the leaves of an incarnation in order, each as a big-endian 32-bit length and its bytes; returns their number.
/// It ends where the log ends, torn tail excluded.
///
/// # Errors
/// [`WalError::Corruption`] when the log ends before its checkpoint does; [`WalError::Io`], also for `out`;
/// [`WalError::NotALog`].
pub fn export_leaves(
    storage: &dyn Storage,
    incarnation_dir: &Path,
    out: &mut impl io::Write,
) -> Result<u64, WalError> {
    // Before the records: those of a log that is being written only grow.
    let covered = match checkpoint_file::read(storage, incarnation_dir, false)? {
        Some(note) => Checkpoint::parse_unverified(&note)?.size,
        None => 0,
    };
    let mut log = LogReader::open(storage, incarnation_dir, incarnation_of(incarnation_dir)?, false)?;
    let failed = |error| WalError::io("export", incarnation_dir)(error);
    let mut leaves = 0;
    let mut flaw = None;
    loop {
        match log.next()? {
            Found::Record(stored) if stored.seq == leaves => {
                let payload = log.payload(&stored);
                let len = u32::try_from(payload.len()).unwrap_or(u32::MAX);
                out.write_all(&len.to_be_bytes())
                    .and_then(|()| out.write_all(payload))
                    .map_err(failed)?;
                leaves += 1;
            }
            Found::Flaw(found) => {
                flaw = Some(found);
                break;
            }
            Found::Record(_) | Found::End => break,
        }
    }
    out.flush().map_err(failed)?;
    if leaves < covered {
        let (path, offset, reason) = match flaw {
            Some(flaw) => (flaw.path, flaw.offset, flaw.reason),
            None => (
                incarnation_dir.join(CHECKPOINT),
                0,
                "records are missing at the end".to_owned(),
            ),
        };
        return Err(WalError::Corruption { path, offset, reason });
    }
    Ok(leaves)
}

pub(crate) fn incarnation_of(dir: &Path) -> Result<Ulid, WalError> {
    dir.file_name()
        .and_then(|name| name.to_str())
        .and_then(parse_incarnation)
        .ok_or_else(|| WalError::NotALog(dir.to_owned()))
}

/// Notes which nodes a proof asks for.
struct Wanted(RefCell<BTreeMap<u64, Hash>>);

impl NodeReader for Wanted {
    type Error = WalError;

    fn node(&self, position: u64) -> Result<Hash, WalError> {
        self.0.borrow_mut().insert(position, [0; 32]);
        Ok([0; 32])
    }
}

/// Nodes that were kept.
struct Kept(BTreeMap<u64, Hash>);

impl NodeReader for Kept {
    type Error = WalError;

    fn node(&self, position: u64) -> Result<Hash, WalError> {
        self.0
            .get(&position)
            .copied()
            .ok_or(LedgerError::MissingNode { position }.into())
    }
}

/// Hashes the first `size` records and keeps the nodes that the proof of `seq` needs.
fn rebuild(storage: &dyn Storage, dir: &Path, seq: u64, size: u64) -> Result<Kept, WalError> {
    let wanted = Wanted(RefCell::default());
    inclusion_proof(&wanted, seq, size)?;
    let mut kept = wanted.0.into_inner();
    let mut log = LogReader::open(storage, dir, incarnation_of(dir)?, false)?;
    let mut mmr = Mmr::new();
    let mut position = 0;
    while mmr.size() < size {
        match log.next()? {
            Found::Record(stored) if stored.seq == mmr.size() => {
                mmr.push(leaf_hash(log.payload(&stored)), &mut |node| {
                    if let Some(slot) = kept.get_mut(&position) {
                        *slot = node;
                    }
                    position += 1;
                });
            }
            Found::Flaw(flaw) if flaw.residue => {}
            Found::Flaw(flaw) => {
                return Err(WalError::Corruption {
                    path: flaw.path,
                    offset: flaw.offset,
                    reason: flaw.reason,
                });
            }
            Found::Record(_) | Found::End => {
                return Err(WalError::NoSuchRecord {
                    dir: dir.to_owned(),
                    seq: mmr.size(),
                });
            }
        }
    }
    Ok(Kept(kept))
}
