//! What the retention job signs about holds, erasures, keys and logs: by whom, why, and never with a time before the
//! events that it states.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first failure")]

mod keep;

use keep::{Keep, check, found, keeping_key, why};
use proofgate_evidence::erasures::ERASURES_FILE;
use proofgate_evidence::hold_statements::{self, HOLD_STATEMENTS_DIR, file_name};
use proofgate_evidence::key_destructions::KEY_DESTRUCTIONS_DIR;
use proofgate_evidence::note_files::digest;
use proofgate_evidence::removal::TOMBSTONE_FILE;
use proofgate_evidence::{ReadStorage, Verdict};
use proofgate_keeping::{
    Anchors, ErasureRequest, ErasureTarget, HoldScope, RetentionState, SaltAction, erase,
    write_hold_statements,
};
use proofgate_ledger::{Erasure, ErasureScope, HoldChange, HoldStatement, Tombstone};
use proofgate_ledger_testkit::{LEDGER, four_incarnations, log_dir, vkey};
use proofgate_wal::Storage;
use proofgate_wal::simulated::SimulatedDisk;
use std::path::Path;
use std::sync::Arc;

fn codes(disk: &SimulatedDisk) -> Vec<&'static str> {
    found(&check(disk))
        .into_iter()
        .filter_map(|(code, _)| code)
        .collect()
}

fn put(disk: &SimulatedDisk, path: &Path, text: &str) {
    if disk.read(path).is_some() {
        disk.remove(path).unwrap();
    }
    disk.create(path).unwrap();
    disk.corrupt(path, |bytes| *bytes = text.as_bytes().to_vec());
}

fn erase_one(keep: &Keep, id: &str) -> SaltAction {
    let what = ErasureTarget::Exchange(id.to_owned());
    let request = ErasureRequest {
        ledger: Path::new("/"),
        key: &vkey(),
        retention: &keep.retention,
        target: &what,
        policy: None,
        justification: &why("asked for"),
        now: keep.now,
        started_at: None,
    };
    let planned = erase(&keep.disk, &request, &keeping_key()).unwrap();
    planned.into_iter().next().unwrap().action
}

#[test]
fn an_erasure_by_a_clock_before_the_exchange_is_refused() {
    let (disk, _workers) = four_incarnations();
    let mut keep = Keep::of(&disk);
    keep.now = 0;
    let SaltAction::Retain(reasons) = erase_one(&keep, "second") else {
        panic!("it was erased before it was there");
    };
    assert!(reasons.iter().any(|why| why.code == "future"), "{reasons:?}");
    keep.now = keep::NOW;
    assert_eq!(erase_one(&keep, "second"), SaltAction::Erase);
}

#[test]
fn an_erasure_that_is_dated_before_its_exchange_is_found() {
    let (disk, workers) = four_incarnations();
    let keep = Keep::of(&disk);
    assert_eq!(erase_one(&keep, "second"), SaltAction::Erase);
    assert_eq!(check(&disk).verdict, Verdict::Ok);
    let path = log_dir(&workers[1]).join(ERASURES_FILE);
    let text = String::from_utf8(disk.read(&path).unwrap()).unwrap();
    let signed = Erasure::verify(&text, &keeping_key().verifying_key()).unwrap();
    assert_eq!(signed.justification, why("asked for"));
    let early = Erasure { time: 0, ..signed };
    put(&disk, &path, &early.sign(&keeping_key()).unwrap());
    assert_eq!(codes(&disk), ["statement_backdated"]);
    assert_eq!(check(&disk).verdict, Verdict::Invalid);
    let ErasureScope::Single(seq) = early.scope else {
        panic!("of one exchange")
    };
    let all = Erasure {
        scope: ErasureScope::Tenant {
            name: "acme".to_owned(),
            until: u64::MAX,
        },
        ..early
    };
    put(&disk, &path, &all.sign(&keeping_key()).unwrap());
    assert_eq!(
        codes(&disk),
        ["statement_backdated"],
        "of a tenant, record {seq} among them"
    );
}

#[test]
fn a_tombstone_that_is_dated_before_its_log_ended_is_found() {
    let (disk, workers) = four_incarnations();
    Keep::of(&disk).prune();
    assert_eq!(check(&disk).verdict, Verdict::Ok);
    let path = log_dir(&workers[0]).join(TOMBSTONE_FILE);
    let text = String::from_utf8(disk.read(&path).unwrap()).unwrap();
    let signed = Tombstone::verify(&text, &keeping_key().verifying_key()).unwrap();
    assert_eq!(signed.justification.author, "officer");
    let early = Tombstone {
        removed_at: signed.newest_time - 1,
        ..signed.clone()
    };
    put(&disk, &path, &early.sign(&keeping_key()).unwrap());
    assert_eq!(codes(&disk), ["statement_backdated"]);
    // It gives a false time for its newest record: a retained one is newer.
    let lies = Tombstone {
        removed_at: 0,
        newest_time: 0,
        ..signed
    };
    put(&disk, &path, &lies.sign(&keeping_key()).unwrap());
    assert_eq!(codes(&disk), ["statement_backdated"]);
}

#[test]
fn holds_and_releases_are_stated_on_the_ledger_before_anything_goes() {
    let (disk, _workers) = four_incarnations();
    let mut keep = Keep::of(&disk);
    let tenant = HoldScope {
        tenant: Some("somebody else".to_owned()),
        ..HoldScope::default()
    };
    let id = keep.hold(tenant);
    keep.prune();
    let read = || {
        let read = hold_statements::read(&disk, Path::new("/"), LEDGER, &keeping_key().verifying_key());
        let mut read: Vec<_> = read.unwrap().into_iter().map(|(_, read)| read.unwrap()).collect();
        read.sort_by_key(HoldStatement::time);
        read
    };
    let scope = r#"{"tenant":"somebody else"}"#.to_owned();
    assert_eq!(read().len(), 1);
    assert_eq!(
        (read()[0].hold, &read()[0].change, &read()[0].justification),
        (id, &HoldChange::Placed { scope }, &why("a case"))
    );
    keep.retention.release_hold(id, &why("closed"), 7).unwrap();
    let state = |keep: &Keep| {
        let (path, key) = (Path::new("/"), vkey());
        write_hold_statements(&disk, path, &key, &keep.retention, &keeping_key(), keep.now)
    };
    assert_eq!(state(&keep).unwrap(), 1);
    assert_eq!(state(&keep).unwrap(), 0, "it is stated once");
    assert_eq!(
        (&read()[1].change, read()[1].signed_at),
        (&HoldChange::Released { at: 7 }, keep.now)
    );
    assert_eq!(check(&disk).verdict, Verdict::Ok);
}

#[test]
fn a_release_by_a_clock_before_the_hold_is_refused() {
    let (disk, _workers) = four_incarnations();
    let mut keep = Keep::of(&disk);
    let held = keep
        .retention
        .add_hold(None, HoldScope::default(), &why("a case"), keep.now)
        .unwrap();
    let refused = keep.retention.release_hold(held.id, &why("closed"), keep.now - 1);
    assert_eq!(refused.unwrap_err().code(), "keeping_invalid");
    keep.retention
        .release_hold(held.id, &why("closed"), keep.now)
        .unwrap();
}

#[test]
fn a_release_that_is_dated_before_its_hold_and_a_statement_of_another_key_are_found() {
    let (disk, _workers) = four_incarnations();
    let mut keep = Keep::of(&disk);
    keep.hold(HoldScope::default());
    keep.prune();
    let folder = Path::new("/").join(HOLD_STATEMENTS_DIR);
    let early = HoldStatement {
        ledger: LEDGER.to_owned(),
        hold: 1,
        placed_at: 5,
        change: HoldChange::Released { at: 4 },
        signed_at: 9,
        justification: why("closed"),
    };
    let note = early.sign(&keeping_key()).unwrap();
    put(&disk, &folder.join(file_name(&note)), &note);
    assert_eq!(codes(&disk), ["statement_backdated"]);
    put(&disk, &folder.join("0.note"), "anything");
    let mut both = codes(&disk);
    both.sort_unstable();
    assert_eq!(both, ["hold_statement_refused", "statement_backdated"]);
}

#[test]
fn a_state_that_lacks_a_hold_which_was_stated_removes_nothing() {
    let (disk, _workers) = four_incarnations();
    let mut keep = Keep::of(&disk);
    let older = keep.state.snapshot();
    keep.hold(HoldScope::default());
    assert!(keep.prune().iter().all(|fate| fate != "remove"));
    keep.retention = RetentionState::open(Arc::new(older)).unwrap();
    let refused = keep.try_prune().unwrap_err();
    assert_eq!(refused.code(), "keeping_state_set_back");
    assert!(
        disk.list(Path::new("/"))
            .unwrap()
            .iter()
            .all(|name| name != KEY_DESTRUCTIONS_DIR)
    );
}

fn anchor(keep: &mut Keep, notes: &[String]) {
    let anchors = Anchors::new(notes.iter().map(|note| digest(note)).collect());
    let keys = (&vkey(), &keeping_key().verifying_key());
    let disk = keep.disk.clone();
    keep.retention
        .require_anchors(anchors, &disk, Path::new("/"), keys)
        .unwrap();
}

fn text(disk: &SimulatedDisk, path: &Path) -> String {
    String::from_utf8(disk.read(path).unwrap()).unwrap()
}

#[test]
fn salts_are_destroyed_once_the_auditors_log_has_their_erasure() {
    let (disk, workers) = four_incarnations();
    let mut keep = Keep::of(&disk);
    anchor(&mut keep, &[]);
    let salts = log_dir(&workers[1]).join("salts");
    let before = disk.read(&salts);
    for _ in 0..2 {
        let SaltAction::Retain(reasons) = erase_one(&keep, "second") else {
            panic!("nobody has told it")
        };
        assert_eq!(reasons[0].code, "not_anchored");
        let awaited = digest(&text(&disk, &log_dir(&workers[1]).join(ERASURES_FILE)));
        assert_eq!(reasons[0].statement, Some(awaited), "it names what is waited for");
        assert_eq!(disk.read(&salts), before);
    }
    let note = text(&disk, &log_dir(&workers[1]).join(ERASURES_FILE));
    anchor(&mut keep, &[note]);
    assert_eq!(erase_one(&keep, "second"), SaltAction::Erase);
    assert_ne!(disk.read(&salts), before);
}

#[test]
fn a_log_goes_once_the_auditors_log_has_its_tombstone() {
    let (disk, workers) = four_incarnations();
    let mut keep = Keep::of(&disk);
    anchor(&mut keep, &[]);
    let segment = log_dir(&workers[0]).join("00000000000000000000.seg");
    for _ in 0..2 {
        assert_eq!(keep.prune()[..2], ["not_anchored", "not_anchored"]);
        assert!(disk.read(&segment).is_some());
    }
    let notes = workers[..2]
        .iter()
        .map(|worker| text(&disk, &log_dir(worker).join(TOMBSTONE_FILE)));
    let notes: Vec<String> = notes.collect();
    anchor(&mut keep, &notes[..1]);
    assert_eq!(keep.prune()[..2], ["finish", "not_anchored"]);
    assert!(disk.read(&segment).is_none());
    anchor(&mut keep, &notes);
    assert_eq!(keep.prune()[..2], ["removed", "finish"]);
}

#[test]
fn a_hold_holds_on_until_the_auditors_log_has_its_release() {
    let (disk, _workers) = four_incarnations();
    let mut keep = Keep::of(&disk);
    let id = keep.hold(HoldScope::default());
    keep.retention.release_hold(id, &why("closed"), 2).unwrap();
    anchor(&mut keep, &[]);
    assert!(
        keep.prune()
            .iter()
            .all(|fate| fate.starts_with("held") || fate == "newest")
    );
    let folder = Path::new("/").join(HOLD_STATEMENTS_DIR);
    let names = disk.list(&folder).unwrap();
    let notes: Vec<String> = names.iter().map(|name| text(&disk, &folder.join(name))).collect();
    assert_eq!(notes.len(), 2, "it is stated before it counts");
    anchor(&mut keep, &notes);
    assert_eq!(keep.prune()[..2], ["not_anchored", "not_anchored"]);
}
