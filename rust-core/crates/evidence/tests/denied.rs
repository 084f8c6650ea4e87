//! Tests that the salts and the numbers of denied requests are checked like those of admissions.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first failure"
)]

use proofgate_evidence::{Report, SearchMode, Verdict, find_records, fsck, prove};
use proofgate_ledger::commitment::reveal;
use proofgate_ledger::record;
use proofgate_ledger_testkit::{Worker, vkey, worker_with_records};
use proofgate_wal::simulated::SimulatedDisk;
use std::path::Path;

fn check(disk: &SimulatedDisk) -> Report {
    fsck(disk, Path::new("/"), Some(&vkey()), &[]).unwrap()
}

fn messages(report: &Report) -> Vec<&str> {
    let findings = report.incarnations.iter().flat_map(|log| &log.findings);
    findings.map(|found| found.message.as_str()).collect()
}

fn cover(worker: &mut Worker) {
    worker.flush().unwrap();
    worker.step().unwrap();
    worker.sync().unwrap();
    worker.checkpoint().unwrap();
}

/// Creates a log with a denied request between two admitted requests.
fn denied_between() -> (SimulatedDisk, Worker, usize) {
    let (disk, mut worker) = worker_with_records();
    let seq = worker.deny("denied").unwrap();
    worker.run_exchange("after");
    (disk, worker, usize::try_from(seq).unwrap())
}

#[test]
fn admitted_and_denied_requests_are_numbered_together() {
    let (disk, ..) = denied_between();
    assert_eq!(check(&disk).verdict, Verdict::Ok, "{:#?}", check(&disk));
}

#[test]
fn a_denied_request_that_was_left_out_is_a_gap() {
    let (disk, mut worker) = worker_with_records();
    // As if the previous request had never been written.
    worker
        .deny_with_tenant_seq("second", worker.admission_count + 2)
        .unwrap();
    cover(&mut worker);
    let report = check(&disk);
    assert_eq!(report.verdict, Verdict::Invalid);
    let told = messages(&report);
    assert!(
        told.iter().any(|text| text.contains("of acme, but this log has")),
        "{told:?}"
    );
}

#[test]
fn the_record_of_a_denied_request_is_proved_with_its_salt_and_opens_to_its_bytes() {
    let (disk, ..) = denied_between();
    let found = find_records(&disk, Path::new("/"), "denied", SearchMode::Scan).unwrap();
    let [found] = found.as_slice() else {
        panic!("{found:?}")
    };
    let proof = prove::proof_for_record(&disk, &found.dir, found.seq, &found.record, Some(&vkey())).unwrap();
    let record = record::parse(&found.record).unwrap();
    assert_eq!(reveal(&record, &proof.salt().unwrap(), b"hello"), Ok("request"));
}

#[test]
fn a_changed_or_zeroed_salt_of_a_denied_request_is_found() {
    let (disk, worker, seq) = denied_between();
    let salts = worker.durability_model.dir.join("salts");
    let stored = disk.read(&salts).unwrap();
    disk.corrupt(&salts, |bytes| bytes[32 * seq] ^= 1);
    let report = check(&disk);
    assert_eq!(report.verdict, Verdict::Invalid);
    let told = messages(&report);
    let changed = format!("the salts of 1 requests (first: record {seq}) do not match");
    assert!(told.iter().any(|text| text.contains(&changed)), "{told:?}");
    disk.corrupt(&salts, |bytes| {
        bytes.clone_from(&stored);
        bytes[32 * seq..32 * (seq + 1)].fill(0);
    });
    assert_eq!(check(&disk).incarnations[0].erased_salts, 1);
}
