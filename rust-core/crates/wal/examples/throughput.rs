//! Prints the cost of one record of 512 bytes on the hot path (append and flush), the time until it
//! is acknowledged (`written`: in the page cache; `synced`: on the disk), and the speed of recovery
//! and of the tree. Each figure is the median of several runs, with minimum and maximum.
//!
//! `cargo run --release -p proofgate-wal --example throughput -- [directory]`
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a measuring program may stop at the first failure"
)]

use proofgate_ledger::record::{Admission, Completion, ConfigDigests, ConfigId, Outcome, SaltId, Usage};
use proofgate_ledger::{Mmr, SigningKey, leaf_hash};
use proofgate_wal::{
    FileStorage, Incarnation, LogOptions, Shard, Storage, WalError, Writer, recovery, succession,
};
use std::collections::VecDeque;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const RUNS: usize = 5;
const RECORDS: usize = 100_000;
/// Pause between two records, which simulates a loaded worker rather than a loop that only appends.
const PAUSE: Duration = Duration::from_micros(20);

fn main() {
    let root = std::env::args()
        .nth(1)
        .map_or_else(std::env::temp_dir, PathBuf::from);
    let root = root.join(format!("proofgate-throughput-{}", std::process::id()));
    std::fs::create_dir(&root).unwrap();
    println!(
        "{RECORDS} records of 512 bytes {PAUSE:?} apart, median of {RUNS} runs (least to most), microseconds:"
    );
    for (beside, append, record) in [
        (Beside::Nobody, "no ledger thread", None),
        (
            Beside::Follower,
            "ledger thread follows, syncs every ms, signs every s",
            Some("written"),
        ),
        (
            Beside::Syncer,
            "ledger thread syncs whenever records wait, signs every s",
            Some("synced"),
        ),
    ] {
        let runs: Vec<_> = (0..RUNS).map(|_| hot_path(&root, beside)).collect();
        tell("append", append, runs.iter().map(|run| &run.append));
        if let Some(record) = record {
            tell("record", record, runs.iter().map(|run| &run.record));
        }
    }
    let recovered = median((0..RUNS).map(|_| recovery(&root)).collect());
    println!("recovery of admissions and completions: {recovered:.2} M/s");
    std::fs::remove_dir(&root).unwrap();
    println!(
        "MMR pushes with node output: {:.2} M/s",
        median((0..RUNS).map(|_| pushes()).collect())
    );
    println!(
        "leaf hash of 512 bytes:      {:.2} M/s",
        median((0..RUNS).map(|_| leaves()).collect())
    );
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The thread that runs concurrently with the appending thread.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beside {
    Nobody,
    /// The ledger thread when records are acknowledged once written.
    Follower,
    /// The ledger thread when records are acknowledged once synced. It is woken for each waiting
    /// record.
    Syncer,
}

/// Costs of each record in nanoseconds, sorted.
struct Costs {
    /// Time to append and flush a record.
    append: Vec<u64>,
    /// Time from the call of `append` until the watermark on which the acknowledgement waits has
    /// passed the record.
    record: Vec<u64>,
}

fn tell<'r>(what: &str, name: &str, runs: impl Iterator<Item = &'r Vec<u64>> + Clone) {
    let at = |quantile: usize| {
        let mut values: Vec<f64> = runs
            .clone()
            .map(|times| times[(times.len() * quantile / 100).min(times.len() - 1)] as f64 / 1000.0)
            .collect();
        values.sort_by(f64::total_cmp);
        let (middle, least, most) = (values[values.len() / 2], values[0], values[values.len() - 1]);
        format!("{middle:.2} ({least:.2} to {most:.2})")
    };
    println!("  {what}, {name}: p50 {}, p99 {}", at(50), at(99));
}

fn hot_path(root: &Path, beside: Beside) -> Costs {
    let mut options = LogOptions::default();
    if beside == Beside::Nobody {
        // No thread prepares segments later, so prepare all of them now.
        options.segments_ahead = 3;
    }
    let directory = root.join("0");
    let key = SigningKey::generate("bench", [0; 32]).unwrap();
    let made = begin(&shard(&directory, &key), options);
    let (mut writer, mut follower) = (made.writer, made.follower);
    let watermark = writer.watermark();
    let stop = Arc::new(AtomicBool::new(false));
    let ledger = (beside != Beside::Nobody).then(|| {
        let stop = Arc::clone(&stop);
        std::thread::spawn(move || {
            let watermark = follower.watermark();
            let together = if beside == Beside::Syncer { 0 } else { 512 };
            let mut signed = Instant::now();
            while !stop.load(Ordering::Relaxed) {
                watermark.wait_written(follower.followed_records() + together, Duration::from_millis(1));
                follower.prepare();
                while follower.step().unwrap().has_more {}
                follower.sync().unwrap();
                if signed.elapsed() > Duration::from_secs(1) {
                    follower.sign_checkpoint(&key).unwrap();
                    signed = Instant::now();
                }
            }
        })
    });
    let handed_over = || match beside {
        Beside::Syncer => watermark.durable(),
        Beside::Nobody | Beside::Follower => watermark.written(),
    };
    let record = [b'x'; 512];
    let (mut append_times, mut record_times) = (Vec::with_capacity(RECORDS), Vec::with_capacity(RECORDS));
    let mut waiting: VecDeque<(u64, Instant)> = VecDeque::new();
    let mut settle = |waiting: &mut VecDeque<(u64, Instant)>| {
        let passed = handed_over();
        while let Some((seq, start)) = waiting.front().copied()
            && seq < passed
        {
            waiting.pop_front();
            record_times.push(start.elapsed().as_nanos() as u64);
        }
    };
    for _ in 0..RECORDS {
        let next = Instant::now() + PAUSE;
        while Instant::now() < next {
            settle(&mut waiting);
            std::hint::spin_loop();
        }
        let start = Instant::now();
        let seq = append(&mut writer, &record);
        writer.flush().unwrap();
        append_times.push(start.elapsed().as_nanos() as u64);
        waiting.push_back((seq, start));
        settle(&mut waiting);
    }
    while !waiting.is_empty() {
        settle(&mut waiting);
    }
    stop.store(true, Ordering::Relaxed);
    if let Some(ledger) = ledger {
        ledger.join().unwrap();
    }
    // The appended data is not a valid record, so no log can continue from it.
    std::fs::remove_dir_all(&directory).unwrap();
    append_times.sort_unstable();
    record_times.sort_unstable();
    Costs {
        append: append_times,
        record: record_times,
    }
}

fn append(writer: &mut Writer, record: &[u8]) -> u64 {
    let appended = writer.append(|_, out| {
        out.extend_from_slice(record);
        Ok(())
    });
    match appended {
        Ok(seq) => seq,
        Err(WalError::OutOfSpace { .. }) => panic!("the ledger thread is too slow for this rate"),
        Err(error) => panic!("{error}"),
    }
}

fn recovery(root: &Path) -> f64 {
    const EXCHANGES: u32 = 100_000;
    let directory = root.join("0");
    let key = SigningKey::generate("bench", [0; 32]).unwrap();
    let shard = shard(&directory, &key);
    let options = LogOptions {
        segments_ahead: 4,
        ..LogOptions::default()
    };
    let mut writer = begin(&shard, options).writer;
    for number in 0..EXCHANGES {
        let id = format!("req-{number:027}");
        let admission = writer
            .append(|seq, out| {
                Admission {
                    seq,
                    ts: 1_700_000_000_000_000,
                    id: id.as_str().into(),
                    tenant: "acme".into(),
                    tenant_seq: u64::from(number) + 1,
                    key: "01234567".into(),
                    model: "gpt-4o-mini".into(),
                    provider: "openai".into(),
                    upstream_model: "gpt-4o-mini-2024-07-18".into(),
                    endpoint: "chat.completions".into(),
                    stream: true,
                    coming: None,
                    bytes: 512,
                    request: [1; 32],
                    salt: Some(SaltId([4; 8])),
                    shred_key: None,
                    reserved: Some(300),
                    reserved_nanodollars: None,
                    shared_plan: None,
                    policy: None,
                    dropped: Vec::new(),
                    dropped_unnamed: 0,
                    attribution: None,
                    client_address: None,
                    key_name: None,
                    config: ConfigId([2; 8]),
                }
                .encode_into(out)
            })
            .unwrap();
        writer
            .append(|seq, out| {
                Completion {
                    seq,
                    ts: 1_700_000_000_000_000,
                    id: id.as_str().into(),
                    admission,
                    incarnation: None,
                    status: 200,
                    upstream_status: Some(200),
                    attempts: 1,
                    outcome: Outcome::Complete,
                    received: None,
                    bytes: 4096,
                    response: [1; 32],
                    payloads: None,
                    usage: Some(Usage {
                        prompt_tokens: 100,
                        completion_tokens: 200,
                        ..Usage::default()
                    }),
                    charged: Some(300),
                    cost_nanodollars: None,
                    duration_us: 1_000_000,
                    policy: None,
                    config: ConfigId([2; 8]),
                }
                .encode_into(out)
            })
            .unwrap();
        if number % 16 == 0 {
            writer.flush().unwrap();
        }
    }
    writer.flush().unwrap();
    let start = Instant::now();
    let found = recovery::inspect(&FileStorage, &shard, None, None)
        .unwrap()
        .unwrap();
    let seconds = start.elapsed().as_secs_f64();
    std::fs::remove_dir_all(&directory).unwrap();
    found.records_read as f64 / seconds / 1e6
}

fn shard<'a>(dir: &'a Path, key: &'a SigningKey) -> Shard<'a> {
    Shard {
        dir,
        ledger: "bench",
        number: 0,
        key,
        previous_key: None,
    }
}

fn begin(shard: &Shard<'_>, options: LogOptions) -> Incarnation {
    let storage: Arc<dyn Storage> = Arc::new(FileStorage);
    let terms = succession::StartOptions {
        shard: *shard,
        key_valid_until: None,
        successions: &[],
        options,
        config: ConfigDigests::from_config([0; 32]),
        version: "0",
        now: 1,
    };
    succession::start(&storage, &terms, None).unwrap().log
}

fn pushes() -> f64 {
    const PUSHES: u32 = 2_000_000;
    let mut mmr = Mmr::new();
    let mut nodes = Vec::with_capacity(64 * PUSHES as usize);
    let leaf = leaf_hash(b"");
    let start = Instant::now();
    for _ in 0..PUSHES {
        mmr.push(leaf, &mut |node| nodes.extend_from_slice(&node));
    }
    black_box((mmr.root(), nodes));
    f64::from(PUSHES) / start.elapsed().as_secs_f64() / 1e6
}

fn leaves() -> f64 {
    const LEAVES: u32 = 500_000;
    let mut record = [b'x'; 512];
    let start = Instant::now();
    for number in 0..LEAVES {
        record[..4].copy_from_slice(&number.to_le_bytes());
        black_box(leaf_hash(&record));
    }
    f64::from(LEAVES) / start.elapsed().as_secs_f64() / 1e6
}
