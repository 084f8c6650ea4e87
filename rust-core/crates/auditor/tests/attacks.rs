//! What an auditor says of logs that go on as they should, and of such that somebody tampered with.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first failure"
)]

mod memory;
#[path = "../../wal/tests/support/mod.rs"]
mod support;

use memory::{Fault, Memory};
use proofgate_auditor::{Auditor, Code, Entry, Kind, Poll, Settings};
use proofgate_evidence::{ReadFile, ReadStorage, Ulid};
use proofgate_ledger::record::{ConfigId, Seal, Takeover};
use proofgate_ledger::{Checkpoint, SigningKey};
use proofgate_wal::simulated::SimulatedDisk;
use proofgate_wal::{Storage, succession};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use support::{Promised, SHARD, Worker, filled, fresh, key, reframe, root_of, small, start, terms, vkey};

const SECOND: u64 = 1_000_000;

/// A disk that can be put in the place of another.
#[derive(Clone)]
struct Volume(Arc<Mutex<SimulatedDisk>>);

impl Volume {
    fn swap(&self, disk: &SimulatedDisk) {
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

struct Audit {
    volume: Volume,
    state: Memory,
    auditor: Auditor,
    now: u64,
}

fn settings() -> Settings {
    Settings {
        ledger: PathBuf::from("/"),
        key: vkey(),
        beat: 10 * SECOND,
        second_look: 5 * SECOND,
        stall: 30 * SECOND,
    }
}

fn auditor_key() -> SigningKey {
    SigningKey::generate("ledger.example/audit", [9; 32]).unwrap()
}

impl Audit {
    fn of(disk: &SimulatedDisk) -> Self {
        let (volume, state) = (Volume(Arc::new(Mutex::new(disk.clone()))), Memory::default());
        let auditor = Auditor::create(
            Arc::new(volume.clone()),
            Arc::new(state.clone()),
            auditor_key(),
            settings(),
        )
        .unwrap();
        Self {
            volume,
            state,
            auditor,
            now: 1_000 * SECOND,
        }
    }

    fn restart(&mut self) {
        let (volume, state) = (Arc::new(self.volume.clone()), Arc::new(self.state.clone()));
        self.auditor = Auditor::open(volume, state, auditor_key(), settings()).unwrap();
    }

    fn poll(&mut self) -> Poll {
        self.now += SECOND;
        self.auditor.poll(self.now, u64::MAX, 0).unwrap()
    }

    /// Polls for as long as a beat and a second look take.
    fn watch(&mut self) {
        for _ in 0..12 {
            self.poll();
        }
    }

    fn codes(&self) -> Vec<Code> {
        let mut codes: Vec<Code> = self.auditor.findings().iter().map(|found| found.code).collect();
        codes.sort_unstable();
        codes.dedup();
        codes
    }

    fn expect(&mut self, code: Code) {
        self.watch();
        assert!(
            self.codes().contains(&code),
            "{code:?}: {:#?}",
            self.auditor.findings()
        );
        self.restart();
        assert!(self.codes().contains(&code), "it is forgotten at a restart");
    }

    fn is_quiet(&mut self) {
        self.watch();
        assert_eq!(self.auditor.findings(), [], "at {}", self.now);
    }

    fn entries(&self) -> Vec<Entry> {
        let published = self.auditor.published();
        let (size, _) = published.checkpoint();
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

    fn told(&self) -> Vec<(Kind, u64)> {
        self.entries()
            .iter()
            .map(|entry| (entry.kind, entry.size))
            .collect()
    }
}

/// Two lives: the first was killed with records under no checkpoint of its own.
fn two_lives() -> (SimulatedDisk, Worker, Worker) {
    let (disk, mut first) = filled();
    first.admit("orphan", 1).unwrap();
    first.flush().unwrap();
    disk.restart();
    let mut second = start(&disk, &mut Promised::default()).unwrap();
    second.complete_one("after");
    (disk, first, second)
}

fn dir(worker: &Worker) -> PathBuf {
    worker.promised.dir.clone()
}

fn ulid(worker: &Worker) -> Ulid {
    worker.promised.incarnation.unwrap()
}

/// The segment that was begun last.
fn newest_segment(disk: &SimulatedDisk, worker: &Worker) -> PathBuf {
    let names = disk.list(&worker.promised.dir).unwrap();
    let newest = names.iter().rfind(|name| name.ends_with(".seg")).unwrap();
    worker.promised.dir.join(newest)
}

fn remove(disk: &SimulatedDisk, dir: &Path) {
    for name in disk.list(dir).unwrap() {
        disk.remove(&dir.join(name)).unwrap();
    }
    disk.remove_dir(dir);
}

/// Copies a directory of files under another name.
fn copy(disk: &SimulatedDisk, from: &Path, to: &Path) {
    disk.create_dir(to).unwrap();
    for name in disk.list(from).unwrap() {
        let bytes = disk.read(&from.join(&name)).unwrap();
        disk.create(&to.join(&name)).unwrap();
        disk.rot(&to.join(&name), |file| *file = bytes);
    }
}

#[test]
fn a_ledger_as_it_should_be_is_quiet_and_its_heads_are_told() {
    let (disk, first, mut second) = two_lives();
    let mut audit = Audit::of(&disk);
    audit.is_quiet();
    let (old, new) = (
        first.promised.appended.len() as u64,
        second.promised.appended.len() as u64,
    );
    let told = audit.told();
    assert!(
        told.contains(&(Kind::End, old)),
        "with what the successor signed: {told:?}"
    );
    assert!(told.contains(&(Kind::Open, new)), "{told:?}");
    for entry in audit.entries() {
        let signed = Checkpoint::verify(&entry.checkpoint, &vkey()).unwrap();
        assert_eq!((&signed.origin, signed.size), (&entry.origin, entry.size));
    }
    second.complete_one("more");
    second.complete_one("and more");
    audit.is_quiet();
    assert_eq!(audit.told().last(), Some(&(Kind::Head, new + 4)));
    let before = audit.told().len();
    audit.is_quiet();
    assert_eq!(audit.told().len(), before, "nothing moved");
    second.seal().unwrap();
    audit.poll();
    assert_eq!(
        audit.told().last(),
        Some(&(Kind::End, new + 5)),
        "at once, not on the beat"
    );
    audit.restart();
    audit.is_quiet();
    assert_eq!(audit.told().len(), before + 1);
}

#[test]
fn a_small_budget_comes_to_the_same() {
    let (disk, _first, second) = two_lives();
    let mut audit = Audit::of(&disk);
    let (mut polls, mut behind) = (0, 1);
    while behind > 0 || polls < 3 {
        audit.now += SECOND;
        behind = audit.auditor.poll(audit.now, 2_000, 500).unwrap().behind;
        polls += 1;
    }
    assert!(polls > 5, "{polls}");
    audit.is_quiet();
    assert_eq!(
        audit.auditor.heads(audit.now)[0].size,
        second.promised.appended.len() as u64
    );
}

#[test]
fn a_log_that_goes_on_in_another_is_quiet_before_and_after_it_is_told() {
    let (disk, mut old) = filled();
    let mut audit = Audit::of(&disk);
    audit.is_quiet();
    let signed = Checkpoint::verify(old.promised.notes.last().unwrap(), &vkey()).unwrap();
    let (storage, key): (Arc<dyn Storage>, _) = (Arc::new(disk.clone()), key());
    let made = succession::beside(&storage, &terms(&key, small()), ulid(&old), &signed).unwrap();
    let next = made.incarnation;
    let mut new = Worker::take(&disk, made);
    audit.is_quiet();
    old.append(|seq, out| {
        let successor = Some(next.to_string().into());
        let (ts, config) = (1, ConfigId([1; 8]));
        Seal {
            seq,
            ts,
            reason: "rotated".into(),
            records: seq,
            successor,
            config,
        }
        .encode_into(out)
    })
    .unwrap();
    old.flush().unwrap();
    old.step().unwrap();
    old.sync().unwrap();
    old.checkpoint().unwrap();
    audit.is_quiet();
    let (size, root) = (
        old.promised.appended.len() as u64,
        root_of(&old.promised.appended),
    );
    new.append(|seq, out| {
        let (ts, incarnation, config) = (1, ulid(&old).to_string().into(), ConfigId([1; 8]));
        Takeover {
            seq,
            ts,
            incarnation,
            size,
            root,
            config,
        }
        .encode_into(out)
    })
    .unwrap();
    new.complete_one("in the new one");
    audit.is_quiet();
    let kinds: Vec<Kind> = audit.told().iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, [Kind::Open, Kind::Open, Kind::End, Kind::Head]);
}

#[test]
fn any_flipped_byte_of_a_new_record_is_found() {
    let (disk, mut worker) = filled();
    let mut audit = Audit::of(&disk);
    audit.is_quiet();
    worker.complete_one("more");
    let path = newest_segment(&disk, &worker);
    let text = |bytes: &[u8]| bytes.windows(4).rposition(|word| word == b"more").unwrap();
    disk.rot(&path, |bytes| {
        let at = text(bytes);
        bytes[at] ^= 1;
    });
    audit.expect(Code::RecordsDamaged);
}

#[test]
fn a_record_that_is_rewritten_with_right_checksums_is_found() {
    let (disk, mut worker) = fresh();
    worker.complete_one("one");
    let mut audit = Audit::of(&disk);
    audit.is_quiet();
    worker.complete_one("more");
    let path = newest_segment(&disk, &worker);
    disk.rot(&path, |bytes| {
        reframe(bytes, ulid(&worker), b"\"status\":200", b"\"status\":500")
    });
    audit.expect(Code::RecordsChanged);
}

#[test]
fn an_old_record_that_changes_is_found_by_the_scrub_and_only_then() {
    let (disk, worker) = filled();
    let mut audit = Audit::of(&disk);
    audit.is_quiet();
    let path = dir(&worker).join("00000000000000000000.seg");
    disk.rot(&path, |bytes| bytes[600] ^= 1);
    audit.is_quiet();
    for _ in 0..12 {
        audit.now += SECOND;
        audit.auditor.poll(audit.now, 0, 4_000).unwrap();
    }
    assert_eq!(audit.codes(), [Code::RecordsDamaged]);
}

#[test]
fn what_looks_wrong_for_a_moment_is_no_finding() {
    let (disk, mut worker) = filled();
    let mut audit = Audit::of(&disk);
    audit.is_quiet();
    let stale = disk.snapshot();
    worker.complete_one("more");
    audit.is_quiet();
    audit.volume.swap(&stale);
    assert!(audit.poll().suspicious);
    audit.volume.swap(&disk);
    audit.is_quiet();
    assert!(!audit.poll().suspicious);
}

#[test]
fn an_older_state_of_the_volume_is_a_rollback_also_after_a_restart() {
    let (disk, mut worker) = filled();
    let mut audit = Audit::of(&disk);
    let older = disk.snapshot();
    worker.complete_one("more");
    audit.is_quiet();
    audit.restart();
    audit.volume.swap(&older);
    audit.expect(Code::Rollback);
    // Putting the newer one back does not make it undone.
    audit.volume.swap(&disk);
    audit.expect(Code::Rollback);
}

#[test]
fn an_older_checkpoint_that_is_put_back_is_a_rollback_and_none_is_told() {
    let (disk, mut worker) = filled();
    let path = dir(&worker).join("checkpoint");
    let old = disk.read(&path).unwrap();
    worker.complete_one("more");
    let mut audit = Audit::of(&disk);
    audit.is_quiet();
    let new = disk.read(&path).unwrap();
    disk.rot(&path, |bytes| *bytes = old);
    audit.expect(Code::Rollback);
    disk.rot(&path, |bytes| *bytes = new.clone());
    disk.rot(&path, |bytes| {
        let end = bytes.len() - 5;
        bytes[end] ^= 1;
    });
    audit.expect(Code::CheckpointRefused);
    disk.remove(&path).unwrap();
    audit.expect(Code::CheckpointMissing);
}

#[test]
fn two_roots_of_one_size_are_an_equivocation() {
    let (disk, worker) = filled();
    let mut audit = Audit::of(&disk);
    audit.is_quiet();
    let path = dir(&worker).join("checkpoint");
    let note = String::from_utf8(disk.read(&path).unwrap()).unwrap();
    let other = Checkpoint {
        root: [7; 32],
        ..Checkpoint::verify(&note, &vkey()).unwrap()
    };
    disk.rot(&path, |bytes| *bytes = other.sign(&key()).unwrap().into_bytes());
    audit.expect(Code::Equivocation);
}

#[test]
fn records_that_are_cut_off_are_told_before_and_after_they_were_read() {
    let (disk, worker) = filled();
    let path = newest_segment(&disk, &worker);
    let cut = |bytes: &mut Vec<u8>| bytes.truncate(300);
    let mut audit = Audit::of(&disk);
    audit.is_quiet();
    disk.rot(&path, cut);
    audit.expect(Code::Truncated);
    let mut late = Audit::of(&disk);
    late.watch();
    assert!(
        late.codes()
            .iter()
            .any(|code| [Code::Truncated, Code::RecordsDamaged].contains(code)),
        "{:?}",
        late.codes()
    );
}

#[test]
fn a_log_or_a_shard_that_is_removed_is_told() {
    let (disk, first, second) = two_lives();
    let mut audit = Audit::of(&disk);
    audit.is_quiet();
    remove(&disk, &dir(&first));
    audit.expect(Code::LogMissing);
    remove(&disk, &dir(&second));
    disk.remove_dir(Path::new(SHARD));
    audit.expect(Code::ShardMissing);
}

#[test]
fn a_predecessor_that_was_gone_before_the_first_look_is_told() {
    let (disk, first, _second) = two_lives();
    remove(&disk, &dir(&first));
    Audit::of(&disk).expect(Code::PredecessorMissing);
}

#[test]
fn a_log_that_is_planted_is_told() {
    let (disk, worker) = filled();
    let mut audit = Audit::of(&disk);
    audit.is_quiet();
    let later = Ulid::from_parts(u64::MAX >> 20, 1);
    let planted = Path::new(SHARD).join(later.to_string());
    copy(&disk, &dir(&worker), &planted);
    audit.expect(Code::CheckpointForeign);
    disk.remove(&planted.join("checkpoint")).unwrap();
    audit.expect(Code::PlantedLog);
    // In another shard's directory, under its own name.
    let mut swapped = Audit::of(&disk);
    disk.create_dir(Path::new("/4")).unwrap();
    copy(
        &disk,
        &dir(&worker),
        &Path::new("/4").join(ulid(&worker).to_string()),
    );
    swapped.expect(Code::CheckpointForeign);
}

#[test]
fn a_log_that_was_seen_before_it_was_signed_is_accepted_as_soon_as_it_is() {
    let (disk, mut worker) = fresh();
    let path = dir(&worker).join("checkpoint");
    let note = disk.read(&path).unwrap();
    disk.remove(&path).unwrap();
    let mut audit = Audit::of(&disk);
    assert!(
        !audit.poll().suspicious,
        "a start that was cut short looks the same"
    );
    disk.create(&path).unwrap();
    disk.rot(&path, |bytes| *bytes = note);
    audit.poll();
    worker.complete_one("more");
    audit.poll();
    assert_eq!(audit.auditor.heads(audit.now)[0].size, 3);
    audit.is_quiet();
}

#[test]
fn two_successors_of_one_log_are_a_fork() {
    let (disk, first) = filled();
    let other = disk.snapshot();
    let mut second = start(&disk, &mut Promised::default()).unwrap();
    second.complete_one("here");
    let mut audit = Audit::of(&disk);
    audit.is_quiet();
    let mut fork = start(&other, &mut Promised::default()).unwrap();
    fork.complete_one("there");
    let to = dir(&fork);
    disk.create_dir(&to).unwrap();
    for name in other.list(&to).unwrap() {
        let bytes = other.read(&to.join(&name)).unwrap();
        disk.create(&to.join(&name)).unwrap();
        disk.rot(&to.join(&name), |file| *file = bytes);
    }
    audit.expect(Code::Fork);
    let found = audit
        .auditor
        .findings()
        .iter()
        .find(|found| found.code == Code::Fork)
        .unwrap();
    assert!(found.origin.ends_with(&ulid(&first).to_string()), "{found:?}");
}

#[test]
fn a_log_that_goes_on_behind_the_end_that_its_successor_recorded_has_two_writers() {
    let (disk, mut first) = filled();
    let mut second = start(&disk, &mut Promised::default()).unwrap();
    second.complete_one("of the second");
    let mut audit = Audit::of(&disk);
    audit.is_quiet();
    first.complete_one("of one that was taken for dead");
    audit.expect(Code::TwoWriters);
}

#[test]
fn records_that_wait_for_a_checkpoint_are_a_stall_which_passes() {
    let (disk, mut worker) = filled();
    let mut audit = Audit::of(&disk);
    audit.is_quiet();
    let admission = worker.admit("waits", 1).unwrap();
    worker.flush().unwrap();
    for _ in 0..4 {
        audit.watch();
    }
    assert_eq!(audit.codes(), [Code::Stalled]);
    worker.complete("waits", admission).unwrap();
    worker.flush().unwrap();
    worker.step().unwrap();
    worker.sync().unwrap();
    worker.checkpoint().unwrap();
    audit.is_quiet();
}

#[test]
fn an_auditor_that_is_killed_at_any_write_tells_every_head_once() {
    for write in 0..40 {
        for fault in [Fault::Before, Fault::After] {
            let (disk, first, mut second) = two_lives();
            let mut audit = Audit::of(&disk);
            audit.poll();
            audit.state.fail_from(write, fault);
            second.seal().unwrap();
            for _ in 0..3 {
                audit.now += 11 * SECOND;
                let _ = audit.auditor.poll(audit.now, u64::MAX, 0);
            }
            audit.state.heal();
            audit.restart();
            audit.is_quiet();
            let (old, new) = (
                first.promised.appended.len() as u64,
                second.promised.appended.len() as u64,
            );
            for end in [(Kind::End, old), (Kind::End, new)] {
                let told = audit.told().into_iter().filter(|told| *told == end).count();
                assert_eq!(told, 1, "write {write}, {fault:?}: {:?}", audit.told());
            }
        }
    }
}

#[test]
fn a_key_that_could_speak_for_the_ledger_is_no_auditors() {
    let (disk, _worker) = filled();
    let refused = |name: &str, seed: u8| {
        let key = SigningKey::generate(name, [seed; 32]).unwrap();
        let made = Auditor::create(
            Arc::new(disk.clone()),
            Arc::new(Memory::default()),
            key,
            settings(),
        );
        made.err().map(|error| error.code())
    };
    for (name, seed) in [
        (support::LEDGER, 9),
        ("ledger.example/demo/audit", 9),
        ("ledger.example", 9),
        ("other", 7),
    ] {
        assert_eq!(refused(name, seed), Some("auditor_key"), "{name}");
    }
    assert_eq!(refused("ledger.example/demo-audit", 9), None);
}

#[test]
fn a_lost_state_is_no_beginning_and_a_state_is_not_begun_twice() {
    let (disk, _worker) = filled();
    let audit = Audit::of(&disk);
    let (volume, lost): (Arc<dyn ReadStorage>, _) = (Arc::new(disk.clone()), Memory::default());
    let open = Auditor::open(Arc::clone(&volume), Arc::new(lost), auditor_key(), settings());
    assert_eq!(open.err().unwrap().code(), "auditor_state_missing");
    let state = Arc::new(audit.state.clone());
    let again = Auditor::create(Arc::clone(&volume), state.clone(), auditor_key(), settings());
    assert_eq!(again.err().unwrap().code(), "auditor_state_exists");
    let other = SigningKey::generate("ledger.example/audit", [3; 32]).unwrap();
    let other = Auditor::open(volume, state, other, settings());
    assert_eq!(other.err().unwrap().code(), "auditor_state_corrupt");
}
