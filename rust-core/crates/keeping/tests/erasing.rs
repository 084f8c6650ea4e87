//! Destroyed salts: commitments reveal nothing any more, and everything else is unchanged.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first failure"
)]

mod keep;

use keep::{Attack, DAY, Keep, check, found, its_end, keeping_key, why};
use proofgate_evidence::erasures::{ERASURES_FILE, MAX_ERASURES_BYTES};
use proofgate_evidence::{ReadStorage, Verdict, fsck, prove, read_stored_salt};
use proofgate_keeping::{
    ErasureRequest, ErasureTarget, HoldScope, PlannedErasure, RetentionError, RetentionPolicy, SaltAction,
    erase, plan_erasure,
};
use proofgate_ledger::{ShredKey, SigningKey};
use proofgate_ledger_testkit::{
    self as testkit, DurabilityModel, InterceptedStorage, Worker, end_exchange_later, five_incarnations,
    flip_byte, forge_records, four_incarnations, log_dir, records_with_renamed_ids, remove_files,
    restore_old_checkpoint, rotate, start, ulid, vkey, worker_with_records,
};
use proofgate_payloads::{Payload, PayloadField, PayloadKey, PayloadWriter, is_punched};
use proofgate_wal::Storage;
use proofgate_wal::simulated::{InjectedFault, SimulatedDisk};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

fn exchange(id: &str) -> ErasureTarget {
    ErasureTarget::Exchange(id.to_owned())
}

fn tenant(name: &str, until: u64) -> ErasureTarget {
    ErasureTarget::Tenant {
        name: name.to_owned(),
        until: Some(until),
    }
}

fn run(
    keep: &Keep,
    what: &ErasureTarget,
    policy: Option<&RetentionPolicy>,
    carry_out: bool,
) -> Result<Vec<String>, RetentionError> {
    let planned = with(keep, what, policy, |request| match carry_out {
        true => erase(&keep.disk, request, &keeping_key()),
        false => plan_erasure(&keep.disk, &keeping_key().verifying_key(), request),
    })?;
    Ok(told(&planned))
}

fn with<T>(
    keep: &Keep,
    what: &ErasureTarget,
    policy: Option<&RetentionPolicy>,
    act: impl FnOnce(&ErasureRequest<'_>) -> T,
) -> T {
    act(&ErasureRequest {
        ledger: Path::new("/"),
        key: &vkey(),
        retention: &keep.retention,
        target: what,
        policy,
        justification: &why("asked for on paper"),
        now: keep.now,
        started_at: None,
    })
}

fn told(planned: &[PlannedErasure]) -> Vec<String> {
    planned
        .iter()
        .map(|log| match &log.action {
            SaltAction::Erase => format!("erase {}", log.admissions.len()),
            SaltAction::AlreadyErased => format!("erased {}", log.admissions.len()),
            SaltAction::Retain(why) => why.iter().map(|why| why.code).collect::<Vec<_>>().join(" "),
        })
        .collect()
}

fn done(keep: &Keep, what: &ErasureTarget) -> Vec<String> {
    run(keep, what, None, true).unwrap()
}

/// Salts of the admissions of a worker, as they are stored.
fn salts(disk: &SimulatedDisk, worker: &Worker) -> Vec<Option<[u8; 32]>> {
    let admissions = worker.durability_model.appended.iter().enumerate();
    admissions
        .filter(|(_, record)| {
            record
                .windows(20)
                .any(|word| word == b"\"kind\":\"admission\",\"")
        })
        .map(|(seq, _)| read_stored_salt(disk, &log_dir(worker), seq as u64).unwrap())
        .collect()
}

fn holds_bytes(disk: &SimulatedDisk, bytes: &[u8]) -> bool {
    let mut files = disk.files().into_iter();
    files.any(|path| {
        disk.read(&path)
            .unwrap()
            .windows(bytes.len())
            .any(|at| at == bytes)
    })
}

#[test]
fn an_exchange_is_forgotten_and_everything_else_still_verifies() {
    let (disk, workers) = four_incarnations();
    let keep = Keep::of(&disk);
    let before = salts(&disk, &workers[0]);
    // req-1 is the second exchange of the first log: records 3 and 4.
    let salt = read_stored_salt(&disk, &log_dir(&workers[0]), 3)
        .unwrap()
        .unwrap();
    assert!(holds_bytes(&disk, &salt));
    assert_eq!(run(&keep, &exchange("req-1"), None, false).unwrap(), ["erase 1"]);
    assert!(holds_bytes(&disk, &salt), "a plan changes nothing");
    assert_eq!(done(&keep, &exchange("req-1")), ["erase 1"]);
    assert!(!holds_bytes(&disk, &salt), "no file of the ledger holds it");
    assert!(!holds_bytes(&disk, &salt[..8]));
    for (at, (was, is)) in before.iter().zip(salts(&disk, &workers[0])).enumerate() {
        assert_eq!(is.is_none(), at == 1, "admission {at}");
        assert!(at == 1 || is == *was);
    }
    let proof = prove::record_proof(&disk, &log_dir(&workers[0]), 3, Some(&vkey())).unwrap();
    assert_eq!(proof.salt(), None);
    proof
        .verify(&workers[0].durability_model.appended[3], &vkey())
        .unwrap();
    let other = prove::record_proof(&disk, &log_dir(&workers[0]), 1, Some(&vkey())).unwrap();
    assert_eq!(
        other
            .reveal(&workers[0].durability_model.appended[1], &vkey(), b"hello")
            .unwrap(),
        "request"
    );
    let report = keep.check();
    assert_eq!(
        (report.verdict, report.incarnations[0].erased_salts),
        (Verdict::Ok, 1),
        "{:#?}",
        found(&report)
    );
    assert_eq!(done(&keep, &exchange("req-1")), ["erased 1"], "it is signed once");
}

#[test]
fn a_denied_request_is_forgotten_like_an_admitted_one() {
    let (disk, mut worker) = worker_with_records();
    let denied = worker.deny("denied").unwrap();
    worker.seal().unwrap();
    disk.restart();
    let keep = Keep::of(&disk);
    let salt = read_stored_salt(&disk, &log_dir(&worker), denied)
        .unwrap()
        .unwrap();
    assert_eq!(done(&keep, &exchange("denied")), ["erase 1"]);
    assert!(!holds_bytes(&disk, &salt), "no file of the ledger holds it");
    assert_eq!(done(&keep, &tenant("acme", DAY)), ["erase 41"]);
    let report = keep.check();
    assert_eq!(
        (report.verdict, report.incarnations[0].erased_salts),
        (Verdict::Ok, 41),
        "{:#?}",
        found(&report)
    );
}

#[test]
fn a_tenant_is_forgotten_up_to_a_time_in_all_logs_that_have_ended() {
    let (disk, workers) = four_incarnations();
    let keep = Keep::of(&disk);
    assert_eq!(done(&keep, &tenant("globex", DAY)), [""; 0]);
    // The newest log is still being written.
    let all = ["erase 41", "erased 1", "erased 1", "not_ended"];
    assert_eq!(
        done(&keep, &tenant("acme", 11)),
        ["erase 5", "erase 1", "erase 1", "not_ended"]
    );
    assert_eq!(
        salts(&disk, &workers[0])
            .iter()
            .filter(|salt| salt.is_none())
            .count(),
        5
    );
    assert_eq!(keep.check().verdict, Verdict::Ok, "{:#?}", found(&keep.check()));
    assert_eq!(run(&keep, &tenant("acme", DAY), None, false).unwrap(), all);
    assert_eq!(done(&keep, &tenant("acme", DAY)), all);
    assert!(salts(&disk, &workers[0]).iter().all(Option::is_none));
    assert!(salts(&disk, &workers[3]).iter().all(Option::is_some));
    let report = keep.check();
    assert_eq!(report.verdict, Verdict::Ok, "{:#?}", found(&report));
    assert_eq!(
        done(&keep, &tenant("acme", DAY))[..3],
        ["erased 41", "erased 1", "erased 1"]
    );
    assert_eq!(
        done(&keep, &tenant("acme", 2 * DAY))[..3],
        ["erased 41", "erased 1", "erased 1"],
        "asked for again with a later time, it is signed once"
    );
    let notes = String::from_utf8(disk.read(&log_dir(&workers[0]).join(ERASURES_FILE)).unwrap()).unwrap();
    assert!(
        notes.len() < 1000,
        "it grows with what was asked for, not with the exchanges"
    );
    // It may be removed afterwards.
    assert_eq!(keep.prune()[..2], ["remove", "remove"]);
    assert_eq!(keep.check().verdict, Verdict::Ok);
}

#[test]
fn a_hold_stops_an_erasure_and_a_minimum_does_unless_it_is_overridden() {
    let (disk, workers) = four_incarnations();
    let mut keep = Keep::of(&disk);
    let minimum = RetentionPolicy::new(0, BTreeMap::from([("acme".to_owned(), 201)])).unwrap();
    let short = RetentionPolicy::new(180, BTreeMap::new()).unwrap();
    assert_eq!(
        run(&keep, &exchange("req-1"), Some(&minimum), true).unwrap(),
        ["young"]
    );
    assert_eq!(
        run(&keep, &exchange("req-1"), Some(&short), false).unwrap(),
        ["erase 1"]
    );
    assert_eq!(run(&keep, &exchange("req-1"), None, false).unwrap(), ["erase 1"]);
    let scopes = [
        HoldScope {
            tenant: Some("acme".to_owned()),
            ..HoldScope::default()
        },
        HoldScope {
            exchange: Some("req-1".to_owned()),
            ..HoldScope::default()
        },
        // Its admission has time 4, its end time 5.
        HoldScope {
            since: Some(5),
            until: Some(5),
            ..HoldScope::default()
        },
        HoldScope::default(),
    ];
    for scope in scopes {
        let id = keep.hold(scope.clone());
        assert_eq!(
            run(&keep, &exchange("req-1"), None, true).unwrap(),
            ["held"],
            "{scope:?}"
        );
        keep.retention.release_hold(id, &why("closed"), 2).unwrap();
    }
    let id = keep.hold(HoldScope {
        exchange: Some("req-2".to_owned()),
        ..HoldScope::default()
    });
    assert_eq!(
        done(&keep, &tenant("acme", DAY))[0],
        "held",
        "one exchange keeps what is signed as one"
    );
    assert!(salts(&disk, &workers[0]).iter().all(Option::is_some));
    assert_eq!(done(&keep, &exchange("req-1")), ["erase 1"]);
    keep.retention.release_hold(id, &why("closed"), 2).unwrap();
    assert_eq!(done(&keep, &tenant("acme", DAY))[0], "erase 41");
    assert_eq!(keep.check().verdict, Verdict::Ok, "{:#?}", found(&keep.check()));
}

#[test]
fn what_is_still_written_or_not_there_is_not_erased() {
    let (disk, workers) = four_incarnations();
    let keep = Keep::of(&disk);
    assert_eq!(done(&keep, &exchange("fourth")), ["not_ended"]);
    assert!(salts(&disk, &workers[3]).iter().all(Option::is_some));
    let error = run(&keep, &exchange("nothing"), None, true).unwrap_err();
    assert_eq!(error.code(), "keeping_invalid");
    let lock = disk.open_writable(&log_dir(&workers[1]).join("salts")).unwrap();
    assert!(lock.try_lock().unwrap());
    assert_eq!(done(&keep, &exchange("second")), ["locked"]);
}

#[test]
fn a_tombstone_that_is_not_by_the_retention_key_hides_no_log() {
    let (disk, workers) = four_incarnations();
    let keep = Keep::of(&disk);
    disk.create(&log_dir(&workers[1]).join("tombstone")).unwrap();
    assert_eq!(done(&keep, &exchange("second")), ["tombstone_refused"]);
    assert_eq!(
        done(&keep, &tenant("acme", DAY)),
        ["erase 41", "tombstone_refused", "erase 1", "not_ended"]
    );
    assert!(salts(&disk, &workers[1]).iter().all(Option::is_some));
    // The same when none of its records can be read any more.
    remove_files(&disk, &workers[1], |name| name.ends_with(".seg"));
    let fates = done(&keep, &tenant("acme", DAY));
    assert!(fates[1].starts_with("tombstone_refused damaged"), "{fates:?}");
}

#[test]
fn what_a_removal_that_was_cut_short_left_of_salts_is_told() {
    let (disk, workers) = four_incarnations();
    let mut keep = Keep::of(&disk);
    let path = log_dir(&workers[0]).join("salts");
    let left = disk.read(&path).unwrap();
    keep.prune();
    assert_eq!(done(&keep, &tenant("acme", DAY)), ["erase 1", "not_ended"]);
    disk.create(&path).unwrap();
    disk.corrupt(&path, |bytes| *bytes = left);
    let all = |first: &str| [first, "erased 1", "not_ended"].map(str::to_owned);
    assert_eq!(done(&keep, &tenant("acme", DAY)), all("removal_unfinished"));
    let held = keep
        .retention
        .add_hold(None, HoldScope::default(), &why("a case"), keep.now);
    let held = held.unwrap().id;
    assert_eq!(done(&keep, &tenant("acme", DAY))[0], "held");
    keep.retention
        .release_hold(held, &why("closed"), keep.now)
        .unwrap();
    keep.prune();
    assert_eq!(done(&keep, &tenant("acme", DAY)), all("removal_unfinished")[1..]);
}

/// A request id with the first millisecond of 1970, the time of all records in the tests.
const TIMED: &str = "req_00000000000070008000000000000001";
const OTHER: &str = "req_00000000000070008000000000000002";

/// A log of two exchanges that has ended, and one that is still running.
fn two_lives() -> (SimulatedDisk, Worker) {
    let (disk, mut worker) = testkit::new_worker();
    worker.run_exchange(TIMED);
    worker.run_exchange(OTHER);
    worker.seal().unwrap();
    disk.restart();
    start(&disk, &mut DurabilityModel::default()).unwrap();
    (disk, worker)
}

#[test]
fn nothing_is_erased_by_records_that_no_checkpoint_covers() {
    let (whole, worker) = two_lives();
    let attacks: [Attack<'_>; 3] = [
        ("damaged uncovered", &|disk| {
            restore_old_checkpoint(disk, &worker, 0);
            forge_records(
                disk,
                &worker,
                &records_with_renamed_ids(&worker, &[(TIMED, OTHER), (OTHER, TIMED)]),
            );
        }),
        ("uncovered", &|disk| {
            remove_files(disk, &worker, |name| name == "checkpoint")
        }),
        // A later log states its last records.
        ("damaged", &|disk| {
            restore_old_checkpoint(disk, &worker, 1);
            forge_records(disk, &worker, &worker.durability_model.appended[..3]);
        }),
    ];
    for (codes, attack) in attacks {
        let disk = whole.snapshot();
        let mut keep = Keep::of(&disk);
        keep.hold(HoldScope {
            exchange: Some(OTHER.to_owned()),
            ..HoldScope::default()
        });
        attack(&disk);
        assert_eq!(done(&keep, &exchange(TIMED)), [codes]);
        let fates = done(&keep, &tenant("acme", DAY));
        assert!(fates[0].starts_with(codes), "{fates:?}");
        // Whether the log has records of this tenant is unknown.
        assert_eq!(done(&keep, &tenant("globex", DAY)), [codes]);
        assert!(disk.read(&log_dir(&worker).join(ERASURES_FILE)).is_none());
    }
}

#[test]
fn a_planted_log_is_not_taken_for_the_one_that_admitted_an_exchange() {
    let (disk, worker) = two_lives();
    let (other, mut planted) = testkit::new_worker();
    planted.run_exchange(TIMED);
    planted.seal().unwrap();
    disk.create_dir(Path::new("/0")).unwrap();
    let folder = Path::new("/0").join(ulid(&planted).to_string());
    disk.create_dir(&folder).unwrap();
    for name in other.list(&log_dir(&planted)).unwrap() {
        if name != "checkpoint" {
            let content = other.read(&log_dir(&planted).join(&name)).unwrap();
            disk.create(&folder.join(&name)).unwrap();
            disk.corrupt(&folder.join(&name), |bytes| *bytes = content);
        }
    }
    let keep = Keep::of(&disk);
    assert_eq!(done(&keep, &exchange(TIMED)), ["uncovered", "erase 1"]);
    assert_eq!(
        salts(&disk, &worker).iter().filter(|salt| salt.is_none()).count(),
        1
    );
}

#[test]
fn a_hold_touches_an_exchange_also_by_its_end_in_another_log() {
    let (disk, _workers) = four_incarnations();
    let mut keep = Keep::of(&disk);
    // The time when the second log ended what the first had left open.
    let then = |tenant: Option<&str>| HoldScope {
        tenant: tenant.map(str::to_owned),
        since: Some(1),
        until: Some(1),
        ..HoldScope::default()
    };
    for (tenant, fate) in [
        (None, "held"),
        (Some("acme"), "held"),
        (Some("globex"), "erase 1"),
    ] {
        let id = keep.hold(then(tenant));
        let planned = run(&keep, &exchange("orphan"), None, false).unwrap();
        assert_eq!(planned, [fate], "{tenant:?}");
        assert_eq!(run(&keep, &exchange("req-1"), None, false).unwrap(), ["erase 1"]);
        keep.retention.release_hold(id, &why("closed"), 2).unwrap();
    }
}

#[test]
fn a_hold_touches_an_end_in_a_log_that_began_while_the_ledger_was_read() {
    let mut call = 0;
    loop {
        let (disk, mut former) = testkit::new_worker();
        former.run_exchange("old");
        let mut running = rotate(&disk, &mut former);
        let mut keep = Keep::of(&disk);
        keep.hold(its_end());
        let admission = running.admit("across", 1).unwrap();
        running.flush().unwrap();
        let meanwhile = InterceptedStorage::with_action_at(&disk, call, || {
            let mut next = rotate(&disk, &mut running);
            end_exchange_later(&mut next, ulid(&running), admission);
        });
        let planned = with(&keep, &tenant("acme", 10), None, |request| {
            plan_erasure(&meanwhile, &keeping_key().verifying_key(), request)
        });
        let fates = told(&planned.unwrap());
        if !meanwhile.has_run() {
            break;
        }
        assert_eq!(fates[0], "erase 1", "call {call}");
        let sound = ["not_ended", "held", "not_ended held"];
        assert!(sound.contains(&fates[1].as_str()), "call {call}: {fates:?}");
        call += 1;
    }
    assert!(call > 10, "{call}");
}

#[test]
fn a_hold_may_touch_an_end_in_a_log_that_nobody_can_read_or_that_is_gone() {
    let (whole, workers) = five_incarnations();
    let (second, third) = (&workers[1], &workers[2]);
    let attacks: [Attack<'_>; 7] = [
        ("held", &|_| {}),
        ("held", &|disk| flip_byte(disk, third)),
        ("held_unknown", &|disk| flip_byte(disk, second)),
        ("held_unknown", &|disk| {
            remove_files(disk, second, |name| name.ends_with(".seg"));
        }),
        // What it states about the end can still be read.
        ("held", &|disk| {
            remove_files(disk, second, |name| name == "checkpoint")
        }),
        ("held_unknown", &|disk| remove_files(disk, second, |_| true)),
        ("held", &|disk| {
            disk.create(&log_dir(second).join("tombstone")).unwrap();
        }),
    ];
    for (at, (code, attack)) in attacks.into_iter().enumerate() {
        let disk = whole.snapshot();
        attack(&disk);
        let mut keep = Keep::of(&disk);
        let first = |keep: &Keep, what: &ErasureTarget| run(keep, what, None, false).unwrap()[0].clone();
        let acme = tenant("acme", 10);
        assert_eq!(first(&keep, &acme), "erase 2", "{at}: nothing is held");
        let id = keep.hold(its_end());
        assert_eq!(first(&keep, &acme), code, "{at}");
        assert_eq!(first(&keep, &exchange("across")), code, "{at}");
        assert_eq!(
            first(&keep, &exchange("first")),
            "erase 1",
            "{at}: it ended before"
        );
        // A hold does not retain what it cannot cover by tenant or id, and retains nothing once it is released.
        keep.retention
            .release_hold(id, &why("it is narrower now"), 2)
            .unwrap();
        let of = |tenant: Option<&str>, exchange: Option<&str>| HoldScope {
            tenant: tenant.map(str::to_owned),
            exchange: exchange.map(str::to_owned),
            ..its_end()
        };
        keep.hold(of(Some("globex"), None));
        keep.hold(of(None, Some("another")));
        assert_eq!(first(&keep, &acme), "erase 2", "{at}");
        keep.hold(of(Some("acme"), Some("across")));
        assert_eq!(first(&keep, &acme), code, "{at}");
    }
}

#[test]
fn an_exchange_that_is_ahead_of_the_clock_is_told_where_all_were_to_be_erased() {
    let (disk, workers) = four_incarnations();
    let mut keep = Keep::of(&disk);
    keep.now = 11;
    let all = ErasureTarget::Tenant {
        name: "acme".to_owned(),
        until: None,
    };
    assert_eq!(done(&keep, &all), ["future", "erase 1", "erase 1", "not_ended"]);
    assert!(salts(&disk, &workers[0]).iter().all(Option::is_some));
    keep.now = 200 * DAY;
    assert_eq!(
        done(&keep, &all),
        ["erase 41", "erased 1", "erased 1", "not_ended"]
    );
    assert_eq!(keep.check().verdict, Verdict::Ok, "{:#?}", found(&keep.check()));
}

#[test]
fn a_file_that_is_spoiled_keeps_its_own_log_alone() {
    let (whole, workers) = four_incarnations();
    let path = |name: &str| log_dir(&workers[1]).join(name);
    let put = |disk: &SimulatedDisk, name: &str, content: Vec<u8>| {
        disk.create(&path(name)).unwrap();
        disk.corrupt(&path(name), |bytes| *bytes = content);
    };
    let folder = |disk: &SimulatedDisk, name: &str| {
        let _ = disk.remove(&path(name));
        disk.create_dir(&path(name)).unwrap();
    };
    let spoil: [Attack<'_>; 5] = [
        ("tombstone_refused", &|disk| put(disk, "tombstone", vec![255])),
        ("tombstone_refused", &|disk| folder(disk, "tombstone")),
        ("damaged", &|disk| {
            put(disk, ERASURES_FILE, vec![b'x'; MAX_ERASURES_BYTES as usize - 1])
        }),
        ("damaged", &|disk| folder(disk, ERASURES_FILE)),
        ("damaged", &|disk| folder(disk, "salts")),
    ];
    for (at, (code, spoil)) in spoil.into_iter().enumerate() {
        let disk = whole.snapshot();
        spoil(&disk);
        let fates = done(&Keep::of(&disk), &tenant("acme", DAY));
        assert!(fates[1].starts_with(code), "{at}: {fates:?}");
        assert_eq!(
            [&fates[0], &fates[2], &fates[3]],
            ["erase 41", "erase 1", "not_ended"],
            "{at}"
        );
    }
    // If records cannot be read, what they state about other logs is unknown too.
    let segment = log_dir(&workers[2]).join("00000000000000000000.seg");
    whole.remove(&segment).unwrap();
    whole.create_dir(&segment).unwrap();
    assert_eq!(
        done(&Keep::of(&whole), &tenant("acme", DAY)),
        ["erase 41", "erase 1", "damaged", "not_ended"]
    );
}

/// The calls of an erasure, from the last ones of its plan on: the earlier ones only read.
fn calls(disk: &SimulatedDisk) -> std::ops::Range<u64> {
    let (planned, erased) = (disk.snapshot(), disk.snapshot());
    run(&Keep::of(&planned), &tenant("acme", 11), None, false).unwrap();
    done(&Keep::of(&erased), &tenant("acme", 11));
    planned.calls() - 2..erased.calls()
}

fn finish(disk: &SimulatedDisk, what: &str) {
    let before = check(disk);
    for (code, message) in found(&before) {
        assert_eq!(code, Some("erasure_unfinished"), "{what}: {message}");
    }
    let keep = Keep::of(disk);
    done(&keep, &tenant("acme", 11));
    let report = keep.check();
    assert_eq!(report.verdict, Verdict::Ok, "{what}: {:#?}", found(&report));
    assert_eq!(report.incarnations[0].erased_salts, 5, "{what}");
}

#[test]
fn a_machine_that_dies_at_any_call_leaves_no_erased_salt_that_was_not_signed() {
    let (disk, _workers) = four_incarnations();
    for call in calls(&disk) {
        for seed in 0..2 {
            let disk = disk.snapshot();
            disk.inject_fault_at(call, InjectedFault::Crash);
            assert!(run(&Keep::of(&disk), &tenant("acme", 11), None, true).is_err());
            disk.crash(seed);
            finish(&disk, &format!("call {call}, seed {seed}"));
        }
    }
}

#[test]
fn a_call_that_fails_is_done_again() {
    let (disk, _workers) = four_incarnations();
    for call in calls(&disk) {
        let faults = [
            InjectedFault::Error(io::ErrorKind::StorageFull),
            InjectedFault::ShortWrite,
        ];
        for fault in faults {
            let disk = disk.snapshot();
            disk.inject_fault_at(call, fault);
            let _ = run(&Keep::of(&disk), &tenant("acme", 11), None, true);
            finish(&disk, &format!("call {call}, {fault:?}"));
        }
    }
}

/// Stores a body of an exchange of the first log.
fn store(disk: &SimulatedDisk, worker: &Worker, seq: u64) {
    let storage: Arc<dyn Storage> = Arc::new(disk.clone());
    let mut writer = PayloadWriter::new(
        storage,
        Path::new("/3"),
        ("ledger.example/demo", 3),
        Arc::default(),
    );
    let stored = writer.store(Payload {
        incarnation: worker.durability_model.incarnation.unwrap(),
        seq,
        field: PayloadField::Request,
        key: PayloadKey::new(&ShredKey::new([1; 32]), &[2; 32]),
        body: b"hello".to_vec(),
    });
    stored.unwrap();
}

/// Returns whether the body of the exchange and that of the other one are still stored.
fn stored(disk: &SimulatedDisk, worker: &Worker) -> (bool, bool) {
    let is_there = |seq| !is_punched(disk, &log_dir(worker), &[seq]).unwrap();
    (is_there(3), is_there(1))
}

#[test]
fn what_is_stored_of_an_exchange_goes_with_its_salt_whatever_cuts_that_short() {
    let (disk, workers) = four_incarnations();
    store(&disk, &workers[0], 1);
    store(&disk, &workers[0], 3);
    let (whole, planned, disk) = (disk.snapshot(), disk.snapshot(), disk.snapshot());
    run(&Keep::of(&planned), &exchange("req-1"), None, false).unwrap();
    assert_eq!(done(&Keep::of(&disk), &exchange("req-1")), ["erase 1"]);
    let calls = planned.calls() - 2..disk.calls();
    assert_eq!(stored(&disk, &workers[0]), (false, true));
    let frames = disk.read(&log_dir(&workers[0]).join("payloads")).unwrap();
    let (_, last) = frames.split_at(frames.len() / 2);
    assert!(last[32..].iter().all(|byte| *byte == 0), "no byte of it is left");
    for call in calls {
        let disk = whole.snapshot();
        disk.inject_fault_at(call, InjectedFault::Error(io::ErrorKind::Other));
        assert!(run(&Keep::of(&disk), &exchange("req-1"), None, true).is_err());
        let again = done(&Keep::of(&disk), &exchange("req-1"));
        assert!(
            ["erase 1", "erased 1"].contains(&again[0].as_str()),
            "call {call}"
        );
        assert_eq!(stored(&disk, &workers[0]), (false, true), "call {call}");
    }
}

#[test]
fn salts_that_somebody_else_zeroed_are_told_where_the_retention_key_is_known() {
    let (disk, workers) = four_incarnations();
    let path = log_dir(&workers[0]).join("salts");
    disk.corrupt(&path, |bytes| bytes[32..64].fill(0));
    let report = check(&disk);
    assert_eq!(report.verdict, Verdict::Incomplete);
    assert_eq!(found(&report)[0].0, Some("salt_erased_unexplained"));
    let alone = fsck(&disk, Path::new("/"), Some(&vkey()), &[]).unwrap();
    assert_eq!(alone.verdict, Verdict::Ok);
}

#[test]
fn erasures_that_are_forged_changed_or_anothers_are_refused() {
    let (disk, workers) = four_incarnations();
    let keep = Keep::of(&disk);
    done(&keep, &exchange("req-1"));
    let path = log_dir(&workers[0]).join(ERASURES_FILE);
    let note = disk.read(&path).unwrap();
    for at in (0..note.len()).step_by(11) {
        let disk = disk.snapshot();
        disk.corrupt(&path, |bytes| bytes[at] ^= 1);
        assert_ne!(check(&disk).verdict, Verdict::Ok, "byte {at}");
    }
    let has = |disk: &SimulatedDisk, code| {
        let report = check(disk);
        let codes: Vec<_> = found(&report).into_iter().map(|(code, _)| code).collect();
        assert!(codes.contains(&Some(code)), "{codes:?}");
    };
    // A statement for another log.
    let other = disk.snapshot();
    let elsewhere = log_dir(&workers[1]).join(ERASURES_FILE);
    other.create(&elsewhere).unwrap();
    other.corrupt(&elsewhere, |bytes| *bytes = note.clone());
    has(&other, "erasure_refused");
    // A statement signed by another key.
    let forger = SigningKey::generate("ledger.example/keeping", [99; 32]).unwrap();
    let forged = proofgate_ledger::Erasure {
        origin: format!("{}/3/{}", testkit::LEDGER, ulid(&workers[0])),
        size: workers[0].durability_model.appended.len() as u64,
        time: 1,
        exchanges: 1,
        scope: proofgate_ledger::ErasureScope::Single(3),
        justification: why("made up"),
    };
    let another = disk.snapshot();
    another.corrupt(&path, |bytes| *bytes = forged.sign(&forger).unwrap().into_bytes());
    has(&another, "erasure_refused");
    has(&another, "salt_erased_unexplained");
    // A statement that was left out.
    disk.remove(&path).unwrap();
    has(&disk, "salt_erased_unexplained");
}
