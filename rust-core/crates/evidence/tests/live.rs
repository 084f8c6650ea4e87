//! Tests that read a log while it is being written. No change between two calls of a reader is
//! reported as damage.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a test fails"
)]

use proofgate_evidence::log_reader::{LogItem, LogReader};
use proofgate_evidence::{FileStorage, ReadFile, ReadStorage, Report, Verdict, fsck};
use proofgate_ledger::record::{ConfigId, Rejection};
use proofgate_ledger_testkit::{Worker, key, new_worker, small_log_options, start_log_in, vkey};
use proofgate_wal::Incarnation;
use proofgate_wal::simulated::SimulatedDisk;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex};

/// A reader's call that has just returned.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Call {
    Open(PathBuf),
    List(PathBuf),
    Read(PathBuf, u64),
}

type Move = Box<dyn FnMut(&Call) + Send>;

/// A disk on which the writer acts between two calls of a reader.
struct Moving {
    disk: SimulatedDisk,
    after: Arc<Mutex<Move>>,
}

impl Moving {
    fn new(disk: &SimulatedDisk, after: impl FnMut(&Call) + Send + 'static) -> Self {
        Self {
            disk: disk.clone(),
            after: Arc::new(Mutex::new(Box::new(after))),
        }
    }

    fn fsck(&self) -> Report {
        fsck(self, Path::new("/"), Some(&vkey()), &[]).unwrap()
    }
}

struct MovingFile {
    file: Arc<dyn ReadFile>,
    path: PathBuf,
    after: Arc<Mutex<Move>>,
}

impl ReadStorage for Moving {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        let file = self.disk.open(path);
        (self.after.lock().unwrap())(&Call::Open(path.to_owned()));
        Ok(Arc::new(MovingFile {
            file: file?,
            path: path.to_owned(),
            after: Arc::clone(&self.after),
        }))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let names = self.disk.list(path);
        (self.after.lock().unwrap())(&Call::List(path.to_owned()));
        names
    }
}

impl ReadFile for MovingFile {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let read = self.file.read_at(into, offset);
        (self.after.lock().unwrap())(&Call::Read(self.path.clone(), offset));
        read
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
}

/// Serves one exchange: written, followed, durable and signed.
fn serve(worker: &mut Worker, number: usize) {
    let id = format!("req-{number}");
    let admission = worker.admit(&id, 2000).unwrap();
    worker.flush().unwrap();
    worker.step().unwrap();
    worker.sync().unwrap();
    worker.complete(&id, admission).unwrap();
    worker.flush().unwrap();
    worker.step().unwrap();
    worker.sync().unwrap();
    worker.checkpoint().unwrap();
}

/// Checks that there is no worse finding than records that no checkpoint covers yet, which a live
/// log may hold.
fn expect_sound(report: &Report) {
    for finding in report.incarnations.iter().flat_map(|log| &log.findings) {
        assert_eq!(finding.verdict, Verdict::Incomplete, "{report:#?}");
        assert!(
            finding.message.ends_with("are not covered by a checkpoint")
                || finding.message.contains("not ended yet"),
            "{report:#?}"
        );
    }
}

/// Runs `fsck` while the writer serves `exchanges` after the reader's call number `at`. Only calls
/// that `which` selects are counted.
fn fsck_while(exchanges: usize, at: usize, which: impl Fn(&Call) -> bool + Send + 'static) -> (Report, bool) {
    let (disk, mut worker) = new_worker();
    for number in 0..3 {
        serve(&mut worker, number);
    }
    let (mut seen, moved) = (0, Arc::new(Mutex::new(false)));
    let told = Arc::clone(&moved);
    let moving = Moving::new(&disk, move |call| {
        if which(call) {
            seen += 1;
            if seen == at {
                *told.lock().unwrap() = true;
                (3..3 + exchanges).for_each(|number| serve(&mut worker, number));
            }
        }
    });
    let report = moving.fsck();
    let moved = *moved.lock().unwrap();
    (report, moved)
}

#[test]
fn records_that_are_written_behind_a_window_already_read_are_no_damage() {
    let first = |call: &Call| matches!(call, Call::Read(path, at) if path.ends_with("00000000000000000000.seg") && *at >= 128);
    for at in 1.. {
        let (report, moved) = fsck_while(2, at, first);
        expect_sound(&report);
        if !moved {
            assert!(at > 2);
            break;
        }
    }
}

#[test]
fn segments_that_are_begun_after_the_listing_do_not_contradict_a_later_checkpoint() {
    for exchanges in [40, 100] {
        for at in 1.. {
            let (report, moved) = fsck_while(exchanges, at, |call| matches!(call, Call::List(_)));
            expect_sound(&report);
            if !moved {
                break;
            }
        }
    }
}

#[test]
fn a_prepared_segment_that_is_begun_between_two_reads_is_no_damage() {
    for at in 1.. {
        let (report, moved) = fsck_while(
            40,
            at,
            |call| matches!(call, Call::Read(path, _) if path.extension().is_some_and(|kind| kind == "next")),
        );
        expect_sound(&report);
        if !moved {
            assert!(at > 1);
            break;
        }
    }
}

#[test]
fn a_writer_may_move_after_any_call_of_a_reader() {
    for exchanges in [1, 30] {
        for at in 1.. {
            let (report, moved) = fsck_while(exchanges, at, |_| true);
            expect_sound(&report);
            if !moved {
                break;
            }
        }
    }
}

#[test]
fn a_log_of_many_segments_is_read_with_two_files_open() {
    let (disk, mut worker) = new_worker();
    for number in 0..300 {
        serve(&mut worker, number);
    }
    let opened = Arc::new(Mutex::new((0_usize, 0_usize)));
    let counting = Counting {
        disk,
        open: Arc::clone(&opened),
    };
    let dir = &worker.durability_model.dir;
    let incarnation = worker.durability_model.incarnation.unwrap();
    let mut log = LogReader::open(&counting, dir, incarnation).unwrap();
    let mut records = 0;
    while let LogItem::Record(_) = log.next().unwrap() {
        records += 1;
    }
    assert_eq!(records, 601);
    assert!(log.segment_count() > 9, "{}", log.segment_count());
    assert_eq!(opened.lock().unwrap().1, 2);
}

/// A disk that counts the open files, and the largest number of simultaneously open files.
struct Counting {
    disk: SimulatedDisk,
    open: Arc<Mutex<(usize, usize)>>,
}

struct CountedFile {
    file: Arc<dyn ReadFile>,
    open: Arc<Mutex<(usize, usize)>>,
}

impl ReadStorage for Counting {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        let file = self.disk.open(path)?;
        let mut open = self.open.lock().unwrap();
        open.0 += 1;
        open.1 = open.1.max(open.0);
        Ok(Arc::new(CountedFile {
            file,
            open: Arc::clone(&self.open),
        }))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.disk.list(path)
    }
}

impl ReadFile for CountedFile {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(into, offset)
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
}

impl Drop for CountedFile {
    fn drop(&mut self) {
        self.open.lock().unwrap().0 -= 1;
    }
}

/// Checks a log on real files repeatedly while a writer and a ledger thread extend it and start new
/// segments.
#[test]
fn a_log_that_two_threads_extend_is_never_called_damaged() {
    let volume = tempfile::tempdir().unwrap();
    let shard = volume.path().join("3");
    let Incarnation {
        mut writer,
        mut follower,
        ..
    } = start_log_in(&shard, small_log_options());
    let done = AtomicBool::new(false);
    let mut reports = Vec::new();
    let pause = Barrier::new(2);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !done.load(Ordering::Acquire) {
                follower.prepare();
                follower.step().unwrap();
                follower.sync().unwrap();
                follower.sign_checkpoint(&key()).unwrap();
                std::thread::yield_now();
            }
        });
        threads.spawn(|| {
            pause.wait();
            while !done.load(Ordering::Acquire) && writer.next_seq() < 3_000 {
                let rejection = |seq| Rejection {
                    seq,
                    ts: seq,
                    id: "r".into(),
                    tenant: None,
                    counted: None,
                    shared_plan: None,
                    status: 404,
                    code: "c".repeat(300).into(),
                    endpoint: None,
                    bytes: 0,
                    policy: None,
                    config: ConfigId([1; 8]),
                    ..Rejection::default()
                };
                for _ in 0..8 {
                    // If there is no free segment, the ledger thread is behind. The next iteration
                    // finds a segment.
                    let _ = writer.append(|seq, out| rejection(seq).encode_into(out));
                }
                writer.flush().unwrap();
                std::thread::yield_now();
            }
        });
        pause.wait();
        for _ in 0..20 {
            reports.push(fsck(&FileStorage, volume.path(), Some(&vkey()), &[]));
        }
        done.store(true, Ordering::Release);
    });
    reports
        .into_iter()
        .for_each(|report| expect_sound(&report.unwrap()));
}
