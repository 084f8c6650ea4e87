//! The writer and the follower on an undisturbed log: segments, batches, salts, seals, exports, and refused input.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first failure"
)]

use proofgate_evidence::{Report, Verdict, export_leaves, fsck, prove, read_stored_salt};
use proofgate_ledger::{Checkpoint, leaf_hash};
use proofgate_ledger_testkit::{
    self as testkit, DurabilityModel, SHARD, Worker, key, new_worker, raw_record, root_of, small_log_options,
    start_log_in, start_options, start_with, vkey, worker_with_records,
};
use proofgate_wal::simulated::SimulatedDisk;
use proofgate_wal::{
    EvidenceError, FileStorage, LogOptions, ReadStorage, Shard, Storage, Ulid, WalError, recovery, succession,
};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Checks that there is no finding except that exchanges were open when the log was sealed.
fn expect_only_open_exchanges(report: &Report) {
    assert_eq!(report.verdict, Verdict::Incomplete, "{report:#?}");
    let [finding] = &report.incarnations[0].findings[..] else {
        panic!("{report:#?}")
    };
    assert!(finding.message.contains("have not ended"), "{report:#?}");
}

#[test]
fn records_cross_segments_and_read_back_in_order() {
    let (disk, mut worker) = new_worker();
    for number in 0..60 {
        worker.admit(&format!("req-{number}"), 9_000).unwrap();
        worker.flush().unwrap();
        worker.step().unwrap();
    }
    worker.seal().unwrap();
    let names: Vec<_> = disk
        .files()
        .into_iter()
        .filter(|path| path.extension().is_some_and(|kind| kind == "seg"))
        .collect();
    assert_eq!(names.len(), 10, "{names:?}");
    assert!(
        !disk
            .files()
            .iter()
            .any(|path| path.extension().is_some_and(|kind| kind == "next"))
    );

    let mut leaves = Vec::new();
    let count = export_leaves(&disk, &worker.durability_model.dir, &mut leaves).unwrap();
    assert_eq!(count, 62);
    let mut rest = leaves.as_slice();
    for record in &worker.durability_model.appended {
        let (length, more) = rest.split_first_chunk::<4>().unwrap();
        assert_eq!(&more[..u32::from_be_bytes(*length) as usize], record);
        rest = &more[u32::from_be_bytes(*length) as usize..];
    }
    assert!(rest.is_empty());

    let report = fsck(&disk, Path::new("/"), Some(&vkey()), &[]).unwrap();
    expect_only_open_exchanges(&report);
    assert!(report.incarnations[0].sealed);
    assert_eq!(report.incarnations[0].segments, 10);
}

/// A sink that, when flushed, appends one more record to the log and signs a checkpoint that covers it.
struct Meanwhile<'w>(&'w mut Worker);

impl std::io::Write for Meanwhile<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let Meanwhile(worker) = self;
        worker.admit("meanwhile", 100).unwrap();
        worker.flush().unwrap();
        worker.step().unwrap();
        worker.sync().unwrap();
        worker.checkpoint().unwrap();
        Ok(())
    }
}

#[test]
fn leaves_of_a_log_that_is_being_written_can_be_exported() {
    let (disk, mut worker) = new_worker();
    worker.admit("before", 100).unwrap();
    worker.flush().unwrap();
    let dir = worker.durability_model.dir.clone();
    assert_eq!(
        export_leaves(&disk, &dir, &mut Meanwhile(&mut worker)).unwrap(),
        2
    );
}

#[test]
fn one_batch_may_cross_several_segments() {
    let disk = SimulatedDisk::new();
    let options = LogOptions {
        segments_ahead: 4,
        ..small_log_options()
    };
    let mut worker = start_with(&disk, &mut DurabilityModel::default(), options).unwrap();
    for number in 0..17 {
        worker.admit(&format!("req-{number}"), 14_000).unwrap();
    }
    let before = disk.calls();
    worker.flush().unwrap();
    assert_eq!(disk.calls() - before, 5, "one write for each segment");
    worker.step().unwrap();
    worker.seal().unwrap();
    expect_only_open_exchanges(&fsck(&disk, Path::new("/"), Some(&vkey()), &[]).unwrap());
}

#[test]
fn a_flush_is_one_call_and_an_append_none() {
    let (disk, mut worker) = new_worker();
    worker.admit("a", 10).unwrap();
    worker.flush().unwrap();
    let before = disk.calls();
    for number in 0..50 {
        worker.admit(&format!("req-{number}"), 10).unwrap();
    }
    assert_eq!(disk.calls(), before);
    worker.flush().unwrap();
    assert_eq!(disk.calls(), before + 1);
    worker.flush().unwrap();
    assert_eq!(disk.calls(), before + 1, "an empty batch is not written");
}

#[test]
fn a_salt_is_stored_before_it_is_used_and_one_write_serves_1024() {
    let (disk, mut worker) = new_worker();
    let first = worker.writer.salt(1).unwrap();
    assert_eq!(
        read_stored_salt(&disk, &worker.durability_model.dir, 1).unwrap(),
        Some(first)
    );
    let before = disk.calls();
    let others: Vec<_> = (2..1024).map(|seq| worker.writer.salt(seq).unwrap()).collect();
    assert_eq!(disk.calls(), before);
    assert!(others.iter().all(|salt| *salt != first));
    worker.writer.salt(1024).unwrap();
    assert_eq!(disk.calls(), before + 1);
    assert!(matches!(
        worker.writer.salt(1),
        Err(WalError::SaltUnavailable { seq: 1 })
    ));
    assert_eq!(
        read_stored_salt(&disk, &worker.durability_model.dir, 5000).unwrap(),
        None
    );
}

#[test]
fn nothing_follows_a_seal() {
    let (_, mut worker) = worker_with_records();
    worker.seal().unwrap();
    assert!(worker.writer.watermark().sealed());
    assert!(matches!(
        worker.writer.append(raw_record(1)),
        Err(WalError::Sealed)
    ));
    assert!(matches!(worker.writer.reserve(1), Err(WalError::Sealed)));
}

#[test]
fn a_record_that_cannot_be_encoded_or_is_too_large_leaves_the_batch_as_it_was() {
    let (disk, mut worker) = new_worker();
    let limit = worker.writer.max_record_bytes();
    assert!(matches!(
        worker.writer.append(raw_record(limit + 1)),
        Err(WalError::RecordTooLarge { .. })
    ));
    let failed = worker.writer.append(|_, out| {
        out.extend_from_slice(b"half a record");
        Err(proofgate_ledger::LedgerError::RecordTooLarge { bytes: 1 })
    });
    assert!(matches!(
        failed,
        Err(WalError::Evidence(EvidenceError::Ledger(_)))
    ));
    worker.admit("a", 1).unwrap();
    worker.seal().unwrap();
    expect_only_open_exchanges(&fsck(&disk, Path::new("/"), Some(&vkey()), &[]).unwrap());
}

#[test]
fn a_log_sorts_behind_all_others_also_when_the_clock_goes_back() {
    let (disk, worker) = new_worker();
    let now = worker.durability_model.incarnation.unwrap().timestamp_ms();
    // A log that starts at the same time, on a node whose clock is slightly ahead, is not signed yet.
    let ahead = Ulid::from_parts(now + 300_000, 7);
    disk.create_dir(&Path::new(SHARD).join(ahead.to_string()))
        .unwrap();
    let mut promised = DurabilityModel::default();
    start_with(&disk, &mut promised, small_log_options()).unwrap();
    assert!(promised.incarnation.unwrap() > ahead);
    let names = disk.list(Path::new(SHARD)).unwrap();
    assert_eq!(
        names.len(),
        3,
        "a claim that came to nothing leaves nothing: {names:?}"
    );
}

#[test]
fn behind_a_name_of_the_last_moment_no_log_begins() {
    let (disk, _worker) = new_worker();
    let last = Path::new(SHARD).join(Ulid(u128::MAX).to_string());
    disk.create(&last).unwrap();
    let before = disk.list(Path::new(SHARD)).unwrap();
    let refused = start_with(&disk, &mut DurabilityModel::default(), small_log_options())
        .err()
        .unwrap();
    assert_eq!(refused.code(), "ledger_corrupt");
    assert!(
        refused.to_string().contains(&*last.to_string_lossy()),
        "{refused}"
    );
    assert_eq!(disk.list(Path::new(SHARD)).unwrap(), before);
}

#[test]
fn options_that_cannot_work_are_refused() {
    for (ledger, segment_bytes) in [
        ("a", 1000),
        ("a", (64 << 10) + 1),
        ("a", (1 << 30) + 8),
        ("", 64 << 10),
        ("a b", 64 << 10),
        ("a+b", 64 << 10),
    ] {
        let options = LogOptions {
            segment_bytes,
            segments_ahead: 1,
        };
        let storage: Arc<dyn Storage> = Arc::new(SimulatedDisk::new());
        let key = key();
        let mut terms = start_options(&key, options);
        terms.shard.ledger = ledger;
        let begun = succession::start(&storage, &terms, None);
        assert!(matches!(begun, Err(WalError::InvalidOptions(_))));
    }
}

#[test]
fn the_same_log_comes_out_of_a_real_file_system() {
    let root = tempfile::tempdir().unwrap();
    let shard = root.path().join("3");
    let made = start_log_in(&shard, small_log_options());
    let mut worker = Worker::from_log(&FileStorage, made);
    let dir = worker.durability_model.dir.clone();
    let admission = worker.admit("a", 10).unwrap();
    for number in 0..30 {
        worker.admit(&format!("req-{number}"), 10_000).unwrap();
        worker.flush().unwrap();
        worker.step().unwrap();
    }
    worker.sync().unwrap();
    worker.checkpoint().unwrap();
    let key = key();
    let terms = Shard {
        dir: &shard,
        ..testkit::shard(&key)
    };
    let found = recovery::inspect(&FileStorage, &terms, None, None)
        .unwrap()
        .unwrap();
    assert_eq!(
        (found.newest.size, found.newest.root),
        (32, root_of(&worker.durability_model.appended))
    );
    assert_eq!(found.unfinished_exchanges.len(), 31);
    worker.complete("a", admission).unwrap();
    worker.seal().unwrap();
    let report = fsck(&FileStorage, root.path(), Some(&vkey()), &[]).unwrap();
    expect_only_open_exchanges(&report);
    assert!(
        serde_json::to_string(&report)
            .unwrap()
            .contains("\"checkpoint\":\"verified\"")
    );
    let proof = prove::record_proof(&FileStorage, &dir, 7, Some(&vkey())).unwrap();
    proof
        .verify(&worker.durability_model.appended[7], &vkey())
        .unwrap();
}

#[test]
fn a_writer_and_a_follower_on_two_threads_agree_on_every_record() {
    let root = tempfile::tempdir().unwrap();
    let shard = root.path().join("0");
    let options = LogOptions {
        segments_ahead: 2,
        ..small_log_options()
    };
    let made = start_log_in(&shard, options);
    let beginning = testkit::records(&FileStorage, &made.dir, made.incarnation);
    let (mut writer, mut follower) = (made.writer, made.follower);
    let ledger = std::thread::spawn(move || {
        let watermark = follower.watermark();
        while !watermark.sealed() {
            watermark.wait_written(follower.followed_records(), std::time::Duration::from_secs(5));
            follower.prepare();
            while follower.step().unwrap().has_more {
                follower.prepare();
            }
            follower.sync().unwrap();
        }
        Checkpoint::verify(&follower.finish(&key()).unwrap(), &vkey()).unwrap()
    });
    let mut mmr = proofgate_ledger::Mmr::new();
    for record in &beginning {
        mmr.push(leaf_hash(record), &mut |_| {});
    }
    let mut record = Vec::new();
    for number in 0..20_000_usize {
        record.clear();
        record.resize(1 + number % 300, number as u8);
        loop {
            let appended = writer.append(|_, out| {
                out.extend_from_slice(&record);
                Ok(())
            });
            match appended {
                Ok(seq) => break assert_eq!(seq, (beginning.len() + number) as u64),
                Err(WalError::OutOfSpace { .. }) => {
                    writer.flush().unwrap();
                    writer.watermark().wake_follower();
                    std::thread::yield_now();
                }
                Err(error) => panic!("{error}"),
            }
        }
        mmr.push(leaf_hash(&record), &mut |_| {});
        if number % 7 == 0 {
            writer.flush().unwrap();
        }
    }
    writer.seal(raw_record(10)).unwrap();
    writer.flush().unwrap();
    mmr.push(leaf_hash(b"xxxxxxxxxx"), &mut |_| {});
    let signed = ledger.join().unwrap();
    assert_eq!((signed.size, signed.root), (20_002, mmr.root()));
    assert_eq!(
        export_leaves(&FileStorage, &made.dir, &mut io::sink()).unwrap(),
        20_002
    );
}

#[test]
fn a_sync_that_hangs_keeps_nobody_from_writing_and_nothing_counts_as_durable() {
    let (disk, worker) = worker_with_records();
    let Worker {
        mut writer,
        mut follower,
        ..
    } = worker;
    let (watermark, durable) = (writer.watermark(), follower.watermark().durable());
    writer.append(raw_record(100)).unwrap();
    writer.flush().unwrap();
    disk.set_hanging_syncs(true);
    std::thread::scope(|threads| {
        let syncing = threads.spawn(move || {
            while follower.step().unwrap().has_more {}
            follower.sync().unwrap();
        });
        disk.wait_for_hanging_sync();
        for _ in 0..10 {
            writer.append(raw_record(100)).unwrap();
            writer.flush().unwrap();
        }
        assert_eq!(watermark.written(), durable + 11);
        assert_eq!(watermark.durable(), durable);
        disk.set_hanging_syncs(false);
        syncing.join().unwrap();
    });
    assert_eq!(watermark.durable(), durable + 1, "what was read before the sync");
}
