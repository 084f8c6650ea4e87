//! Tests of the records to which analyses must refer.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first failure")]

use proofgate_evidence::{SearchMode, Verdict, find_records, fsck};
use proofgate_ledger::record::{AnalysedResponse, Analysis, ConfigId};
use proofgate_ledger_testkit::{Worker, new_worker, start, vkey};
use std::path::Path;

fn analyse(worker: &mut Worker, exchange: &str, tenant: &str, admission: u64, incarnation: Option<&str>) {
    let analysis = |seq, out: &mut Vec<u8>| {
        Analysis {
            seq,
            ts: 9,
            exchange: exchange.into(),
            admission,
            incarnation: incarnation.map(Into::into),
            tenant: tenant.into(),
            model: "m".into(),
            findings: vec!["loop".into()],
            answer: Some(AnalysedResponse {
                entropy_millibits: Some(3),
                repetition_permille: 900,
                stretch_permille: 800,
                partly: false,
            }),
            window: None,
            config: ConfigId([1; 8]),
        }
        .encode_into(out)
    };
    worker.append(analysis).unwrap();
}

#[test]
fn an_analysis_of_an_exchange_of_its_tenant_is_in_order_before_and_after_its_end() {
    let (disk, mut worker) = new_worker();
    let admission = worker.admit("one", 1).unwrap();
    analyse(&mut worker, "one", "acme", admission, None);
    worker.complete("one", admission).unwrap();
    analyse(&mut worker, "one", "acme", admission, None);
    worker.seal().unwrap();
    let report = fsck(&disk, Path::new("/"), Some(&vkey()), &[]).unwrap();
    assert_eq!(report.verdict, Verdict::Ok, "{report:#?}");
}

#[test]
fn an_analysis_that_refers_to_nothing_of_its_tenant_is_told() {
    let other = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    for (exchange, tenant, admission, incarnation, verdict) in [
        ("two", "acme", 1, None, Verdict::Invalid),
        ("one", "globex", 1, None, Verdict::Invalid),
        ("one", "acme", 2, None, Verdict::Invalid),
        ("one", "acme", 0, None, Verdict::Invalid),
        ("one", "acme", 3, None, Verdict::Invalid),
        ("one", "acme", u64::MAX, None, Verdict::Invalid),
        ("one", "acme", 1, Some("no-log"), Verdict::Invalid),
        // A missing log cannot be checked.
        ("one", "acme", 1, Some(other), Verdict::Ok),
    ] {
        let (disk, mut worker) = new_worker();
        let admitted = worker.admit("one", 1).unwrap();
        worker.complete("one", admitted).unwrap();
        analyse(&mut worker, exchange, tenant, admission, incarnation);
        worker.seal().unwrap();
        let report = fsck(&disk, Path::new("/"), Some(&vkey()), &[]).unwrap();
        assert_eq!(
            report.verdict, verdict,
            "{exchange} {tenant} {admission} {incarnation:?}: {report:#?}"
        );
        let told = report.incarnations[0].findings.iter();
        let told = told.filter(|found| found.message.contains("is an analysis of"));
        assert_eq!(
            told.count(),
            usize::from(verdict == Verdict::Invalid),
            "{report:#?}"
        );
    }
}

#[test]
fn the_records_of_an_exchange_are_its_own_and_not_its_analyses() {
    let (disk, mut worker) = new_worker();
    let admission = worker.admit("one", 1).unwrap();
    worker.complete("one", admission).unwrap();
    analyse(&mut worker, "one", "acme", admission, None);
    worker.seal().unwrap();
    let found = find_records(&disk, Path::new("/"), "one", SearchMode::Scan).unwrap();
    assert_eq!(found.iter().map(|found| found.seq).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn an_analysis_may_refer_to_an_exchange_of_the_log_before() {
    for (exchange, verdict) in [("one", Verdict::Ok), ("two", Verdict::Invalid)] {
        let (disk, mut worker) = new_worker();
        let admission = worker.admit("one", 1).unwrap();
        worker.complete("one", admission).unwrap();
        worker.seal().unwrap();
        let before = worker.durability_model.incarnation.unwrap().to_string();
        let mut next = start(&disk, &mut worker.durability_model).unwrap();
        analyse(&mut next, exchange, "acme", admission, Some(&before));
        next.seal().unwrap();
        let report = fsck(&disk, Path::new("/"), Some(&vkey()), &[]).unwrap();
        assert_eq!(report.verdict, verdict, "{report:#?}");
    }
}
