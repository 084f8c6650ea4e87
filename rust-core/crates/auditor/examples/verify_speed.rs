//! Prints the number of records of about 512 bytes that an auditor verifies per second on one core,
//! from the page cache, and the separate costs of reading with checksums and of hashing. Values are
//! medians of several runs, with minimum and maximum. Time is the thread's CPU time, so that other
//! processes do not count.
//!
//! A log whose worker was killed, and for which its successor signed, is verified as well.
//!
//! `cargo run --release -p proofgate-auditor --example verify_speed -- [directory [records]]`
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a measuring program may stop at the first failure"
)]

use proofgate_auditor::{Auditor, Settings, StateDirectory};
use proofgate_evidence::log_reader::{LogItem, LogReader};
use proofgate_ledger::record::{Admission, Completion, ConfigDigests, ConfigId, Outcome, SaltId, Usage};
use proofgate_ledger::{Mmr, SigningKey, TrustPolicy, leaf_hash};
use proofgate_wal::{FileStorage, Incarnation, LogOptions, Shard, Storage, Ulid, succession};
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const RUNS: usize = 5;
/// Number of records in a log, unless the second argument sets it.
const RECORDS: u64 = 400_000;
/// Number of records in a log whose worker was killed that the log's own checkpoint and tree do not
/// cover.
const LEFT: u64 = 1024;

/// Number of polls in which everything is verified.
const POLLS: u64 = 5;

/// The end of a log.
#[derive(Clone, Copy, PartialEq)]
enum Ending {
    /// The log ends under a checkpoint. Its records are admissions.
    Signed,
    /// The worker is killed while it serves, so a successor signs for the log. The second half of
    /// its records are the ends of the first half; otherwise the successor would have to write
    /// them.
    Killed,
}

const LEDGER: &str = "ledger.example/bench";

fn main() {
    let root = std::env::args()
        .nth(1)
        .map_or_else(std::env::temp_dir, PathBuf::from);
    let root = root.join(format!("proofgate-verify-speed-{}", std::process::id()));
    let ledger = root.join("ledger");
    std::fs::create_dir_all(&ledger).unwrap();
    let key = SigningKey::generate(LEDGER, [0; 32]).unwrap();
    let (incarnation, bytes) = write(&ledger.join("0"), &key, Ending::Signed);
    let dir = ledger.join("0").join(incarnation.to_string());
    println!(
        "{} records of {bytes} bytes in one log, median of {RUNS} runs (least to most), million records a second of one core:",
        records()
    );
    tell(
        "verified by the auditor",
        &runs(|run| audit(&ledger, &root.join(run.to_string()), &key, records() + 1)),
    );
    tell(
        "verified again",
        &runs(|run| scrub(&ledger, &root.join(format!("again-{run}")), &key, records() + 1)),
    );
    let killed = root.join("killed");
    std::fs::create_dir_all(&killed).unwrap();
    write(&killed.join("0"), &key, Ending::Killed);
    let state = |run| root.join(format!("killed-{run}"));
    tell(
        "verified by the auditor, killed",
        &runs(|run| audit(&killed, &state(run), &key, records() + 2)),
    );
    let state = |run| root.join(format!("killed-again-{run}"));
    tell(
        "verified again, killed",
        &runs(|run| scrub(&killed, &state(run), &key, records() + 2)),
    );
    tell("read, checksums checked", &runs(|_| read(&dir, incarnation)));
    tell("hashed into the tree", &runs(|_| hash(bytes)));
    std::fs::remove_dir_all(&root).unwrap();
}

/// Returns the number of records in the log.
fn records() -> u64 {
    let given = std::env::args().nth(2).and_then(|text| text.parse().ok());
    given.unwrap_or(RECORDS)
}

fn runs(once: impl Fn(usize) -> f64) -> Vec<f64> {
    let mut rates: Vec<f64> = (0..RUNS).map(once).collect();
    rates.sort_by(f64::total_cmp);
    rates
}

fn tell(what: &str, rates: &[f64]) {
    println!(
        "  {what}: {:.2} ({:.2} to {:.2})",
        rates[RUNS / 2],
        rates[0],
        rates[RUNS - 1]
    );
}

/// Returns the CPU time of this thread in seconds.
fn busy() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn rate(begun: f64) -> f64 {
    records() as f64 / (busy() - begun) / 1e6
}

/// Writes a log. Returns its incarnation and the size of a record in bytes.
fn write(dir: &Path, key: &SigningKey, ending: Ending) -> (Ulid, usize) {
    let shard = Shard {
        dir,
        ledger: LEDGER,
        number: 0,
        key,
        previous_key: None,
    };
    let terms = succession::StartOptions {
        shard,
        key_valid_until: None,
        successions: &[],
        options: LogOptions::default(),
        config: ConfigDigests::from_config([1; 32]),
        version: "0",
        now: 1,
    };
    let storage: Arc<dyn Storage> = Arc::new(FileStorage);
    let mut log = succession::start(&storage, &terms, None).unwrap().log;
    let mut bytes = 0;
    let (killed, records) = (ending == Ending::Killed, records());
    let followed = if killed { records - LEFT } else { records };
    for number in 0..records {
        if killed && number >= records / 2 {
            complete(&mut log, number - records / 2);
            follow(&mut log, number, followed);
            if number == followed {
                log.follower.sync().unwrap();
                log.follower.sign_checkpoint(key).unwrap();
            }
            continue;
        }
        let id = format!("req-{number:027}");
        let admission = |seq, out: &mut Vec<u8>| {
            let start = out.len();
            let written = Admission {
                seq,
                ts: 1_700_000_000_000_000,
                id: id.as_str().into(),
                tenant: "acme".into(),
                tenant_seq: number + 1,
                key: "01234567".into(),
                model: "gpt-4o-mini".into(),
                provider: "openai".into(),
                upstream_model:
                    "gpt-4o-mini-2024-07-18-with-a-name-that-fills-the-record-up-to-half-a-kilobyte-or-so"
                        .into(),
                endpoint: "/v1/chat/completions".into(),
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
            .encode_into(out);
            bytes = out.len() - start;
            written
        };
        log.writer.append(admission).unwrap();
        follow(&mut log, number, followed);
    }
    log.writer.flush().unwrap();
    if killed {
        let incarnation = log.incarnation;
        drop(log);
        succession::start(&storage, &terms, None).unwrap();
        return (incarnation, bytes);
    }
    while log.follower.step().unwrap().has_more {}
    log.follower.sync().unwrap();
    log.follower.sign_checkpoint(key).unwrap();
    (log.incarnation, bytes)
}

/// Lets the ledger thread follow every 64 records, up to the limit.
fn follow(log: &mut Incarnation, number: u64, followed: u64) {
    if number % 64 != 63 {
        return;
    }
    log.writer.flush().unwrap();
    log.follower.prepare();
    while number < followed && log.follower.step().unwrap().has_more {}
}

fn complete(log: &mut Incarnation, number: u64) {
    let id = format!("req-{number:027}");
    let appended = log.writer.append(|seq, out| {
        Completion {
            seq,
            ts: 1_700_000_000_000_001,
            id: id.as_str().into(),
            admission: number + 1,
            incarnation: None,
            status: 200,
            upstream_status: Some(200),
            attempts: 1,
            outcome: Outcome::Complete,
            received: None,
            bytes: 512,
            response: [3; 32],
            payloads: None,
            usage: Some(Usage {
                prompt_tokens: 250,
                completion_tokens: 50,
                ..Usage::default()
            }),
            charged: Some(300),
            cost_nanodollars: Some(1000),
            duration_us: 1,
            policy: None,
            config: ConfigId([2; 8]),
        }
        .encode_into(out)
    });
    appended.unwrap();
}

fn auditor(ledger: &Path, state: &Path, key: &SigningKey) -> Auditor {
    let settings = Settings {
        ledger: ledger.to_owned(),
        key: key.verifying_key(),
        retention_key: None,
        heartbeat: 1,
        recheck_delay: 1,
        stall_timeout: u64::MAX,
        check_configurations: false,
        policy: Arc::new(TrustPolicy::unconditional()),
    };
    let state = Arc::new(StateDirectory::open(state).unwrap().unwrap());
    let own = SigningKey::generate("ledger.example/audit", [1; 32]).unwrap();
    Auditor::create(Arc::new(FileStorage), state, own, settings).unwrap()
}

/// Polls until all records are verified, and returns their number. A successor's note is read after
/// the log's own checkpoint.
fn verify_all(auditor: &mut Auditor, records: u64) -> u64 {
    let mut verified = 0;
    for now in 1..=POLLS {
        verified += auditor.poll(now, u64::MAX, 0).unwrap().records;
        if verified >= records {
            break;
        }
    }
    verified
}

fn audit(ledger: &Path, state: &Path, key: &SigningKey, records: u64) -> f64 {
    let mut auditor = auditor(ledger, state, key);
    let begun = busy();
    let verified = verify_all(&mut auditor, records);
    let rate = rate(begun);
    assert_eq!((verified, auditor.findings().len()), (records, 0));
    rate
}

fn scrub(ledger: &Path, state: &Path, key: &SigningKey, records: u64) -> f64 {
    let mut auditor = auditor(ledger, state, key);
    verify_all(&mut auditor, records);
    let begun = busy();
    let poll = auditor.poll(POLLS + 1, 0, u64::MAX).unwrap();
    let rate = rate(begun);
    assert_eq!(poll.scrubbed_records, records);
    rate
}

fn read(dir: &Path, incarnation: Ulid) -> f64 {
    let begun = busy();
    let mut log = LogReader::open(&FileStorage, dir, incarnation).unwrap();
    for _ in 0..=records() {
        match log.next().unwrap() {
            LogItem::Record(stored) => black_box(log.payload(&stored).len()),
            LogItem::Flaw(flaw) => panic!("{flaw:?}"),
            LogItem::End => panic!("the log is short"),
        };
    }
    rate(begun)
}

fn hash(bytes: usize) -> f64 {
    let (record, mut tree) = (vec![b'x'; bytes], Mmr::new());
    let begun = busy();
    for _ in 0..records() {
        tree.push(leaf_hash(black_box(&record)), &mut |_| {});
    }
    black_box(tree.root());
    rate(begun)
}
