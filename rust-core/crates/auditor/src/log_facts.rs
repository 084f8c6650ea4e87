//! The facts in a log's records that define its position in the chain.
//!
//! Only `open`, `config`, `takeover`, `seal` and gaps in time are parsed as JSON; for other records
//! the kind suffices, which is at the start of a worker's record.

use proofgate_evidence::Ulid;
use proofgate_evidence::configurations;
use proofgate_evidence::layout::parse_incarnation;
use proofgate_ledger::Hash;
use proofgate_ledger::record::{self, Record};
use serde::{Deserialize, Serialize};

/// The statement of a log about another log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LogReference {
    pub(crate) incarnation: Ulid,
    pub(crate) size: u64,
    #[serde(with = "crate::hash_encoding::hash")]
    pub(crate) root: Hash,
    /// Whether the other log was still being written. Size and root are then from its newest
    /// checkpoint.
    pub(crate) running: bool,
}

/// The facts in the records that were read so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LogFacts {
    /// The origin that `open` states.
    pub(crate) origin: Option<String>,
    pub(crate) predecessor: Option<LogReference>,
    /// The statements in `takeover` records.
    pub(crate) takeovers: Vec<LogReference>,
    /// Whether the last record is a seal.
    pub(crate) sealed: bool,
    /// The successor that the seal names.
    pub(crate) successor: Option<Ulid>,
    /// Whether there is a record other than `open`, `takeover` and `aborted`.
    pub(crate) served: bool,
    /// The largest step of the worker's clock, if a step was a minute or more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) step: Option<ClockStep>,
    /// The digests by which `open` and `config` records name configurations.
    #[serde(
        default,
        with = "crate::hash_encoding::hashes",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub(crate) configurations: Vec<Hash>,
}

/// A clock step, recorded as a `gap` in the times of records: the worker's clock was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClockStep {
    /// Number of the record.
    pub(crate) seq: u64,
    /// The time without the step, in unix microseconds.
    pub(crate) from: u64,
    /// The time after the step.
    pub(crate) to: u64,
}

impl ClockStep {
    pub(crate) fn seconds(self) -> u64 {
        self.from.abs_diff(self.to) / 1_000_000
    }

    pub(crate) fn is_backward(self) -> bool {
        self.to < self.from
    }
}

/// Smallest clock step that is reported, in seconds. Smaller steps are normal clock adjustments.
const MIN_STEP_SECONDS: u64 = 60;
/// The reason in the gap record of a clock step. Within a text, the quotes of the JSON form would
/// be escaped.
const CLOCK_STEP: &str = "clock_step";
const CLOCK_STEP_JSON: &[u8] = b"\"reason\":\"clock_step\"";

/// Most configurations that are stored for one log. A check of the log's files covers the rest.
const MAX_CONFIGURATIONS: usize = 1024;
/// The start of every record, before its kind.
const KIND_PREFIX: &[u8] = b"{\"v\":1,\"kind\":\"";

impl LogFacts {
    /// Processes record `seq`.
    ///
    /// # Errors
    /// A description of the fault.
    pub(crate) fn process(&mut self, seq: u64, payload: &[u8]) -> Result<(), String> {
        if self.sealed {
            return Err(format!("record {seq} follows a seal"));
        }
        match kind(payload) {
            Some(
                kind @ (b"admission" | b"attempt" | b"completion" | b"rejection" | b"gap" | b"config"
                | b"analysis"),
            ) if seq > 0 => {
                if kind == b"gap" {
                    self.record_clock_step(payload);
                }
                if kind == b"config"
                    && let Ok(record) = record::parse(payload)
                {
                    self.record_configuration(&record);
                }
                self.served = true;
                Ok(())
            }
            Some(b"aborted") if seq > 0 => Ok(()),
            _ => self.process_parsed(seq, payload),
        }
    }

    fn record_configuration(&mut self, record: &Record<'_>) {
        if let Some(digest) = configurations::configuration_digest(record)
            && self.configurations.len() < MAX_CONFIGURATIONS
            && !self.configurations.contains(&digest)
        {
            self.configurations.push(digest);
        }
    }

    /// Records a clock step if the gap record states one.
    fn record_clock_step(&mut self, payload: &[u8]) {
        let says_step = payload
            .windows(CLOCK_STEP_JSON.len())
            .any(|window| window == CLOCK_STEP_JSON);
        let Some(Record::Gap(gap)) = says_step.then(|| record::parse(payload).ok()).flatten() else {
            return;
        };
        let step = ClockStep {
            seq: gap.seq,
            from: gap.first_ts,
            to: gap.last_ts,
        };
        let largest = self.step.map_or(MIN_STEP_SECONDS, ClockStep::seconds);
        if gap.reason == CLOCK_STEP && step.seconds() >= largest {
            self.step = Some(step);
        }
    }

    fn process_parsed(&mut self, seq: u64, payload: &[u8]) -> Result<(), String> {
        let record = record::parse(payload).map_err(|error| format!("record {seq}: {error}"))?;
        if record.seq() != seq {
            return Err(format!("record {seq} says that it is record {}", record.seq()));
        }
        let incarnation = |text: &str| {
            parse_incarnation(text).ok_or_else(|| format!("record {seq} names {text:?}, which is not a log"))
        };
        match &record {
            Record::Open(open) if seq == 0 => {
                self.record_configuration(&record);
                self.origin = Some(format!("{}/{}/{}", open.ledger, open.shard, open.incarnation));
                self.predecessor = match &open.predecessor {
                    None => None,
                    Some(named) => Some(LogReference {
                        incarnation: incarnation(&named.incarnation)?,
                        size: named.size,
                        root: named.root,
                        running: named.running,
                    }),
                };
            }
            Record::Open(_) => {
                return Err(format!(
                    "record {seq} is an open record, but only the first record of a log may be an open record"
                ));
            }
            _ if seq == 0 => return Err("the first record is not an open record".to_owned()),
            Record::Takeover(takeover) => self.takeovers.push(LogReference {
                incarnation: incarnation(&takeover.incarnation)?,
                size: takeover.size,
                root: takeover.root,
                running: false,
            }),
            Record::Seal(seal) => {
                self.sealed = true;
                self.served = true;
                self.successor = seal.successor.as_deref().map(incarnation).transpose()?;
            }
            Record::Abort(_) => {}
            _ => self.served = true,
        }
        Ok(())
    }

    /// Returns the ends of other logs that this log states.
    pub(crate) fn stated_ends(&self) -> impl Iterator<Item = &LogReference> {
        self.predecessor
            .iter()
            .filter(|named| !named.running)
            .chain(&self.takeovers)
    }
}

/// Returns the kind of a record in a worker's encoding.
fn kind(payload: &[u8]) -> Option<&[u8]> {
    let rest = payload.strip_prefix(KIND_PREFIX)?;
    let end = rest.iter().take(32).position(|byte| *byte == b'"')?;
    Some(&rest[..end])
}
