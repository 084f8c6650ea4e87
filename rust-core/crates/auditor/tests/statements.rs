//! Tests of an auditor's reports about the retention job's statements. Each statement is an entry
//! of the aggregate log, and an impossible time is a finding.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first failure")]

mod audit;
#[path = "../../keeping/tests/keep/mod.rs"]
mod keep;

use audit::{Audit, SECOND, settings};
use keep::{Keep, NOW, keeping_key, why};
use proofgate_auditor::{
    Auditor, Entry, EntryKind, FindingCode, STATEMENT_TOLERANCE, Settings, StatementKind,
};
use proofgate_evidence::erasures::ERASURES_FILE;
use proofgate_evidence::hold_statements::{HOLD_STATEMENTS_DIR, file_name};
use proofgate_evidence::key_destructions::KEY_DESTRUCTIONS_DIR;
use proofgate_evidence::note_files::digest;
use proofgate_keeping::{ErasureRequest, ErasureTarget, HoldScope, erase, write_hold_statements};
use proofgate_ledger::{Erasure, HoldChange, HoldStatement, KeyDestruction, ShredKeyId};
use proofgate_ledger_testkit::{LEDGER, Worker, four_incarnations, log_dir, vkey};
use proofgate_wal::Storage;
use proofgate_wal::simulated::SimulatedDisk;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn put(disk: &SimulatedDisk, path: &Path, text: &str) {
    if disk.read(path).is_some() {
        disk.remove(path).unwrap();
    }
    if let Some(folder) = path.parent() {
        let _ = disk.create_dir(folder);
    }
    disk.create(path).unwrap();
    disk.corrupt(path, |bytes| *bytes = text.as_bytes().to_vec());
}

fn text(disk: &SimulatedDisk, path: &Path) -> String {
    String::from_utf8(disk.read(path).unwrap()).unwrap()
}

fn erase_one(keep: &Keep, id: &str) {
    let what = ErasureTarget::Exchange(id.to_owned());
    let request = ErasureRequest {
        ledger: Path::new("/"),
        key: &vkey(),
        retention: &keep.retention,
        target: &what,
        policy: None,
        justification: &why("asked for"),
        now: keep.now,
        started_at: None,
    };
    erase(&keep.disk, &request, &keeping_key()).unwrap();
}

fn told(audit: &Audit) -> Vec<Entry> {
    let entries = audit.entries().into_iter();
    entries
        .filter(|entry| entry.kind == EntryKind::Statement)
        .collect()
}

fn erasures(worker: &Worker) -> PathBuf {
    log_dir(worker).join(ERASURES_FILE)
}

/// Returns the erasure of a log, signed again with another time.
fn dated(disk: &SimulatedDisk, worker: &Worker, time: u64) -> String {
    let signed = Erasure::verify(&text(disk, &erasures(worker)), &keeping_key().verifying_key()).unwrap();
    Erasure { time, ..signed }.sign(&keeping_key()).unwrap()
}

fn destruction(time: u64) -> String {
    let destruction = KeyDestruction {
        ledger: LEDGER.to_owned(),
        key: ShredKeyId([7; 8]),
        tenant: "acme".to_owned(),
        time,
        exchanges: 3,
        justification: why("the contract ended"),
    };
    destruction.sign(&keeping_key()).unwrap()
}

fn place(disk: &SimulatedDisk, folder: &str, note: &str) -> PathBuf {
    let path = Path::new("/").join(folder).join(file_name(note));
    put(disk, &path, note);
    path
}

#[test]
fn erasures_holds_releases_and_destroyed_keys_are_told_once_each_by_their_digest() {
    let (disk, workers) = four_incarnations();
    let mut audit = Audit::of(&disk);
    audit.is_quiet();
    let mut keep = Keep::of(&disk);
    let scope = HoldScope {
        tenant: Some("somebody else".to_owned()),
        ..HoldScope::default()
    };
    let id = keep.hold(scope);
    erase_one(&keep, "second");
    keep.retention.release_hold(id, &why("closed"), NOW).unwrap();
    let (path, key) = (Path::new("/"), vkey());
    write_hold_statements(&disk, path, &key, &keep.retention, &keeping_key(), NOW).unwrap();
    place(&disk, KEY_DESTRUCTIONS_DIR, &destruction(NOW));
    audit.is_quiet();
    let entries = told(&audit);
    let kinds: Vec<_> = entries
        .iter()
        .map(|entry| entry.statement.as_ref().unwrap().kind)
        .collect();
    assert_eq!(entries.len(), 4, "{entries:#?}");
    for kind in [
        StatementKind::Hold,
        StatementKind::Release,
        StatementKind::Erasure,
        StatementKind::KeyDestruction,
    ] {
        assert!(kinds.contains(&kind), "{kinds:?}");
    }
    let erasure = entries.iter().find(|entry| entry.size > 0).unwrap();
    let statement = erasure.statement.as_ref().unwrap();
    assert!(erasure.checkpoint.is_empty() && erasure.origin.starts_with(LEDGER));
    assert_eq!(statement.sha256, digest(&text(&disk, &erasures(&workers[1]))));
    assert_eq!((statement.signed, statement.admission), (NOW, Some(2)));
    for _ in 0..2 {
        audit.restart();
        audit.is_quiet();
        assert_eq!(told(&audit).len(), 4);
    }
    // A further statement is reported after it.
    erase_one(&keep, "third");
    audit.is_quiet();
    assert_eq!(told(&audit).len(), 5);
}

#[test]
fn statements_are_told_once_whatever_write_of_the_state_fails() {
    for write in 0..24 {
        let (disk, _workers) = four_incarnations();
        let mut audit = Audit::of(&disk);
        audit.is_quiet();
        let keep = Keep::of(&disk);
        erase_one(&keep, "second");
        place(&disk, KEY_DESTRUCTIONS_DIR, &destruction(NOW));
        audit
            .state
            .fail_from(write, proofgate_state::memory::Fault::AfterWrite);
        for _ in 0..3 {
            audit.now += SECOND;
            let _ = audit.auditor.poll(audit.now, u64::MAX, 0);
        }
        audit.state.heal();
        audit.restart();
        audit.is_quiet();
        audit.restart();
        audit.is_quiet();
        assert_eq!(told(&audit).len(), 2, "write {write}");
    }
}

#[test]
fn an_erasure_that_is_dated_before_its_exchange_is_found_at_the_first_look() {
    let (disk, workers) = four_incarnations();
    erase_one(&Keep::of(&disk), "second");
    put(&disk, &erasures(&workers[1]), &dated(&disk, &workers[1], 0));
    let mut audit = Audit::of(&disk);
    audit.expect(FindingCode::StatementBackdated);
    assert_eq!(told(&audit).len(), 1);
}

#[test]
fn an_erasure_that_was_not_there_at_the_time_that_it_gives_is_found() {
    for (back, found) in [(STATEMENT_TOLERANCE / 2, false), (2 * STATEMENT_TOLERANCE, true)] {
        let (disk, workers) = four_incarnations();
        let mut audit = Audit::of(&disk);
        audit.is_quiet();
        audit.restart();
        erase_one(&Keep::of(&disk), "second");
        put(
            &disk,
            &erasures(&workers[1]),
            &dated(&disk, &workers[1], NOW - back),
        );
        audit.watch();
        assert_eq!(
            audit.codes() == [FindingCode::StatementBackdated],
            found,
            "{:?}",
            audit.codes()
        );
    }
}

#[test]
fn a_destruction_and_a_release_that_were_not_there_at_the_time_that_they_give_are_found() {
    let release = |stated| {
        let statement = HoldStatement {
            ledger: LEDGER.to_owned(),
            hold: 1,
            placed_at: 5,
            change: HoldChange::Released { at: 6 },
            signed_at: stated,
            justification: why("closed"),
        };
        statement.sign(&keeping_key()).unwrap()
    };
    let early = NOW - 2 * STATEMENT_TOLERANCE;
    let attacks = [
        (
            KEY_DESTRUCTIONS_DIR,
            destruction(early),
            Some(FindingCode::StatementBackdated),
        ),
        (
            HOLD_STATEMENTS_DIR,
            release(early),
            Some(FindingCode::StatementBackdated),
        ),
        (
            HOLD_STATEMENTS_DIR,
            release(5),
            Some(FindingCode::StatementBackdated),
        ),
        // The hold's time in the statement is too early, but the time of signing is valid.
        (HOLD_STATEMENTS_DIR, release(NOW), None),
        (
            KEY_DESTRUCTIONS_DIR,
            destruction(NOW + 2 * STATEMENT_TOLERANCE),
            Some(FindingCode::StatementPostdated),
        ),
    ];
    for (folder, note, code) in attacks {
        let (disk, _workers) = four_incarnations();
        let mut audit = Audit::of(&disk);
        audit.is_quiet();
        place(&disk, folder, &note);
        audit.watch();
        assert_eq!(audit.codes(), Vec::from_iter(code), "{note}");
    }
}

#[test]
fn a_tombstone_that_was_not_there_at_the_time_that_it_gives_is_found() {
    let (disk, _workers) = four_incarnations();
    let mut audit = Audit::of(&disk);
    audit.is_quiet();
    let mut keep = Keep::of(&disk);
    keep.now = NOW - 2 * STATEMENT_TOLERANCE;
    keep.prune();
    audit.expect(FindingCode::StatementBackdated);
}

#[test]
fn statements_of_another_key_are_refused_and_such_as_go_again_are_missed() {
    let (disk, workers) = four_incarnations();
    let keep = Keep::of(&disk);
    let mut audit = Audit::of(&disk);
    audit.is_quiet();
    put(
        &disk,
        &Path::new("/").join(KEY_DESTRUCTIONS_DIR).join("0.note"),
        "anything",
    );
    audit.expect(FindingCode::StatementRefused);

    let mut audit = Audit::of(&disk);
    audit.watch();
    erase_one(&keep, "second");
    let note = destruction(NOW);
    let path = place(&disk, KEY_DESTRUCTIONS_DIR, &note);
    audit.watch();
    assert_eq!(told(&audit).len(), 2, "what is refused hides no other");
    disk.remove(&path).unwrap();
    audit.expect(FindingCode::StatementMissing);
    disk.remove(&erasures(&workers[1])).unwrap();
    audit.watch();
    let missing = |found: &&proofgate_auditor::Finding| found.code == FindingCode::StatementMissing;
    assert_eq!(audit.auditor.findings().iter().filter(missing).count(), 2);
}

#[test]
fn without_the_retention_key_nothing_is_told() {
    let (disk, _workers) = four_incarnations();
    erase_one(&Keep::of(&disk), "second");
    let mut audit = Audit::of(&disk);
    let settings = Settings {
        retention_key: None,
        ..settings()
    };
    audit.auditor = Auditor::open(
        Arc::new(audit.volume.clone()),
        Arc::new(audit.state.clone()),
        audit::auditor_key(),
        settings,
    )
    .unwrap();
    audit.is_quiet();
    assert_eq!(told(&audit).len(), 0);
}
