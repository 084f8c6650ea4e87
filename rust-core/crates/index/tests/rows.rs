//! The rows made from a log's records; unsigned records give none.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first failure"
)]

use proofgate_evidence::{FileStorage, ReadStorage, TREE_FILE};
use proofgate_index::{
    Batch, BatchLimits, BatchReader, IndexError, LateKind, LogCursor, RequestId, SignedLog, Verdict,
    signed_logs,
};
use proofgate_ledger_testkit::{
    self as testkit, DurabilityModel, Worker, edit_last_record, small_log_options, start, vkey,
    worker_with_records,
};
use proofgate_wal::Storage;
use proofgate_wal::simulated::SimulatedDisk;
use std::collections::BTreeMap;
use std::path::Path;

const FEW: BatchLimits = BatchLimits {
    records: 7,
    bytes: u64::MAX,
};

fn logs(disk: &SimulatedDisk) -> Vec<SignedLog> {
    let (logs, problems) = signed_logs(disk, Path::new("/"), &vkey(), None, &BTreeMap::new()).unwrap();
    assert_eq!(problems, [""; 0]);
    logs
}

fn open<'d>(disk: &'d SimulatedDisk, log: &SignedLog, place: Option<&LogCursor>) -> BatchReader<'d> {
    BatchReader::open(disk, &log.dir, &log.note, &vkey(), place, FEW).unwrap()
}

fn read(disk: &SimulatedDisk, log: &SignedLog) -> Result<Vec<Batch>, IndexError> {
    let mut reader = open(disk, log, None);
    let mut batches = Vec::new();
    while let Some(batch) = reader.next()? {
        batches.push(batch);
    }
    Ok(batches)
}

/// Joins admissions with their ends, whether in the same batch or a later one, by id.
fn joined(batches: &[Batch]) -> BTreeMap<String, Vec<Option<i64>>> {
    let mut found: BTreeMap<i64, (String, Vec<Option<i64>>)> = BTreeMap::new();
    for batch in batches {
        for late in &batch.late_records {
            assert_eq!(late.incarnation, None);
            let (id, ends) = found.get_mut(&late.admission).unwrap();
            assert_eq!(*id, late.id);
            assert!(matches!(late.kind, LateKind::End { .. }));
            ends.push(Some(late.seq));
        }
        for exchange in batch.days.values().flat_map(|day| &day.exchanges) {
            let RequestId::Other(id) = &exchange.id else {
                panic!("{exchange:?}");
            };
            let ends = exchange.end.iter().map(|end| Some(end.seq)).collect();
            let before = found.insert(exchange.seq, (id.clone(), ends));
            assert_eq!(before, None, "a row is given twice");
        }
    }
    found.into_values().collect()
}

#[test]
fn each_exchange_is_one_row_with_one_end_however_batches_cut_it() {
    let (disk, _) = worker_with_records();
    let batches = read(&disk, &logs(&disk)[0]).unwrap();
    assert!(batches.len() > 10, "{} batches", batches.len());
    assert!(
        batches.iter().any(|batch| !batch.late_records.is_empty()),
        "none is cut"
    );
    let rows = joined(&batches);
    assert_eq!(rows.len(), 40);
    assert!(rows.values().all(|ends| ends.len() == 1), "{rows:?}");
    let day = batches[0].days.values().next().unwrap();
    let first = &day.exchanges[0];
    assert_eq!(day.texts()[first.tenant.unwrap() as usize], "acme");
    let providers = &day.lists()[first.providers.unwrap() as usize];
    assert_eq!(day.texts()[providers[0] as usize], "openai");
    assert_eq!((first.tenant_seq, first.bytes), (Some(1), 5));
    assert_eq!(first.end.unwrap().status, Some(200));
}

#[test]
fn a_denied_request_is_a_row_with_its_model_its_key_and_its_number() {
    let (disk, mut worker) = worker_with_records();
    worker.deny("denied").unwrap();
    worker.run_exchange("after");
    let batches = read(&disk, &logs(&disk)[0]).unwrap();
    let days = batches.iter().flat_map(|batch| batch.days.values());
    let mut rows = days.flat_map(|day| day.exchanges.iter().map(move |row| (day, row)));
    let (day, denied) = rows.find(|(_, row)| row.id == RequestId::from("denied")).unwrap();
    let text = |number: Option<u32>| day.texts()[number.unwrap() as usize].as_str();
    assert_eq!(
        (text(denied.tenant), text(denied.key), text(denied.model)),
        ("acme", "01234567", "m")
    );
    assert_eq!((denied.tenant_seq, denied.verdict), (Some(41), Verdict::Refused));
}

#[test]
fn a_reading_goes_on_from_the_text_of_any_place() {
    let (disk, _) = worker_with_records();
    let log = &logs(&disk)[0];
    let whole = read(&disk, log).unwrap();
    let mut place: Option<LogCursor> = None;
    let mut batches = Vec::new();
    // Use a new reader for each batch, as if the process was killed after each.
    while let Some(batch) = open(&disk, log, place.as_ref()).next().unwrap() {
        place = Some(LogCursor::parse(&batch.cursor.to_text()).unwrap());
        batches.push(batch);
    }
    assert_eq!(joined(&batches), joined(&whole));
    assert_eq!(batches.len(), whole.len());
}

#[test]
fn what_no_checkpoint_covers_is_not_read() {
    let (disk, mut worker) = worker_with_records();
    let log = logs(&disk)[0].clone();
    worker.admit("later", 1).unwrap();
    worker.flush().unwrap();
    let batches = read(&disk, &log).unwrap();
    assert_eq!(batches.last().unwrap().cursor.size(), 81);
    assert!(!joined(&batches).contains_key("later"));
    let known = BTreeMap::from([("ledger.example/demo/3/".to_owned() + &log_name(&log), 81)]);
    let (newer, _) = signed_logs(&disk, Path::new("/"), &vkey(), None, &known).unwrap();
    assert_eq!(newer, [], "nothing new is signed");
    worker.run_exchange("another");
    let (newer, _) = signed_logs(&disk, Path::new("/"), &vkey(), None, &known).unwrap();
    assert_eq!(newer.len(), 1);
    let ended = known.keys().map(|origin| (origin.clone(), u64::MAX)).collect();
    assert_eq!(
        signed_logs(&disk, Path::new("/"), &vkey(), None, &ended)
            .unwrap()
            .0,
        []
    );
}

fn log_name(log: &SignedLog) -> String {
    log.dir.file_name().unwrap().to_str().unwrap().to_owned()
}

#[test]
fn a_tree_that_is_gone_or_wrong_costs_a_second_reading_and_nothing_else() {
    let (disk, _) = worker_with_records();
    let log = logs(&disk)[0].clone();
    let expected = joined(&read(&disk, &log).unwrap());
    disk.corrupt(&log.dir.join(TREE_FILE), |tree| tree.fill(7));
    assert_eq!(joined(&read(&disk, &log).unwrap()), expected);
    disk.remove(&log.dir.join(TREE_FILE)).unwrap();
    assert_eq!(joined(&read(&disk, &log).unwrap()), expected);
}

#[test]
fn a_changed_record_and_what_follows_it_is_never_a_row() {
    for tree in [true, false] {
        let (disk, worker) = worker_with_records();
        let log = logs(&disk)[0].clone();
        let segment = disk.list(&log.dir).unwrap();
        let segment = segment.iter().find(|name| name.ends_with(".seg")).unwrap();
        disk.corrupt(&log.dir.join(segment), |bytes| {
            edit_last_record(
                bytes,
                worker.durability_model.incarnation.unwrap(),
                b"req-20",
                b"req-XX",
            );
        });
        if !tree {
            disk.remove(&log.dir.join(TREE_FILE)).unwrap();
        }
        let mut reader = open(&disk, &log, None);
        let mut batches = Vec::new();
        let error = loop {
            match reader.next() {
                Ok(batch) => batches.push(batch.expect("the change is not noticed")),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, IndexError::Inconsistent { .. }), "{error}");
        let rows = joined(&batches);
        assert!(!rows.contains_key("req-XX") && !rows.contains_key("req-30"));
        assert_eq!(rows.contains_key("req-3"), tree, "what was proved before stays");
    }
}

#[test]
fn what_a_killed_worker_left_ends_in_the_log_of_its_successor() {
    let (disk, mut first) = worker_with_records();
    let orphan = first.admit("orphan", 1).unwrap();
    first.flush().unwrap();
    disk.restart();
    let mut second = start(&disk, &mut DurabilityModel::default()).unwrap();
    second.run_exchange("after");
    let logs = logs(&disk);
    assert_eq!(logs.len(), 2);
    let rows = read(&disk, &logs[0]).unwrap();
    assert_eq!(
        rows.last().unwrap().cursor.size(),
        orphan + 1,
        "as the successor signed"
    );
    assert!(joined(&rows)["orphan"].is_empty());
    let later = read(&disk, &logs[1]).unwrap();
    let ended: Vec<_> = later.iter().flat_map(|batch| &batch.ended_logs).collect();
    assert_eq!(ended, [&(log_name(&logs[0]), orphan + 1)]);
    let late: Vec<_> = later.iter().flat_map(|batch| &batch.late_records).collect();
    assert_eq!(late.len(), 1, "{late:?}");
    assert_eq!(late[0].incarnation.as_ref(), Some(&log_name(&logs[0])));
    assert_eq!(
        (late[0].admission, late[0].id.as_str()),
        (orphan as i64, "orphan")
    );
    second.seal().unwrap();
    let log = self::logs(&disk)[1].clone();
    assert!(read(&disk, &log).unwrap().last().unwrap().sealed);
}

#[test]
fn a_checkpoint_of_another_log_or_by_another_key_opens_nothing() {
    let (disk, _) = worker_with_records();
    disk.restart();
    let _ = start(&disk, &mut DurabilityModel::default()).unwrap();
    let logs = logs(&disk);
    let foreign = BatchReader::open(&disk, &logs[0].dir, &logs[1].note, &vkey(), None, FEW);
    assert!(matches!(foreign, Err(IndexError::WrongLog { .. })));
    let other = proofgate_ledger::SigningKey::generate("ledger.example/demo", [8; 32]).unwrap();
    let unsigned = BatchReader::open(
        &disk,
        &logs[0].dir,
        &logs[0].note,
        &other.verifying_key(),
        None,
        FEW,
    );
    assert!(matches!(unsigned, Err(IndexError::Ledger(_))));
    let (found, problems) = signed_logs(
        &disk,
        Path::new("/"),
        &other.verifying_key(),
        None,
        &BTreeMap::new(),
    )
    .unwrap();
    assert_eq!((found.len(), problems.len()), (0, 2), "{problems:?}");
}

#[test]
fn records_are_found_again_by_their_numbers_in_any_steps() {
    let folder = tempfile::tempdir().unwrap();
    let mut made = Worker::from_log(
        &FileStorage,
        testkit::start_log_in(&folder.path().join("3"), small_log_options()),
    );
    for number in 0..1500 {
        let admission = made.admit(&format!("req-{number}"), 40).unwrap();
        made.complete(&format!("req-{number}"), admission).unwrap();
        if number % 50 == 49 {
            made.flush().unwrap();
            made.step().unwrap();
        }
    }
    made.flush().unwrap();
    made.step().unwrap();
    let all = &made.durability_model.appended;
    for step in [1, 7, 600] {
        let numbers: Vec<u64> = (0..all.len() as u64).step_by(step).collect();
        let found =
            proofgate_evidence::read_records(&FileStorage, &made.durability_model.dir, &numbers).unwrap();
        let expected: Vec<_> = numbers
            .iter()
            .map(|number| all[*number as usize].clone())
            .collect();
        assert!(found == expected, "by {step}");
    }
    let beyond = [3, all.len() as u64];
    assert!(proofgate_evidence::read_records(&FileStorage, &made.durability_model.dir, &beyond).is_err());
}

proptest::proptest! {
    #[test]
    fn any_text_is_a_place_or_is_refused(text in "[0-9A-Za-z+/= ]{0,120}") {
        if let Ok(place) = LogCursor::parse(&text) {
            proptest::prop_assert_eq!(LogCursor::parse(&place.to_text()).unwrap().to_text(), place.to_text());
        }
    }
}
