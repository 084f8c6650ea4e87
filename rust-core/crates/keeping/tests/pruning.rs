//! Logs that may be removed are removed; their retained files keep the ledger complete.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first failure"
)]

mod keep;

use keep::{DAY, Keep, NOW, analyse, check, fates, folder, found, its_end, why};
use proofgate_evidence::payloads::{PAYLOAD_INDEX_FILE, PAYLOADS_FILE};
use proofgate_evidence::{
    EvidenceError, HeldCheckpoint, ReadStorage, Ulid, Verdict, fsck, prove, prove_consistency, read_record,
};
use proofgate_keeping::{HoldScope, RetentionPolicy, RetentionState};
use proofgate_ledger::Checkpoint;
use proofgate_ledger_testkit::{
    self as testkit, DeniedPathStorage, DurabilityModel, Worker, checkpoint_all, end_exchange_later,
    five_incarnations, flip_byte, four_incarnations, key, log_dir, rotate_at, shard, start,
    start_successor_log, ulid, vkey, worker_with_records,
};
use proofgate_wal::simulated::{InjectedFault, SimulatedDisk};
use proofgate_wal::{Storage, recovery};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The first two of four logs may be removed; the newest two are retained.
const DONE: [&str; 4] = ["removed", "removed", "newest", "newest"];

#[test]
fn logs_that_are_old_enough_go_and_what_is_left_verifies() {
    let (disk, workers) = four_incarnations();
    for stored in [PAYLOADS_FILE, PAYLOAD_INDEX_FILE] {
        disk.create(&log_dir(&workers[0]).join(stored)).unwrap();
    }
    let keep = Keep::of(&disk);
    assert_eq!(keep.fates(), ["remove", "remove", "newest", "newest"]);
    assert_eq!(keep.check().verdict, Verdict::Ok, "a plan changes nothing");
    assert_eq!(keep.prune(), ["remove", "remove", "newest", "newest"]);
    let report = keep.check();
    assert_eq!(report.verdict, Verdict::Ok, "{:#?}", found(&report));
    let removed: Vec<u64> = report
        .incarnations
        .iter()
        .filter_map(|log| Some(log.removed.as_ref()?.exchanges))
        .collect();
    assert_eq!(removed, [41, 1]);
    assert_eq!(
        report.incarnations[0].records,
        workers[0].durability_model.appended.len() as u64
    );
    for worker in &workers[..2] {
        let left = disk.list(&log_dir(worker)).unwrap();
        assert!(
            !left.iter().any(|name| name.ends_with(".seg")
                || ["salts", "tree", PAYLOADS_FILE, PAYLOAD_INDEX_FILE].contains(&name.as_str())),
            "{left:?}"
        );
    }
    assert_eq!(keep.prune(), DONE, "there is nothing left to do");
}

#[test]
fn a_worker_starts_behind_logs_that_were_removed_and_misses_none() {
    let (disk, _workers) = four_incarnations();
    Keep::of(&disk).prune();
    disk.restart();
    let ledger = key();
    let found = recovery::inspect(&disk, &shard(&ledger), None, None).unwrap();
    assert_eq!(found.unwrap().missing, None);
    let mut next = start(&disk, &mut DurabilityModel::default()).unwrap();
    next.run_exchange("fifth");
    assert_eq!(check(&disk).verdict, Verdict::Ok, "{:#?}", check(&disk));
}

#[test]
fn without_the_retention_key_a_removed_log_is_told_and_with_another_one_refused() {
    let (disk, _workers) = four_incarnations();
    Keep::of(&disk).prune();
    let alone = fsck(&disk, Path::new("/"), Some(&vkey()), &[]).unwrap();
    assert_eq!(alone.verdict, Verdict::Incomplete);
    let codes: Vec<_> = found(&alone).into_iter().map(|(code, _)| code).collect();
    assert_eq!(codes, [Some("tombstone_unchecked"); 2]);
}

#[test]
fn readers_say_by_name_that_a_log_was_removed() {
    let (disk, workers) = four_incarnations();
    let first = log_dir(&workers[0]);
    Keep::of(&disk).prune();
    let removed = |error: EvidenceError| assert_eq!(error.code(), "log_removed", "{error}");
    removed(read_record(&disk, &first, 3).unwrap_err());
    removed(prove::record_proof(&disk, &first, 3, Some(&vkey())).unwrap_err());
    let notes: Vec<Checkpoint> = workers[0]
        .durability_model
        .notes
        .iter()
        .map(|note| Checkpoint::verify(note, &vkey()).unwrap())
        .collect();
    let last = prove::successor_checkpoint(&disk, &first, &vkey())
        .unwrap()
        .unwrap();
    // Its own newest checkpoint stays provable; one that nobody held does not.
    prove_consistency(&disk, Path::new("/"), &notes[1], &last).unwrap();
    removed(prove_consistency(&disk, Path::new("/"), &notes[0], &last).unwrap_err());
}

#[test]
fn of_checkpoints_held_outside_it_is_said_what_can_still_be_shown() {
    let (disk, workers) = four_incarnations();
    let held = |at: usize| HeldCheckpoint {
        file: PathBuf::from("kept"),
        checkpoint: Checkpoint::verify(&workers[0].durability_model.notes[at], &vkey()).unwrap(),
    };
    let judge = |disk: &SimulatedDisk, one: HeldCheckpoint| {
        let (key, keeping) = (vkey(), keep::keeping_key().verifying_key());
        let keys = proofgate_evidence::FsckKeys {
            ledger: Some(&key),
            retention: Some(&keeping),
            shred: None,
        };
        let report = fsck(disk, Path::new("/"), keys, &[one]).unwrap();
        (report.verdict, found(&report).first().and_then(|(code, _)| *code))
    };
    let other = disk.snapshot();
    Keep::of(&disk).prune();
    assert_eq!(judge(&disk, held(1)), (Verdict::Ok, None));
    assert_eq!(
        judge(&disk, held(0)),
        (Verdict::Incomplete, Some("head_not_shown"))
    );
    let mut longer = held(0);
    longer.checkpoint.size = 1000;
    assert_eq!(
        judge(&disk, longer),
        (Verdict::Diverged, Some("tombstone_refused"))
    );
    // A checkpoint given to the retention job beforehand stays provable.
    let mut keep = Keep::of(&other);
    keep.held = vec![held(0)];
    keep.prune();
    assert_eq!(judge(&other, held(0)), (Verdict::Ok, None));
    // A held checkpoint that is not of this log retains the log.
    let (disk, _) = four_incarnations();
    let mut keep = Keep::of(&disk);
    let mut forged = held(0);
    forged.checkpoint.origin = keep.check().incarnations[0].origin.clone().unwrap();
    forged.checkpoint.root = [9; 32];
    keep.held = vec![forged];
    assert_eq!(keep.prune()[0], "damaged");
}

/// The calls of a run on a disk, from the last ones of its plan on: the earlier ones only read.
fn calls(disk: &SimulatedDisk) -> std::ops::Range<u64> {
    let (planned, pruned) = (disk.snapshot(), disk.snapshot());
    Keep::of(&planned).plan();
    Keep::of(&pruned).prune();
    planned.calls() - 2..pruned.calls()
}

fn finish(disk: &SimulatedDisk, what: &str) {
    let before = check(disk);
    for (code, message) in found(&before) {
        assert_eq!(code, Some("removal_unfinished"), "{what}: {message}");
    }
    assert!(before.verdict <= Verdict::Incomplete, "{what}");
    let keep = Keep::of(disk);
    keep.prune();
    assert_eq!(keep.fates(), DONE, "{what}");
    assert_eq!(check(disk).verdict, Verdict::Ok, "{what}");
}

#[test]
fn a_machine_that_dies_at_any_call_leaves_a_log_or_a_removed_one_and_a_second_run_finishes() {
    let (disk, _workers) = four_incarnations();
    for call in calls(&disk) {
        for seed in 0..3 {
            let disk = disk.snapshot();
            disk.inject_fault_at(call, InjectedFault::Crash);
            assert!(Keep::of(&disk).try_prune().is_err(), "call {call}");
            disk.crash(seed);
            finish(&disk, &format!("call {call}, seed {seed}"));
        }
    }
}

#[test]
fn a_call_that_fails_leaves_a_log_or_a_removed_one_and_a_second_run_finishes() {
    let (disk, _workers) = four_incarnations();
    for call in calls(&disk) {
        for kind in [io::ErrorKind::StorageFull, io::ErrorKind::PermissionDenied] {
            let disk = disk.snapshot();
            disk.inject_fault_at(call, InjectedFault::Error(kind));
            let _ = Keep::of(&disk).try_prune();
            finish(&disk, &format!("call {call}, {kind}"));
        }
    }
}

#[test]
fn a_hold_keeps_every_log_that_it_touches_and_its_release_lets_them_go() {
    let scopes = [
        (
            HoldScope {
                tenant: Some("acme".to_owned()),
                ..HoldScope::default()
            },
            ["held", "held ends_kept"],
        ),
        (
            HoldScope {
                exchange: Some("req-7".to_owned()),
                ..HoldScope::default()
            },
            ["held", "ends_kept"],
        ),
        // Its end is in the second log.
        (
            HoldScope {
                exchange: Some("orphan".to_owned()),
                ..HoldScope::default()
            },
            ["held", "held ends_kept"],
        ),
        (
            HoldScope {
                exchange: Some("second".to_owned()),
                ..HoldScope::default()
            },
            ["remove", "held"],
        ),
        (
            HoldScope {
                since: Some(50),
                until: Some(60),
                ..HoldScope::default()
            },
            ["held", "ends_kept"],
        ),
        // The time when the second log ended what the first had left open, without stating the tenant.
        (
            HoldScope {
                tenant: Some("acme".to_owned()),
                since: Some(1),
                until: Some(1),
                ..HoldScope::default()
            },
            ["held", "held ends_kept"],
        ),
        (
            HoldScope {
                tenant: Some("globex".to_owned()),
                since: Some(1),
                until: Some(1),
                ..HoldScope::default()
            },
            ["remove", "remove"],
        ),
        (
            HoldScope {
                since: Some(DAY),
                ..HoldScope::default()
            },
            ["remove", "remove"],
        ),
        (
            HoldScope {
                tenant: Some("globex".to_owned()),
                ..HoldScope::default()
            },
            ["remove", "remove"],
        ),
        (HoldScope::default(), ["held", "held ends_kept"]),
    ];
    let (disk, _workers) = four_incarnations();
    for (scope, expected) in scopes {
        let mut keep = Keep::of(&disk);
        let id = keep.hold(scope.clone());
        assert_eq!(keep.fates()[..2], expected, "{scope:?}");
        keep.retention.release_hold(id, &why("closed"), 2).unwrap();
        assert_eq!(keep.fates()[..2], ["remove", "remove"], "{scope:?}");
        let reopened = RetentionState::open(Arc::new(keep.state.clone())).unwrap();
        assert_eq!(reopened.holds(), keep.retention.holds(), "it stays in the list");
    }
}

#[test]
fn a_hold_may_touch_an_end_in_a_log_that_nobody_can_read() {
    let (disk, workers) = five_incarnations();
    let mut keep = Keep::of(&disk);
    let id = keep.hold(its_end());
    assert_eq!(keep.fates()[0], "held");
    flip_byte(&disk, &workers[1]);
    assert_eq!(keep.fates()[0], "held_unknown");
    // What ends this state when the log cannot be restored.
    keep.retention
        .release_hold(id, &why("it is narrower now"), 2)
        .unwrap();
    keep.hold(HoldScope {
        tenant: Some("globex".to_owned()),
        ..its_end()
    });
    assert_eq!(keep.fates()[0], "remove");
}

#[test]
fn a_hold_touches_an_end_however_many_logs_are_between() {
    let (disk, mut first) = testkit::new_worker();
    let admission = first.admit("across", 1).unwrap();
    let mut last = rotate_at(&disk, &mut first, 100 * DAY);
    for _ in 0..4 {
        last = rotate_at(&disk, &mut last, 100 * DAY);
    }
    end_exchange_later(&mut last, ulid(&first), admission);
    let mut keep = Keep::of(&disk);
    assert_eq!(keep.fates()[0], "remove");
    keep.hold(its_end());
    let fates = ["held", "young", "young", "young", "newest", "newest"];
    assert_eq!(keep.fates(), fates);
}

#[test]
fn an_end_that_a_log_of_nobodys_tells_is_none() {
    let (disk, mut first) = testkit::new_worker();
    let admission = first.admit("across", 1).unwrap();
    let mut last = rotate_at(&disk, &mut first, 100 * DAY);
    for _ in 0..2 {
        last = rotate_at(&disk, &mut last, 100 * DAY);
    }
    // An unsigned log, which states that the exchange ended there, comes before the log in which it continued.
    let mut planted = start_successor_log(&disk, &last, 100 * DAY);
    planted
        .complete_from_log(Some(ulid(&first)), "across", admission)
        .unwrap();
    checkpoint_all(&mut planted);
    disk.corrupt(&log_dir(&planted).join("checkpoint"), |note| note[0] ^= 1);
    let mut last = rotate_at(&disk, &mut last, 101 * DAY);
    end_exchange_later(&mut last, ulid(&first), admission);
    let mut keep = Keep::of(&disk);
    assert_eq!(keep.fates()[0], "remove");
    keep.hold(its_end());
    assert!(keep.fates()[0].starts_with("held"), "{:?}", keep.fates());
}

#[test]
fn what_is_no_log_leaves_in_no_doubt_where_an_exchange_ended() {
    let (disk, workers) = five_incarnations();
    let mut keep = Keep::of(&disk);
    let hold = HoldScope {
        since: Some(1_000_000_000),
        ..HoldScope::default()
    };
    keep.hold(hold);
    let before = keep.fates();
    assert_eq!(before[0], "remove");
    let stray = Ulid(ulid(&workers[1]).0 - 1).to_string();
    disk.create(&log_dir(&workers[1]).parent().unwrap().join(stray))
        .unwrap();
    let after = keep.fates();
    assert_eq!(after[1], "tombstone_refused");
    assert_eq!([&after[..1], &after[2..]].concat(), before);
}

#[test]
fn a_hold_that_comes_between_the_plan_and_the_run_holds() {
    let (disk, _workers) = four_incarnations();
    let mut keep = Keep::of(&disk);
    assert_eq!(keep.fates()[..2], ["remove", "remove"]);
    keep.hold(HoldScope::default());
    assert_eq!(keep.prune()[..2], ["held", "held ends_kept"]);
    assert_eq!(keep.check().verdict, Verdict::Ok);
}

#[test]
fn a_hold_that_comes_after_the_tombstone_keeps_what_is_left() {
    let (disk, workers) = four_incarnations();
    let mut keep = Keep::of(&disk);
    let salts = disk.read(&log_dir(&workers[0]).join("salts")).unwrap();
    keep.prune();
    disk.create(&log_dir(&workers[0]).join("salts")).unwrap();
    disk.corrupt(&log_dir(&workers[0]).join("salts"), |bytes| *bytes = salts);
    assert_eq!(keep.fates()[0], "finish");
    let id = keep
        .retention
        .add_hold(None, HoldScope::default(), &why("a case"), keep.now)
        .unwrap()
        .id;
    assert_eq!(keep.prune()[0], "held");
    keep.retention.release_hold(id, &why("closed"), keep.now).unwrap();
    assert_eq!(keep.prune()[0], "finish");
    assert_eq!(keep.fates(), DONE);
}

#[test]
fn a_log_waits_for_the_longest_minimum_of_the_tenants_in_it() {
    let (disk, _workers) = four_incarnations();
    let mut keep = Keep::of(&disk);
    keep.policy = RetentionPolicy::new(180, BTreeMap::from([("acme".to_owned(), 201)])).unwrap();
    assert_eq!(keep.fates()[..2], ["young", "young ends_kept"]);
    // The second log ends an exchange of the first without stating its tenant.
    keep.policy = RetentionPolicy::new(180, BTreeMap::from([("globex".to_owned(), 201)])).unwrap();
    assert_eq!(keep.fates()[..2], ["remove", "young"]);
    keep.now = 202 * DAY;
    assert_eq!(keep.fates()[..2], ["remove", "remove"]);
    assert!(RetentionPolicy::new(180, BTreeMap::from([("acme".to_owned(), 90)])).is_err());
    assert!(RetentionPolicy::new(u64::MAX, BTreeMap::new()).is_err());
}

#[test]
fn a_clock_that_is_wrong_removes_nothing() {
    let (disk, _workers) = four_incarnations();
    let mut keep = Keep::of(&disk);
    keep.policy = RetentionPolicy::new(0, BTreeMap::new()).unwrap();
    keep.now = 1;
    let fates = keep.fates();
    assert!(fates[0].contains("future"), "{fates:?}");
    keep.policy = RetentionPolicy::new(180, BTreeMap::new()).unwrap();
    keep.now = 10 * DAY;
    // The name of the second log may be in the first millisecond too: then the other reasons are reported as well.
    let fates = keep.fates();
    assert!(
        fates[..2].iter().all(|fate| fate.starts_with("young")),
        "{fates:?}"
    );
}

#[test]
fn a_log_that_is_named_for_a_time_to_come_goes_when_its_records_are_old() {
    let (disk, mut worker) = worker_with_records();
    // One worker's clock was years ahead, and the names of all later logs sort after its own.
    for now in [NOW + 5000 * DAY, 1, 1, 1, 1] {
        worker = rotate_at(&disk, &mut worker, now);
        worker.run_exchange("one");
        checkpoint_all(&mut worker);
    }
    let keep = Keep::of(&disk);
    assert!(ulid(&worker).timestamp_ms() > NOW / 1000);
    assert_eq!(
        keep.fates(),
        ["remove", "future", "remove", "remove", "newest", "newest"]
    );
}

#[test]
fn a_log_stays_while_its_worker_lives_and_while_nobody_goes_on_behind_it() {
    let (disk, workers) = four_incarnations();
    let lock = disk.open_writable(&log_dir(&workers[1]).join("salts")).unwrap();
    assert!(lock.try_lock().unwrap());
    let keep = Keep::of(&disk);
    assert_eq!(keep.prune(), ["remove", "locked", "newest", "newest"]);
    assert_eq!(keep.check().verdict, Verdict::Ok, "{:#?}", found(&keep.check()));
    drop(lock);
    assert_eq!(keep.prune(), ["removed", "remove", "newest", "newest"]);

    let (disk, _worker) = worker_with_records();
    assert_eq!(Keep::of(&disk).fates(), ["newest"]);

    // If a directory has the file's name, the content is unknown.
    let (disk, workers) = four_incarnations();
    let salts = log_dir(&workers[0]).join("salts");
    disk.remove(&salts).unwrap();
    disk.create_dir(&salts).unwrap();
    assert_eq!(Keep::of(&disk).prune()[..2], ["damaged", "ends_kept"]);
}

#[test]
fn a_log_that_is_not_what_was_signed_stays() {
    let (disk, workers) = four_incarnations();
    let segment = log_dir(&workers[0]).join("00000000000000000000.seg");
    let damages: [&dyn Fn(&SimulatedDisk); 3] = [
        &|disk| disk.corrupt(&segment, |bytes| bytes[600] ^= 1),
        &|disk| disk.corrupt(&log_dir(&workers[0]).join("checkpoint"), |bytes| bytes[3] ^= 1),
        &|disk| disk.remove(&segment).unwrap(),
    ];
    for damage in damages {
        let disk = disk.snapshot();
        damage(&disk);
        let fates = Keep::of(&disk).prune();
        assert!(fates[0].contains("damaged"), "{fates:?}");
        assert!(disk.read(&log_dir(&workers[0]).join("tombstone")).is_none());
    }
    // Without the note that covers the end of the first log, nothing covers it.
    let cover = log_dir(&workers[1]).join(format!("{}.checkpoint", ulid(&workers[0])));
    disk.remove(&cover).unwrap();
    assert!(Keep::of(&disk).prune()[0].contains("uncovered"));
}

#[test]
fn what_is_no_file_keeps_its_own_log_alone_and_all_else_of_that_goes() {
    for name in ["resume.tmp", "tree"] {
        let (disk, workers) = four_incarnations();
        let stray = log_dir(&workers[0]).join(name);
        let keep = Keep::of(&disk);
        folder(&disk, &stray);
        assert_eq!(keep.prune(), ["damaged", "remove", "newest", "newest"], "{name}");
        assert_eq!(keep.prune(), ["damaged", "removed", "newest", "newest"], "{name}");
        let names = disk.list(&log_dir(&workers[0])).unwrap();
        assert!(names.contains(&"tombstone".to_owned()), "{names:?}");
        assert!(!names.contains(&"salts".to_owned()), "{names:?}");
        disk.remove_dir(&stray);
        assert_eq!(keep.fates(), DONE, "{name}");
        assert_eq!(keep.check().verdict, Verdict::Ok, "{:#?}", found(&keep.check()));
    }
}

#[test]
fn a_log_that_the_run_cannot_bury_keeps_those_that_hold_its_ends_and_no_others() {
    let names = ["x.record", "keeping.tmp", "00000000000000000000.tlog-proof"];
    for name in names {
        for (at, fates) in [(0, ["damaged", "ends_kept"]), (1, ["remove", "damaged"])] {
            let (disk, workers) = four_incarnations();
            let keep = Keep::of(&disk);
            folder(&disk, &log_dir(&workers[at]).join(name));
            assert_eq!(keep.prune()[..2], fates, "{name}");
            assert!(disk.read(&log_dir(&workers[at]).join("tombstone")).is_none());
            disk.remove_dir(&log_dir(&workers[at]).join(name));
            assert!(!keep.prune().contains(&"damaged".to_owned()), "{name}");
            assert_eq!(keep.fates(), DONE, "{name}");
            assert_eq!(keep.check().verdict, Verdict::Ok, "{:#?}", found(&keep.check()));
        }
    }
    let (disk, workers) = four_incarnations();
    let lock = disk.open_writable(&log_dir(&workers[0]).join("salts")).unwrap();
    assert!(lock.try_lock().unwrap());
    let keep = Keep::of(&disk);
    assert_eq!(keep.prune()[..2], ["locked", "ends_kept"]);
    assert_eq!(keep.check().verdict, Verdict::Ok, "{:#?}", found(&keep.check()));
}

#[test]
fn names_that_are_no_log_and_no_cover_keep_no_log_from_going_and_count_as_none_of_the_newest() {
    let (disk, workers) = four_incarnations();
    let stray = Ulid(ulid(&workers[3]).0 - 1).to_string();
    disk.create(&log_dir(&workers[3]).parent().unwrap().join(stray))
        .unwrap();
    // The good covering note of the killed log is in the second.
    let cover = format!("{}.checkpoint", ulid(&workers[0]));
    folder(&disk, &log_dir(&workers[2]).join(cover));
    let fates = ["remove", "remove", "newest", "tombstone_refused", "newest"];
    assert_eq!(Keep::of(&disk).prune(), fates);
}

#[test]
fn what_nobody_may_read_keeps_its_own_log_alone() {
    let (disk, workers) = four_incarnations();
    let keep = Keep::of(&disk);
    for (name, code) in [
        ("tombstone", "tombstone_refused"),
        ("checkpoint", "damaged"),
        ("00000000000000000000.seg", "damaged"),
    ] {
        let withheld = DeniedPathStorage(&disk, log_dir(&workers[0]).join(name));
        let found = fates(&keep.plan_of(&withheld));
        assert!(found[0].starts_with(code), "{name}: {found:?}");
        assert_eq!(found[1..], ["ends_kept", "newest", "newest"], "{name}");
    }
}

#[test]
fn a_hold_on_an_exchange_keeps_the_log_in_which_its_analysis_stands() {
    let disk = SimulatedDisk::new();
    disk.create_dir(Path::new(testkit::SHARD)).unwrap();
    let mut judged = None;
    for name in ["judged", "other", "third", "fourth"] {
        let mut worker = start(&disk, &mut DurabilityModel::default()).unwrap();
        let admission = worker.writer.next_seq();
        if let (Some(judged), "other") = (judged, name) {
            analyse(&mut worker, "judged", judged, 9);
        }
        judged = judged.or(Some((ulid(&worker), admission)));
        worker.run_exchange(name);
        worker.seal().unwrap();
        disk.restart();
    }
    let mut keep = Keep::of(&disk);
    assert_eq!(keep.fates()[..2], ["remove", "remove"]);
    let exchange = |id: &str| HoldScope {
        exchange: Some(id.to_owned()),
        ..HoldScope::default()
    };
    for (held, fates) in [("judged", ["held", "held"]), ("other", ["remove", "held"])] {
        let id = keep.hold(exchange(held));
        assert_eq!(keep.fates()[..2], fates, "{held}");
        keep.retention.release_hold(id, &why("closed"), 2).unwrap();
    }
}

#[test]
fn a_plan_of_a_log_alone_is_refused() {
    let (disk, _workers) = four_incarnations();
    let planned = Keep::of(&disk).plan();
    assert_eq!(fates(&planned).len(), 4);
    let names: Vec<&str> = planned.iter().map(|log| log.shard.as_str()).collect();
    assert_eq!(names, ["3"; 4]);
}

#[test]
fn a_worker_of_a_shard_with_removed_logs_goes_on_being_served() {
    let (disk, mut workers) = four_incarnations();
    let last: &mut Worker = workers.last_mut().unwrap();
    Keep::of(&disk).prune();
    last.run_exchange("meanwhile");
    assert_eq!(check(&disk).verdict, Verdict::Ok);
}
