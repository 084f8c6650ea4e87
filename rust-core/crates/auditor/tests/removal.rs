//! Tests of an auditor's reports about logs that were removed, legitimately or not.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first failure")]

mod audit;
#[path = "../../keeping/tests/keep/mod.rs"]
mod keep;

use audit::{Audit, SECOND, auditor_key, remove, settings};
use keep::{Keep, keeping_key, why};
use proofgate_auditor::{Auditor, EntryKind, FindingCode, Settings};
use proofgate_evidence::ReadStorage;
use proofgate_evidence::removal::{TOMBSTONE_FILE, is_removable};
use proofgate_ledger::{SigningKey, Tombstone};
use proofgate_ledger_testkit::{self as testkit, Worker, four_incarnations, log_dir, ulid};
use proofgate_state::memory::MemoryStorage;
use proofgate_wal::Storage;
use proofgate_wal::simulated::SimulatedDisk;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn put(disk: &SimulatedDisk, path: &Path, content: &[u8]) {
    if disk.read(path).is_some() {
        disk.remove(path).unwrap();
    }
    disk.create(path).unwrap();
    disk.corrupt(path, |bytes| *bytes = content.to_vec());
}

fn kinds(audit: &Audit) -> Vec<EntryKind> {
    audit.entries().iter().map(|entry| entry.kind).collect()
}

fn read_all_again(audit: &mut Audit) {
    for _ in 0..12 {
        audit.now += SECOND;
        audit.auditor.poll(audit.now, u64::MAX, u64::MAX).unwrap();
    }
}

#[test]
fn logs_that_are_removed_by_right_are_told_once_and_are_no_finding() {
    let (disk, _workers) = four_incarnations();
    let mut audit = Audit::of(&disk);
    audit.is_quiet();
    let before = audit.entries().len();
    Keep::of(&disk).prune();
    audit.is_quiet();
    read_all_again(&mut audit);
    assert_eq!(audit.auditor.findings(), []);
    let told = &audit.entries()[before..];
    assert_eq!(told.len(), 2, "{told:?}");
    for entry in told {
        assert_eq!(entry.kind, EntryKind::Removed);
        let note = entry.tombstone.as_ref().unwrap();
        let tombstone = Tombstone::verify(note, &keeping_key().verifying_key()).unwrap();
        assert_eq!((&tombstone.origin, tombstone.size), (&entry.origin, entry.size));
    }
    audit.restart();
    audit.is_quiet();
    assert_eq!(audit.poll().removed, 2);
    assert_eq!(audit.entries().len(), before + 2);
}

#[test]
fn a_new_auditor_takes_up_a_shard_of_which_logs_were_removed() {
    let (disk, _workers) = four_incarnations();
    Keep::of(&disk).prune();
    let mut audit = Audit::of(&disk);
    audit.is_quiet();
    read_all_again(&mut audit);
    assert_eq!(audit.auditor.findings(), []);
    let removed = kinds(&audit)
        .iter()
        .filter(|kind| **kind == EntryKind::Removed)
        .count();
    assert_eq!(removed, 2);
}

#[test]
fn what_others_add_to_a_tombstone_and_its_checkpoint_is_not_told() {
    let (disk, _workers) = four_incarnations();
    Keep::of(&disk).prune();
    let told = |disk: &SimulatedDisk| {
        let mut audit = Audit::of(disk);
        audit.is_quiet();
        let removed = audit.entries().into_iter();
        let removed = removed.filter(|entry| entry.kind == EntryKind::Removed);
        removed
            .map(|entry| (entry.checkpoint, entry.tombstone))
            .collect::<Vec<_>>()
    };
    let known = told(&disk);
    assert_eq!(known.len(), 2);
    let kept = |path: &&PathBuf| {
        path.ends_with(TOMBSTONE_FILE) || path.extension().is_some_and(|end| end == "tlog-proof")
    };
    let files = disk.files();
    for path in files.iter().filter(kept) {
        disk.corrupt(path, |bytes| {
            bytes.extend_from_slice("\u{2014} stranger AAAAAAAAAAAA\n".as_bytes())
        });
    }
    assert_eq!(told(&disk), known);
}

#[test]
fn a_removal_while_the_scrub_reads_is_no_finding() {
    let (disk, _workers) = four_incarnations();
    let mut audit = Audit::of(&disk);
    audit.is_quiet();
    // A part of the first log.
    audit.auditor.poll(audit.now + 1, u64::MAX, 2_000).unwrap();
    Keep::of(&disk).prune();
    read_all_again(&mut audit);
    assert_eq!(audit.auditor.findings(), []);
}

#[test]
fn a_removal_that_was_cut_short_is_none_either() {
    let (disk, workers) = four_incarnations();
    let mut audit = Audit::of(&disk);
    audit.is_quiet();
    let segment = log_dir(&workers[0]).join("00000000000000000000.seg");
    let bytes = disk.read(&segment).unwrap();
    Keep::of(&disk).prune();
    put(&disk, &segment, &bytes[..bytes.len() / 2]);
    read_all_again(&mut audit);
    assert_eq!(audit.auditor.findings(), []);
}

fn forged(worker: &Worker, key: &SigningKey) -> Vec<u8> {
    let tombstone = Tombstone {
        origin: format!("{}/3/{}", testkit::LEDGER, ulid(worker)),
        size: worker.durability_model.appended.len() as u64,
        root: testkit::root_of(&worker.durability_model.appended),
        removed_at: 5,
        exchanges: 1,
        newest_time: 2,
        minimum_days: 180,
        justification: why("made up"),
    };
    tombstone.sign(key).unwrap().into_bytes()
}

#[test]
fn a_deletion_under_a_forged_tombstone_is_found_as_both() {
    let (disk, workers) = four_incarnations();
    let mut audit = Audit::of(&disk);
    audit.is_quiet();
    let first = log_dir(&workers[0]);
    for name in disk
        .list(&first)
        .unwrap()
        .iter()
        .filter(|name| is_removable(name))
    {
        disk.remove(&first.join(name)).unwrap();
    }
    let forger = SigningKey::generate("ledger.example/keeping", [99; 32]).unwrap();
    put(&disk, &first.join(TOMBSTONE_FILE), &forged(&workers[0], &forger));
    audit.expect(FindingCode::TombstoneRefused);
    assert!(audit.codes().contains(&FindingCode::Truncated));
}

#[test]
fn a_tombstone_of_another_log_or_over_another_head_is_found() {
    let (disk, workers) = four_incarnations();
    let removed = disk.snapshot();
    Keep::of(&removed).prune();
    let stays = removed.list(&log_dir(&workers[1])).unwrap();
    let mut audit = Audit::of(&disk);
    audit.is_quiet();
    for name in &stays {
        let content = removed.read(&log_dir(&workers[1]).join(name)).unwrap();
        put(&disk, &log_dir(&workers[0]).join(name), &content);
    }
    audit.expect(FindingCode::TombstoneRefused);
}

#[test]
fn a_tombstone_on_a_log_that_goes_on_is_found_and_the_log_is_followed_as_before() {
    let (disk, mut workers) = four_incarnations();
    let mut audit = Audit::of(&disk);
    audit.is_quiet();
    let newest = workers.last_mut().unwrap();
    let path = log_dir(newest).join(TOMBSTONE_FILE);
    put(&disk, &path, &forged(newest, &keeping_key()));
    let size = newest.durability_model.appended.len() as u64;
    audit.expect(FindingCode::TombstoneRefused);
    newest.run_exchange("more");
    audit.watch();
    assert_eq!(audit.auditor.shard_statuses(audit.now)[0].size, size + 2);
}

#[test]
fn what_was_accepted_of_a_removal_stays_and_its_absence_is_found() {
    let (disk, workers) = four_incarnations();
    let mut audit = Audit::of(&disk);
    Keep::of(&disk).prune();
    audit.is_quiet();
    let other = disk.snapshot();
    disk.remove(&log_dir(&workers[0]).join(TOMBSTONE_FILE)).unwrap();
    audit.expect(FindingCode::TombstoneRefused);
    let mut audit = Audit::of(&other);
    audit.is_quiet();
    remove(&other, &log_dir(&workers[0]));
    audit.expect(FindingCode::LogMissing);
}

#[test]
fn without_the_retention_key_a_removal_is_what_any_deletion_is() {
    let (disk, _workers) = four_incarnations();
    let open = |state: &MemoryStorage, create: bool| {
        let settings = Settings {
            retention_key: None,
            ..settings()
        };
        let (disk, state) = (Arc::new(disk.clone()), Arc::new(state.clone()));
        match create {
            true => Auditor::create(disk, state, auditor_key(), settings).unwrap(),
            false => Auditor::open(disk, state, auditor_key(), settings).unwrap(),
        }
    };
    let state = MemoryStorage::default();
    let mut auditor = open(&state, true);
    auditor.poll(SECOND, u64::MAX, 0).unwrap();
    Keep::of(&disk).prune();
    drop(auditor);
    let mut auditor = open(&state, false);
    for second in 2..20 {
        auditor.poll(second * SECOND, u64::MAX, 0).unwrap();
    }
    let codes: Vec<FindingCode> = auditor.findings().iter().map(|found| found.code).collect();
    assert!(
        codes.contains(&FindingCode::Truncated) && codes.contains(&FindingCode::TombstoneRefused),
        "{codes:?}"
    );
}

#[test]
fn a_retention_key_that_is_the_auditors_or_could_speak_for_the_ledger_is_refused() {
    let (disk, _workers) = four_incarnations();
    let keys = [
        auditor_key(),
        SigningKey::generate("ledger.example/demo/keeping", [5; 32]).unwrap(),
        SigningKey::generate("ledger.example", [5; 32]).unwrap(),
        SigningKey::generate("ledger.example/keeping", [7; 32]).unwrap(),
    ];
    for key in keys {
        let settings = Settings {
            retention_key: Some(key.verifying_key()),
            ..settings()
        };
        let made = Auditor::create(
            Arc::new(disk.clone()),
            Arc::new(MemoryStorage::default()),
            auditor_key(),
            settings,
        );
        assert_eq!(
            made.err().map(|error| error.code()),
            Some("auditor_key"),
            "{}",
            key.name()
        );
    }
}
