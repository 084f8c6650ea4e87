//! A shard of several lives on a simulated disk, and its keeper.
#![allow(dead_code, reason = "each test binary uses its part")]

use crate::support::{self, Promised, Worker, filled, start, vkey};
use proofgate_evidence::frame::{
    FRAME_HEADER, FRAME_TAG, SEGMENT_HEADER, SegmentHeader, SegmentKey, seal_frame,
};
use proofgate_evidence::{HeldCheckpoint, Keys, ReadFile, ReadStorage, Report, Ulid, fsck};
use proofgate_keeping::{Fate, Keeper, KeepingError, Plan, Planned, Policy, Scope, plan, prune};
use proofgate_ledger::record::{Analysis, ConfigId, Takeover};
use proofgate_ledger::{Justification, SigningKey};
use proofgate_state::memory::Memory;
use proofgate_wal::simulated::SimulatedDisk;
use proofgate_wal::{Storage, succession};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

pub const DAY: u64 = 86_400_000_000;
/// All records of the tests are of the first moments of 1970.
pub const NOW: u64 = 200 * DAY;

pub fn keeping_key() -> SigningKey {
    SigningKey::generate("ledger.example/keeping", [5; 32]).unwrap()
}

/// An officer's reason.
pub fn why(reason: &str) -> Justification {
    Justification {
        author: "officer".to_owned(),
        reason: reason.to_owned(),
        ticket: Some("2026-17".to_owned()),
    }
}

/// A shard, and who keeps it.
pub struct Keep {
    pub disk: SimulatedDisk,
    pub state: Memory,
    pub keeper: Keeper,
    pub policy: Policy,
    pub held: Vec<HeldCheckpoint>,
    pub now: u64,
}

impl Keep {
    pub fn of(disk: &SimulatedDisk) -> Self {
        let state = Memory::default();
        let keeper = Keeper::begin(Arc::new(state.clone()), &vkey(), &keeping_key().verifying_key()).unwrap();
        Self {
            disk: disk.clone(),
            state,
            keeper,
            policy: Policy::new(180, BTreeMap::new()).unwrap(),
            held: Vec::new(),
            now: NOW,
        }
    }

    pub fn hold(&mut self, scope: Scope) -> u64 {
        self.keeper.add(None, scope, &why("a case"), 1).unwrap().id
    }

    fn with<T>(&self, act: impl FnOnce(&Plan<'_>) -> T) -> T {
        let (key, keeping) = (vkey(), keeping_key().verifying_key());
        act(&Plan {
            ledger: Path::new("/"),
            key: &key,
            keeping: &keeping,
            keeper: &self.keeper,
            policy: &self.policy,
            why: &why("the retention of 180 days"),
            held: &self.held,
            now: self.now,
            begun: None,
        })
    }

    pub fn plan(&self) -> Vec<Planned> {
        self.plan_of(&self.disk)
    }

    pub fn plan_of(&self, storage: &dyn ReadStorage) -> Vec<Planned> {
        self.with(|what| plan(storage, what)).unwrap()
    }

    pub fn try_prune(&self) -> Result<Vec<Planned>, KeepingError> {
        self.with(|what| prune(&self.disk, what, &keeping_key()))
    }

    pub fn prune(&self) -> Vec<String> {
        fates(&self.try_prune().unwrap())
    }

    /// What is to become of the logs, the oldest first: `remove`, or the codes of why each stays.
    pub fn fates(&self) -> Vec<String> {
        fates(&self.plan())
    }

    pub fn check(&self) -> Report {
        check(&self.disk)
    }
}

pub fn fates(planned: &[Planned]) -> Vec<String> {
    planned
        .iter()
        .map(|log| match &log.fate {
            Fate::Remove(_) => "remove".to_owned(),
            Fate::Finish(_) => "finish".to_owned(),
            Fate::Removed => "removed".to_owned(),
            Fate::Stay(why) => {
                let mut codes: Vec<&str> = why.iter().map(|why| why.code).collect();
                codes.dedup();
                codes.join(" ")
            }
        })
        .collect()
}

pub fn check(disk: &SimulatedDisk) -> Report {
    let (key, keeping) = (vkey(), keeping_key().verifying_key());
    let keys = Keys {
        ledger: Some(&key),
        keeping: Some(&keeping),
        shred: None,
    };
    fsck(disk, Path::new("/"), keys, &[]).unwrap()
}

/// Codes and messages of what was found.
pub fn found(report: &Report) -> Vec<(Option<&'static str>, String)> {
    let logs = report.incarnations.iter().flat_map(|log| &log.findings);
    logs.chain(&report.findings)
        .map(|found| (found.code, found.message.clone()))
        .collect()
}

/// Four lives of a shard. The first was killed with an exchange open and its last records under no checkpoint of its own,
/// so the second ends that; the second and the third were sealed; the fourth goes on.
pub fn four_lives() -> (SimulatedDisk, Vec<Worker>) {
    let (disk, mut first) = filled();
    first.admit("orphan", 1).unwrap();
    first.flush().unwrap();
    disk.restart();
    let mut workers = vec![first];
    for name in ["second", "third", "fourth"] {
        let mut worker = start(&disk, &mut Promised::default()).unwrap();
        worker.complete_one(name);
        if name != "fourth" {
            worker.seal().unwrap();
            disk.restart();
        }
        workers.push(worker);
    }
    (disk, workers)
}

pub fn dir(worker: &Worker) -> PathBuf {
    worker.promised.dir.clone()
}

pub fn ulid(worker: &Worker) -> Ulid {
    worker.promised.incarnation.unwrap()
}

/// What somebody does to a disk, with the codes that are told of it.
pub type Attack<'a> = (&'static str, &'a dyn Fn(&SimulatedDisk));

/// Puts a folder where a file was, or nothing.
pub fn folder(disk: &SimulatedDisk, path: &Path) {
    let _ = disk.remove(path);
    disk.create_dir(path).unwrap();
}

/// A disk of which one name is withheld from whoever reads it.
pub struct Withheld<'d>(pub &'d SimulatedDisk, pub PathBuf);

impl ReadStorage for Withheld<'_> {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        match path == self.1 {
            true => Err(io::ErrorKind::PermissionDenied.into()),
            false => self.0.open(path),
        }
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.0.list(path)
    }
}

/// Adds what the analysis of an exchange's answer told, which another log admitted.
pub fn analyse(worker: &mut Worker, exchange: &str, (log, admission): (Ulid, u64), ts: u64) {
    let log = log.to_string();
    let analysis = |seq, out: &mut Vec<u8>| {
        let analysis = Analysis {
            seq,
            ts,
            exchange: exchange.into(),
            admission,
            incarnation: Some(log.as_str().into()),
            tenant: "acme".into(),
            model: "m".into(),
            findings: vec!["loop".into()],
            answer: None,
            window: None,
            config: ConfigId([1; 8]),
        };
        analysis.encode_into(out)
    };
    worker.append(analysis).unwrap();
}

/// Puts these records in the place of a worker's, which are all in one segment. Numbers and checksums fit, as whoever writes
/// the volume can make them.
pub fn forge(disk: &SimulatedDisk, worker: &Worker, records: &[Vec<u8>]) {
    disk.rot(&dir(worker).join("00000000000000000000.seg"), |segment| {
        let key = SegmentKey::new(ulid(worker), 0);
        let mut crc = SegmentHeader::decode(segment).unwrap().crc();
        let mut forged = segment[..SEGMENT_HEADER].to_vec();
        for (seq, record) in (0..).zip(records) {
            let start = forged.len();
            forged.resize(start + FRAME_HEADER, 0);
            forged.extend_from_slice(record);
            let sealed = seal_frame(&mut forged, start, key, seq, 0, crc, |_| Some([0; FRAME_TAG]));
            crc = sealed.unwrap();
        }
        *segment = forged;
    });
}

/// A worker's records with these ids in the place of others.
pub fn renamed(worker: &Worker, ids: &[(&str, &str)]) -> Vec<Vec<u8>> {
    let quoted = |id: &str| format!("\"{id}\"");
    let rename = |record: &Vec<u8>| {
        let text = String::from_utf8(record.clone()).unwrap();
        let found = ids.iter().find(|(old, _)| text.contains(&quoted(old)));
        found
            .map_or(text.clone(), |(old, new)| {
                text.replace(&quoted(old), &quoted(new))
            })
            .into_bytes()
    };
    worker.promised.appended.iter().map(rename).collect()
}

/// Puts an older checkpoint of a worker back.
pub fn set_back(disk: &SimulatedDisk, worker: &Worker, note: usize) {
    let note = worker.promised.notes[note].clone().into_bytes();
    disk.rot(&dir(worker).join("checkpoint"), |bytes| *bytes = note);
}

/// Takes the files of a worker away that are `gone`; and the folder, when nothing is in it any more.
pub fn take_away(disk: &SimulatedDisk, worker: &Worker, gone: impl Fn(&str) -> bool) {
    let names = disk.list(&dir(worker)).unwrap();
    for name in names.iter().filter(|name| gone(name)) {
        disk.remove(&dir(worker).join(name)).unwrap();
    }
    if names.iter().all(|name| gone(name)) {
        disk.remove_dir(&dir(worker));
    }
}

/// Begins a log beside a worker's, at this time.
pub fn beside(disk: &SimulatedDisk, former: &Worker, now: u64) -> Worker {
    let (storage, signing): (Arc<dyn Storage>, _) = (Arc::new(disk.clone()), support::key());
    let terms = succession::Terms {
        now,
        ..support::terms(&signing, support::small())
    };
    let signed = former.follower.signed().unwrap().clone();
    let made = succession::beside(&storage, &terms, ulid(former), &signed).unwrap();
    Worker::take(disk, made)
}

/// Goes on in another log, as a worker does that rotates.
pub fn rotate(disk: &SimulatedDisk, former: &mut Worker) -> Worker {
    rotate_at(disk, former, 1)
}

/// The same, at this time.
pub fn rotate_at(disk: &SimulatedDisk, former: &mut Worker, now: u64) -> Worker {
    let mut next = beside(disk, former, now);
    former.seal_for(Some(&ulid(&next).to_string())).unwrap();
    former.follower.finish(&support::key()).unwrap();
    let left = former.follower.left();
    let takeover = |seq, out: &mut Vec<u8>| {
        let takeover = Takeover {
            seq,
            ts: 1,
            incarnation: left.incarnation.to_string().into(),
            size: left.size,
            root: left.root,
            config: ConfigId([1; 8]),
        };
        takeover.encode_into(out)
    };
    next.append(takeover).unwrap();
    settle(&mut next);
    next
}

/// Puts what was appended under a checkpoint.
pub fn settle(worker: &mut Worker) {
    worker.flush().unwrap();
    worker.step().unwrap();
    worker.sync().unwrap();
    worker.checkpoint().unwrap();
}

/// Lets the worker's clock pass 30 exchanges.
fn later(worker: &mut Worker) {
    for number in 0..30 {
        worker.complete_one(&format!("later-{number}"));
    }
}

/// Ends the exchange `across` of another log in a worker's, at 60 or later.
pub fn end_later(worker: &mut Worker, log: Ulid, admission: u64) {
    later(worker);
    worker.complete_in(Some(log), "across", admission).unwrap();
    settle(worker);
}

/// Five lives of a shard, each of which goes on in the next. An exchange of the first, `across`, ends in the second, at 60 or
/// later, which no other record of the first is of.
pub fn across() -> (SimulatedDisk, Vec<Worker>) {
    let (disk, mut first) = support::fresh();
    first.complete_one("first");
    let admission = first.admit("across", 1).unwrap();
    let mut second = rotate(&disk, &mut first);
    end_later(&mut second, ulid(&first), admission);
    let mut workers = vec![first, second];
    for name in ["third", "fourth", "fifth"] {
        let mut next = rotate(&disk, workers.last_mut().unwrap());
        next.complete_one(name);
        workers.push(next);
    }
    (disk, workers)
}

/// What a hold says that touches the end of `across` alone.
pub fn its_end() -> Scope {
    Scope {
        since: Some(60),
        ..Scope::default()
    }
}

/// Changes a byte in the middle of a worker's only segment.
pub fn flip(disk: &SimulatedDisk, worker: &Worker) {
    disk.rot(&dir(worker).join("00000000000000000000.seg"), |bytes| {
        let written = bytes.iter().rposition(|byte| *byte != 0).unwrap_or_default();
        bytes[written / 2] ^= 1;
    });
}

/// Calls that are left until something happens on a disk, and what.
type Happens<'d> = (usize, Box<dyn FnOnce() + Send + 'd>);

/// A disk on which something happens while it is read.
pub struct Meanwhile<'d> {
    disk: &'d SimulatedDisk,
    happens: Mutex<Option<Happens<'d>>>,
}

impl<'d> Meanwhile<'d> {
    /// It happens before the call of this number.
    pub fn at(disk: &'d SimulatedDisk, call: usize, what: impl FnOnce() + Send + 'd) -> Self {
        let happens = Mutex::new(Some((call, Box::new(what) as Box<_>)));
        Self { disk, happens }
    }

    pub fn has_happened(&self) -> bool {
        self.happens.lock().unwrap().is_none()
    }

    fn tick(&self) {
        let mut happens = self.happens.lock().unwrap();
        match happens.take() {
            Some((0, what)) => what(),
            Some((left, what)) => *happens = Some((left - 1, what)),
            None => {}
        }
    }
}

impl ReadStorage for Meanwhile<'_> {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        self.tick();
        self.disk.open(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.tick();
        self.disk.list(path)
    }
}
