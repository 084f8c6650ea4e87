//! Tests that an exchange is found by the time in its id with few bytes read.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first failure"
)]

use proofgate_evidence::{FoundRecord, ReadFile, ReadStorage, SearchMode, find_exchange_start, find_records};
use proofgate_ledger::record::{Abort, Admission, Completion, ConfigId, Outcome};
use proofgate_ledger_testkit::{self as testkit, key, small_log_options, start_options};
use proofgate_wal::simulated::SimulatedDisk;
use proofgate_wal::{Follower, Storage, Ulid, Writer, succession};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// 2025-01-01, in milliseconds.
const START: u64 = 1_735_689_600_000;

fn id(ms: u64, number: u64) -> String {
    format!("req_{ms:012x}7abc8def{number:012x}")
}

struct Log {
    writer: Writer,
    follower: Follower,
    ulid: Ulid,
    admitted: u64,
}

impl Log {
    /// Creates the first log of the shard, or a log that continues another log.
    fn begin(disk: &SimulatedDisk, ms: u64, running: Option<&mut Self>) -> Self {
        let (storage, key): (Arc<dyn Storage>, _) = (Arc::new(disk.clone()), key());
        let terms = succession::StartOptions {
            now: ms * 1000,
            ..start_options(&key, small_log_options())
        };
        let made = match running {
            None => succession::start(&storage, &terms, None).unwrap().log,
            Some(log) => {
                let former = log.follower.last_checkpoint().unwrap();
                succession::start_successor(&storage, &terms, log.ulid, former).unwrap()
            }
        };
        Self {
            writer: made.writer,
            follower: made.follower,
            ulid: made.incarnation,
            admitted: 0,
        }
    }

    fn append(
        &mut self,
        encode: impl FnOnce(u64, &mut Vec<u8>) -> Result<(), proofgate_ledger::LedgerError>,
    ) -> u64 {
        let seq = self.writer.append(encode).unwrap();
        self.writer.flush().unwrap();
        self.follower.prepare();
        while self.follower.step().unwrap().has_more {}
        seq
    }

    fn admit(&mut self, ms: u64, number: u64) -> u64 {
        self.admitted += 1;
        let tenant_seq = self.admitted;
        self.append(|seq, out| {
            Admission {
                seq,
                ts: ms * 1000,
                id: id(ms, number).into(),
                tenant: "acme".into(),
                tenant_seq,
                key: "01234567".into(),
                model: "m".repeat(280).into(),
                provider: "openai".into(),
                upstream_model: "m".into(),
                endpoint: "/v1/chat/completions".into(),
                stream: false,
                coming: None,
                bytes: 5,
                request: [1; 32],
                salt: None,
                shred_key: None,
                reserved: None,
                reserved_nanodollars: None,
                shared_plan: None,
                policy: None,
                dropped: Vec::new(),
                dropped_unnamed: 0,
                attribution: None,
                client_address: None,
                key_name: None,
                config: ConfigId([1; 8]),
            }
            .encode_into(out)
        })
    }

    fn complete(&mut self, admitted: u64, number: u64, admission: u64, later: u64, of: Option<Ulid>) {
        self.append(|seq, out| {
            Completion {
                seq,
                ts: (admitted + later) * 1000,
                id: id(admitted, number).into(),
                admission,
                incarnation: of.map(|of| of.to_string().into()),
                status: 200,
                upstream_status: Some(200),
                attempts: 1,
                outcome: Outcome::Complete,
                received: None,
                bytes: 7,
                response: [2; 32],
                payloads: None,
                usage: None,
                charged: None,
                cost_nanodollars: None,
                duration_us: later * 1000,
                policy: None,
                config: ConfigId([1; 8]),
            }
            .encode_into(out)
        });
    }
}

/// A disk that counts the bytes read and records the files opened.
struct Counting(SimulatedDisk, Arc<AtomicU64>, Mutex<Vec<PathBuf>>);

impl Counting {
    fn new(disk: &SimulatedDisk) -> Self {
        Counting(disk.clone(), Arc::default(), Mutex::default())
    }

    fn read(&self) -> u64 {
        self.1.load(Ordering::Relaxed)
    }
}

struct CountedFile(Arc<dyn ReadFile>, Arc<AtomicU64>);

impl ReadStorage for Counting {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        self.2.lock().unwrap().push(path.to_owned());
        Ok(Arc::new(CountedFile(self.0.open(path)?, Arc::clone(&self.1))))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.0.list(path)
    }
}

impl ReadFile for CountedFile {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let read = self.0.read_at(into, offset)?;
        self.1.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }

    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }
}

fn by_time(disk: &SimulatedDisk, id: &str) -> (Vec<FoundRecord>, u64) {
    let (found, read, _) = observed(disk, id);
    (found, read)
}

/// Returns the records found by time, the number of bytes read and the files opened.
fn observed(disk: &SimulatedDisk, id: &str) -> (Vec<FoundRecord>, u64, Vec<PathBuf>) {
    let counting = Counting::new(disk);
    let found = find_records(&counting, Path::new("/"), id, SearchMode::ByTime).unwrap();
    let read = counting.read();
    (found, read, counting.2.into_inner().unwrap())
}

#[test]
fn what_is_read_for_an_exchange_does_not_grow_with_the_log() {
    let disk = SimulatedDisk::new();
    let mut ms = START;
    for _ in 0..3 {
        let mut log = Log::begin(&disk, ms, None);
        for _ in 0..1500 {
            ms += 1000;
            let admission = log.admit(ms, 1);
            log.complete(ms, 1, admission, 900, None);
        }
        ms += 1000;
    }
    for number in [1, 2, 700, 1500, 1503, 2999, 4400, 4502] {
        let wanted = id(START + number * 1000, 1);
        let everything = find_records(&disk, Path::new("/"), &wanted, SearchMode::Scan).unwrap();
        let (found, read) = by_time(&disk, &wanted);
        assert_eq!(found, everything, "{number}");
        assert!(found.len() == 2 || found.is_empty());
        if found.len() == 2 {
            assert!(read < 1 << 20, "{read} bytes of 3 MiB");
        }
    }
    assert!(by_time(&disk, &id(START + 5_000_000, 9)).0.is_empty());
    assert!(by_time(&disk, "req-of-another-making").0.is_empty());
}

#[test]
fn under_load_an_exchange_is_found_without_reading_what_is_as_old_and_the_first_segment() {
    let disk = SimulatedDisk::new();
    let mut log = Log::begin(&disk, START, None);
    for ms in 0..400 {
        for number in 0..4 {
            let admission = log.admit(START + ms, number);
            log.complete(START + ms, number, admission, 0, None);
        }
    }
    let (found, read, opened) = observed(&disk, &id(START + 300, 2));
    assert_eq!(found.len(), 2);
    assert!(read < 192 << 10, "{read} bytes; 100 ms are 400 KiB");
    let first = opened
        .iter()
        .filter(|path| path.ends_with("00000000000000000000.seg"));
    assert_eq!(first.count(), 0, "{opened:?}");
}

#[test]
fn the_beginning_of_an_exchange_is_found_without_reading_what_came_behind_it() {
    let disk = SimulatedDisk::new();
    let mut log = Log::begin(&disk, START, None);
    let admission = log.admit(START, 7);
    for number in 0..10_000 {
        log.admit(START + 10 + number, 1);
    }
    let counting = Counting::new(&disk);
    let wanted = id(START, 7);
    let beginning = find_exchange_start(&counting, Path::new("/"), &wanted)
        .unwrap()
        .unwrap();
    assert_eq!(beginning.record().seq, admission);
    let read = counting.read();
    // The log has 6 MiB. Most of the reads belong to the binary search.
    assert!(read < 192 << 10, "{read} bytes");
    // The search for its end reads all later records.
    assert_eq!(beginning.into_records().unwrap().len(), 1);
    assert!(counting.read() > 5 << 20, "{} bytes", counting.read());
}

#[test]
fn the_end_of_an_exchange_is_found_in_a_later_log() {
    let disk = SimulatedDisk::new();
    let mut first = Log::begin(&disk, START, None);
    let lost = first.admit(START + 10, 1);
    let carried = first.admit(START + 20, 2);
    let mut second = Log::begin(&disk, START + 500_000, Some(&mut first));
    let of = first.ulid.to_string();
    second.append(|seq, out| {
        Abort {
            seq,
            ts: (START + 500_000) * 1000,
            id: id(START + 10, 1).into(),
            incarnation: of.into(),
            admission: lost,
            config: ConfigId([1; 8]),
        }
        .encode_into(out)
    });
    second.complete(START + 20, 2, carried, 500_100, Some(first.ulid));
    for number in [1, 2] {
        let (found, _) = by_time(&disk, &id(START + 10 * number, number));
        assert_eq!(found.len(), 2, "{number}");
        assert!(found[0].dir.ends_with(first.ulid.to_string()));
        assert!(found[1].dir.ends_with(second.ulid.to_string()));
    }
}

#[test]
fn an_exchange_that_began_while_the_next_log_was_made_is_found_whole() {
    let disk = SimulatedDisk::new();
    let mut first = Log::begin(&disk, START, None);
    let mut second = Log::begin(&disk, START + 10_000, Some(&mut first));
    // The next log receives its name before it is in service.
    let began = START + 12_000;
    let admission = first.admit(began, 1);
    let open = first.admit(began + 1, 2);
    second.complete(began, 1, admission, 3, Some(first.ulid));
    let wanted = id(began, 1);
    let everything = find_records(&disk, Path::new("/"), &wanted, SearchMode::Scan).unwrap();
    assert_eq!(everything.len(), 2);
    assert_eq!(by_time(&disk, &wanted).0, everything);
    let beginning = find_exchange_start(&disk, Path::new("/"), &wanted)
        .unwrap()
        .unwrap();
    assert_eq!(beginning.record().seq, admission);
    assert!(beginning.record().dir.ends_with(first.ulid.to_string()));
    let unended = id(began + 1, 2);
    let beginning = find_exchange_start(&disk, Path::new("/"), &unended)
        .unwrap()
        .unwrap();
    assert_eq!(beginning.record().seq, open);
}

#[test]
fn an_exchange_whose_clock_was_set_is_found_by_a_scan() {
    let disk = SimulatedDisk::new();
    let mut log = Log::begin(&disk, START, None);
    for number in 0..400 {
        log.admit(START + number * 1000, 1);
    }
    // The clock is set back by one hour.
    let late = log.admit(START - 3_600_000, 7);
    log.complete(START - 3_600_000, 7, late, 5, None);
    let wanted = id(START - 3_600_000, 7);
    assert_eq!(
        find_records(&disk, Path::new("/"), &wanted, SearchMode::Scan)
            .unwrap()
            .len(),
        2
    );
}

#[test]
fn near_by_an_exchange_that_was_long_judged_is_found_and_one_far_from_its_time_is_not() {
    let disk = SimulatedDisk::new();
    let mut log = Log::begin(&disk, START, None);
    let mut judged = |number: u64, later: u64| {
        let began = START + number * 1_000_000;
        for second in 0..200 {
            log.admit(began + second * 1000, 1);
            if second * 1000 == later {
                let admission = log.admit(began, number);
                log.complete(began, number, admission, later + 5, None);
            }
        }
        let wanted = id(began, number);
        let near = find_exchange_start(&disk, Path::new("/"), &wanted).unwrap();
        let near = near.map_or(0, |beginning| beginning.into_records().unwrap().len());
        (near, by_time(&disk, &wanted).0.len())
    };
    assert_eq!(judged(10, 0), (2, 2));
    assert_eq!(judged(11, 60_000), (2, 2));
    assert_eq!(judged(12, 130_000), (0, 2));
}

/// Fifteen years, in milliseconds.
const YEARS: u64 = 15 * 365 * 86_400_000;

/// Ends a log like a worker at shutdown.
fn end(disk: &SimulatedDisk, log: Log) {
    drop(log);
    disk.restart();
}

#[test]
fn a_folder_that_is_named_for_a_time_to_come_and_signed_by_nobody_is_passed_over() {
    let disk = SimulatedDisk::new();
    end(&disk, Log::begin(&disk, START, None));
    let planted = Ulid::from_parts(START + YEARS, 7);
    let shard = Path::new(testkit::SHARD);
    disk.create_dir(&shard.join(planted.to_string())).unwrap();
    for life in 1..4 {
        let now = START + life * 1_000_000;
        let mut log = Log::begin(&disk, now, None);
        assert_eq!(log.ulid.timestamp_ms(), now, "its name is of its own time");
        let admission = log.admit(now + 10, life);
        log.complete(now + 10, life, admission, 5, None);
        assert_eq!(by_time(&disk, &id(now + 10, life)).0.len(), 2);
        end(&disk, log);
    }
}

#[test]
fn logs_that_are_named_behind_one_of_a_wrong_clock_are_in_order_and_what_they_hold_is_found() {
    let disk = SimulatedDisk::new();
    end(&disk, Log::begin(&disk, START, None));
    // A worker's clock is years ahead, and is correct at the worker's next start.
    let ahead = Log::begin(&disk, START + YEARS, None);
    let mut before = ahead.ulid;
    end(&disk, ahead);
    let mut ids = Vec::new();
    for life in 1..20 {
        let now = START + life * 1_000_000;
        let mut log = Log::begin(&disk, now, None);
        assert!(log.ulid > before, "it is named behind the log that it continues");
        before = log.ulid;
        for number in 0..50 {
            let admission = log.admit(now + 10 + number, number);
            log.complete(now + 10 + number, number, admission, 5, None);
        }
        ids.push(id(now + 30, 20));
        end(&disk, log);
    }
    for wanted in ids {
        assert_eq!(by_time(&disk, &wanted).0.len(), 2, "{wanted}");
        let begun = find_exchange_start(&disk, Path::new("/"), &wanted).unwrap();
        assert!(begun.is_some(), "{wanted}");
    }
}
