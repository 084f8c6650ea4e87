//! Tests that compare a log with checkpoints and bodies that were stored outside the volume.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first failure"
)]

use proofgate_evidence::{EvidenceError, prove, prove_consistency, prove_consistency_from_size, read_notes};
use proofgate_ledger::{Checkpoint, LedgerError, TlogProof};
use proofgate_ledger_testkit::{vkey, worker_with_records};
use proofgate_wal::Storage;
use std::path::Path;

fn checkpoints(notes: &[String]) -> Vec<Checkpoint> {
    let kept = read_notes(Path::new("kept"), &notes.concat(), Some(&vkey())).unwrap();
    kept.into_iter().map(|one| one.checkpoint).collect()
}

#[test]
fn checkpoints_that_were_kept_are_one_history_also_without_the_tree_file() {
    let (disk, mut worker) = worker_with_records();
    worker.run_exchange("late");
    let kept = checkpoints(&worker.durability_model.notes);
    let [first, .., last] = &kept[..] else { panic!() };
    let hashes = prove_consistency(&disk, Path::new("/"), first, last).unwrap();
    assert!(!hashes.is_empty());
    let from = prove_consistency_from_size(&disk, Path::new("/"), first.size, last).unwrap();
    assert_eq!(from, hashes, "out of the tree");
    disk.remove(&worker.durability_model.dir.join("tree")).unwrap();
    assert_eq!(
        prove_consistency(&disk, Path::new("/"), first, last).unwrap(),
        hashes
    );
    assert!(
        prove_consistency(&disk, Path::new("/"), last, last)
            .unwrap()
            .is_empty()
    );
    let from = |size| prove_consistency_from_size(&disk, Path::new("/"), size, last);
    assert_eq!(from(first.size).unwrap(), hashes, "out of the records");
    assert_eq!(from(0).unwrap_err().code(), "ledger_refused");
    assert_eq!(from(last.size + 1).unwrap_err().code(), "ledger_refused");
}

#[test]
fn checkpoints_that_are_not_one_history_are_told_apart() {
    let (disk, worker) = worker_with_records();
    let kept = checkpoints(&worker.durability_model.notes);
    let [first, .., last] = &kept[..] else { panic!() };
    let told = |old: &Checkpoint, new: &Checkpoint| {
        let told = prove_consistency(&disk, Path::new("/"), old, new).unwrap_err();
        (told.code(), told.to_string())
    };
    let forked = Checkpoint {
        root: [7; 32],
        ..first.clone()
    };
    let (code, message) = told(&forked, last);
    assert_eq!(code, "inconsistent");
    assert!(message.contains("is not a prefix of the same log"), "{message}");
    assert!(told(&forked, first).1.contains("two roots"));
    let ahead = Checkpoint {
        size: last.size + 5,
        ..last.clone()
    };
    assert!(told(first, &ahead).1.contains("the ledger has 81 records"));
    let other = Checkpoint {
        origin: "ledger.example/demo/4/01ARZ3NDEKTSV4RRFFQ69G5FAV".to_owned(),
        ..last.clone()
    };
    assert!(told(&other, last).1.contains("two logs"));
    assert_eq!(told(&other, &other).0, "not_a_log");
    assert_eq!(told(last, first).0, "ledger_refused");
}

#[test]
fn a_note_that_is_refused_is_told_by_its_number() {
    let (_disk, worker) = worker_with_records();
    let note = worker.durability_model.notes.last().unwrap();
    for (text, number) in [
        (String::new(), 1),
        (format!("{note}not a note\n"), 2),
        (format!("{note}\n{}", note.replacen('8', "9", 1)), 2),
        (format!("{}{note}", note.replace("demo", "emo")), 1),
    ] {
        match read_notes(Path::new("kept"), &text, Some(&vkey())) {
            Err(EvidenceError::InvalidNote { number: told, .. }) => assert_eq!(told, number, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn the_body_of_a_request_is_revealed_with_a_proof_and_no_volume() {
    let (disk, worker) = worker_with_records();
    let dir = &worker.durability_model.dir;
    let record = &worker.durability_model.appended[1];
    let text = prove::record_proof(&disk, dir, 1, Some(&vkey()))
        .unwrap()
        .encode();
    let proof = TlogProof::parse(&text).unwrap();
    assert_eq!(proof.reveal(record, &vkey(), b"hello").unwrap(), "request");
    assert_eq!(
        proof.reveal(record, &vkey(), b"hellO"),
        Err(LedgerError::CommitmentMismatch("request"))
    );
    let without = TlogProof {
        extra: None,
        ..proof.clone()
    };
    assert_eq!(
        without.reveal(record, &vkey(), b"hello"),
        Err(LedgerError::NoSalt)
    );

    let open = prove::record_proof(&disk, dir, 0, Some(&vkey())).unwrap();
    assert_eq!(open.salt(), None);
    // A proof never includes an erased salt, but it is still valid.
    disk.corrupt(&dir.join("salts"), |bytes| bytes[32..64].fill(0));
    let erased = prove::record_proof(&disk, dir, 1, Some(&vkey())).unwrap();
    assert_eq!(erased.salt(), None);
    erased.verify(record, &vkey()).unwrap();
}
