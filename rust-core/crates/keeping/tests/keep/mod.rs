//! A shard of several lives on a simulated disk, and its keeper.
#![allow(dead_code, reason = "each test binary uses its part")]

use crate::support::{Promised, Worker, filled, start, vkey};
use proofgate_evidence::frame::{
    FRAME_HEADER, FRAME_TAG, SEGMENT_HEADER, SegmentHeader, SegmentKey, seal_frame,
};
use proofgate_evidence::{HeldCheckpoint, Keys, ReadFile, ReadStorage, Report, Ulid, fsck};
use proofgate_keeping::{Fate, Keeper, KeepingError, Plan, Planned, Policy, Scope, plan, prune};
use proofgate_ledger::SigningKey;
use proofgate_ledger::record::{Analysis, ConfigId};
use proofgate_state::memory::Memory;
use proofgate_wal::Storage;
use proofgate_wal::simulated::SimulatedDisk;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub const DAY: u64 = 86_400_000_000;
/// All records of the tests are of the first moments of 1970.
pub const NOW: u64 = 200 * DAY;

pub fn keeping_key() -> SigningKey {
    SigningKey::generate("ledger.example/keeping", [5; 32]).unwrap()
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
        self.keeper
            .add(None, scope, "a case", Some("2026-17"), 1)
            .unwrap()
            .id
    }

    fn with<T>(&self, act: impl FnOnce(&Plan<'_>) -> T) -> T {
        let (key, keeping) = (vkey(), keeping_key().verifying_key());
        act(&Plan {
            ledger: Path::new("/"),
            key: &key,
            keeping: &keeping,
            keeper: &self.keeper,
            policy: &self.policy,
            reason: "the retention of 180 days",
            held: &self.held,
            now: self.now,
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
