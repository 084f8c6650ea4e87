//! Verifies accepted records again, continuously and within a budget, to detect decayed or
//! manipulated records.

use crate::finding::{FindingCode, RaisedFindings};
use crate::log::Log;
use crate::log_check::is_removed_or_replaced;
use crate::log_tail::{LogTail, ReadBudget, ReadProgress};
use crate::reachability::is_unreachable;
use proofgate_evidence::{ReadStorage, Ulid};
use proofgate_ledger::Hash;

/// The key of a log in the catalogue's order.
pub(crate) type CatalogueKey = (String, Ulid);

/// The log that is being verified again.
struct ScrubTarget {
    key: CatalogueKey,
    size: u64,
    root: Hash,
    tail: LogTail,
    /// Time at which the log is read again after a failure, in unix microseconds; `None` without a
    /// failure.
    retry_at: Option<u64>,
}

/// The state of the scrub.
#[derive(Default)]
pub(crate) struct Scrub {
    current: Option<ScrubTarget>,
    /// The log that was read last.
    last_read: Option<CatalogueKey>,
    /// Number of completed rounds in which all logs were verified again.
    pub(crate) rounds: u64,
}

/// The next step of the scrub.
pub(crate) enum NextLog {
    /// The scrub must read this log.
    Read(CatalogueKey),
    /// There is no log to read.
    Idle,
}

impl Scrub {
    /// Returns the log to read next, from the ordered logs in `places`.
    pub(crate) fn next<'p>(
        &mut self,
        places: impl Iterator<Item = (&'p String, &'p Ulid)> + Clone,
    ) -> NextLog {
        if let Some(reading) = &self.current {
            return NextLog::Read(reading.key.clone());
        }
        let behind = |place: &(&String, &Ulid)| {
            self.last_read
                .as_ref()
                .is_none_or(|(shard, incarnation)| (place.0, place.1) > (shard, incarnation))
        };
        match places.clone().find(behind) {
            Some((shard, incarnation)) => NextLog::Read((shard.clone(), *incarnation)),
            None => {
                self.rounds += u64::from(self.last_read.is_some());
                self.last_read = None;
                NextLog::Idle
            }
        }
    }

    /// Skips a log that no longer exists.
    pub(crate) fn skip(&mut self, place: CatalogueKey) {
        self.current = None;
        self.last_read = Some(place);
    }

    /// Returns whether a second check is due later.
    pub(crate) fn is_retry_pending(&self, now: u64) -> bool {
        let again = self.current.as_ref().and_then(|reading| reading.retry_at);
        again.is_some_and(|at| now < at)
    }

    /// Limits the time of a pending second check to `latest`.
    pub(crate) fn clamp_times(&mut self, latest: u64) {
        if let Some(again_at) = self
            .current
            .as_mut()
            .and_then(|reading| reading.retry_at.as_mut())
        {
            *again_at = latest.min(*again_at);
        }
    }

    /// Returns whether a problem was seen that no second check has confirmed yet.
    pub(crate) fn has_suspect(&self) -> bool {
        self.current
            .as_ref()
            .is_some_and(|reading| reading.retry_at.is_some())
    }

    /// Continues to read a log. A problem that a second check `delay` microseconds later confirms
    /// is raised.
    pub(crate) fn read(
        &mut self,
        storage: &dyn ReadStorage,
        log: &mut Log,
        budget: &mut ReadBudget,
        (now, delay): (u64, u64),
        raised: &mut RaisedFindings,
    ) {
        let place = (log.row.shard.clone(), log.row.incarnation);
        let Some(head) = &log.row.head else {
            return self.skip(place);
        };
        let reading = self.current.get_or_insert_with(|| ScrubTarget {
            key: place.clone(),
            size: head.size,
            root: head.root,
            tail: LogTail::default(),
            retry_at: None,
        });
        let step = reading
            .tail
            .advance(storage, &log.dir, log.row.incarnation, reading.size, budget);
        let (code, message) = match step {
            Ok(ReadProgress::Paused) => return,
            Ok(ReadProgress::SizeReached) if reading.tail.root() == reading.root => {
                log.add_configurations(&reading.tail.facts);
                return self.skip(place);
            }
            Ok(ReadProgress::SizeReached) => (
                FindingCode::RecordsChanged,
                format!(
                    "the first {} records no longer hash to the signed root",
                    reading.size
                ),
            ),
            Ok(ReadProgress::EndedEarly) => (
                FindingCode::Truncated,
                format!(
                    "it had {} records, but only {} are present",
                    reading.size,
                    reading.tail.size()
                ),
            ),
            Ok(ReadProgress::Damaged(flaw)) => (
                FindingCode::RecordsDamaged,
                format!(
                    "{} at byte {}, record {}: {}",
                    flaw.path.display(),
                    flaw.offset,
                    flaw.seq,
                    flaw.reason
                ),
            ),
            Ok(ReadProgress::Refused(message)) => (FindingCode::RecordsChanged, message),
            Err(error) if is_removed_or_replaced(&error) || is_unreachable(&error) => {
                return self.skip(place);
            }
            Err(error) => (FindingCode::Unreadable, error.to_string()),
        };
        match reading.retry_at {
            None => {
                reading.retry_at = Some(now.saturating_add(delay));
                reading.tail = LogTail::default();
            }
            Some(_) => {
                raised.raise_confirmed(code, &log.origin, &log.row.shard, message);
                self.skip(place);
            }
        }
    }
}
