//! Finds stored records by request id and by number.
//!
//! A request id and the name of an incarnation both contain a time. The records of an exchange are
//! searched near the time in its id, which takes as long in a large ledger as in a small ledger.
//! After a clock was set, or for ids in another format, a full scan is necessary, which runs only
//! on request.

use crate::layout::{Shard, incarnation_of, parse_incarnation, shards};
use crate::log_reader::{LogItem, LogReader};
use crate::removal::{missing_record_error, read_tombstone};
use crate::time_search::{find_record_position, find_start, incarnations_from, request_time};
use crate::{EvidenceError, ReadStorage};
use memchr::memmem;
use proofgate_ledger::record::{self, Record};
use std::path::{Path, PathBuf};
use ulid::Ulid;

/// A record that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundRecord {
    /// Directory of the incarnation that contains the record.
    pub dir: PathBuf,
    /// Number of the record in that incarnation.
    pub seq: u64,
    /// Stored bytes of the record, which are the leaf.
    pub record: Vec<u8>,
}

/// The method of searching for an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchMode {
    /// Search near the time in the request id.
    ByTime,
    /// Search everywhere.
    Scan,
}

/// Maximum distances of the first record from the time in the id, in milliseconds, tried in this
/// order. Almost all first records are within the first margin, and a smaller margin needs fewer
/// reads. The next margins allow for a request whose inspection took long, and the last margin
/// allows for a clock that was set.
const TIME_MARGINS_MS: [u64; 5] = [5, 100, 5_000, 65_000, 600_000];
/// Number of margins that are tried near the time in the id.
const NEAR_MARGINS: usize = 4;
/// Maximum duration of almost all exchanges, in seconds.
const TYPICAL_EXCHANGE_SECS: u64 = 60;
/// Longest duration of an exchange, in seconds.
const MAX_EXCHANGE_SECS: u64 = 3600;
/// Largest distance in records that is read sequentially instead of seeking.
const MAX_SCAN_GAP: u64 = 512;
/// Number of records between two checks of the time.
const TIME_CHECK_INTERVAL: u64 = 32;

/// Returns the records of one request id, in the order of the logs. `path` is the directory of a
/// gateway, a shard or an incarnation. Damaged parts are skipped; `fsck` reports them. A search by
/// time finds nothing for an id that is not a UUIDv7.
///
/// # Errors
/// [`EvidenceError::NotALog`] or [`EvidenceError::Io`]. Also any error that [is
/// damage](EvidenceError::is_damaged) in a log that may hold the exchange or its end, if no other
/// log holds them.
pub fn find_records(
    storage: &dyn ReadStorage,
    path: &Path,
    request_id: &str,
    search: SearchMode,
) -> Result<Vec<FoundRecord>, EvidenceError> {
    let shards = shards(storage, path)?;
    let wanted = IdMatcher::new(request_id);
    if search == SearchMode::Scan {
        let (mut found, mut spoiled) = (Vec::new(), SkippedLogError::default());
        for shard in &shards {
            for incarnation in &shard.incarnations {
                let dir = shard.dir.join(incarnation.to_string());
                let read = LogReader::open(storage, &dir, *incarnation).and_then(|mut log| {
                    wanted.collect_records(&mut log, &dir, u64::MAX, &mut found, |_| false)
                });
                spoiled.skip_damaged(read)?;
            }
        }
        return match is_complete(&found) {
            true => Ok(found),
            false => spoiled.into_result(found),
        };
    }
    match locate_exchange(storage, shards, wanted, &TIME_MARGINS_MS)? {
        Some(beginning) => beginning.into_records(),
        None => Ok(Vec::new()),
    }
}

/// Returns the first record of an exchange by the time in its id. Positions that are possible only
/// if a clock was set are not searched. This function reads only the records around that time,
/// regardless of how the exchange ended.
///
/// # Errors
/// Same as [`find_records`].
pub fn find_exchange_start<'a>(
    storage: &'a dyn ReadStorage,
    path: &Path,
    request_id: &'a str,
) -> Result<Option<ExchangeStart<'a>>, EvidenceError> {
    let shards = shards(storage, path)?;
    locate_exchange(
        storage,
        shards,
        IdMatcher::new(request_id),
        &TIME_MARGINS_MS[..NEAR_MARGINS],
    )
}

/// Returns the removed logs that were being written when an exchange began, according to the time
/// in its id. One of them may have held the exchange.
///
/// # Errors
/// Same as [`find_records`].
pub fn find_removed(
    storage: &dyn ReadStorage,
    path: &Path,
    request_id: &str,
) -> Result<Vec<PathBuf>, EvidenceError> {
    let Some(time) = request_time(request_id) else {
        return Ok(Vec::new());
    };
    let margin = TIME_MARGINS_MS[NEAR_MARGINS - 1];
    let mut removed = Vec::new();
    for shard in shards(storage, path)? {
        for incarnation in incarnations_from(&shard.incarnations, time.saturating_sub(margin)) {
            let dir = shard.dir.join(incarnation.to_string());
            let begun = incarnation.timestamp_ms() <= time.saturating_add(margin);
            if begun && read_tombstone(storage, &dir).is_ok_and(|note| note.is_some()) {
                removed.push(dir);
            }
        }
    }
    Ok(removed)
}

/// The error of the first log that was skipped because it is damaged.
#[derive(Default)]
struct SkippedLogError(Option<EvidenceError>);

impl SkippedLogError {
    /// Returns the successful result of reading a log; `None` when the log is damaged.
    fn skip_damaged<T>(&mut self, read: Result<T, EvidenceError>) -> Result<Option<T>, EvidenceError> {
        match read {
            Err(error) if error.is_damaged() => {
                self.0.get_or_insert(error);
                Ok(None)
            }
            read => read.map(Some),
        }
    }

    /// Returns the found records, or the error of a skipped log that may hold more.
    fn into_result<T>(self, found: T) -> Result<T, EvidenceError> {
        self.0.map_or(Ok(found), Err)
    }
}

fn locate_exchange<'a>(
    storage: &'a dyn ReadStorage,
    shards: Vec<Shard>,
    matcher: IdMatcher<'a>,
    margins: &[u64],
) -> Result<Option<ExchangeStart<'a>>, EvidenceError> {
    let Some(time) = request_time(matcher.id) else {
        return Ok(None);
    };
    let mut spoiled = SkippedLogError::default();
    for margin in margins {
        for shard in &shards {
            let from = time.saturating_sub(*margin);
            let until = time.saturating_add(*margin);
            let logs = incarnations_from(&shard.incarnations, from);
            for incarnation in logs.iter().filter(|log| log.timestamp_ms() <= until) {
                let dir = shard.dir.join(incarnation.to_string());
                let first = find_first(storage, (&dir, *incarnation), &matcher, from, until);
                if let Some(found) = spoiled.skip_damaged(first)?.flatten() {
                    let admitted = find_admission(storage, &shard.dir, &matcher, &found.1);
                    let (log, record) = spoiled.skip_damaged(admitted)?.flatten().unwrap_or(found);
                    let own = incarnation_of(&record.dir)?;
                    let later = shard.incarnations.iter().filter(|later| **later > own);
                    return Ok(Some(ExchangeStart {
                        storage,
                        shard: shard.dir.clone(),
                        later_logs: later.copied().collect(),
                        matcher,
                        time,
                        log,
                        record,
                    }));
                }
            }
        }
    }
    match find_in_misnamed(storage, &shards, &matcher, time, &mut spoiled)? {
        Some(beginning) => Ok(Some(beginning)),
        None => spoiled.into_result(None),
    }
}

/// Searches logs whose names are later than their records, because a clock was wrong when they or
/// an earlier log were created. This function reads the logs with a later name that may hold the
/// exchange according to their first record.
fn find_in_misnamed<'a>(
    storage: &'a dyn ReadStorage,
    shards: &[Shard],
    matcher: &IdMatcher<'a>,
    time: u64,
    skipped: &mut SkippedLogError,
) -> Result<Option<ExchangeStart<'a>>, EvidenceError> {
    let margin = TIME_MARGINS_MS[NEAR_MARGINS - 1];
    let (from, until) = (time.saturating_sub(margin), time.saturating_add(margin));
    for shard in shards {
        let named_later = shard
            .incarnations
            .partition_point(|log| log.timestamp_ms() <= until);
        let later = &shard.incarnations[named_later..];
        let mut begun = 0;
        let mut rest = later;
        while let Some(middle) = rest.get(rest.len() / 2) {
            let half = rest.len() / 2;
            let dir = shard.dir.join(middle.to_string());
            match start_time(storage, &dir, *middle)?.is_some_and(|begins| begins <= until) {
                true => {
                    begun += half + 1;
                    rest = &rest[half + 1..];
                }
                false => rest = &rest[..half],
            }
        }
        // If the log was rotated shortly afterwards, the exchange may be in the preceding log.
        for at in (begun.saturating_sub(2)..begun).rev() {
            let dir = shard.dir.join(later[at].to_string());
            let found = find_first(storage, (&dir, later[at]), matcher, from, until);
            if let Some((log, record)) = skipped.skip_damaged(found)?.flatten() {
                return Ok(Some(ExchangeStart {
                    storage,
                    shard: shard.dir.clone(),
                    later_logs: later[at + 1..].to_vec(),
                    matcher: matcher.clone(),
                    time,
                    log,
                    record,
                }));
            }
        }
    }
    Ok(None)
}

/// Returns the admission that the end of an exchange names, and the admission's log positioned
/// after it. `None` when `end` is not an end or the admission does not exist any more. A log
/// receives its name before it is in service. An exchange that began in between is in the previous
/// log, and its end may be found first.
fn find_admission<'a>(
    storage: &'a dyn ReadStorage,
    shard: &Path,
    matcher: &IdMatcher<'_>,
    end: &FoundRecord,
) -> Result<Option<(LogReader<'a>, FoundRecord)>, EvidenceError> {
    let (named, seq) = match record::parse(&end.record) {
        Ok(Record::Completion(completion)) => (completion.incarnation, completion.admission),
        Ok(Record::Abort(aborted)) => (Some(aborted.incarnation), aborted.admission),
        _ => return Ok(None),
    };
    let dir = match named.as_deref().map(parse_incarnation) {
        None => end.dir.clone(),
        Some(Some(named)) => shard.join(named.to_string()),
        Some(None) => return Ok(None),
    };
    let incarnation = incarnation_of(&dir)?;
    let mut log = LogReader::open(storage, &dir, incarnation)?;
    if let Some(place) = find_record_position(storage, &dir, incarnation, seq)? {
        log.seek_to(place)?;
    }
    let record = advance_to_record(&mut log, seq)?.filter(|record| matcher.matches(record));
    Ok(record.map(|record| (log, FoundRecord { dir, seq, record })))
}

/// Returns the time of a log's first record, in unix milliseconds; `None` when this record cannot
/// be read.
fn start_time(
    storage: &dyn ReadStorage,
    dir: &Path,
    incarnation: Ulid,
) -> Result<Option<u64>, EvidenceError> {
    let mut log = match LogReader::open(storage, dir, incarnation) {
        Err(error) if error.is_damaged() => return Ok(None),
        other => other?,
    };
    match log.next() {
        Ok(LogItem::Record(stored)) => {
            let record = record::parse(log.payload(&stored));
            Ok(record.ok().map(|record| record.ts() / 1000))
        }
        Err(error) if !error.is_damaged() => Err(error),
        _ => Ok(None),
    }
}

/// Returns the first record of an exchange in one log between two times, and the log positioned after it.
fn find_first<'a>(
    storage: &'a dyn ReadStorage,
    (dir, incarnation): (&Path, Ulid),
    matcher: &IdMatcher<'_>,
    from: u64,
    end_time: u64,
) -> Result<Option<(LogReader<'a>, FoundRecord)>, EvidenceError> {
    let mut log = open_log_at(storage, dir, incarnation, from)?;
    let mut found = Vec::new();
    matcher.collect_records(
        &mut log,
        dir,
        end_time.saturating_mul(1000),
        &mut found,
        |found| !found.is_empty(),
    )?;
    Ok(found.pop().map(|record| (log, record)))
}

/// The first record of an exchange, and the logs in which its other records may follow.
pub struct ExchangeStart<'a> {
    storage: &'a dyn ReadStorage,
    shard: PathBuf,
    /// The later logs of the shard.
    later_logs: Vec<Ulid>,
    matcher: IdMatcher<'a>,
    time: u64,
    /// The log of the first record, positioned after it.
    log: LogReader<'a>,
    record: FoundRecord,
}

impl ExchangeStart<'_> {
    /// Returns the first record.
    #[must_use]
    pub fn record(&self) -> &FoundRecord {
        &self.record
    }

    /// Returns only the first record.
    #[must_use]
    pub fn into_record(self) -> FoundRecord {
        self.record
    }

    /// Returns all records up to the end of the exchange. This function reads all records until
    /// that end. If there is no end, it reads all records within the longest duration of an
    /// exchange.
    ///
    /// # Errors
    /// Same as [`find_records`].
    pub fn into_records(self) -> Result<Vec<FoundRecord>, EvidenceError> {
        let ExchangeStart {
            storage,
            shard,
            later_logs: later,
            matcher: wanted,
            time,
            mut log,
            record,
        } = self;
        let dir = record.dir.clone();
        let (mut found, mut spoiled) = (vec![record], SkippedLogError::default());
        if !is_complete(&found) {
            let until = time.saturating_add(TYPICAL_EXCHANGE_SECS * 1000);
            let read = wanted.collect_records(
                &mut log,
                &dir,
                until.saturating_mul(1000),
                &mut found,
                is_complete,
            );
            spoiled.skip_damaged(read)?;
        }
        // If a worker was killed, a later worker writes the end at its start.
        if !is_complete(&found) {
            for later in &later {
                let dir = shard.join(later.to_string());
                spoiled.skip_damaged(wanted.collect_start_records(storage, &dir, *later, &mut found))?;
                if is_complete(&found) {
                    return Ok(found);
                }
            }
        }
        let until = time.saturating_add(MAX_EXCHANGE_SECS * 1000);
        if !is_complete(&found) {
            let read = wanted.collect_records(
                &mut log,
                &dir,
                until.saturating_mul(1000),
                &mut found,
                is_complete,
            );
            spoiled.skip_damaged(read)?;
        }
        // Otherwise the log was rotated, and a later log holds the end.
        for later in &later {
            let dir = shard.join(later.to_string());
            let is_later = later.timestamp_ms() > until
                && start_time(storage, &dir, *later)?.is_none_or(|begins| begins > until);
            if is_complete(&found) || is_later {
                break;
            }
            let read = LogReader::open(storage, &dir, *later).and_then(|mut log| {
                wanted.collect_records(
                    &mut log,
                    &dir,
                    until.saturating_mul(1000),
                    &mut found,
                    is_complete,
                )
            });
            spoiled.skip_damaged(read)?;
        }
        match is_complete(&found) {
            true => Ok(found),
            false => spoiled.into_result(found),
        }
    }
}

/// Opens a log at the position of a time in unix milliseconds.
fn open_log_at<'s>(
    storage: &'s dyn ReadStorage,
    dir: &Path,
    incarnation: Ulid,
    from: u64,
) -> Result<LogReader<'s>, EvidenceError> {
    let place = find_start(storage, dir, incarnation, from.saturating_mul(1000))?;
    let mut log = LogReader::open(storage, dir, incarnation)?;
    if let Some(place) = place {
        log.seek_to(place)?;
    }
    Ok(log)
}

/// Returns whether an exchange has all its records.
fn is_complete(found: &[FoundRecord]) -> bool {
    found.iter().any(|found| {
        matches!(
            record::parse(&found.record),
            Ok(Record::Completion(_) | Record::Abort(_) | Record::Rejection(_))
        )
    })
}

#[derive(Clone)]
struct IdMatcher<'i> {
    id: &'i str,
    finder: memmem::Finder<'i>,
}

impl<'i> IdMatcher<'i> {
    fn new(id: &'i str) -> Self {
        Self {
            id,
            finder: memmem::Finder::new(id.as_bytes()),
        }
    }

    fn matches(&self, payload: &[u8]) -> bool {
        // Parse every record that contains an escape, because an id that is escaped in JSON does
        // not appear literally.
        (self.finder.find(payload).is_some() || memchr::memchr(b'\\', payload).is_some())
            && record::parse(payload).is_ok_and(|record| record.id() == Some(self.id))
    }

    /// Adds the remaining records of the exchange in `log`, up to the time `until` in microseconds,
    /// or until `enough` returns true.
    fn collect_records(
        &self,
        log: &mut LogReader<'_>,
        dir: &Path,
        until: u64,
        found: &mut Vec<FoundRecord>,
        enough: impl Fn(&[FoundRecord]) -> bool,
    ) -> Result<(), EvidenceError> {
        loop {
            let stored = match log.next()? {
                LogItem::End => return Ok(()),
                LogItem::Flaw(_) => continue,
                LogItem::Record(stored) => stored,
            };
            let payload = log.payload(&stored);
            if self.matches(payload) {
                found.push(FoundRecord {
                    dir: dir.to_owned(),
                    seq: stored.seq,
                    record: payload.to_vec(),
                });
                if enough(found) {
                    return Ok(());
                }
            } else if until < u64::MAX
                && stored.seq.is_multiple_of(TIME_CHECK_INTERVAL)
                && record::parse(payload).is_ok_and(|record| record.ts() > until)
            {
                return Ok(());
            }
        }
    }

    /// Adds the records about the exchange at the start of a log: its `aborted` records after its
    /// `open`.
    fn collect_start_records(
        &self,
        storage: &dyn ReadStorage,
        dir: &Path,
        incarnation: Ulid,
        found: &mut Vec<FoundRecord>,
    ) -> Result<(), EvidenceError> {
        let mut log = LogReader::open(storage, dir, incarnation)?;
        while let LogItem::Record(stored) = log.next()? {
            let payload = log.payload(&stored);
            match record::parse(payload) {
                Ok(Record::Open(_)) => {}
                Ok(Record::Abort(aborted)) if aborted.id == self.id => {
                    found.push(FoundRecord {
                        dir: dir.to_owned(),
                        seq: stored.seq,
                        record: payload.to_vec(),
                    });
                }
                Ok(Record::Abort(_)) => {}
                _ => break,
            }
        }
        Ok(())
    }
}

/// Returns the stored bytes of record `seq` of an incarnation.
///
/// # Errors
/// [`EvidenceError::NoSuchRecord`], also when the record is damaged; [`EvidenceError::Removed`];
/// [`EvidenceError::NotALog`] or [`EvidenceError::Io`].
pub fn read_record(
    storage: &dyn ReadStorage,
    incarnation_dir: &Path,
    seq: u64,
) -> Result<Vec<u8>, EvidenceError> {
    let incarnation = incarnation_of(incarnation_dir)?;
    let mut log = LogReader::open(storage, incarnation_dir, incarnation)?;
    if let Some(place) = find_record_position(storage, incarnation_dir, incarnation, seq)? {
        log.seek_to(place)?;
    }
    if let Some(record) = advance_to_record(&mut log, seq)? {
        return Ok(record);
    }
    // In a damaged log, the result of the binary search may be wrong.
    let mut log = LogReader::open(storage, incarnation_dir, incarnation)?;
    log.seek(seq);
    match advance_to_record(&mut log, seq)? {
        Some(record) => Ok(record),
        None => Err(missing_record_error(storage, incarnation_dir, seq)?),
    }
}

/// Returns the stored bytes of several records of an incarnation; the numbers must be ascending.
///
/// # Errors
/// Same as [`read_record`].
pub fn read_records(
    storage: &dyn ReadStorage,
    incarnation_dir: &Path,
    seqs: &[u64],
) -> Result<Vec<Vec<u8>>, EvidenceError> {
    let incarnation = incarnation_of(incarnation_dir)?;
    let mut records = Vec::with_capacity(seqs.len());
    let mut reading: Option<(LogReader<'_>, u64)> = None;
    for seq in seqs {
        // Over a short distance, sequential reading costs less than a new search.
        let mut near = reading
            .take()
            .filter(|(_, next)| (*next..next.saturating_add(MAX_SCAN_GAP)).contains(seq));
        if near.is_none()
            && let Some(place) = find_record_position(storage, incarnation_dir, incarnation, *seq)?
        {
            let mut log = LogReader::open(storage, incarnation_dir, incarnation)?;
            log.seek_to(place)?;
            near = Some((log, *seq));
        }
        let record = match &mut near {
            Some((log, _)) => advance_to_record(log, *seq)?,
            None => None,
        };
        records.push(match record {
            Some(record) => record,
            None => read_record(storage, incarnation_dir, *seq)?,
        });
        reading = near.map(|(log, _)| (log, seq.saturating_add(1)));
    }
    Ok(records)
}

/// Reads up to and including record `seq`; `None` when the log does not hold it.
fn advance_to_record(log: &mut LogReader<'_>, seq: u64) -> Result<Option<Vec<u8>>, EvidenceError> {
    loop {
        match log.next()? {
            LogItem::Record(stored) if stored.seq == seq => return Ok(Some(log.payload(&stored).to_vec())),
            LogItem::Record(stored) if stored.seq < seq => {}
            LogItem::Flaw(_) => {}
            LogItem::Record(_) | LogItem::End => return Ok(None),
        }
    }
}
