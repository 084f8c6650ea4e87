//! Creates a ledger of many exchanges with several tenants, models and days, and measures how fast they are turned into
//! rows.
//!
//! ```text
//! index_speed make DIR --exchanges N [--days D] [--from DAY] [--shard S]
//!                        writes DIR/S, of D days (1) from the DAY-th (0) on, and the verifying key to DIR.key
//! index_speed read DIR   reads it, in exchanges for each second of one core
//! ```
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a measuring program may stop at the first failure"
)]

use proofgate_evidence::FileStorage;
use proofgate_index::{BatchLimits, BatchReader, signed_logs};
use proofgate_ledger::SigningKey;
use proofgate_ledger::record::{
    Admission, Completion, ConfigDigests, ConfigId, Outcome, PolicyNote, SaltId, Usage,
};
use proofgate_wal::{Incarnation, LogOptions, Preparation, Shard, Storage, succession};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

const LEDGER: &str = "bench.test/ledger";
/// 2025-01-01, in unix microseconds.
const START: u64 = 1_735_689_600_000_000;
const DAY: u64 = 86_400_000_000;
const TENANTS: u64 = 50;
const MODELS: u64 = 12;
/// One exchange in this many has a unique rule or model, or the highest cost.
const RARE: u64 = 200_000;
/// The highest cost, in nanodollars.
const DEAR: u64 = 50_000_000_000;
/// Exchanges in flight at any time.
const IN_FLIGHT: usize = 64;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1)?.parse::<u64>().ok()
    };
    let directory = PathBuf::from(arguments.get(1).map_or("", String::as_str));
    let key = SigningKey::generate(LEDGER, [7; 32]).unwrap();
    match arguments.first().map(String::as_str) {
        Some("make") => {
            std::fs::create_dir_all(&directory).unwrap();
            std::fs::write(directory.with_extension("key"), key.verifying_key().to_text()).unwrap();
            let shard = number("--shard").unwrap_or(0);
            make(
                &Shard {
                    dir: &directory.join(shard.to_string()),
                    ledger: LEDGER,
                    number: u32::try_from(shard).unwrap(),
                    key: &key,
                    previous_key: None,
                },
                START + number("--from").unwrap_or(0) * DAY,
                number("--exchanges").unwrap(),
                number("--days").unwrap_or(1),
            );
        }
        Some("read") => read(&directory, &key),
        _ => panic!("usage: index_speed make|read DIR: see the top of this program"),
    }
}

fn make(shard: &Shard<'_>, start: u64, exchanges: u64, days: u64) {
    let terms = succession::StartOptions {
        shard: *shard,
        key_valid_until: None,
        successions: &[],
        options: LogOptions::default(),
        config: ConfigDigests::from_config([0; 32]),
        version: "0",
        now: start,
    };
    let storage: Arc<dyn Storage> = Arc::new(FileStorage);
    let mut log = succession::start(&storage, &terms, None).unwrap().log;
    let apart = days * DAY / exchanges;
    let mut flying = VecDeque::new();
    let mut admitted: HashMap<u64, u64> = HashMap::new();
    for exchange in 0..exchanges {
        let ts = start + exchange * apart;
        let milliseconds = ts / 1000;
        let id = format!("req_{milliseconds:012x}7{:03x}8{exchange:015x}", exchange & 0xfff);
        // A few tenants and models have most of the traffic, and some have little.
        let tenant = (exchange * 2_654_435_761 % 1009).pow(2) % 1009 % TENANTS;
        let model = exchange * 40_503 % 997 % MODELS;
        let number = admitted.entry(tenant).or_default();
        *number += 1;
        let number = *number;
        let seq = log.writer.append(|seq, out| {
            Admission {
                seq,
                ts,
                id: id.as_str().into(),
                tenant: format!("tenant-{tenant}").into(),
                tenant_seq: number,
                key: format!("{:08x}", tenant * 7 + exchange % 3).into(),
                model: if exchange % RARE == 7 {
                    "rare".into()
                } else if tenant == 0 && exchange % 4 == 1 {
                    "own".into()
                } else {
                    format!("model-{model}").into()
                },
                provider: if model.is_multiple_of(2) {
                    "openai"
                } else {
                    "anthropic"
                }
                .into(),
                upstream_model: "upstream-model".into(),
                endpoint: "/v1/chat/completions".into(),
                stream: true,
                coming: None,
                bytes: 1024,
                request: [1; 32],
                salt: Some(SaltId([4; 8])),
                shred_key: None,
                reserved: Some(4352),
                reserved_nanodollars: None,
                shared_plan: None,
                policy: exchange.is_multiple_of(200).then(|| PolicyNote {
                    score: 1,
                    rules: vec![if exchange % RARE == 0 { "rare" } else { "pii-card" }.into()],
                    unnamed: 0,
                    redacted: exchange.is_multiple_of(400),
                    would_block: false,
                    ..PolicyNote::default()
                }),
                dropped: Vec::new(),
                dropped_unnamed: 0,
                attribution: None,
                client_address: None,
                key_name: None,
                config: ConfigId([2; 8]),
            }
            .encode_into(out)
        });
        flying.push_back((id, seq.unwrap(), ts));
        if flying.len() > IN_FLIGHT {
            complete(&mut log, flying.pop_front().unwrap());
        }
        if exchange % 512 == 511 {
            follow(&mut log);
        }
        if exchange % 65_536 == 65_535 {
            log.follower.sync().unwrap();
        }
    }
    for exchange in flying {
        complete(&mut log, exchange);
    }
    follow(&mut log);
    log.follower.sync().unwrap();
    log.follower.sign_checkpoint(shard.key).unwrap();
}

fn complete(log: &mut Incarnation, (id, admission, ts): (String, u64, u64)) {
    let appended = log.writer.append(|seq, out| {
        Completion {
            seq,
            ts: ts + 900_000,
            id: id.as_str().into(),
            admission,
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
            cost_nanodollars: Some(if admission % RARE < 2 {
                DEAR
            } else {
                admission % 10_000 * 1000
            }),
            duration_us: 900_000,
            policy: None,
            config: ConfigId([2; 8]),
        }
        .encode_into(out)
    });
    appended.unwrap();
}

fn follow(log: &mut Incarnation) {
    log.writer.flush().unwrap();
    while let Preparation::Prepared = log.follower.prepare() {}
    while log.follower.step().unwrap().has_more {}
}

fn read(ledger: &Path, key: &SigningKey) {
    let vkey = key.verifying_key();
    let (logs, problems) = signed_logs(&FileStorage, ledger, &vkey, None, &BTreeMap::new()).unwrap();
    assert!(problems.is_empty(), "{problems:?}");
    let begun = Instant::now();
    let mut rows = 0;
    for log in &logs {
        let mut reader = BatchReader::open(
            &FileStorage,
            &log.dir,
            &log.note,
            &vkey,
            None,
            BatchLimits::default(),
        )
        .unwrap();
        while let Some(batch) = reader.next().unwrap() {
            rows += batch.days.values().map(|day| day.exchanges.len()).sum::<usize>();
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "{rows} exchanges in {seconds:.1} s, {:.0} in a second",
        rows as f64 / seconds
    );
}
