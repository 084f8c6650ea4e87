//! Tombstones forged by someone who can write to the volume.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first failure")]

mod keep;

use keep::{Keep, check, found, keeping_key, why};
use proofgate_evidence::removal::{TOMBSTONE_FILE, proof_name, record_name};
use proofgate_evidence::{ReadStorage, Verdict};
use proofgate_ledger::{SigningKey, Tombstone};
use proofgate_ledger_testkit::{self as testkit, LEDGER, Worker, four_incarnations, log_dir, ulid};
use proofgate_wal::Storage;
use proofgate_wal::simulated::SimulatedDisk;
use std::path::Path;

fn put(disk: &SimulatedDisk, path: &Path, content: &[u8]) {
    if disk.read(path).is_some() {
        disk.remove(path).unwrap();
    }
    disk.create(path).unwrap();
    disk.corrupt(path, |bytes| *bytes = content.to_vec());
}

fn has(disk: &SimulatedDisk, code: &str, verdict: Verdict) {
    let report = check(disk);
    let logs = report.incarnations.iter().flat_map(|log| &log.findings);
    assert!(
        logs.clone()
            .any(|found| found.code == Some(code) && found.verdict == verdict),
        "{:#?}",
        found(&report)
    );
}

fn tombstone(worker: &Worker) -> Tombstone {
    Tombstone {
        origin: format!("{LEDGER}/3/{}", ulid(worker)),
        size: worker.durability_model.appended.len() as u64,
        root: testkit::root_of(&worker.durability_model.appended),
        removed_at: 5,
        exchanges: 1,
        newest_time: 2,
        minimum_days: 180,
        justification: why("made up"),
    }
}

fn remove_records(disk: &SimulatedDisk, worker: &Worker) {
    for name in disk.list(&log_dir(worker)).unwrap() {
        if proofgate_evidence::removal::is_removable(&name) {
            disk.remove(&log_dir(worker).join(name)).unwrap();
        }
    }
}

#[test]
fn a_tombstone_by_another_key_is_refused_whatever_name_that_has() {
    let (disk, workers) = four_incarnations();
    Keep::of(&disk).prune();
    for name in ["ledger.example/other", "ledger.example/keeping"] {
        let forger = SigningKey::generate(name, [99; 32]).unwrap();
        let disk = disk.snapshot();
        let note = tombstone(&workers[0]).sign(&forger).unwrap();
        put(&disk, &log_dir(&workers[0]).join(TOMBSTONE_FILE), note.as_bytes());
        has(&disk, "tombstone_refused", Verdict::Invalid);
    }
}

#[test]
fn a_deleted_log_under_a_forged_tombstone_is_found_and_is_as_if_it_had_none() {
    let (disk, workers) = four_incarnations();
    remove_records(&disk, &workers[0]);
    let forger = SigningKey::generate("ledger.example/keeping", [99; 32]).unwrap();
    let note = tombstone(&workers[0]).sign(&forger).unwrap();
    put(&disk, &log_dir(&workers[0]).join(TOMBSTONE_FILE), note.as_bytes());
    has(&disk, "tombstone_refused", Verdict::Invalid);
    let report = check(&disk);
    assert!(
        found(&report)
            .iter()
            .any(|(_, message)| message.contains("only 0 are present")),
        "{report:#?}"
    );
}

#[test]
fn the_tombstone_of_another_log_is_refused() {
    let (disk, workers) = four_incarnations();
    Keep::of(&disk).prune();
    let other = disk.read(&log_dir(&workers[1]).join(TOMBSTONE_FILE)).unwrap();
    put(&disk, &log_dir(&workers[0]).join(TOMBSTONE_FILE), &other);
    has(&disk, "tombstone_refused", Verdict::Invalid);
    // The same with everything that belongs to it.
    let (disk, workers) = four_incarnations();
    Keep::of(&disk).prune();
    for name in disk.list(&log_dir(&workers[1])).unwrap() {
        let content = disk.read(&log_dir(&workers[1]).join(&name)).unwrap();
        put(&disk, &log_dir(&workers[0]).join(&name), &content);
    }
    has(&disk, "tombstone_refused", Verdict::Invalid);
}

#[test]
fn a_tombstone_on_a_log_that_nobody_recorded_the_end_of_is_refused() {
    let (disk, workers) = four_incarnations();
    let newest = workers.last().unwrap();
    let keep = Keep::of(&disk);
    // The retention job itself refuses to do this, so the retained files are written by hand.
    let proof = proofgate_evidence::prove::record_proof(&disk, &log_dir(newest), 0, None).unwrap();
    let record = proofgate_evidence::read_record(&disk, &log_dir(newest), 0).unwrap();
    put(&disk, &log_dir(newest).join(record_name(0)), &record);
    put(
        &disk,
        &log_dir(newest).join(proof_name(0)),
        proof.encode().as_bytes(),
    );
    let note = tombstone(newest).sign(&keeping_key()).unwrap();
    put(&disk, &log_dir(newest).join(TOMBSTONE_FILE), note.as_bytes());
    has(&disk, "tombstone_refused", Verdict::Diverged);
    assert_eq!(keep.prune()[3], "newest", "and nothing of it goes");
}

#[test]
fn records_that_are_still_there_are_no_evidence_and_are_told() {
    let (disk, workers) = four_incarnations();
    let segment = log_dir(&workers[0]).join("00000000000000000000.seg");
    let mut bytes = disk.read(&segment).unwrap();
    Keep::of(&disk).prune();
    bytes[600] ^= 1;
    put(&disk, &segment, &bytes);
    has(&disk, "removal_unfinished", Verdict::Incomplete);
    assert_eq!(check(&disk).verdict, Verdict::Incomplete);
}

#[test]
fn what_somebody_put_where_records_are_to_stay_goes_before() {
    let (disk, workers) = four_incarnations();
    for name in [record_name(5), proof_name(5), record_name(0)] {
        put(&disk, &log_dir(&workers[0]).join(name), b"planted");
    }
    assert_eq!(Keep::of(&disk).prune()[0], "remove");
    assert_eq!(check(&disk).verdict, Verdict::Ok, "{:#?}", found(&check(&disk)));
}

#[test]
fn a_change_of_anything_that_stays_is_found() {
    let (disk, workers) = four_incarnations();
    Keep::of(&disk).prune();
    let stays = disk.list(&log_dir(&workers[0])).unwrap();
    assert!(stays.len() >= 4, "{stays:?}");
    for name in stays {
        let path = log_dir(&workers[0]).join(&name);
        let length = disk.read(&path).unwrap().len();
        for at in (0..length).step_by(13) {
            let disk = disk.snapshot();
            disk.corrupt(&path, |bytes| bytes[at] ^= 1);
            assert_ne!(check(&disk).verdict, Verdict::Ok, "{name}, byte {at}");
        }
        // The log's own checkpoint is also contained in what its successor signed.
        if name != "checkpoint" && !name.ends_with(".consistency") {
            let disk = disk.snapshot();
            disk.remove(&path).unwrap();
            assert_ne!(check(&disk).verdict, Verdict::Ok, "without {name}");
        }
    }
}
