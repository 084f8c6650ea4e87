//! Tests of request bodies that were still arriving at admission: the completion must state and
//! commit to the received part.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first failure"
)]

use proofgate_evidence::{Verdict, fsck, prove};
use proofgate_ledger::LedgerError;
use proofgate_ledger::commitment::commit;
use proofgate_ledger::record::{PendingBody, ReceivedBody};
use proofgate_ledger_testkit::{new_worker, vkey};
use std::path::Path;

const COMING: PendingBody = PendingBody { declared: Some(11) };

fn received(salt: &[u8; 32]) -> ReceivedBody {
    ReceivedBody {
        bytes: 11,
        request: commit(salt, "received", b"hello world"),
        whole: true,
    }
}

#[test]
fn what_was_admitted_of_a_body_and_what_arrived_of_it_are_both_revealed() {
    let (disk, mut worker) = new_worker();
    let salt = worker.writer.salt(1).unwrap();
    let admission = worker.admit_with_pending_body("upload", 1, Some(COMING)).unwrap();
    worker
        .complete_with_received_body(None, "upload", admission, Some(received(&salt)))
        .unwrap();
    worker.seal().unwrap();
    let report = fsck(&disk, Path::new("/"), Some(&vkey()), &[]).unwrap();
    assert_eq!(report.verdict, Verdict::Ok, "{report:#?}");

    let dir = &worker.durability_model.dir;
    let reveal = |seq: u64, body: &[u8]| {
        let proof = prove::record_proof(&disk, dir, seq, Some(&vkey())).unwrap();
        proof.reveal(&worker.durability_model.appended[seq as usize], &vkey(), body)
    };
    assert_eq!(reveal(1, b"hello"), Ok("request"));
    assert_eq!(reveal(2, b"hello world"), Ok("received"));
    assert_eq!(
        reveal(2, b"hello"),
        Err(LedgerError::CommitmentMismatch("response"))
    );
}

#[test]
fn a_completion_says_what_arrived_of_a_body_if_and_only_if_it_was_coming() {
    for (coming, told, message) in [
        (Some(COMING), None, "does not say how much was received"),
        (None, Some(received(&[0; 32])), "admitted in full"),
    ] {
        let (disk, mut worker) = new_worker();
        let admission = worker.admit_with_pending_body("upload", 1, coming).unwrap();
        worker
            .complete_with_received_body(None, "upload", admission, told)
            .unwrap();
        worker.seal().unwrap();
        let report = fsck(&disk, Path::new("/"), Some(&vkey()), &[]).unwrap();
        assert_eq!(report.verdict, Verdict::Invalid, "{report:#?}");
        let findings = &report.incarnations[0].findings;
        assert!(
            findings.iter().any(|found| found.message.contains(message)),
            "{report:#?}"
        );
    }
}
