//! Destroyed tenant keys: no copy of the ledger reveals what was sent, and everything else is unchanged.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first failure"
)]

mod keep;

use keep::{Attack, DAY, Keep, analyse, found, keeping_key, why};
use proofgate_evidence::key_destructions::{KEY_DESTRUCTIONS_DIR, KEY_USE_GRACE, file_name};
use proofgate_evidence::note_files::digest;
use proofgate_evidence::prove::{self, SaltAvailability};
use proofgate_evidence::{
    FoundRecord, FsckKeys, ReadStorage, Report, SearchMode, ShredKeys, Verdict, find_records, fsck,
};
use proofgate_keeping::{
    Anchors, HoldScope, KeyAction, PlannedShred, RetentionError, RetentionPolicy, ShredRequest, plan_shred,
    shred,
};
use proofgate_ledger::record::{self, Record};
use proofgate_ledger::{KeyDestruction, ShredKey, ShredKeyId, SigningKey};
use proofgate_ledger_testkit::{
    self as testkit, DurabilityModel, InterceptedStorage, Worker, checkpoint_all, forge_records, log_dir,
    records_with_renamed_ids, remove_files, restore_old_checkpoint, rotate, start, ulid, vkey,
};
use proofgate_wal::simulated::{InjectedFault, SimulatedDisk};
use proofgate_wal::{Storage, succession};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn key(seed: u8) -> ShredKey {
    ShredKey::new([seed; 32])
}

/// The tenant's keys from these seeds, as a folder holds them.
fn folder(seeds: &[u8]) -> ShredKeys {
    let keys = seeds.iter().map(|seed| Arc::new(key(*seed))).collect();
    [("acme".to_owned(), keys)].into_iter().collect()
}

fn ids(seeds: &[u8]) -> BTreeSet<ShredKeyId> {
    seeds.iter().map(|seed| key(*seed).id()).collect()
}

/// Three logs of a shard: without a shred key, with one, and with another; the last is still running.
fn three_lives() -> (SimulatedDisk, Vec<Worker>) {
    let disk = SimulatedDisk::new();
    disk.create_dir(Path::new(testkit::SHARD)).unwrap();
    let mut workers = Vec::new();
    for (name, seed) in [("plain", None), ("old", Some(1)), ("new", Some(2))] {
        let mut worker = start(&disk, &mut DurabilityModel::default()).unwrap();
        worker.shred_key = seed.map(key);
        worker.run_exchange(name);
        if name != "new" {
            worker.seal().unwrap();
            disk.restart();
        }
        workers.push(worker);
    }
    (disk, workers)
}

/// Returns what happens to the keys, in the order of `seeds`; the keys of `there` still exist.
fn run(
    keep: &Keep,
    there: &[u8],
    policy: Option<&RetentionPolicy>,
    carry_out: bool,
) -> Result<Vec<String>, RetentionError> {
    let planned = with(keep, there, policy, |request| match carry_out {
        true => shred(&keep.disk, request, &keeping_key()),
        false => plan_shred(&keep.disk, &keeping_key().verifying_key(), request),
    })?;
    Ok(told(&planned))
}

fn with<T>(
    keep: &Keep,
    there: &[u8],
    policy: Option<&RetentionPolicy>,
    act: impl FnOnce(&ShredRequest<'_>) -> T,
) -> T {
    act(&ShredRequest {
        ledger: Path::new("/"),
        key: &vkey(),
        retention: &keep.retention,
        tenant: "acme",
        requested_keys: None,
        existing_keys: &ids(there),
        policy,
        justification: &why("the contract ended"),
        now: keep.now,
        started_at: None,
    })
}

fn told(planned: &[PlannedShred]) -> Vec<String> {
    let told = planned.iter().map(|key| match &key.action {
        KeyAction::Destroy => format!("destroy {}", key.exchanges),
        KeyAction::AlreadyDestroyed => format!("destroyed {}", key.exchanges),
        KeyAction::Retain(why) => why.iter().map(|why| why.code).collect::<Vec<_>>().join(" "),
    });
    told.collect()
}

fn check(disk: &SimulatedDisk, shred: Option<&ShredKeys>) -> Report {
    let (key, keeping) = (vkey(), keeping_key().verifying_key());
    let keys = FsckKeys {
        ledger: Some(&key),
        retention: Some(&keeping),
        shred,
    };
    fsck(disk, Path::new("/"), keys, &[]).unwrap()
}

/// Returns the number of erased and of unchecked salts of each log.
fn salts(report: &Report) -> Vec<(u64, u64)> {
    let logs = report.incarnations.iter();
    logs.map(|log| (log.erased_salts, log.unchecked_salts)).collect()
}

/// Returns the availability of the salts of an exchange's records; an included salt opens the bodies.
fn proved(disk: &SimulatedDisk, id: &str, keys: Option<&ShredKeys>) -> Vec<SaltAvailability> {
    let found = find_records(disk, Path::new("/"), id, SearchMode::Scan).unwrap();
    let prove = |FoundRecord { dir, seq, record }: FoundRecord| {
        let (proof, salt) = prove::proof_with_keys(disk, &dir, seq, &record, Some(&vkey()), keys).unwrap();
        let salt = salt.unwrap();
        proof.verify(&record, &vkey()).unwrap();
        if matches!(record::parse(&record), Ok(Record::Admission(_))) {
            let opened = proof.reveal(&record, &vkey(), b"hello").is_ok();
            assert_eq!(opened, salt == SaltAvailability::Included, "{id}");
        }
        salt
    };
    found.into_iter().map(prove).collect()
}

#[test]
fn each_salt_opens_with_the_key_that_its_admission_names_and_with_no_other() {
    let (disk, _workers) = three_lives();
    let both = [SaltAvailability::Included; 2];
    assert_eq!(proved(&disk, "plain", None), both);
    assert_eq!(
        proved(&disk, "old", Some(&folder(&[2, 1]))),
        both,
        "rotation keeps the old one"
    );
    assert_eq!(proved(&disk, "new", Some(&folder(&[2, 1]))), both);
    let locked = [SaltAvailability::KeyMissing(key(1).id()); 2];
    for keys in [None, Some(folder(&[2])), Some(folder(&[3]))] {
        assert_eq!(proved(&disk, "old", keys.as_ref()), locked);
    }
    let others: ShredKeys = [("globex".to_owned(), vec![Arc::new(key(1))])]
        .into_iter()
        .collect();
    assert_eq!(
        proved(&disk, "old", Some(&others)),
        locked,
        "it is another tenant's"
    );
}

#[test]
fn fsck_compares_salts_with_the_keys_that_it_has_and_tells_how_many_it_could_not() {
    let (disk, workers) = three_lives();
    let alone = check(&disk, None);
    assert_eq!(alone.verdict, Verdict::Ok, "{:#?}", found(&alone));
    assert_eq!(salts(&alone), [(0, 0), (0, 1), (0, 1)]);
    assert_eq!(salts(&check(&disk, Some(&folder(&[2, 1])))), [(0, 0); 3]);
    let lacks = check(&disk, Some(&folder(&[2])));
    assert_eq!(found(&lacks).len(), 1);
    assert_eq!(
        (found(&lacks)[0].0, lacks.verdict),
        (Some("shred_key_missing"), Verdict::Incomplete)
    );
    disk.corrupt(&log_dir(&workers[1]).join("salts"), |bytes| bytes[32] ^= 1);
    assert_eq!(check(&disk, Some(&folder(&[2, 1]))).verdict, Verdict::Invalid);
    assert_eq!(check(&disk, None).verdict, Verdict::Ok, "nobody could tell");
}

#[test]
fn a_destroyed_key_closes_every_copy_of_the_volume_and_is_explained() {
    let (disk, _workers) = three_lives();
    let copy = disk.snapshot();
    let keep = Keep::of(&disk);
    assert_eq!(
        run(&keep, &[2, 1], None, false).unwrap(),
        ["destroy 1", "destroy 1"]
    );
    assert!(find_notes(&disk).is_empty(), "a plan changes nothing");
    assert_eq!(
        run(&keep, &[2, 1], None, true).unwrap(),
        ["destroy 1", "destroy 1"]
    );
    let unfinished = check(&disk, Some(&folder(&[2, 1])));
    assert!(
        found(&unfinished)
            .iter()
            .all(|(code, _)| *code == Some("key_destruction_unfinished"))
    );
    assert_eq!(
        (found(&unfinished).len(), unfinished.verdict),
        (2, Verdict::Incomplete)
    );
    // The keys are deleted, and a new one is created.
    for disk in [&disk, &copy] {
        assert!(matches!(
            proved(disk, "old", Some(&folder(&[3])))[..],
            [SaltAvailability::KeyMissing(_), SaltAvailability::KeyMissing(_)]
        ));
        assert_eq!(
            proved(disk, "plain", Some(&folder(&[3]))),
            [SaltAvailability::Included; 2]
        );
    }
    let report = check(&disk, Some(&folder(&[3])));
    assert_eq!(
        (report.verdict, salts(&report)),
        (Verdict::Ok, vec![(0, 0), (1, 0), (1, 0)]),
        "{:#?}",
        found(&report)
    );
    assert_eq!(
        run(&keep, &[3], None, false).unwrap().len(),
        3,
        "the new one may go, too"
    );
    assert_eq!(
        run(&keep, &[], None, true).unwrap(),
        ["destroyed 1", "destroyed 1"]
    );
    assert_eq!(find_notes(&disk).len(), 2, "it is signed once");
}

fn find_notes(disk: &SimulatedDisk) -> Vec<String> {
    let folder = Path::new("/").join(KEY_DESTRUCTIONS_DIR);
    let files = disk.files().into_iter().filter(|path| path.starts_with(&folder));
    files
        .map(|path| String::from_utf8(disk.read(&path).unwrap()).unwrap())
        .collect()
}

#[test]
fn a_hold_and_a_minimum_keep_a_key() {
    let (disk, _workers) = three_lives();
    let mut keep = Keep::of(&disk);
    let minimum = |days| RetentionPolicy::new(days, BTreeMap::new()).unwrap();
    assert_eq!(
        run(&keep, &[], Some(&minimum(201)), true).unwrap(),
        ["young", "young"]
    );
    assert_eq!(run(&keep, &[], Some(&minimum(200)), false).unwrap().len(), 2);
    let by = |scope: HoldScope, keep: &mut Keep| {
        let id = keep.hold(scope);
        let fates = run(keep, &[1, 2], None, true).unwrap();
        keep.retention.release_hold(id, &why("closed"), 2).unwrap();
        let held = |key: ShredKeyId| ids(&[1, 2]).iter().position(|id| *id == key).unwrap();
        (fates[held(key_of(1))].clone(), fates[held(key_of(2))].clone())
    };
    let acme = HoldScope {
        tenant: Some("acme".to_owned()),
        until: Some(0),
        ..HoldScope::default()
    };
    assert_eq!(by(acme, &mut keep), ("held".to_owned(), "held".to_owned()));
    assert_eq!(
        by(HoldScope::default(), &mut keep),
        ("held".to_owned(), "held".to_owned())
    );
    assert!(find_notes(&disk).is_empty());
    let one = HoldScope {
        exchange: Some("old".to_owned()),
        ..HoldScope::default()
    };
    assert_eq!(by(one, &mut keep), ("held".to_owned(), "destroy 1".to_owned()));
    let other = HoldScope {
        tenant: Some("globex".to_owned()),
        ..HoldScope::default()
    };
    assert_eq!(by(other, &mut keep).0, "destroy 1");
}

#[test]
fn a_hold_that_touches_the_analysis_of_an_exchange_alone_keeps_its_key_and_no_other() {
    let disk = SimulatedDisk::new();
    disk.create_dir(Path::new(testkit::SHARD)).unwrap();
    let mut judged = None;
    for (name, seed) in [("judged", 1), ("other", 2)] {
        let mut worker = start(&disk, &mut DurabilityModel::default()).unwrap();
        worker.shred_key = Some(key(seed));
        if let Some(judged) = judged {
            analyse(&mut worker, "judged", judged, 50);
        }
        judged = Some((ulid(&worker), worker.writer.next_seq()));
        worker.run_exchange(name);
        worker.seal().unwrap();
        disk.restart();
    }
    let mut keep = Keep::of(&disk);
    let since = |exchange: Option<&str>| HoldScope {
        exchange: exchange.map(str::to_owned),
        since: Some(50),
        ..HoldScope::default()
    };
    for (scope, fates) in [
        (since(Some("judged")), ["held", "destroy 1"]),
        (since(None), ["held", "held"]),
        (since(Some("other")), ["destroy 1", "destroy 1"]),
    ] {
        let id = keep.hold(scope);
        let found = run(&keep, &[1, 2], None, false).unwrap();
        keep.retention.release_hold(id, &why("closed"), 2).unwrap();
        let at = usize::from(key_of(1) > key_of(2));
        assert_eq!([&found[at], &found[1 - at]], fates);
    }
}

fn key_of(seed: u8) -> ShredKeyId {
    key(seed).id()
}

#[test]
fn a_log_that_cannot_be_read_may_hold_what_is_held_and_keeps_every_key() {
    let (disk, workers) = three_lives();
    let keep = Keep::of(&disk);
    let segment = disk.files().into_iter().find(|path| {
        path.starts_with(log_dir(&workers[0])) && path.extension().is_some_and(|end| end == "seg")
    });
    disk.corrupt(&segment.unwrap(), |bytes| bytes[200] ^= 1);
    assert_eq!(run(&keep, &[1], None, true).unwrap(), ["damaged", "damaged"]);
    assert!(find_notes(&disk).is_empty());
}

fn one(exchange: &str) -> HoldScope {
    HoldScope {
        exchange: Some(exchange.to_owned()),
        ..HoldScope::default()
    }
}

#[test]
fn a_tombstone_that_is_not_by_the_retention_key_hides_no_log_and_keeps_every_key() {
    let (disk, workers) = three_lives();
    let mut keep = Keep::of(&disk);
    keep.hold(one("old"));
    disk.create(&log_dir(&workers[1]).join("tombstone")).unwrap();
    let fates = run(&keep, &[1, 2], None, true).unwrap();
    assert!(
        fates.iter().all(|fate| fate.contains("tombstone_refused")),
        "{fates:?}"
    );
    assert!(find_notes(&disk).is_empty());
}

#[test]
fn a_log_that_was_taken_away_or_set_back_may_hold_what_is_held_and_keeps_every_key() {
    let (whole, workers) = three_lives();
    let old = &workers[1];
    let attacks: [Attack<'_>; 5] = [
        ("damaged", &|disk| {
            remove_files(disk, old, |name| name.ends_with(".seg") || name == "checkpoint");
        }),
        ("damaged", &|disk| remove_files(disk, old, |_| true)),
        ("uncovered", &|disk| {
            remove_files(disk, old, |name| name == "checkpoint")
        }),
        ("uncovered", &|disk| {
            restore_old_checkpoint(disk, old, 0);
            forge_records(disk, old, &records_with_renamed_ids(old, &[("old", "odd")]));
        }),
        ("damaged", &|disk| {
            restore_old_checkpoint(disk, old, 0);
            forge_records(disk, old, &old.durability_model.appended[..1]);
        }),
    ];
    for (at, (code, attack)) in attacks.into_iter().enumerate() {
        let disk = whole.snapshot();
        let mut keep = Keep::of(&disk);
        keep.hold(one("old"));
        attack(&disk);
        let fates = run(&keep, &[1, 2], None, true).unwrap();
        assert_eq!(fates.len(), 2, "attack {at}");
        assert!(
            fates.iter().all(|fate| fate.contains(code)),
            "attack {at}: {fates:?}"
        );
        assert!(find_notes(&disk).is_empty(), "attack {at}");
    }
}

#[test]
fn a_newest_log_that_was_taken_away_is_missed_where_the_one_before_names_it() {
    let (disk, mut worker) = testkit::new_worker();
    worker.shred_key = Some(key(1));
    worker.run_exchange("old");
    worker
        .seal_with_successor(Some(&proofgate_evidence::Ulid::from_parts(9, 9).to_string()))
        .unwrap();
    worker.follower.finish(&testkit::key()).unwrap();
    let mut keep = Keep::of(&disk);
    let minimum = RetentionPolicy::new(1, BTreeMap::new()).unwrap();
    assert_eq!(run(&keep, &[1], Some(&minimum), true).unwrap(), ["damaged"]);
    let id = keep.hold(one("new"));
    assert_eq!(run(&keep, &[1], None, true).unwrap(), ["damaged"]);
    assert!(find_notes(&disk).is_empty());
    // If nothing requires it, the log may have been moved away legitimately.
    keep.retention.release_hold(id, &why("closed"), 2).unwrap();
    assert_eq!(run(&keep, &[1], None, true).unwrap(), ["destroy 1"]);
}

#[test]
fn a_log_that_rotates_while_the_ledger_is_read_keeps_no_key() {
    let minimum = RetentionPolicy::new(1, BTreeMap::new()).unwrap();
    let mut call = 0;
    loop {
        let (disk, mut workers) = three_lives();
        let mut keep = Keep::of(&disk);
        keep.hold(one("another"));
        let mut newest = workers.pop().unwrap();
        newest.admit("open", 1).unwrap();
        let meanwhile = InterceptedStorage::with_action_at(&disk, call, || {
            let mut next = rotate(&disk, &mut newest);
            next.run_exchange("next");
            rotate(&disk, &mut next);
        });
        let planned = with(&keep, &[1, 2], Some(&minimum), |request| {
            plan_shred(&meanwhile, &keeping_key().verifying_key(), request)
        });
        let mut fates = told(&planned.unwrap());
        fates.sort_unstable();
        if !meanwhile.has_run() {
            break;
        }
        let all = [["destroy 1", "destroy 1"], ["destroy 1", "destroy 2"]];
        assert!(
            all.iter().any(|expected| fates == *expected),
            "call {call}: {fates:?}"
        );
        call += 1;
    }
    assert!(call > 10, "{call}");
}

#[test]
fn a_log_that_is_still_written_beside_the_next_one_or_was_killed_keeps_no_key() {
    let (disk, mut former) = testkit::new_worker();
    former.shred_key = Some(key(1));
    former.run_exchange("old");
    let mut keep = Keep::of(&disk);
    keep.hold(one("another"));
    let (storage, signing): (Arc<dyn Storage>, _) = (Arc::new(disk.clone()), testkit::key());
    let terms = testkit::start_options(&signing, testkit::small_log_options());
    let signed = former.follower.last_checkpoint().unwrap().clone();
    succession::start_successor(&storage, &terms, ulid(&former), &signed).unwrap();
    former.admit("open", 1).unwrap();
    former.flush().unwrap();
    assert_eq!(run(&keep, &[1], None, false).unwrap(), ["destroy 2"], "beside");
    disk.restart();
    assert_eq!(run(&keep, &[1], None, false).unwrap(), ["destroy 2"], "killed");
    start(&disk, &mut DurabilityModel::default()).unwrap();
    assert_eq!(
        run(&keep, &[1], None, false).unwrap(),
        ["destroy 2"],
        "taken over"
    );
    assert_eq!(keep.check().verdict, Verdict::Ok, "{:#?}", found(&keep.check()));
}

#[test]
fn a_hold_on_everything_keeps_every_key_also_of_logs_that_are_gone() {
    let (disk, workers) = three_lives();
    let mut keep = Keep::of(&disk);
    keep.hold(HoldScope::default());
    remove_files(&disk, &workers[2], |_| true);
    assert_eq!(run(&keep, &[1, 2], None, true).unwrap(), ["held", "held"]);
    assert!(find_notes(&disk).is_empty());
}

#[test]
fn a_log_that_was_removed_by_right_keeps_no_key_unless_a_hold_keeps_what_is_left_of_it() {
    let (disk, workers) = three_lives();
    let mut keep = Keep::of(&disk);
    let path = log_dir(&workers[0]).join("salts");
    let salts = disk.read(&path).unwrap();
    assert_eq!(keep.prune()[0], "remove");
    disk.create(&path).unwrap();
    disk.corrupt(&path, |bytes| *bytes = salts);
    let held = keep
        .retention
        .add_hold(None, one("plain"), &why("a case"), keep.now);
    let held = held.unwrap().id;
    assert_eq!(run(&keep, &[1, 2], None, true).unwrap(), ["held", "held"]);
    keep.retention
        .release_hold(held, &why("closed"), keep.now)
        .unwrap();
    assert_eq!(
        run(&keep, &[1, 2], None, true).unwrap(),
        ["destroy 1", "destroy 1"]
    );
}

#[test]
fn statements_of_others_or_of_another_ledger_explain_nothing_and_are_told() {
    let (disk, _workers) = three_lives();
    let statement = |ledger: &str| KeyDestruction {
        ledger: ledger.to_owned(),
        key: key_of(1),
        tenant: "acme".to_owned(),
        time: 1,
        exchanges: 1,
        justification: why("none"),
    };
    let other = SigningKey::generate("ledger.example/keeping", [6; 32]).unwrap();
    let folder_dir = Path::new("/").join(KEY_DESTRUCTIONS_DIR);
    disk.create_dir(&folder_dir).unwrap();
    for note in [
        statement(testkit::LEDGER).sign(&other).unwrap(),
        statement("ledger.example/another").sign(&keeping_key()).unwrap(),
        "no note\n".to_owned(),
    ] {
        let file = disk.create(&folder_dir.join(file_name(&note))).unwrap();
        file.write_at(note.as_bytes(), 0).unwrap();
    }
    let report = check(&disk, Some(&folder(&[2, 1])));
    assert_eq!(found(&report).len(), 3);
    assert!(
        found(&report)
            .iter()
            .all(|(code, _)| *code == Some("key_destruction_refused"))
    );
    assert_eq!((report.verdict, salts(&report)[1]), (Verdict::Invalid, (0, 0)));
}

#[test]
fn an_unknown_tenant_has_no_key_to_destroy() {
    let disk = SimulatedDisk::new();
    disk.create_dir(Path::new(testkit::SHARD)).unwrap();
    let mut worker = start(&disk, &mut DurabilityModel::default()).unwrap();
    worker.run_exchange("plain");
    assert_eq!(run(&Keep::of(&disk), &[], None, true).unwrap(), [""; 0]);
    assert!(find_notes(&disk).is_empty());
}

#[test]
fn whatever_call_fails_or_kills_the_retention_job_the_same_command_finishes_it() {
    let (disk, _workers) = three_lives();
    let (planned, done) = (disk.snapshot(), disk.snapshot());
    run(&Keep::of(&planned), &[1, 2], None, false).unwrap();
    run(&Keep::of(&done), &[1, 2], None, true).unwrap();
    for call in planned.calls() - 2..done.calls() {
        for fault in [
            InjectedFault::Crash,
            InjectedFault::Error(io::ErrorKind::StorageFull),
        ] {
            let disk = disk.snapshot();
            disk.inject_fault_at(call, fault);
            let first = run(&Keep::of(&disk), &[1, 2], None, true);
            if matches!(fault, InjectedFault::Crash) {
                assert!(first.is_err(), "call {call}");
                disk.crash(0);
            }
            assert!(
                check(&disk, None).verdict == Verdict::Ok,
                "call {call}, {fault:?}"
            );
            assert_eq!(
                run(&Keep::of(&disk), &[1, 2], None, true).unwrap(),
                ["destroy 1", "destroy 1"]
            );
            let report = check(&disk, Some(&folder(&[3])));
            assert_eq!(
                (report.verdict, salts(&report)[1]),
                (Verdict::Ok, (1, 0)),
                "call {call}, {fault:?}"
            );
        }
    }
    assert!(Keep::of(&disk).now > DAY);
}

/// Returns the statements of key destruction beside the shards.
fn destructions(disk: &SimulatedDisk) -> Vec<(PathBuf, String)> {
    let folder = Path::new("/").join(KEY_DESTRUCTIONS_DIR);
    let names = disk.list(&folder).unwrap().into_iter();
    let paths = names.map(|name| folder.join(name));
    paths
        .map(|path| {
            (
                path.clone(),
                String::from_utf8(disk.read(&path).unwrap()).unwrap(),
            )
        })
        .collect()
}

#[test]
fn keys_stay_until_the_auditors_log_has_that_they_are_destroyed() {
    let (disk, _workers) = three_lives();
    let mut keep = Keep::of(&disk);
    let anchor = |keep: &mut Keep, notes: &[(PathBuf, String)]| {
        let anchors = Anchors::new(notes.iter().map(|(_, note)| digest(note)).collect());
        let keys = (&vkey(), &keeping_key().verifying_key());
        keep.retention
            .require_anchors(anchors, &disk, Path::new("/"), keys)
            .unwrap();
    };
    anchor(&mut keep, &[]);
    for there in [&[1, 2][..], &[1, 2], &[]] {
        let fates = run(&keep, there, None, true).unwrap();
        assert_eq!(
            fates,
            ["not_anchored", "not_anchored"],
            "also where nobody sees the keys"
        );
    }
    let notes = destructions(&disk);
    assert_eq!(notes.len(), 2, "each is signed once");
    anchor(&mut keep, &notes[..1]);
    let mut fates = run(&keep, &[1, 2], None, true).unwrap();
    fates.sort_unstable();
    assert_eq!(fates[1], "not_anchored");
    assert!(fates[0].starts_with("destroy "), "{fates:?}");
}

#[test]
fn a_destruction_by_a_clock_before_an_exchange_under_the_key_is_refused() {
    let (disk, _workers) = three_lives();
    let mut keep = Keep::of(&disk);
    keep.now = 0;
    assert!(
        run(&keep, &[1, 2], None, true)
            .unwrap()
            .iter()
            .all(|fate| fate == "future")
    );
    assert!(
        disk.list(&Path::new("/").join(KEY_DESTRUCTIONS_DIR)).is_err(),
        "nothing is signed"
    );
}

#[test]
fn a_destruction_that_is_dated_long_before_the_key_was_used_is_found() {
    for (later, expected) in [
        (KEY_USE_GRACE, None),
        (2 * KEY_USE_GRACE, Some("statement_backdated")),
    ] {
        let (disk, mut workers) = three_lives();
        let worker = workers.last_mut().unwrap();
        worker.clock = later;
        worker.run_exchange("later");
        checkpoint_all(worker);
        run(&Keep::of(&disk), &[1, 2], None, true).unwrap();
        assert_eq!(found(&check(&disk, None)), []);
        for (path, note) in destructions(&disk) {
            let signed = KeyDestruction::verify(&note, &keeping_key().verifying_key()).unwrap();
            let early = KeyDestruction { time: 10, ..signed };
            let note = early.sign(&keeping_key()).unwrap();
            disk.corrupt(&path, |bytes| *bytes = note.into_bytes());
        }
        let codes: Vec<_> = found(&check(&disk, None))
            .into_iter()
            .map(|(code, _)| code)
            .collect();
        assert_eq!(codes, Vec::from_iter(expected.map(Some)));
    }
}
