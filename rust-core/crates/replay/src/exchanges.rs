//! The exchanges of a ledger that checkpoints by its key cover.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::{Path, PathBuf};

use proofgate_evidence::layout::{incarnation_of, parse_incarnation, shards};
use proofgate_evidence::log_reader::{LogItem, LogReader};
use proofgate_evidence::{EvidenceError, ReadStorage, key_successions};
use proofgate_index::{BatchLimits, BatchReader, IndexError, SignedLog, signed_logs};
use proofgate_ledger::record::{self, Admission, ConfigId, Record, Rejection};
use proofgate_ledger::{Hash, VerifyingKey};

/// Limits of the records that are buffered and verified together.
const BATCH_LIMITS: BatchLimits = BatchLimits {
    records: 4096,
    bytes: 8 << 20,
};

/// The records of an exchange, and the configuration and version in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// Origin of the log that holds its first record.
    pub origin: String,
    /// Directory of that log.
    pub dir: PathBuf,
    /// Number of that record in the log.
    pub seq: u64,
    /// Its stored admission or rejection.
    pub first_record: Vec<u8>,
    /// Its stored completion; absent when no checkpoint covers one.
    pub completion: Option<Vec<u8>>,
    /// The SHA-256 under which its configuration is archived. Absent when no record states it.
    pub configuration: Option<Hash>,
    /// Version of the gateway that made the decision.
    pub version: String,
}

/// A filter for exchanges: all fields that are set must match.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExchangeFilter {
    /// Started at this time or later, in unix microseconds.
    pub start: Option<u64>,
    /// Started before this time, in unix microseconds.
    pub end: Option<u64>,
    /// The tenant.
    pub tenant: Option<String>,
    /// The requested model; refused requests have none.
    pub model: Option<String>,
    /// The request id.
    pub id: Option<String>,
}

impl ExchangeFilter {
    fn matches(&self, ts: u64, id: &str, tenant: Option<&str>, model: Option<&str>) -> bool {
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
        };
        self.start.is_none_or(|since| ts >= since)
            && self.end.is_none_or(|until| ts < until)
            && is(&self.tenant, tenant)
            && is(&self.model, model)
            && is(&self.id, Some(id))
    }

    fn matches_admission(&self, admission: &Admission<'_>) -> bool {
        let (tenant, model) = (Some(&*admission.tenant), Some(&*admission.model));
        self.matches(admission.ts, &admission.id, tenant, model)
    }

    fn matches_rejection(&self, rejection: &Rejection<'_>) -> bool {
        self.matches(rejection.ts, &rejection.id, rejection.tenant.as_deref(), None)
    }
}

/// Reads the exchanges of a ledger, in the order of their ends. An exchange is returned only after its records were
/// verified against a signed checkpoint.
pub struct Exchanges<'s> {
    storage: &'s dyn ReadStorage,
    key: VerifyingKey,
    filter: ExchangeFilter,
    pending_logs: VecDeque<SignedLog>,
    /// The current log, its reader, and the number of its records that are verified.
    current_log: Option<(SignedLog, BatchReader<'s>, u64)>,
    /// Exchanges that were admitted and have not ended, by log and number.
    open_exchanges: BTreeMap<(PathBuf, u64), Exchange>,
    /// Origin of the current log.
    origin: String,
    /// Full digests of configurations, by the prefix that records name.
    configurations: HashMap<[u8; 8], Hash>,
    version: String,
    finished: VecDeque<Exchange>,
    /// Descriptions of what is wrong with logs.
    pub problems: Vec<String>,
    /// Number of matching exchanges that were omitted because no checkpoint covers their start.
    pub unverified: u64,
}

impl<'s> Exchanges<'s> {
    /// Finds the logs below a ledger's directory. `keeping` is the key of the retention job, which may remove logs.
    ///
    /// # Errors
    /// [`IndexError`] when the directory or the key's lineage cannot be read.
    pub fn open(
        storage: &'s dyn ReadStorage,
        ledger: &Path,
        key: &VerifyingKey,
        keeping: Option<&VerifyingKey>,
        wanted: ExchangeFilter,
    ) -> Result<Self, IndexError> {
        let key = key_successions::follow_successions(storage, ledger, key)?;
        let (logs, problems) = signed_logs(storage, ledger, &key, keeping, &BTreeMap::new())?;
        let mut exchanges = Self {
            storage,
            key,
            filter: wanted,
            pending_logs: logs.into(),
            current_log: None,
            open_exchanges: BTreeMap::new(),
            origin: String::new(),
            configurations: HashMap::new(),
            version: String::new(),
            finished: VecDeque::new(),
            problems,
            unverified: 0,
        };
        exchanges.count_unsigned(ledger)?;
        Ok(exchanges)
    }

    /// Returns the next exchange; `None` after the last one.
    pub fn next_exchange(&mut self) -> Option<Exchange> {
        loop {
            if let Some(exchange) = self.finished.pop_front() {
                return Some(exchange);
            }
            if !self.read_batch() {
                // Exchanges without an end, or without a verified one.
                return self.open_exchanges.pop_first().map(|(_, exchange)| exchange);
            }
        }
    }

    /// Reads the next batch; returns `false` when everything is read.
    fn read_batch(&mut self) -> bool {
        let (log, mut reader, believed) = match self.current_log.take() {
            Some(log) => log,
            None => {
                let Some(log) = self.pending_logs.pop_front() else {
                    return false;
                };
                let opened =
                    BatchReader::open(self.storage, &log.dir, &log.note, &self.key, None, BATCH_LIMITS);
                match opened {
                    Ok(reader) => {
                        reader.origin().clone_into(&mut self.origin);
                        (log, reader, 0)
                    }
                    Err(error) => {
                        self.abandon_log(&log, 0, &error);
                        return true;
                    }
                }
            }
        };
        let mut records = Vec::new();
        let read = reader.read_batch(|seq, stored| {
            record::parse(stored).map_err(|error| format!("record {seq}: {error}"))?;
            records.push(stored.to_owned());
            Ok(())
        });
        match read {
            Ok(Some(place)) => {
                records
                    .iter()
                    .for_each(|stored| self.process_record(&log.dir, stored));
                self.current_log = Some((log, reader, place.size()));
            }
            Ok(None) => {
                self.unverified += self
                    .count_started_from(&log.dir, reader.size())
                    .unwrap_or_default()
            }
            // Neither this batch nor anything after it is verified.
            Err(error) => self.abandon_log(&log, believed, &error),
        }
        true
    }

    fn abandon_log(&mut self, log: &SignedLog, from: u64, error: &IndexError) {
        self.problems.push(format!("{error} [{}]", error.code()));
        self.unverified += self.count_started_from(&log.dir, from).unwrap_or_default();
    }

    /// Processes a verified record.
    fn process_record(&mut self, dir: &Path, stored: &[u8]) {
        match record::parse(stored) {
            Ok(Record::Open(open)) => {
                self.version = open.version.into_owned();
                let archived = open.settings.map_or(open.config, |settings| settings.0);
                self.configurations
                    .insert(ConfigId::from(&open.config).0, archived);
            }
            Ok(Record::Config(config)) => {
                let archived = config.settings.map_or(config.config, |settings| settings.0);
                self.configurations
                    .insert(ConfigId::from(&config.config).0, archived);
            }
            Ok(Record::Admission(admission)) if self.filter.matches_admission(&admission) => {
                let exchange = self.new_exchange(dir, admission.seq, stored, &admission.config);
                self.open_exchanges
                    .insert((dir.to_owned(), admission.seq), exchange);
            }
            Ok(Record::Rejection(rejection)) if self.filter.matches_rejection(&rejection) => {
                let exchange = self.new_exchange(dir, rejection.seq, stored, &rejection.config);
                self.finished.push_back(exchange);
            }
            Ok(Record::Completion(completion)) => {
                let end = (completion.incarnation.as_deref(), completion.admission);
                self.finish_exchange(dir, end, &completion.id, Some(stored));
            }
            Ok(Record::Abort(aborted)) => {
                let end = (Some(&*aborted.incarnation), aborted.admission);
                self.finish_exchange(dir, end, &aborted.id, None);
            }
            _ => {}
        }
    }

    fn new_exchange(&self, dir: &Path, seq: u64, stored: &[u8], config: &ConfigId) -> Exchange {
        Exchange {
            origin: self.origin.clone(),
            dir: dir.to_owned(),
            seq,
            first_record: stored.to_owned(),
            completion: None,
            configuration: self.configurations.get(&config.0).copied(),
            version: self.version.clone(),
        }
    }

    fn finish_exchange(
        &mut self,
        dir: &Path,
        (incarnation, admission): (Option<&str>, u64),
        id: &str,
        stored: Option<&[u8]>,
    ) {
        let begun = match incarnation {
            None => Some(dir.to_owned()),
            // A name in another format could be a path out of the shard.
            Some(name) => parse_incarnation(name)
                .zip(dir.parent())
                .map(|(named, shard)| shard.join(named.to_string())),
        };
        let Some(place) = begun.map(|dir| (dir, admission)) else {
            return;
        };
        let is_it = |exchange: &Exchange| match record::parse(&exchange.first_record) {
            Ok(Record::Admission(admission)) => admission.id == id,
            _ => false,
        };
        if self.open_exchanges.get(&place).is_some_and(is_it)
            && let Some(mut exchange) = self.open_exchanges.remove(&place)
        {
            exchange.completion = stored.map(<[u8]>::to_owned);
            self.finished.push_back(exchange);
        }
    }

    /// Counts exchanges that start in logs without a verified checkpoint.
    fn count_unsigned(&mut self, ledger: &Path) -> Result<(), EvidenceError> {
        let found = match shards(self.storage, ledger) {
            Err(EvidenceError::NotALog(_)) => return Ok(()),
            found => found?,
        };
        let logs = found.iter().flat_map(|shard| {
            let named = shard.incarnations.iter();
            named.map(|incarnation| shard.dir.join(incarnation.to_string()))
        });
        for dir in logs {
            if !self.pending_logs.iter().any(|log| log.dir == dir) {
                // An unreadable log is among the problems, or reported by `fsck`.
                self.unverified += self.count_started_from(&dir, 0).unwrap_or_default();
            }
        }
        Ok(())
    }

    /// Returns how many matching exchanges start in a log at or after a record.
    fn count_started_from(&self, dir: &Path, seq: u64) -> Result<u64, EvidenceError> {
        let mut log = LogReader::open(self.storage, dir, incarnation_of(dir)?)?;
        log.seek(seq);
        let mut count = 0;
        loop {
            match log.next()? {
                LogItem::End => return Ok(count),
                LogItem::Record(stored) if stored.seq >= seq => {
                    count += u64::from(match record::parse(log.payload(&stored)) {
                        Ok(Record::Admission(admission)) => self.filter.matches_admission(&admission),
                        Ok(Record::Rejection(rejection)) => self.filter.matches_rejection(&rejection),
                        _ => false,
                    });
                }
                LogItem::Record(_) | LogItem::Flaw(_) => {}
            }
        }
    }
}
