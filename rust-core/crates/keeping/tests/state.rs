//! The retention job's state: it is the only record of the holds.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first failure")]

mod keep;

use keep::{Keep, keeping_key, why};
use proofgate_keeping::{HoldScope, RetentionError, RetentionState};
use proofgate_ledger::{Justification, SigningKey};
use proofgate_ledger_testkit::{four_incarnations, key, vkey};
use proofgate_state::StateStorage;
use proofgate_state::memory::{Fault, MemoryStorage};
use std::sync::Arc;

fn open(state: &MemoryStorage) -> Result<RetentionState, RetentionError> {
    RetentionState::open(Arc::new(state.clone()))
}

fn code(state: &MemoryStorage) -> &'static str {
    open(state).unwrap_err().code()
}

#[test]
fn a_state_that_is_lost_or_damaged_is_never_one_without_holds() {
    let state = MemoryStorage::default();
    assert_eq!(code(&state), "keeping_state_missing");
    let mut retention =
        RetentionState::create(Arc::new(state.clone()), &vkey(), &keeping_key().verifying_key()).unwrap();
    retention
        .add_hold(None, HoldScope::default(), &why("a case"), 1)
        .unwrap();
    assert_eq!(open(&state).unwrap().active_holds().count(), 1);
    for damage in [
        &b""[..],
        b"{}",
        br#"{"v":1,"holds":[],"more":1}"#,
        br#"{"v":2,"holds":[]}"#,
        br#"{"v":1,"holds":[{"id":2,"scope":{},"reason":"r","added":1}]}"#,
    ] {
        let state = state.snapshot();
        state.write("holds", damage).unwrap();
        assert_eq!(
            code(&state),
            "keeping_state_corrupt",
            "{}",
            String::from_utf8_lossy(damage)
        );
    }
    state.remove("holds").unwrap();
    assert_eq!(code(&state), "keeping_state_corrupt");
}

#[test]
fn a_state_is_begun_once_and_also_after_a_first_time_that_was_cut_short() {
    let begin = |state: &MemoryStorage| {
        RetentionState::create(Arc::new(state.clone()), &vkey(), &keeping_key().verifying_key())
    };
    for write in 0..2 {
        for fault in [Fault::BeforeWrite, Fault::AfterWrite] {
            let state = MemoryStorage::default();
            state.fail_from(write, fault);
            assert!(begin(&state).is_err());
            state.heal();
            if open(&state).is_err() {
                begin(&state).unwrap();
            }
            assert_eq!(begin(&state).unwrap_err().code(), "keeping_state_exists");
        }
    }
    // A state with holds still exists after its identity file was removed.
    let state = MemoryStorage::default();
    begin(&state)
        .unwrap()
        .add_hold(None, HoldScope::default(), &why("a case"), 1)
        .unwrap();
    state.remove("retention").unwrap();
    assert_eq!(begin(&state).unwrap_err().code(), "keeping_state_exists");
}

#[test]
fn the_ledgers_key_and_what_could_speak_for_it_or_be_spoken_for_keep_nothing() {
    let names = [
        "ledger.example/demo",
        "ledger.example",
        "ledger.example/demo/keeping",
    ];
    for name in names {
        let keeping = SigningKey::generate(name, [5; 32]).unwrap().verifying_key();
        let refused = RetentionState::create(Arc::new(MemoryStorage::default()), &vkey(), &keeping);
        assert_eq!(refused.unwrap_err().code(), "keeping_key", "{name}");
    }
    let same = SigningKey::generate("ledger.example/keeping", [7; 32]).unwrap();
    assert!(same.verifying_key().is_same_key(&key().verifying_key()));
    let refused = RetentionState::create(Arc::new(MemoryStorage::default()), &vkey(), &same.verifying_key());
    assert_eq!(refused.unwrap_err().code(), "keeping_key");
}

#[test]
fn another_retention_jobs_state_and_another_ledgers_remove_nothing() {
    let (disk, _workers) = four_incarnations();
    let keep = Keep::of(&disk);
    let other = SigningKey::generate("ledger.example/another", [6; 32]).unwrap();
    assert_eq!(
        keep.retention.check_identity(&vkey(), &other).unwrap_err().code(),
        "keeping_state_corrupt"
    );
    let ledger = SigningKey::generate("ledger.example/b", [8; 32])
        .unwrap()
        .verifying_key();
    assert_eq!(
        keep.retention
            .check_identity(&ledger, &keeping_key())
            .unwrap_err()
            .code(),
        "keeping_state_corrupt"
    );
}

#[test]
fn holds_are_checked_and_numbered() {
    let state = MemoryStorage::default();
    let mut retention =
        RetentionState::create(Arc::new(state.clone()), &vkey(), &keeping_key().verifying_key()).unwrap();
    let ticketed = Justification {
        ticket: Some(String::new()),
        ..why("why")
    };
    let nobodys = Justification {
        author: String::new(),
        ..why("why")
    };
    for why in [why(""), why("two\nlines"), ticketed, nobodys] {
        let refused = retention.add_hold(None, HoldScope::default(), &why, 1);
        assert_eq!(refused.unwrap_err().code(), "keeping_invalid");
    }
    let backwards = HoldScope {
        since: Some(2),
        until: Some(1),
        ..HoldScope::default()
    };
    assert!(retention.add_hold(None, backwards, &why("why"), 1).is_err());
    assert_eq!(
        retention
            .add_hold(None, HoldScope::default(), &why("why"), 1)
            .unwrap()
            .id,
        1
    );
    assert_eq!(
        retention
            .add_hold(None, HoldScope::default(), &why("why"), 1)
            .unwrap()
            .id,
        2
    );
    assert!(retention.release_hold(1, &why(""), 2).is_err());
    retention.release_hold(1, &why("closed"), 2).unwrap();
    assert_eq!(
        retention.release_hold(1, &why("closed"), 3).unwrap_err().code(),
        "no_such_hold"
    );
    assert_eq!(
        retention.release_hold(9, &why("closed"), 3).unwrap_err().code(),
        "no_such_hold"
    );
    assert_eq!(open(&state).unwrap().active_holds().count(), 1);
}

#[test]
fn of_a_name_one_hold_holds_at_a_time() {
    let state = MemoryStorage::default();
    let mut retention =
        RetentionState::create(Arc::new(state.clone()), &vkey(), &keeping_key().verifying_key()).unwrap();
    let add = |retention: &mut RetentionState| {
        retention.add_hold(Some("case"), HoldScope::default(), &why("why"), 1)
    };
    add(&mut retention).unwrap();
    assert_eq!(add(&mut retention).unwrap_err().code(), "keeping_invalid");
    retention.release_hold(1, &why("closed"), 2).unwrap();
    assert_eq!(add(&mut retention).unwrap().id, 2);
    let named: Vec<_> = open(&state)
        .unwrap()
        .holds()
        .iter()
        .map(|hold| hold.name.clone())
        .collect();
    assert_eq!(named, [Some("case".to_owned()), Some("case".to_owned())]);
}

#[test]
fn a_hold_that_could_not_be_written_is_not_believed_to_be_one() {
    let state = MemoryStorage::default();
    let mut retention =
        RetentionState::create(Arc::new(state.clone()), &vkey(), &keeping_key().verifying_key()).unwrap();
    state.fail_from(0, Fault::BeforeWrite);
    assert_eq!(
        retention
            .add_hold(None, HoldScope::default(), &why("why"), 1)
            .unwrap_err()
            .code(),
        "keeping_state_io"
    );
    assert_eq!(retention.holds().len(), 0);
}
