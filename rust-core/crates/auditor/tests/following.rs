//! Tests of an auditor's reports about healthy logs, and of its start, stop and restart.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first failure"
)]

mod audit;

use audit::{Audit, SECOND, auditor_key, settings, two_lives};
use proofgate_auditor::{Auditor, EntryKind, FindingCode};
use proofgate_evidence::{ReadFile, ReadStorage, checkpoint_file};
use proofgate_ledger::record::{ConfigId, Gap, Seal, Takeover};
use proofgate_ledger::{Checkpoint, SigningKey};
use proofgate_ledger_testkit::{
    self as testkit, Worker, key, log_dir, new_worker, root_of, small_log_options, start_options, ulid, vkey,
    worker_with_records,
};
use proofgate_state::memory::{Fault, MemoryStorage};
use proofgate_wal::simulated::SimulatedDisk;
use proofgate_wal::{Storage, succession};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn a_ledger_as_it_should_be_is_quiet_and_its_heads_are_told() {
    let (disk, first, mut second) = two_lives();
    let mut audit = Audit::of(&disk);
    audit.is_quiet();
    let (old, new) = (
        first.durability_model.appended.len() as u64,
        second.durability_model.appended.len() as u64,
    );
    let told = audit.told();
    assert!(
        told.contains(&(EntryKind::End, old)),
        "with what the successor signed: {told:?}"
    );
    assert!(told.contains(&(EntryKind::Open, new)), "{told:?}");
    for entry in audit.entries() {
        let signed = Checkpoint::verify(&entry.checkpoint, &vkey()).unwrap();
        assert_eq!((&signed.origin, signed.size), (&entry.origin, entry.size));
    }
    second.run_exchange("more");
    second.run_exchange("and more");
    audit.is_quiet();
    assert_eq!(audit.told().last(), Some(&(EntryKind::Head, new + 4)));
    let before = audit.told().len();
    audit.is_quiet();
    assert_eq!(audit.told().len(), before, "nothing moved");
    second.seal().unwrap();
    audit.poll();
    assert_eq!(
        audit.told().last(),
        Some(&(EntryKind::End, new + 5)),
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
        behind = audit.auditor.poll(audit.now, 2_000, 500).unwrap().unread_records;
        polls += 1;
    }
    assert!(polls > 5, "{polls}");
    audit.is_quiet();
    assert_eq!(
        audit.auditor.shard_statuses(audit.now)[0].size,
        second.durability_model.appended.len() as u64
    );
}

/// Continues a log in another log, and returns the other log.
fn rotate(disk: &SimulatedDisk, old: &mut Worker) -> Worker {
    let signed = Checkpoint::verify(old.durability_model.notes.last().unwrap(), &vkey()).unwrap();
    let (storage, key): (Arc<dyn Storage>, _) = (Arc::new(disk.clone()), key());
    let made = succession::start_successor(
        &storage,
        &start_options(&key, small_log_options()),
        ulid(old),
        &signed,
    )
    .unwrap();
    let next = made.incarnation.to_string();
    let mut new = Worker::from_log(disk, made);
    old.seal_with_successor(Some(&next)).unwrap();
    old.step().unwrap();
    old.sync().unwrap();
    old.checkpoint().unwrap();
    let (size, root) = (
        old.durability_model.appended.len() as u64,
        root_of(&old.durability_model.appended),
    );
    let takeover = |seq| Takeover {
        seq,
        ts: 1,
        incarnation: ulid(old).to_string().into(),
        size,
        root,
        config: ConfigId([1; 8]),
    };
    new.append(|seq, out| takeover(seq).encode_into(out)).unwrap();
    new.run_exchange("in the new one");
    new
}

#[test]
fn a_log_that_goes_on_in_another_is_quiet_before_and_after_it_is_told() {
    let (disk, mut old) = worker_with_records();
    let mut audit = Audit::of(&disk);
    audit.is_quiet();
    let signed = Checkpoint::verify(old.durability_model.notes.last().unwrap(), &vkey()).unwrap();
    let (storage, key): (Arc<dyn Storage>, _) = (Arc::new(disk.clone()), key());
    let made = succession::start_successor(
        &storage,
        &start_options(&key, small_log_options()),
        ulid(&old),
        &signed,
    )
    .unwrap();
    let next = made.incarnation;
    let mut new = Worker::from_log(&disk, made);
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
        old.durability_model.appended.len() as u64,
        root_of(&old.durability_model.appended),
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
    new.run_exchange("in the new one");
    audit.is_quiet();
    let kinds: Vec<EntryKind> = audit.told().iter().map(|(kind, _)| *kind).collect();
    assert_eq!(
        kinds,
        [EntryKind::Open, EntryKind::Open, EntryKind::End, EntryKind::Head]
    );
}

#[test]
fn what_looks_wrong_for_a_moment_is_no_finding() {
    let (disk, mut worker) = worker_with_records();
    let mut audit = Audit::of(&disk);
    audit.is_quiet();
    let stale = disk.snapshot();
    worker.run_exchange("more");
    audit.is_quiet();
    audit.volume.swap(&stale);
    assert!(audit.poll().suspicious);
    audit.volume.swap(&disk);
    audit.is_quiet();
    assert!(!audit.poll().suspicious);
}

#[test]
fn a_log_that_was_seen_before_it_was_signed_is_accepted_as_soon_as_it_is() {
    let (disk, mut worker) = new_worker();
    let path = log_dir(&worker).join("checkpoint");
    let note = disk.read(&path).unwrap();
    disk.remove(&path).unwrap();
    let mut audit = Audit::of(&disk);
    assert!(
        !audit.poll().suspicious,
        "a start that was cut short looks the same"
    );
    disk.create(&path).unwrap();
    disk.corrupt(&path, |bytes| *bytes = note);
    audit.poll();
    worker.run_exchange("more");
    audit.poll();
    assert_eq!(audit.auditor.shard_statuses(audit.now)[0].size, 3);
    audit.is_quiet();
}

#[test]
fn records_that_wait_for_a_checkpoint_are_a_stall_which_passes() {
    let (disk, mut worker) = worker_with_records();
    let mut audit = Audit::of(&disk);
    audit.is_quiet();
    let admission = worker.admit("waits", 1).unwrap();
    worker.flush().unwrap();
    for _ in 0..4 {
        audit.watch();
    }
    assert_eq!(audit.codes(), [FindingCode::Stalled]);
    worker.complete("waits", admission).unwrap();
    worker.flush().unwrap();
    worker.step().unwrap();
    worker.sync().unwrap();
    worker.checkpoint().unwrap();
    audit.is_quiet();
}

#[test]
fn a_clock_that_is_set_back_holds_up_neither_heads_nor_findings() {
    const DAY: u64 = 86_400 * SECOND;
    for back in [SECOND, 3600 * SECOND, DAY, 31 * DAY, 365 * DAY, 3650 * DAY] {
        let (disk, mut worker) = worker_with_records();
        let mut audit = Audit::of(&disk);
        audit.now += 20_000 * DAY;
        audit.is_quiet();
        let told = audit.told().len();
        worker.run_exchange("more");
        audit.now -= back;
        for _ in 0..4 {
            audit.watch();
        }
        assert!(audit.told().len() > told, "no head is told behind {back}");
        audit.restart();
        audit.watch();
        let later = audit.auditor.logs_accepted_since(audit.now + 1).count();
        assert_eq!(later, 0, "what is known is new for ever behind {back}");
        let admission = worker.admit("waits", 1).unwrap();
        worker.flush().unwrap();
        audit.watch();
        audit.now -= back;
        for _ in 0..5 {
            audit.watch();
        }
        assert_eq!(audit.codes(), [FindingCode::Stalled]);
        worker.complete("waits", admission).unwrap();
        worker.flush().unwrap();
        worker.step().unwrap();
        worker.sync().unwrap();
        worker.checkpoint().unwrap();
        audit.is_quiet();
    }
}

#[test]
fn a_step_of_a_workers_clock_is_found_for_as_long_as_its_log_goes_on() {
    let step = |worker: &mut Worker, id: &str, from: u64, to: u64| {
        let gap = |seq| Gap {
            seq,
            ts: to,
            first_ts: from,
            last_ts: to,
            count: 0,
            reason: "clock_step".into(),
            code: "clock_step".into(),
            tenant: None,
            config: ConfigId([1; 8]),
        };
        worker.append(|seq, out| gap(seq).encode_into(out)).unwrap();
        worker.run_exchange(id);
    };
    let (disk, mut worker) = worker_with_records();
    let mut audit = Audit::of(&disk);
    audit.is_quiet();
    step(&mut worker, "kept", 90 * SECOND, 89 * SECOND);
    audit.is_quiet();
    step(&mut worker, "ahead", 60 * SECOND, 86_460 * SECOND);
    step(&mut worker, "back", 7_200 * SECOND, 0);
    for _ in 0..3 {
        audit.watch();
    }
    assert_eq!(audit.codes(), [FindingCode::ClockStep]);
    let found = audit.auditor.findings()[0].message.clone();
    assert!(
        found.contains("was set ahead by 86400 seconds"),
        "the largest is told: {found}"
    );
    let mut next = rotate(&disk, &mut worker);
    for _ in 0..3 {
        audit.watch();
    }
    assert_eq!(
        audit.codes(),
        [FindingCode::ClockStep],
        "the log behind it goes on"
    );
    next.seal().unwrap();
    audit.is_quiet();
}

#[test]
fn an_auditor_that_is_killed_at_any_write_tells_every_head_once() {
    for write in 0..40 {
        for fault in [Fault::BeforeWrite, Fault::AfterWrite] {
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
                first.durability_model.appended.len() as u64,
                second.durability_model.appended.len() as u64,
            );
            for end in [(EntryKind::End, old), (EntryKind::End, new)] {
                let told = audit.told().into_iter().filter(|told| *told == end).count();
                assert_eq!(told, 1, "write {write}, {fault:?}: {:?}", audit.told());
            }
        }
    }
}

/// A disk that can become unavailable to its reader.
#[derive(Clone)]
struct Unmounted(SimulatedDisk, Arc<AtomicBool>);

impl ReadStorage for Unmounted {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        self.0.open(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        match self.1.load(Ordering::Relaxed) {
            true => Err(io::Error::other("stale file handle")),
            false => self.0.list(path),
        }
    }
}

#[test]
fn a_ledger_that_cannot_be_listed_is_found_for_as_long_as_it_cannot() {
    let (disk, _worker) = worker_with_records();
    let gone = Arc::new(AtomicBool::new(false));
    let volume = Arc::new(Unmounted(disk, Arc::clone(&gone)));
    let mut auditor = Auditor::create(
        volume,
        Arc::new(MemoryStorage::default()),
        auditor_key(),
        settings(),
    )
    .unwrap();
    let mut now = 1_000 * SECOND;
    for (away, found) in [(false, 0), (true, 1), (false, 0)] {
        gone.store(away, Ordering::Relaxed);
        for _ in 0..8 {
            now += SECOND;
            auditor.poll(now, u64::MAX, 0).unwrap();
        }
        let codes: Vec<FindingCode> = auditor.findings().iter().map(|found| found.code).collect();
        assert_eq!(codes, vec![FindingCode::Unreadable; found]);
    }
}

#[test]
fn a_key_that_could_speak_for_the_ledger_is_no_auditors() {
    let (disk, _worker) = worker_with_records();
    let refused = |name: &str, seed: u8| {
        let key = SigningKey::generate(name, [seed; 32]).unwrap();
        let made = Auditor::create(
            Arc::new(disk.clone()),
            Arc::new(MemoryStorage::default()),
            key,
            settings(),
        );
        made.err().map(|error| error.code())
    };
    for (name, seed) in [
        (testkit::LEDGER, 9),
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
    let (disk, _worker) = worker_with_records();
    let audit = Audit::of(&disk);
    let (volume, lost): (Arc<dyn ReadStorage>, _) = (Arc::new(disk.clone()), MemoryStorage::default());
    let open = Auditor::open(Arc::clone(&volume), Arc::new(lost), auditor_key(), settings());
    assert_eq!(open.err().unwrap().code(), "auditor_state_missing");
    let state = Arc::new(audit.state.clone());
    let again = Auditor::create(Arc::clone(&volume), state.clone(), auditor_key(), settings());
    assert_eq!(again.err().unwrap().code(), "auditor_state_exists");
    let other = SigningKey::generate("ledger.example/audit", [3; 32]).unwrap();
    let other = Auditor::open(volume, state, other, settings());
    assert_eq!(other.err().unwrap().code(), "auditor_state_corrupt");
}

#[test]
fn a_checkpoint_that_is_kept_takes_no_more_room_than_it_has() {
    let (disk, worker) = worker_with_records();
    let note = checkpoint_file::read(&disk, &log_dir(&worker)).unwrap().unwrap();
    assert!(
        note.capacity() < 4 << 10,
        "{} bytes for {}",
        note.capacity(),
        note.len()
    );
}

#[test]
fn a_state_that_does_not_contain_what_is_held_of_it_is_not_gone_on_with() {
    let resume = |state: &MemoryStorage, key: SigningKey, held: Option<&str>| {
        let volume = Arc::new(two_lives().0);
        Auditor::resume(volume, Arc::new(state.clone()), key, settings(), held)
    };
    let code = |state: &MemoryStorage, held: &str| {
        let opened = resume(state, auditor_key(), Some(held));
        opened.err().map(|error| error.code())
    };
    // Without a held checkpoint, an empty state is initialized, and later continued.
    let state = MemoryStorage::default();
    let mut auditor = resume(&state, auditor_key(), None).unwrap();
    let beginning = auditor.published_log().checkpoint().unwrap().1;
    let early = state.copy();
    auditor.poll(1_000 * SECOND, u64::MAX, 0).unwrap();
    let (size, held) = auditor.published_log().checkpoint().unwrap();
    assert!(size > 0);
    let goes_on = resume(&state, auditor_key(), None).unwrap();
    assert_eq!(goes_on.published_log().checkpoint().unwrap().0, size);
    for contained in [&beginning, &held] {
        assert_eq!(code(&state, contained), None);
        assert_eq!(
            code(&MemoryStorage::default(), contained),
            Some("auditor_state_lost")
        );
    }
    assert_eq!(code(&early, &held), Some("auditor_state_set_back"));
    // The aggregate log was restarted under the same name, with the same size but other entries.
    let anew = MemoryStorage::default();
    let mut auditor = resume(&anew, auditor_key(), None).unwrap();
    auditor.poll(3_000 * SECOND, u64::MAX, 0).unwrap();
    assert_eq!(auditor.published_log().checkpoint().unwrap().0, size);
    assert_eq!(code(&anew, &held), Some("auditor_state_set_back"));
    let others = held.replace("ledger.example/audit", "ledger.example/other");
    for strange in ["", "no note", others.as_str()] {
        assert_eq!(code(&state, strange), Some("auditor_held_refused"), "{strange}");
    }
    let replaced = SigningKey::generate("ledger.example/audit", [3; 32]).unwrap();
    let refused = resume(&MemoryStorage::default(), replaced, Some(&held));
    assert_eq!(refused.err().unwrap().code(), "auditor_held_refused");
}
