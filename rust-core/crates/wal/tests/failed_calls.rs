//! Tests that the log stops permanently when a write fails for a reason other than lack of space,
//! or a sync fails, and that earlier guarantees still hold.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first failure"
)]

use proofgate_ledger_testkit::{inspect, key, new_worker, raw_record, worker_with_records};
use proofgate_wal::simulated::InjectedFault;
use proofgate_wal::{EvidenceError, WalError};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn a_failed_write_stops_the_log_for_good() {
    for kind in [io::ErrorKind::Other, io::ErrorKind::ReadOnlyFilesystem] {
        let (disk, mut worker) = new_worker();
        let woken = Arc::new(AtomicBool::new(false));
        let wake = Arc::clone(&woken);
        worker
            .writer
            .watermark()
            .on_progress(move || wake.store(true, Ordering::Relaxed));
        worker.writer.append(raw_record(100)).unwrap();
        disk.inject_fault_now(InjectedFault::Error(kind));
        assert!(matches!(
            worker.writer.flush(),
            Err(WalError::Evidence(EvidenceError::Io { call: "write", .. }))
        ));
        assert_eq!(worker.writer.watermark().written(), 1, "only the open record");
        assert!(worker.writer.watermark().stop_reason().unwrap().contains("write"));
        assert!(woken.load(Ordering::Relaxed));
        for _ in 0..3 {
            assert!(matches!(worker.writer.flush(), Err(WalError::Poisoned { .. })));
            assert!(matches!(
                worker.writer.append(raw_record(1)),
                Err(WalError::Poisoned { .. })
            ));
            assert!(matches!(worker.writer.reserve(1), Err(WalError::Poisoned { .. })));
            assert!(matches!(worker.writer.salt(2), Err(WalError::Poisoned { .. })));
        }
        // Earlier records can still be made durable and signed.
        worker.step().unwrap();
        worker.sync().unwrap();
        worker.checkpoint().unwrap();
        assert_eq!(worker.durability_model.durable, 1);
        disk.crash(1);
        assert_eq!(inspect(&disk).unwrap().unwrap().size, 1);
    }
}

#[test]
fn a_failed_sync_stops_the_log_for_good_and_is_never_tried_again() {
    let (disk, mut worker) = worker_with_records();
    let durable = worker.durability_model.durable;
    worker.admit("late", 10).unwrap();
    worker.flush().unwrap();
    worker.step().unwrap();
    disk.inject_fault_now(InjectedFault::Error(io::ErrorKind::Other));
    assert!(matches!(
        worker.follower.sync(),
        Err(WalError::Evidence(EvidenceError::Io { call: "sync", .. }))
    ));
    let calls = disk.calls();
    for _ in 0..3 {
        assert!(matches!(worker.follower.sync(), Err(WalError::Poisoned { .. })));
        assert!(matches!(worker.follower.step(), Err(WalError::Poisoned { .. })));
        assert!(matches!(
            worker.follower.sign_checkpoint(&key()),
            Err(WalError::Poisoned { .. })
        ));
        assert!(matches!(
            worker.writer.append(raw_record(1)),
            Err(WalError::Poisoned { .. })
        ));
        assert!(matches!(worker.writer.flush(), Err(WalError::Poisoned { .. })));
    }
    assert_eq!(disk.calls(), calls);
    assert_eq!(worker.writer.watermark().durable(), durable);
    // The cache still shows the lost record; recovery reads the disk.
    disk.restart();
    assert_eq!(inspect(&disk).unwrap().unwrap().size, durable);
}
