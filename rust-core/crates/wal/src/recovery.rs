//! Recovery: what the incarnations before this one left behind, and whether it can be believed.
//!
//! Nothing that a predecessor wrote is ever changed. What is read of its log is synced and dropped from the page cache
//! first, so that what is found is what the disk holds.
//!
//! **What is read.** The newest log that ever served, from where its `resume` file says, or whole without one; and the
//! one before, when the newest continues it and did not live to tell its end. A log serves only once its first
//! checkpoint is on the disk. So one without a checkpoint that holds no more than a start does is passed over, and one
//! that holds more has been tampered with.
//!
//! **Whose it is.** The volume is not trusted. Every frame that is read must carry the tag of a holder of the signing key,
//! and lead to what the checkpoint signs: nothing else is signed, or chained to.
//!
//! **Torn tail.** A bad record `s` is where the log ends only if nothing proves that `s` was durable: no checkpoint
//! covers it and no whole record behind it says that `s` was synced when it was framed. Otherwise it is corruption, and
//! recovery refuses. ("Any later record proves corruption" would refuse a legal crash that reorders one unsynced batch.)

use crate::authenticity::FrameTags;
use crate::resume::{self, Resume, ResumeKey};
use crate::{Storage, WalError};
use proofgate_evidence::checkpoint_file::CHECKPOINT;
use proofgate_evidence::layout::parse_incarnation;
use proofgate_evidence::log_reader::{Flaw, Found, LogReader, ResumePlace};
use proofgate_evidence::{EvidenceError, ReadFile, ReadStorage, TreeFile, checkpoint_file};
use proofgate_ledger::record::{self, Record};
use proofgate_ledger::{
    Checkpoint, Hash, Mmr, SigningKey, consistency_proof, leaf_hash, node_count, verify_consistency,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
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
    Ok(Some(join(newest, before)))
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
fn join(newest: Log, before: Vec<Log>) -> Recovered {
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
    }
}

/// Gives `take` the records of one incarnation's log from record `from` on, in order, up to its end or its first flaw:
/// what a successor needs to work out anew what the incarnation knew. Nothing is verified that [`inspect`] has not
/// verified.
///
/// # Errors
/// [`EvidenceError::Io`]; [`EvidenceError::Ledger`] when a record is not one.
pub fn replay(
    storage: &dyn Storage,
    shard_dir: &Path,
    incarnation: Ulid,
    from: u64,
    mut take: impl FnMut(&Record<'_>),
) -> Result<(), WalError> {
    let dir = shard_dir.join(incarnation.to_string());
    let mut log = LogReader::open(storage, &dir, incarnation)?;
    log.seek(from);
    while let Found::Record(stored) = log.next()? {
        if stored.seq >= from {
            take(&record::parse(log.payload(&stored))?);
        }
    }
    Ok(())
}

/// The logs that one life of a worker wrote: the incarnation `first` and those that followed it while it ran, which are
/// all before `until`. Oldest first, with the position of each one's first record among all of them.
///
/// # Errors
/// [`EvidenceError::Io`]; [`EvidenceError::Ledger`] when a checkpoint is not signed by the key.
pub fn life(
    storage: &dyn Storage,
    shard: &Shard<'_>,
    first: Ulid,
    until: Ulid,
) -> Result<Vec<(Ulid, u64)>, WalError> {
    let mut logs = Vec::new();
    let mut base = 0;
    for incarnation in incarnations(storage, shard.dir, None)? {
        if incarnation < first || incarnation >= until {
            continue;
        }
        logs.push((incarnation, base));
        let dir = shard.dir.join(incarnation.to_string());
        // Only the last of them was not signed to its end, and none is behind it.
        if let Some(note) = checkpoint_file::read(storage, &dir)? {
            base += believe(
                &note,
                &dir.join(CHECKPOINT),
                &shard.origin(incarnation),
                shard.key,
            )?
            .size;
        }
    }
    Ok(logs)
}

/// Where a log can be taken up, and which exchanges are open there; `None` when it has to be read from its beginning.
///
/// # Errors
/// [`EvidenceError::Io`].
pub fn place_to_resume(
    storage: &dyn Storage,
    shard: &Shard<'_>,
    incarnation: Ulid,
) -> Result<Option<(u64, Vec<Unended>)>, WalError> {
    let dir = shard.dir.join(incarnation.to_string());
    let resume = resume::read(storage, &dir, &ResumeKey::new(shard.key, incarnation))?;
    Ok(resume.map(|resume| (resume.size, resume.open)))
}

/// Reads what the disk holds.
struct FromDisk<'a>(&'a dyn Storage);

impl ReadStorage for FromDisk<'_> {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        self.0.open_synced(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.0.list(path)
    }
}

/// A log that was read.
struct Log {
    left: Left,
    /// Exchanges that are open at its end, by the incarnation and number of their admission.
    open: BTreeMap<(Ulid, u64), Unended>,
    /// Whether those of the logs before are among them.
    knows_all_open: bool,
    /// Exchanges of logs before that ended in this one.
    ended_elsewhere: Vec<(Ulid, u64)>,
    /// The log that this one continues.
    continues: Option<Ulid>,
    /// Whether it tells how the log that it continues ended.
    settled: bool,
    read: u64,
}

impl Log {
    /// The log before, if its records are needed too.
    fn depends_on(&self) -> Option<Ulid> {
        self.continues.filter(|_| !self.settled || !self.knows_all_open)
    }
}

/// Reads one incarnation's log; `None` when it never served.
fn read(storage: &dyn Storage, shard: &Shard<'_>, incarnation: Ulid) -> Result<Option<Log>, WalError> {
    let dir = shard.dir.join(incarnation.to_string());
    let signed_at = dir.join(CHECKPOINT);
    let tags = FrameTags::new(shard.key, incarnation)?;
    let from_disk = FromDisk(storage);
    let checkpoint = match checkpoint_file::read(&from_disk, &dir)? {
        Some(note) => Some(believe(&note, &signed_at, &shard.origin(incarnation), shard.key)?),
        None => None,
    };
    let covered = checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.size);
    let resume = resume::read(storage, &dir, &ResumeKey::new(shard.key, incarnation))?;
    if let Some(resume) = &resume
        && resume.size > covered
    {
        let reason = format!(
            "{} records were covered once, and now {covered}: an older checkpoint was put in its place, or none",
            resume.size
        );
        return Err(corruption(&signed_at, 0, reason));
    }
    let mut log = LogReader::open(&from_disk, &dir, incarnation)?;
    let mut scan = Scan::new(incarnation);
    log.expect(covered);
    if let Some(resume) = resume {
        let place = ResumePlace {
            segment: resume.segment,
            offset: resume.offset,
            seq: resume.size,
            chain: resume.chain,
        };
        if let Some(flaw) = log.start_at(&place)? {
            return Err(corruption(&flaw.path, flaw.offset, flaw.reason));
        }
        scan = Scan::resume(incarnation, resume)?;
    }
    let start = scan.mmr.size();
    if let Some(checkpoint) = checkpoint
        .as_ref()
        .filter(|signed| signed.size == start && start > 0)
        && checkpoint.root != scan.mmr.root()
    {
        return Err(corruption(&signed_at, 0, diverged(start)));
    }
    let mut cut: Option<Flaw> = None;
    loop {
        match log.next()? {
            Found::End => break,
            Found::Flaw(flaw) => {
                if flaw.seq < covered {
                    let reason = format!("{}, but the checkpoint covers {covered} records", flaw.reason);
                    return Err(corruption(&flaw.path, flaw.offset, reason));
                }
                cut.get_or_insert(flaw);
            }
            Found::Record(stored) => {
                let refused = |reason| corruption(log.path(), stored.offset, reason);
                let (frame, tag) = log.tagged(&stored);
                if !tags.made(stored.seq, frame, tag) {
                    let reason = format!(
                        "record {} was framed by nobody who holds the signing key",
                        stored.seq
                    );
                    return Err(refused(reason));
                }
                if let Some(flaw) = &cut {
                    if stored.durable > flaw.seq {
                        let reason =
                            format!("{}, but record {} proves it was durable", flaw.reason, stored.seq);
                        return Err(corruption(&flaw.path, flaw.offset, reason));
                    }
                    if !flaw.residue || stored.seq != flaw.seq {
                        continue;
                    }
                    cut = None;
                }
                let seq = stored.seq;
                scan.take(seq, log.payload(&stored)).map_err(refused)?;
                let signed = checkpoint.as_ref().filter(|signed| signed.size == seq + 1);
                if signed.is_some_and(|signed| signed.root != scan.mmr.root()) {
                    return Err(refused(diverged(seq + 1)));
                }
            }
        }
    }
    let size = scan.mmr.size();
    if size < covered {
        let reason = format!("it covers {covered} records, the log has {size}");
        return Err(corruption(&signed_at, 0, reason));
    }
    if checkpoint.is_none() {
        if scan.served {
            let reason =
                "it is gone, and the log has served: the first checkpoint comes before the first request";
            return Err(corruption(&signed_at, 0, reason.to_owned()));
        }
        return Ok(None);
    }
    let torn = cut.map(|flaw| TornTail {
        path: flaw.path,
        offset: flaw.offset,
        reason: flaw.reason,
    });
    let lost = leaves(tree_nodes(storage, &dir)?).saturating_sub(size);
    let left = Left {
        incarnation,
        dir,
        size,
        root: scan.mmr.root(),
        sealed: scan.sealed,
        checkpointed: covered,
        torn,
        lost,
    };
    Ok(Some(scan.finish(left, start)))
}

/// How many nodes the tree of a log holds; none where there is no tree.
fn tree_nodes(storage: &dyn Storage, dir: &Path) -> Result<u64, WalError> {
    match TreeFile::open(storage, dir) {
        Err(EvidenceError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(0),
        opened => Ok(opened?.nodes()?),
    }
}

/// How many leaves a tree of so many nodes holds whole.
fn leaves(nodes: u64) -> u64 {
    let mut leaves = nodes / 2;
    while node_count(leaves + 1) <= nodes {
        leaves += 1;
    }
    leaves
}

fn diverged(size: u64) -> String {
    format!("the first {size} records do not lead to the signed root")
}

fn corruption(path: &Path, offset: u64, reason: String) -> WalError {
    WalError::Evidence(EvidenceError::Corruption {
        path: path.to_owned(),
        offset,
        reason,
    })
}

/// Believes a checkpoint: signed by the key, and about this log.
fn believe(note: &str, path: &Path, origin: &str, key: &SigningKey) -> Result<Checkpoint, WalError> {
    let checkpoint = Checkpoint::verify(note, &key.verifying_key())?;
    if checkpoint.origin != origin {
        let reason = format!("it is a checkpoint of {:?}", checkpoint.origin);
        return Err(corruption(path, 0, reason));
    }
    Ok(checkpoint)
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

/// What is kept of the records while they pass.
struct Scan {
    incarnation: Ulid,
    mmr: Mmr,
    open: BTreeMap<(Ulid, u64), Unended>,
    knows_all_open: bool,
    ended_elsewhere: Vec<(Ulid, u64)>,
    continues: Option<Ulid>,
    settled: bool,
    sealed: bool,
    /// Whether it holds more than a start does.
    served: bool,
}

impl Scan {
    fn new(incarnation: Ulid) -> Self {
        Self {
            incarnation,
            mmr: Mmr::new(),
            open: BTreeMap::new(),
            knows_all_open: true,
            ended_elsewhere: Vec::new(),
            continues: None,
            settled: true,
            sealed: false,
            served: false,
        }
    }

    fn resume(incarnation: Ulid, resume: Resume) -> Result<Self, WalError> {
        let keyed = |open: Unended| ((open.incarnation, open.admission), open);
        Ok(Self {
            mmr: Mmr::from_peaks(resume.size, resume.peaks)?,
            open: resume.open.into_iter().map(keyed).collect(),
            continues: resume.continues,
            settled: resume.settled,
            served: true,
            ..Self::new(incarnation)
        })
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
                if let Some(before) = open.predecessor.filter(|before| before.running) {
                    let Some(before) = parse_incarnation(&before.incarnation) else {
                        return Err(format!("{:?} is no incarnation", before.incarnation));
                    };
                    self.continues = Some(before);
                    self.settled = false;
                    self.knows_all_open = false;
                }
            }
            Record::Aborted(_) => {}
            Record::Takeover(_) => self.settled = true,
            other => {
                self.served = true;
                self.take_served(seq, other)?;
            }
        }
        Ok(())
    }

    fn take_served(&mut self, seq: u64, record: Record<'_>) -> Result<(), String> {
        match record {
            Record::Admission(admission) => {
                let open = Unended {
                    incarnation: self.incarnation,
                    admission: seq,
                    ts: admission.ts,
                    id: admission.id.into_owned(),
                    tenant: admission.tenant.into_owned(),
                    key: admission.key.into_owned(),
                    reserved: admission.reserved,
                };
                self.open.insert((self.incarnation, seq), open);
            }
            Record::Completion(completion) => {
                let at = match &completion.incarnation {
                    None => self.incarnation,
                    Some(before) => parse_incarnation(before)
                        .ok_or_else(|| format!("record {seq}: {before:?} is no incarnation"))?,
                };
                let ended = (at, completion.admission);
                if self.open.remove(&ended).is_none() && at != self.incarnation {
                    self.ended_elsewhere.push(ended);
                }
            }
            Record::Seal(_) => self.sealed = true,
            _ => {}
        }
        Ok(())
    }

    fn finish(self, left: Left, start: u64) -> Log {
        Log {
            read: left.size - start,
            left,
            open: self.open,
            knows_all_open: self.knows_all_open,
            ended_elsewhere: self.ended_elsewhere,
            continues: self.continues,
            settled: self.settled,
        }
    }
}
