//! Prints how many records of about 512 bytes an auditor verifies in a second of one core, from the page cache, and what
//! the parts of that cost alone: reading with checksums, and hashing. Medians of several runs, with the least and the most.
//! Seconds are those that the thread had the processor, so that what else runs does not count.
//!
//! `cargo run --release -p proofgate-auditor --example verify_speed -- [directory]`
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a measuring program may stop at the first failure"
)]

use proofgate_auditor::{Auditor, Settings, StateDirectory};
use proofgate_evidence::log_reader::{Found, LogReader};
use proofgate_ledger::record::{Admission, ConfigDigests, ConfigId, SaltId};
use proofgate_ledger::{Mmr, SigningKey, TrustPolicy, leaf_hash};
use proofgate_wal::{FileStorage, Options, Shard, Storage, Ulid, succession};
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const RUNS: usize = 5;
const RECORDS: u64 = 400_000;
const LEDGER: &str = "ledger.example/bench";

fn main() {
    let root = std::env::args()
        .nth(1)
        .map_or_else(std::env::temp_dir, PathBuf::from);
    let root = root.join(format!("proofgate-verify-speed-{}", std::process::id()));
    let ledger = root.join("ledger");
    std::fs::create_dir_all(&ledger).unwrap();
    let key = SigningKey::generate(LEDGER, [0; 32]).unwrap();
    let (incarnation, bytes) = write(&ledger.join("0"), &key);
    let dir = ledger.join("0").join(incarnation.to_string());
    println!(
        "{RECORDS} records of {bytes} bytes in one log, median of {RUNS} runs (least to most), million records a second of one core:"
    );
    tell(
        "verified by the auditor",
        &runs(|run| audit(&ledger, &root.join(run.to_string()), &key)),
    );
    tell(
        "verified again",
        &runs(|run| scrub(&ledger, &root.join(format!("again-{run}")), &key)),
    );
    tell("read, checksums checked", &runs(|_| read(&dir, incarnation)));
    tell("hashed into the tree", &runs(|_| hash(bytes)));
    std::fs::remove_dir_all(&root).unwrap();
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

/// Seconds that this thread has had the processor.
fn busy() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn rate(begun: f64) -> f64 {
    RECORDS as f64 / (busy() - begun) / 1e6
}

/// Writes a log; returns its incarnation and the bytes of a record.
fn write(dir: &Path, key: &SigningKey) -> (Ulid, usize) {
    let shard = Shard {
        dir,
        ledger: LEDGER,
        number: 0,
        key,
        former: None,
    };
    let terms = succession::Terms {
        shard,
        until: None,
        successions: &[],
        options: Options::default(),
        config: ConfigDigests::of([1; 32]),
        version: "0",
        now: 1,
    };
    let storage: Arc<dyn Storage> = Arc::new(FileStorage);
    let mut log = succession::begin(&storage, &terms, None).unwrap().log;
    let mut bytes = 0;
    for number in 0..RECORDS {
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
                policy: None,
                dropped: Vec::new(),
                dropped_unnamed: 0,
                attribution: None,
                config: ConfigId([2; 8]),
            }
            .encode_into(out);
            bytes = out.len() - start;
            written
        };
        log.writer.append(admission).unwrap();
        if number % 64 == 63 {
            log.writer.flush().unwrap();
            log.follower.prepare();
            while log.follower.step().unwrap().behind {}
        }
    }
    log.writer.flush().unwrap();
    while log.follower.step().unwrap().behind {}
    log.follower.sync().unwrap();
    log.follower.checkpoint(key).unwrap();
    (log.incarnation, bytes)
}

fn auditor(ledger: &Path, state: &Path, key: &SigningKey) -> Auditor {
    let settings = Settings {
        ledger: ledger.to_owned(),
        key: key.verifying_key(),
        keeping: None,
        beat: 1,
        second_look: 1,
        stall: u64::MAX,
        configurations: false,
        policy: Arc::new(TrustPolicy::unconditional()),
    };
    let state = Arc::new(StateDirectory::open(state).unwrap().unwrap());
    let own = SigningKey::generate("ledger.example/audit", [1; 32]).unwrap();
    Auditor::create(Arc::new(FileStorage), state, own, settings).unwrap()
}

fn audit(ledger: &Path, state: &Path, key: &SigningKey) -> f64 {
    let mut auditor = auditor(ledger, state, key);
    let begun = busy();
    let poll = auditor.poll(1, u64::MAX, 0).unwrap();
    let rate = rate(begun);
    assert_eq!((poll.records, auditor.findings().len()), (RECORDS + 1, 0));
    rate
}

fn scrub(ledger: &Path, state: &Path, key: &SigningKey) -> f64 {
    let mut auditor = auditor(ledger, state, key);
    auditor.poll(1, u64::MAX, 0).unwrap();
    let begun = busy();
    let poll = auditor.poll(2, 0, u64::MAX).unwrap();
    let rate = rate(begun);
    assert_eq!(poll.scrubbed_records, RECORDS + 1);
    rate
}

fn read(dir: &Path, incarnation: Ulid) -> f64 {
    let begun = busy();
    let mut log = LogReader::open(&FileStorage, dir, incarnation).unwrap();
    for _ in 0..=RECORDS {
        match log.next().unwrap() {
            Found::Record(stored) => black_box(log.payload(&stored).len()),
            Found::Flaw(flaw) => panic!("{flaw:?}"),
            Found::End => panic!("the log is short"),
        };
    }
    rate(begun)
}

fn hash(bytes: usize) -> f64 {
    let (record, mut tree) = (vec![b'x'; bytes], Mmr::new());
    let begun = busy();
    for _ in 0..RECORDS {
        tree.push(leaf_hash(black_box(&record)), &mut |_| {});
    }
    black_box(tree.root());
    rate(begun)
}
