//! One incarnation under the eye of `fsck`.

use super::{CheckpointState, Finding, IncarnationReport, TreeState, Verdict};
use crate::checkpoint_file::{self, CHECKPOINT};
use crate::log_reader::{Flaw, Found, LogReader};
use crate::recovery::parse_incarnation;
use crate::segment_reader::Stored;
use crate::storage::{StoredFile, read_full};
use crate::tree_file::{NODE, TREE};
use crate::{Storage, WalError};
use base64::{Engine, engine::general_purpose::STANDARD};
use proofgate_ledger::record::{self, Record};
use proofgate_ledger::{Checkpoint, Hash, Mmr, VerifyingKey, leaf_hash, node_count};
use sha2::{Digest, Sha256};
use std::io;
use std::path::Path;
use std::sync::Arc;
use ulid::Ulid;

/// What a successor recorded.
pub(super) struct Claim {
    pub(super) by: Ulid,
    pub(super) size: u64,
    pub(super) root: Hash,
    pub(super) sealed: bool,
}

/// What an incarnation's first record says.
pub(super) struct Opened {
    pub(super) predecessor: Option<Named>,
}

pub(super) struct Named {
    pub(super) incarnation: Ulid,
    pub(super) size: u64,
    pub(super) root: Hash,
    pub(super) sealed: bool,
}

/// Reads the first record only; `None` when there is no readable one.
pub(super) fn opened(
    storage: &dyn Storage,
    dir: &Path,
    incarnation: Ulid,
) -> Result<Option<Opened>, WalError> {
    let mut log = LogReader::open(storage, dir, incarnation, false)?;
    loop {
        match log.next()? {
            Found::End => return Ok(None),
            Found::Flaw(_) => {}
            Found::Record(stored) => {
                let predecessor = match record::parse(log.payload(&stored)) {
                    Ok(Record::Open(open)) => open.predecessor,
                    _ => None,
                };
                let predecessor = predecessor.and_then(|named| {
                    let incarnation = parse_incarnation(&named.incarnation)?;
                    let record::Predecessor {
                        size, root, sealed, ..
                    } = named;
                    Some(Named {
                        incarnation,
                        size,
                        root,
                        sealed,
                    })
                });
                return Ok(Some(Opened { predecessor }));
            }
        }
    }
}

/// Checks one incarnation against itself, its checkpoint and what successors recorded of it.
pub(super) fn scan(
    storage: &dyn Storage,
    dir: &Path,
    incarnation: Ulid,
    key: Option<&VerifyingKey>,
    claims: &[Claim],
) -> Result<IncarnationReport, WalError> {
    let mut scan = Scan::new(storage, dir, incarnation)?;
    let mut log = LogReader::open(storage, dir, incarnation, false)?;
    scan.report.segments = log.segments() as u64;
    let signed = scan.read_checkpoint(storage, dir, key)?;
    loop {
        match log.next()? {
            Found::End => break,
            Found::Flaw(flaw) => scan.flaws.push((flaw, 0)),
            Found::Record(stored) => {
                scan.take(&log, &stored, signed.as_ref().map_or(0, |signed| signed.size))?;
                scan.compare_heads(dir, signed.as_ref(), claims);
            }
        }
    }
    scan.finish(dir, signed.as_ref(), claims, log.origin())
}

struct Scan {
    report: IncarnationReport,
    mmr: Mmr,
    tree: TreeCheck,
    /// Flaws, each with the largest durable count that a later record states.
    flaws: Vec<(Flaw, u64)>,
}

impl Scan {
    fn new(storage: &dyn Storage, dir: &Path, incarnation: Ulid) -> Result<Self, WalError> {
        Ok(Self {
            report: IncarnationReport {
                dir: dir.display().to_string(),
                incarnation: incarnation.to_string(),
                origin: None,
                segments: 0,
                records: 0,
                bytes: 0,
                root: None,
                sealed: false,
                checkpoint: CheckpointState::Missing,
                checkpoint_size: 0,
                tree: TreeState::Missing,
                torn: false,
                findings: Vec::new(),
            },
            mmr: Mmr::new(),
            tree: TreeCheck::open(storage, dir)?,
            flaws: Vec::new(),
        })
    }

    fn find(&mut self, file: &Path, offset: u64, verdict: Verdict, message: String) {
        self.report.findings.push(Finding {
            file: file.display().to_string(),
            offset,
            verdict,
            message,
        });
    }

    fn read_checkpoint(
        &mut self,
        storage: &dyn Storage,
        dir: &Path,
        key: Option<&VerifyingKey>,
    ) -> Result<Option<Checkpoint>, WalError> {
        let path = dir.join(CHECKPOINT);
        let read = match checkpoint_file::read(storage, dir, false) {
            Ok(None) => return Ok(None),
            Ok(Some(note)) => match key {
                Some(key) => Checkpoint::verify(&note, key),
                None => Checkpoint::parse_unverified(&note),
            }
            .map_err(|error| error.to_string()),
            Err(WalError::Corruption { reason, .. }) => Err(reason),
            Err(error) => return Err(error),
        };
        match read {
            Ok(checkpoint) => {
                self.report.checkpoint = match key {
                    Some(_) => CheckpointState::Verified,
                    None => CheckpointState::Unverified,
                };
                self.report.checkpoint_size = checkpoint.size;
                if key.is_none() {
                    let message = "no key was given: the signature is not checked".to_owned();
                    self.find(&path, 0, Verdict::Incomplete, message);
                }
                Ok(Some(checkpoint))
            }
            Err(message) => {
                self.report.checkpoint = CheckpointState::Bad;
                self.find(&path, 0, Verdict::Invalid, message);
                Ok(None)
            }
        }
    }

    fn take(&mut self, log: &LogReader, stored: &Stored, covered: u64) -> Result<(), WalError> {
        for (flaw, durable) in &mut self.flaws {
            // A record that takes the expected place shows that nothing was lost before it.
            if !(flaw.residue && stored.seq == flaw.seq) {
                *durable = (*durable).max(stored.durable);
            }
        }
        let payload = log.payload(stored);
        if stored.seq == self.mmr.size() {
            let wrong_before = self.tree.wrong;
            let wrong = self.tree.push(&mut self.mmr, leaf_hash(payload))?;
            if let Some(position) = wrong {
                let path = Path::new(&self.report.dir).join(TREE);
                let offset = position * NODE as u64;
                let what = format!("node {position} is not that of the records");
                // Nodes are synced before a checkpoint over them is signed; later ones can be lost legally.
                if stored.seq < covered {
                    self.find(&path, offset, Verdict::Invalid, what);
                } else if !wrong_before {
                    let message = format!("{what}; no checkpoint covers it, it can be rebuilt");
                    self.find(&path, offset, Verdict::Incomplete, message);
                }
            }
            self.report.records += 1;
            self.report.bytes += stored.len as u64;
        }
        if let Err(message) = self.check_record(stored.seq, payload) {
            self.find(log.path(), stored.offset, Verdict::Invalid, message);
        }
        Ok(())
    }

    fn check_record(&mut self, seq: u64, payload: &[u8]) -> Result<(), String> {
        let followed_seal = std::mem::take(&mut self.report.sealed);
        let record = record::parse(payload).map_err(|error| format!("record {seq}: {error}"))?;
        self.report.sealed = matches!(record, Record::Seal(_));
        if followed_seal {
            return Err(format!("record {seq} follows a seal"));
        }
        if record.seq() != seq {
            return Err(format!("record {seq} says that it is record {}", record.seq()));
        }
        match record {
            Record::Open(open) if seq == 0 => {
                let origin = format!("{}/{}/{}", open.ledger, open.shard, open.incarnation);
                self.report.origin = Some(origin);
                if open.incarnation != self.report.incarnation {
                    return Err(format!("the log was opened by incarnation {}", open.incarnation));
                }
                Ok(())
            }
            Record::Open(_) => Err(format!("record {seq} is a second open record")),
            _ if seq == 0 => Err("the first record is no open record".to_owned()),
            _ => Ok(()),
        }
    }

    /// Compares the root with every head known at this size.
    fn compare_heads(&mut self, dir: &Path, signed: Option<&Checkpoint>, claims: &[Claim]) {
        let size = self.mmr.size();
        if signed.is_some_and(|signed| signed.size == size && signed.root != self.mmr.root()) {
            self.report.checkpoint = CheckpointState::Bad;
            let message = format!("the first {size} records do not lead to the root that it signs");
            self.find(&dir.join(CHECKPOINT), 0, Verdict::Diverged, message);
        }
        for claim in claims {
            if claim.size == size && claim.root != self.mmr.root() {
                let message = format!(
                    "the first {size} records do not lead to the root that {} recorded",
                    claim.by
                );
                self.find(dir, 0, Verdict::Diverged, message);
            }
        }
    }

    fn finish(
        mut self,
        dir: &Path,
        signed: Option<&Checkpoint>,
        claims: &[Claim],
        origin: Option<[u8; 32]>,
    ) -> Result<IncarnationReport, WalError> {
        let size = self.mmr.size();
        let covered = signed.map_or(0, |signed| signed.size);
        let claimed = claims.iter().map(|claim| claim.size).max().unwrap_or(0);
        let mut whole = true;
        for (flaw, durable) in std::mem::take(&mut self.flaws) {
            let continued = flaw.residue && size > flaw.seq;
            let proven = flaw.seq < covered.max(claimed).max(durable);
            let torn = !proven && !continued && !self.report.sealed;
            whole &= !proven || continued;
            self.report.torn |= torn;
            let (verdict, what) = match torn {
                true => (Verdict::Incomplete, "torn tail, cut here"),
                false => (Verdict::Invalid, "damage"),
            };
            let message = format!("{what} at record {}: {}", flaw.seq, flaw.reason);
            self.find(&flaw.path, flaw.offset, verdict, message);
        }
        if size < covered {
            self.report.checkpoint = CheckpointState::Bad;
            let message = format!("it covers {covered} records and only {size} are there");
            self.find(&dir.join(CHECKPOINT), 0, Verdict::Diverged, message);
        }
        for claim in claims {
            let (by, recorded) = (claim.by, claim.size);
            if size < recorded {
                let message = format!("{by} recorded {recorded} records and only {size} are there");
                self.find(dir, 0, Verdict::Diverged, message);
            } else if size > recorded {
                let message = format!(
                    "records {recorded} to {} came after {by} recorded its end",
                    size - 1
                );
                self.find(dir, 0, Verdict::Incomplete, message);
            } else if claim.sealed != self.report.sealed {
                let message = format!("{by} recorded sealed: {}, which it is not", claim.sealed);
                self.find(dir, 0, Verdict::Diverged, message);
            }
        }
        self.compare_origins(dir, signed, origin);
        if size > 0 && whole {
            self.report.root = Some(STANDARD.encode(self.mmr.root()));
        }
        self.report.tree = self.tree.state(node_count(size));
        if size > 0 && self.report.tree == TreeState::Missing {
            let message = "the tree file is not there; it can be rebuilt from the records".to_owned();
            self.find(&dir.join(TREE), 0, Verdict::Incomplete, message);
        }
        Ok(self.report)
    }

    /// The segments, the open record and the checkpoint must speak of one origin.
    fn compare_origins(&mut self, dir: &Path, signed: Option<&Checkpoint>, origin: Option<[u8; 32]>) {
        let digest = |text: &str| -> [u8; 32] { Sha256::digest(text.as_bytes()).into() };
        if let (Some(text), Some(origin)) = (self.report.origin.clone(), origin)
            && digest(&text) != origin
        {
            let message = format!("the segments belong to another origin than {text}");
            self.find(dir, 0, Verdict::Invalid, message);
        }
        if let (Some(signed), Some(origin)) = (signed, origin)
            && digest(&signed.origin) != origin
        {
            self.report.checkpoint = CheckpointState::Bad;
            let message = format!("it is a checkpoint of another log, {}", signed.origin);
            self.find(&dir.join(CHECKPOINT), 0, Verdict::Invalid, message);
        }
    }
}

/// Compares a tree file with the nodes of the records as they pass.
struct TreeCheck {
    file: Option<Arc<dyn StoredFile>>,
    nodes: u64,
    position: u64,
    window: Vec<u8>,
    window_at: u64,
    wrong: bool,
}

impl TreeCheck {
    fn open(storage: &dyn Storage, dir: &Path) -> Result<Self, WalError> {
        let path = dir.join(TREE);
        let file = match storage.open(&path) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(WalError::io("open", &path)(error)),
        };
        let nodes = match &file {
            Some(file) => file.len().map_err(WalError::io("stat", &path))? / NODE as u64,
            None => 0,
        };
        Ok(Self {
            file,
            nodes,
            position: 0,
            window: Vec::new(),
            window_at: 0,
            wrong: false,
        })
    }

    /// Pushes a leaf and compares the nodes it makes; returns the position of the first wrong one.
    fn push(&mut self, mmr: &mut Mmr, leaf: Hash) -> Result<Option<u64>, WalError> {
        let mut wrong = Ok(None);
        mmr.push(leaf, &mut |node| match self.compare(&node) {
            Ok(true) => {}
            Ok(false) => {
                if let Ok(first @ None) = &mut wrong {
                    *first = Some(self.position - 1);
                }
            }
            Err(error) => wrong = Err(error),
        });
        wrong.map_err(WalError::io("read", Path::new(TREE)))
    }

    fn compare(&mut self, node: &Hash) -> io::Result<bool> {
        let at = self.position;
        self.position += 1;
        let Some(file) = self.file.as_ref().filter(|_| at < self.nodes) else {
            return Ok(true);
        };
        let offset = at * NODE as u64;
        if offset + NODE as u64 > self.window_at + self.window.len() as u64 {
            self.window.resize(256 << 10, 0);
            self.window_at = offset;
            let read = read_full(&**file, &mut self.window, offset)?;
            self.window.truncate(read);
        }
        let start = (offset - self.window_at) as usize;
        let same = self.window.get(start..start + NODE) == Some(node.as_slice());
        self.wrong |= !same;
        Ok(same)
    }

    fn state(&self, expected: u64) -> TreeState {
        match &self.file {
            None => TreeState::Missing,
            Some(_) if self.wrong => TreeState::Bad,
            Some(_) if self.nodes < expected => TreeState::Short,
            Some(_) if self.nodes > expected => TreeState::Long,
            Some(_) => TreeState::Complete,
        }
    }
}
