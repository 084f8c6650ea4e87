//! An auditor of a simulated disk, whose clock the test controls.
#![allow(dead_code, reason = "each test binary uses only some of these helpers")]

use proofgate_auditor::{Auditor, Entry, EntryKind, FindingCode, PollSummary, Settings};
use proofgate_evidence::{ReadFile, ReadStorage};
use proofgate_ledger::{SigningKey, TrustPolicy};
use proofgate_ledger_testkit::{DurabilityModel, Worker, start, vkey, worker_with_records};
use proofgate_state::memory::MemoryStorage;
use proofgate_wal::Storage;
use proofgate_wal::simulated::SimulatedDisk;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

pub const SECOND: u64 = 1_000_000;

/// A disk that can be replaced by another.
#[derive(Clone)]
pub struct Volume(Arc<Mutex<SimulatedDisk>>);

impl Volume {
    pub fn swap(&self, disk: &SimulatedDisk) {
        *self.0.lock().unwrap() = disk.clone();
    }
}

impl ReadStorage for Volume {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        self.0.lock().unwrap().open(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.0.lock().unwrap().list(path)
    }
}

pub struct Audit {
    pub volume: Volume,
    pub state: MemoryStorage,
    pub auditor: Auditor,
    pub policy: Arc<TrustPolicy>,
    pub now: u64,
}

pub fn settings() -> Settings {
    Settings {
        ledger: PathBuf::from("/"),
        key: vkey(),
        retention_key: Some(keeping_key().verifying_key()),
        heartbeat: 10 * SECOND,
        recheck_delay: 5 * SECOND,
        stall_timeout: 30 * SECOND,
        check_configurations: false,
        policy: Arc::new(TrustPolicy::unconditional()),
    }
}

pub fn auditor_key() -> SigningKey {
    SigningKey::generate("ledger.example/audit", [9; 32]).unwrap()
}

pub fn keeping_key() -> SigningKey {
    SigningKey::generate("ledger.example/keeping", [5; 32]).unwrap()
}

impl Audit {
    pub fn of(disk: &SimulatedDisk) -> Self {
        Self::under(disk, TrustPolicy::unconditional())
    }

    pub fn under(disk: &SimulatedDisk, policy: TrustPolicy) -> Self {
        let policy = Arc::new(policy);
        let (volume, state) = (
            Volume(Arc::new(Mutex::new(disk.clone()))),
            MemoryStorage::default(),
        );
        let auditor = Auditor::create(
            Arc::new(volume.clone()),
            Arc::new(state.clone()),
            auditor_key(),
            Settings {
                policy: Arc::clone(&policy),
                ..settings()
            },
        )
        .unwrap();
        Self {
            volume,
            state,
            auditor,
            policy,
            // The time at which the tests' retention jobs run.
            now: 200 * 86_400 * SECOND,
        }
    }

    pub fn restart(&mut self) {
        let (volume, state) = (Arc::new(self.volume.clone()), Arc::new(self.state.clone()));
        let settings = Settings {
            policy: Arc::clone(&self.policy),
            ..settings()
        };
        self.auditor = Auditor::open(volume, state, auditor_key(), settings).unwrap();
    }

    pub fn poll(&mut self) -> PollSummary {
        self.now += SECOND;
        self.auditor.poll(self.now, u64::MAX, 0).unwrap()
    }

    /// Polls until a beat and a second check have passed.
    pub fn watch(&mut self) {
        for _ in 0..12 {
            self.poll();
        }
    }

    pub fn codes(&self) -> Vec<FindingCode> {
        let mut codes: Vec<FindingCode> = self.auditor.findings().iter().map(|found| found.code).collect();
        codes.sort_unstable();
        codes.dedup();
        codes
    }

    pub fn expect(&mut self, code: FindingCode) {
        self.watch();
        assert!(
            self.codes().contains(&code),
            "{code:?}: {:#?}",
            self.auditor.findings()
        );
        self.restart();
        assert!(self.codes().contains(&code), "it is forgotten at a restart");
    }

    pub fn is_quiet(&mut self) {
        self.watch();
        assert_eq!(self.auditor.findings(), [], "at {}", self.now);
    }

    pub fn entries(&self) -> Vec<Entry> {
        let published = self.auditor.published_log();
        let (size, _) = published.checkpoint().unwrap();
        let path = match size % 256 {
            0 => "tile/entries/000".to_owned(),
            width => format!("tile/entries/000.p/{width}"),
        };
        let mut rest = &published.read(&path).unwrap().unwrap()[..];
        let mut entries = Vec::new();
        while let Some((length, behind)) = rest.split_first_chunk::<2>() {
            let (entry, behind) = behind.split_at(u16::from_be_bytes(*length).into());
            entries.push(Entry::decode(entry).unwrap());
            rest = behind;
        }
        entries
    }

    pub fn told(&self) -> Vec<(EntryKind, u64)> {
        self.entries()
            .iter()
            .map(|entry| (entry.kind, entry.size))
            .collect()
    }
}

/// Creates two logs. The worker of the first was killed, and that log's own checkpoint does not
/// cover its last records.
pub fn two_lives() -> (SimulatedDisk, Worker, Worker) {
    let (disk, mut first) = worker_with_records();
    first.admit("orphan", 1).unwrap();
    first.flush().unwrap();
    disk.restart();
    let mut second = start(&disk, &mut DurabilityModel::default()).unwrap();
    second.run_exchange("after");
    (disk, first, second)
}

/// Returns the newest segment of a log.
pub fn newest_segment(disk: &SimulatedDisk, worker: &Worker) -> PathBuf {
    let names = disk.list(&worker.durability_model.dir).unwrap();
    let newest = names.iter().rfind(|name| name.ends_with(".seg")).unwrap();
    worker.durability_model.dir.join(newest)
}

pub fn remove(disk: &SimulatedDisk, dir: &Path) {
    for name in disk.list(dir).unwrap() {
        disk.remove(&dir.join(name)).unwrap();
    }
    disk.remove_dir(dir);
}

/// Copies a directory of files under another name.
pub fn copy(disk: &SimulatedDisk, from: &Path, to: &Path) {
    disk.create_dir(to).unwrap();
    for name in disk.list(from).unwrap() {
        let bytes = disk.read(&from.join(&name)).unwrap();
        disk.create(&to.join(&name)).unwrap();
        disk.corrupt(&to.join(&name), |file| *file = bytes);
    }
}
