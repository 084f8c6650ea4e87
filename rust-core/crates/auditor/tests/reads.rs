//! Tests of heads of the access log in the aggregate log.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first failure"
)]

mod audit;

use audit::{Audit, auditor_key, two_lives};
use proofgate_auditor::{AccessLogHead, EntryKind, FindingCode};
use proofgate_ledger::Checkpoint;
use proofgate_state::memory::Fault;

fn head(size: u64, root: u8) -> AccessLogHead {
    AccessLogHead {
        begun: 77,
        size,
        root: [root; 32],
    }
}

fn told(audit: &Audit) -> Vec<u64> {
    let told = audit.told().into_iter();
    told.filter(|(kind, _)| *kind == EntryKind::AccessLogHead)
        .map(|(_, size)| size)
        .collect()
}

#[test]
fn heads_of_the_log_of_reads_are_told_signed_and_only_when_they_are_new() {
    let mut audit = Audit::of(&two_lives().0);
    audit.auditor.set_access_log_head(head(1, 1));
    audit.poll();
    assert_eq!(told(&audit), [1], "the first at once");
    audit.auditor.set_access_log_head(head(2, 2));
    audit.auditor.set_access_log_head(head(5, 5));
    audit.watch();
    audit.auditor.set_access_log_head(head(5, 5));
    audit.watch();
    assert_eq!(told(&audit), [1, 5], "further ones on the beat");
    let entries = audit.entries();
    let entry = entries
        .iter()
        .rfind(|entry| entry.kind == EntryKind::AccessLogHead)
        .unwrap();
    let signed = Checkpoint::verify(&entry.checkpoint, &auditor_key().verifying_key()).unwrap();
    assert_eq!(signed.origin, "ledger.example/audit/access/77");
    assert_eq!((signed.size, signed.root), (5, [5; 32]));
    assert_eq!(audit.codes(), []);
}

#[test]
fn a_log_of_reads_that_is_shorter_or_another_is_found_and_not_signed() {
    for other in [head(4, 4), head(5, 6)] {
        let mut audit = Audit::of(&two_lives().0);
        audit.auditor.set_access_log_head(head(5, 5));
        audit.watch();
        audit.restart();
        audit.auditor.set_access_log_head(other);
        audit.expect(FindingCode::AccessLogChanged);
        assert_eq!(told(&audit), [5]);
    }
}

#[test]
fn a_log_of_reads_that_begins_anew_is_another() {
    let mut audit = Audit::of(&two_lives().0);
    audit.auditor.set_access_log_head(head(5, 5));
    audit.watch();
    audit.auditor.report_access_log_change("it is gone".to_owned());
    let begun = 78;
    audit
        .auditor
        .set_access_log_head(AccessLogHead { begun, ..head(1, 1) });
    audit.poll();
    assert_eq!(told(&audit), [5, 1]);
    audit.expect(FindingCode::AccessLogChanged);
}

#[test]
fn whatever_write_fails_what_was_told_of_reads_is_known_at_the_next_start() {
    for fault in [Fault::BeforeWrite, Fault::AfterWrite, Fault::Unsynced] {
        for failing in 0..10 {
            let mut audit = Audit::of(&two_lives().0);
            audit.watch();
            audit.auditor.set_access_log_head(head(3, 3));
            audit.state.fail_from(failing, fault);
            audit.now += 11 * audit::SECOND;
            let _ = audit.auditor.poll(audit.now, u64::MAX, 0);
            audit.state.heal();
            audit.state.lose_power();
            audit.restart();
            let known = audit.auditor.reported_access_log_head().map(|told| told.size);
            assert_eq!(known, told(&audit).last().copied(), "write {failing}, {fault:?}");
        }
    }
}
