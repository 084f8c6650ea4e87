//! Tests that no record states that a missing body is stored, even if a call fails, the disk is
//! full, or the machine crashes.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first failure"
)]

mod support;

use proofgate_ledger::record::PayloadOutcome;
use proofgate_payloads::{PayloadError, PayloadField};
use proofgate_wal::simulated::{InjectedFault, SimulatedDisk};
use proofgate_wal::{EvidenceError, WalError};
use std::io;
use support::{REQUEST, RESPONSE, Worker, keys, one_exchange, read, told};

/// Performs the calls of the data plane for one exchange. The records state only acknowledged
/// bodies.
fn serve(worker: &mut Worker) -> Result<(), WalError> {
    let open = worker.admit(REQUEST)?;
    let kept = |stored: Result<(), PayloadError>| match stored {
        Ok(()) => PayloadOutcome::Stored,
        Err(error) if error.is_out_of_space() => PayloadOutcome::NoRoom,
        Err(_) => PayloadOutcome::Failed,
    };
    let request = kept(worker.store(&open, PayloadField::Request, REQUEST));
    let response = kept(worker.store(&open, PayloadField::Response, RESPONSE));
    worker.complete(&open, RESPONSE, (request, response))?;
    worker.sign().map(drop)
}

fn calls_of_two_exchanges() -> (u64, u64) {
    let disk = SimulatedDisk::new();
    let mut worker = Worker::begin(&disk).unwrap();
    let before = disk.calls();
    serve(&mut worker).unwrap();
    serve(&mut worker).unwrap();
    (before, disk.calls())
}

#[test]
fn whichever_call_fails_what_is_claimed_and_signed_is_there() {
    let (first, last) = calls_of_two_exchanges();
    for fault in [
        InjectedFault::Error(io::ErrorKind::Other),
        InjectedFault::Error(io::ErrorKind::StorageFull),
        InjectedFault::ShortWrite,
        InjectedFault::Crash,
    ] {
        for call in first..last {
            let disk = SimulatedDisk::new();
            let mut worker = Worker::begin(&disk).unwrap();
            disk.inject_fault_at(call, fault);
            let _ = serve(&mut worker).and_then(|()| serve(&mut worker));
            // After a power loss, all signed data is on the disk.
            disk.crash(call);
            let (exchanges, errors) = read(&disk, keys());
            assert!(errors.is_empty(), "{fault:?} at {call}: {errors:?}");
            for exchange in exchanges {
                for (body, said) in [(&exchange.request, REQUEST), (&exchange.response, RESPONSE)] {
                    match told(body) {
                        Ok(body) => assert_eq!(body, said),
                        Err(why) => assert_eq!(why, "payload_not_stored", "{fault:?} at {call}"),
                    }
                }
            }
        }
    }
}

#[test]
fn a_full_disk_passes_and_what_was_cut_short_is_written_over() {
    let (mut worker, _) = one_exchange();
    let open = worker.admit(b"no room").unwrap();
    worker.disk.inject_fault_now(InjectedFault::ShortWrite);
    worker.disk.inject_fault_at(
        worker.disk.calls() + 1,
        InjectedFault::Error(io::ErrorKind::StorageFull),
    );
    let refused = worker
        .store(&open, PayloadField::Request, b"no room")
        .unwrap_err();
    assert!(refused.is_out_of_space());
    worker
        .complete(
            &open,
            RESPONSE,
            (PayloadOutcome::NoRoom, PayloadOutcome::Interrupted),
        )
        .unwrap();
    worker.exchange(b"room", b"again");
    worker.sign().unwrap();
    let (exchanges, errors) = read(&worker.disk, keys());
    assert!(errors.is_empty());
    assert_eq!(told(&exchanges[0].request), Ok(REQUEST));
    assert_eq!(told(&exchanges[1].request), Err("payload_not_stored"));
    assert_eq!(told(&exchanges[2].request), Ok(&b"room"[..]));
}

#[test]
fn nothing_is_signed_of_what_could_not_be_synced() {
    let (mut worker, _) = one_exchange();
    worker.exchange(b"late", b"lost");
    worker.writer.flush().unwrap();
    while worker.follower.step().unwrap().has_more {}
    worker
        .disk
        .inject_fault_now(InjectedFault::Error(io::ErrorKind::Other));
    assert!(matches!(
        worker.follower.sync(),
        Err(WalError::Evidence(EvidenceError::Io { call: "sync", path, .. })) if path.ends_with("payloads")
    ));
    assert!(matches!(worker.sign(), Err(WalError::Poisoned { .. })));
}

#[test]
fn a_body_of_a_log_before_is_synced_with_the_record_that_speaks_of_it() {
    let (mut worker, _) = one_exchange();
    let open = worker.admit(REQUEST).unwrap();
    worker.sign().unwrap();
    worker.store(&open, PayloadField::Request, REQUEST).unwrap();
    let path = worker.dir.join("payloads");
    assert!(!worker.disk.unsynced_ranges(&path).unwrap().is_empty());
    worker
        .complete(
            &open,
            RESPONSE,
            (PayloadOutcome::Stored, PayloadOutcome::Interrupted),
        )
        .unwrap();
    worker.sign().unwrap();
    assert!(worker.disk.unsynced_ranges(&path).unwrap().is_empty());
}
