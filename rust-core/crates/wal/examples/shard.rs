//! Creates a shard with any number of records in the form that a worker leaves, and measures
//! operations on it: a restart, a proof, a check, a rotation. Prints one line of JSON.
//!
//! ```text
//! shard make DIR --records N [--log-records M] [--sealed]   write it; rotate the log every M records
//! shard restart DIR                                        start a successor, in seconds
//! shard prove DIR --records N [--count C]                  find and prove C exchanges at random, in milliseconds
//! shard export DIR [--count C]                             read and prove C exchanges (100) of the log that ended last
//! shard check DIR                                          fsck, in records per second
//! shard rotate DIR                                         latency of a record during a rotation, in microseconds
//! ```
//!
//! Without `--sealed`, the last records are in no checkpoint and in no tree, as after a worker was
//! killed. Run `restart` before `prove`, so that the successor signs these records.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a measuring program may stop at the first failure"
)]

use proofgate_evidence::{
    FoundRecord, SearchMode, checkpoint_file, find_records, fsck, layout, prove, read_records,
};
use proofgate_ledger::record::{
    Admission, Completion, ConfigDigests, ConfigId, Outcome, SaltId, Seal, Takeover, Usage,
};
use proofgate_ledger::{Checkpoint, SigningKey, leaf_hash};
use proofgate_wal::{
    FileStorage, Incarnation, LogOptions, ResumeState, Shard, Storage, UnfinishedExchange, succession,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

const LEDGER: &str = "bench.test/ledger";
/// Time of the first record: 2025-01-01, in unix microseconds.
const START: u64 = 1_735_689_600_000_000;
/// Time between two exchanges, in microseconds.
const APART: u64 = 100;
/// Number of records between two marks from which a successor can resume.
const MARKED: u64 = 1 << 16;
/// Number of exchanges that no checkpoint covers when a worker is killed.
const LEFT: u64 = 512;
/// Number of exchanges in flight at any time.
const IN_FLIGHT: u64 = 64;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (Some(what), Some(directory)) = (arguments.first(), arguments.get(1).map(PathBuf::from)) else {
        panic!("usage: shard make|restart|prove|check|rotate DIR [options]: see the top of this program");
    };
    let number = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1)?.parse::<u64>().ok()
    };
    let shard_directory = directory.join("0");
    let key = SigningKey::generate(LEDGER, [7; 32]).unwrap();
    let shard = Shard {
        dir: &shard_directory,
        ledger: LEDGER,
        number: 0,
        key: &key,
        previous_key: None,
    };
    match what.as_str() {
        "make" => {
            let records = number("--records").unwrap();
            let sealed = arguments.iter().any(|argument| argument == "--sealed");
            make(
                &shard,
                records,
                number("--log-records").unwrap_or(u64::MAX),
                sealed,
            );
        }
        "restart" => restart(&shard),
        "prove" => proofs(
            &shard,
            number("--records").unwrap(),
            number("--count").unwrap_or(200),
        ),
        "export" => export(&shard, number("--count").unwrap_or(100)),
        "check" => check(&directory, &key),
        "rotate" => rotate(&shard),
        other => panic!("there is no {other}"),
    }
}

fn terms<'a>(shard: &Shard<'a>, now: u64) -> succession::StartOptions<'a> {
    succession::StartOptions {
        shard: *shard,
        key_valid_until: None,
        successions: &[],
        options: LogOptions {
            segments_ahead: 2,
            ..LogOptions::default()
        },
        config: ConfigDigests::from_config([0; 32]),
        version: "0",
        now,
    }
}

fn storage() -> Arc<dyn Storage> {
    Arc::new(FileStorage)
}

fn id(exchange: u64) -> String {
    let milliseconds = (START + exchange * APART) / 1000;
    format!("req_{milliseconds:012x}7{:03x}8{exchange:015x}", exchange & 0xfff)
}

/// A log that is being written, and the positions of its exchanges.
struct Log {
    made: Incarnation,
    /// The preceding log, whose admissions may still be open, and the number of records before it.
    before: Option<(proofgate_wal::Ulid, u64)>,
    /// Position of its first record across all logs.
    base: u64,
    admitted: u64,
}

impl Log {
    fn admit(&mut self, exchange: u64) -> u64 {
        let seq = self.made.writer.next_seq();
        self.made.writer.salt(seq).unwrap();
        let seq = self.made.writer.append(|seq, out| {
            let id = id(exchange);
            Admission {
                seq,
                ts: START + exchange * APART,
                id: id.as_str().into(),
                tenant: "acme".into(),
                tenant_seq: self.admitted + 1,
                key: "0123abcd".into(),
                model: "gpt-4o-mini".into(),
                provider: "openai".into(),
                upstream_model: "gpt-4o-mini".into(),
                endpoint: "/v1/chat/completions".into(),
                stream: false,
                coming: None,
                bytes: 1024,
                request: [1; 32],
                salt: Some(SaltId([4; 8])),
                shred_key: None,
                reserved: Some(4352),
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
        });
        self.admitted += 1;
        self.base + seq.unwrap()
    }

    /// Ends an exchange when `now` is the newest exchange. Records are in the order of their times.
    fn complete(&mut self, (exchange, admission): (u64, u64), now: u64) {
        let (incarnation, admission) = match admission.checked_sub(self.base) {
            Some(seq) => (None, seq),
            None => {
                let (log, base) = self.before.unwrap();
                (Some(log.to_string()), admission - base)
            }
        };
        let appended = self.made.writer.append(|seq, out| {
            let id = id(exchange);
            Completion {
                seq,
                ts: START + now * APART + 50,
                id: id.as_str().into(),
                admission,
                incarnation: incarnation.as_deref().map(Into::into),
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
                cost_nanodollars: None,
                duration_us: 50,
                policy: None,
                config: ConfigId([2; 8]),
            }
            .encode_into(out)
        });
        appended.unwrap();
    }

    fn follow(&mut self) {
        self.made.writer.flush().unwrap();
        let follower = &mut self.made.follower;
        while let proofgate_wal::Preparation::Prepared = follower.prepare() {}
        while follower.step().unwrap().has_more {}
    }

    fn sign(&mut self, key: &SigningKey) {
        self.made.follower.sync().unwrap();
        self.made.follower.sign_checkpoint(key).unwrap();
    }

    fn mark(&self, open: &[(u64, u64)]) {
        let locate = |position: u64| match position.checked_sub(self.base) {
            Some(seq) => (self.made.incarnation, seq),
            None => {
                let (log, base) = self.before.unwrap();
                (log, position - base)
            }
        };
        let listed = open.iter().map(|(exchange, position)| {
            let (incarnation, admission) = locate(*position);
            UnfinishedExchange {
                incarnation,
                admission,
                ts: START + exchange * APART,
                id: id(*exchange),
                tenant: "acme".to_owned(),
                key: "0123abcd".to_owned(),
                reserved: Some(4352),
                reserved_nanodollars: None,
                shared_plan: None,
                model: "gpt-4o-mini".to_owned(),
            }
        });
        self.made.writer.set_resume_state(ResumeState {
            open: listed.collect(),
            continues: self.before.map(|(log, _)| log),
            predecessor_ended: true,
        });
    }

    fn seal(&mut self, successor: Option<String>) {
        self.made
            .writer
            .seal(|seq, out| {
                Seal {
                    seq,
                    ts: START,
                    reason: "bench".into(),
                    records: seq,
                    successor: successor.map(Into::into),
                    config: ConfigId([2; 8]),
                }
                .encode_into(out)
            })
            .unwrap();
        self.made.writer.flush().unwrap();
    }
}

/// Switches to another log and records the end of the former log.
fn go_over(mut log: Log, shard: &Shard<'_>, now: u64) -> Log {
    let former = log.made.follower.last_checkpoint().unwrap().clone();
    let made =
        succession::start_successor(&storage(), &terms(shard, now), log.made.incarnation, &former).unwrap();
    log.seal(Some(made.incarnation.to_string()));
    log.made.follower.finish(shard.key).unwrap();
    let left = log.made.follower.to_previous_log();
    let mut next = Log {
        before: Some((left.incarnation, log.base)),
        base: log.base + left.size,
        admitted: 0,
        made,
    };
    let told = next.made.writer.append(|seq, out| {
        Takeover {
            seq,
            ts: now,
            incarnation: left.incarnation.to_string().into(),
            size: left.size,
            root: left.root,
            config: ConfigId([2; 8]),
        }
        .encode_into(out)
    });
    told.unwrap();
    next
}

fn make(shard: &Shard<'_>, records: u64, log_records: u64, sealed: bool) {
    std::fs::create_dir_all(shard.dir.parent().unwrap()).unwrap();
    let begin = Instant::now();
    let mut log = Log {
        made: succession::start(&storage(), &terms(shard, START), None)
            .unwrap()
            .log,
        before: None,
        base: 0,
        admitted: 0,
    };
    let mut open: Vec<(u64, u64)> = Vec::new();
    let (mut exchange, mut appending) = (0, Duration::ZERO);
    while log.base + log.made.writer.next_seq() < records {
        let start = Instant::now();
        for _ in 0..1024 {
            let position = log.admit(exchange);
            open.push((exchange, position));
            if open.len() as u64 > IN_FLIGHT {
                log.complete(open.remove(0), exchange);
            }
            exchange += 1;
        }
        log.follow();
        appending += start.elapsed();
        if exchange % (MARKED / 2) == 0 {
            log.mark(&open);
            log.follow();
            log.sign(shard.key);
        }
        if log.made.writer.next_seq() >= log_records {
            log.sign(shard.key);
            log = go_over(log, shard, START + exchange * APART);
        }
    }
    log.follow();
    log.sign(shard.key);
    let total = log.base + log.made.writer.next_seq();
    if sealed {
        log.seal(None);
        log.made.follower.finish(shard.key).unwrap();
    } else {
        for _ in 0..LEFT {
            let position = log.admit(exchange);
            log.complete((exchange, position), exchange);
            exchange += 1;
        }
        log.made.writer.flush().unwrap();
    }
    println!(
        "{{\"records\": {total}, \"exchanges\": {exchange}, \"append_per_s\": {:.0}, \"seconds\": {:.1}}}",
        total as f64 / appending.as_secs_f64(),
        begin.elapsed().as_secs_f64()
    );
}

fn restart(shard: &Shard<'_>) {
    let start = Instant::now();
    let begun = succession::start(&storage(), &terms(shard, START + (1 << 45)), None).unwrap();
    let seconds = start.elapsed().as_secs_f64();
    let found = begun.recovery.unwrap();
    println!(
        "{{\"seconds\": {seconds:.4}, \"records_read\": {}, \"unended\": {}}}",
        found.records_read,
        found.unfinished_exchanges.len()
    );
}

fn proofs(shard: &Shard<'_>, records: u64, count: u64) {
    let mut random = StdRng::seed_from_u64(1);
    let verifying = shard.key.verifying_key();
    let mut times: Vec<f64> = (0..count)
        .map(|_| {
            let exchange = random.random_range(0..records / 2 - IN_FLIGHT);
            let start = Instant::now();
            let found = find_records(&FileStorage, shard.dir, &id(exchange), SearchMode::ByTime).unwrap();
            assert_eq!(found.len(), 2, "exchange {exchange}");
            for record in &found {
                let FoundRecord { dir, seq, record } = record;
                prove::proof_for_record(&FileStorage, dir, *seq, record, Some(&verifying)).unwrap();
            }
            start.elapsed().as_secs_f64() * 1000.0
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!(
        "{{\"p50\": {:.3}, \"p99\": {:.3}, \"max\": {:.3}}}",
        times[times.len() / 2],
        times[times.len() * 99 / 100],
        times[times.len() - 1]
    );
}

/// Exports records from all parts of a log, and the path of each record to the newest signed root
/// of the log.
fn export(shard: &Shard<'_>, count: u64) {
    let verifying = shard.key.verifying_key();
    let shards = layout::shards(&FileStorage, shard.dir).unwrap();
    let logs = &shards[0].incarnations;
    let dir = shard.dir.join(logs[logs.len() - 2].to_string());
    let start = Instant::now();
    let signed = prove::successor_checkpoint(&FileStorage, &dir, &verifying).unwrap();
    let signed = signed.unwrap_or_else(|| {
        let own = checkpoint_file::read(&FileStorage, &dir).unwrap().unwrap();
        Checkpoint::verify(&own, &verifying).unwrap()
    });
    let records = 2 * count;
    let seqs: Vec<u64> = (0..records)
        .map(|number| number * (signed.size - 1) / (records - 1))
        .collect();
    let read = read_records(&FileStorage, &dir, &seqs).unwrap();
    let leaves = seqs.iter().zip(&read);
    let leaves: Vec<_> = leaves.map(|(seq, record)| (*seq, leaf_hash(record))).collect();
    let paths = prove::inclusion_paths(&FileStorage, &dir, &leaves, &signed).unwrap();
    assert_eq!(paths.len() as u64, records);
    println!(
        "{{\"milliseconds\": {:.2}, \"log_records\": {}}}",
        start.elapsed().as_secs_f64() * 1000.0,
        signed.size
    );
}

fn check(directory: &Path, key: &SigningKey) {
    let start = Instant::now();
    let report = fsck(&FileStorage, directory, Some(&key.verifying_key()), &[]).unwrap();
    println!(
        "{{\"verdict\": \"{:?}\", \"records\": {}, \"records_per_s\": {:.0}}}",
        report.verdict,
        report.records,
        report.records as f64 / start.elapsed().as_secs_f64()
    );
}

/// Appends a record every 50 microseconds. Half-way, creates the next log and switches to it.
fn rotate(shard: &Shard<'_>) {
    const RECORDS: u64 = 40_000;
    std::fs::create_dir_all(shard.dir.parent().unwrap()).unwrap();
    let mut log = Log {
        made: succession::start(&storage(), &terms(shard, START), None)
            .unwrap()
            .log,
        before: None,
        base: 0,
        admitted: 0,
    };
    log.sign(shard.key);
    let former = log.made.follower.last_checkpoint().unwrap().clone();
    let running = log.made.incarnation;
    let (directory, key) = (shard.dir.to_owned(), shard.key.clone());
    let mut making = None;
    let mut switch = 0.0;
    let mut waits: Vec<f64> = Vec::with_capacity(RECORDS as usize);
    for number in 0..RECORDS {
        let due = Instant::now() + Duration::from_micros(50);
        if number == RECORDS / 4 {
            let (directory, key, former) = (directory.clone(), key.clone(), former.clone());
            making = Some(std::thread::spawn(move || {
                let shard = Shard {
                    dir: &directory,
                    ledger: LEDGER,
                    number: 0,
                    key: &key,
                    previous_key: None,
                };
                succession::start_successor(&storage(), &terms(&shard, START + 1_000_000), running, &former)
                    .unwrap()
            }));
        }
        let start = Instant::now();
        if let Some(made) = making.take_if(|thread| thread.is_finished()) {
            let mut made = made.join().unwrap();
            made.writer.take_over(&log.made.writer).unwrap();
            log.seal(Some(made.incarnation.to_string()));
            log = Log {
                before: None,
                base: 0,
                admitted: 0,
                made,
            };
            switch = start.elapsed().as_secs_f64() * 1e6;
        }
        log.admit(number);
        log.made.writer.flush().unwrap();
        waits.push(start.elapsed().as_secs_f64() * 1e6);
        while Instant::now() < due {
            std::hint::spin_loop();
        }
    }
    assert!(switch > 0.0, "the next log was not ready in time");
    waits.sort_by(f64::total_cmp);
    println!(
        "{{\"rotation_stall_us\": {switch:.1}, \"record_p50_us\": {:.2}, \"record_max_us\": {:.1}}}",
        waits[waits.len() / 2],
        waits[waits.len() - 1]
    );
}
