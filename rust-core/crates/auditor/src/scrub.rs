//! Reads again, for ever and within a budget, what was accepted: disks rot, and somebody may change old records.

use crate::finding::{Code, Raised};
use crate::log::Log;
use crate::look::is_gone;
use crate::reach::is_away;
use crate::tail::{Budget, Step, Tail};
use proofgate_evidence::{ReadStorage, Ulid};
use proofgate_ledger::Hash;

/// A log as the catalogue orders it.
pub(crate) type CatalogueKey = (String, Ulid);

/// What is being read again.
struct Reading {
    place: CatalogueKey,
    size: u64,
    root: Hash,
    tail: Tail,
    /// It failed once: when it is read for the second time, in unix microseconds.
    again_at: Option<u64>,
}

/// The scrub.
#[derive(Default)]
pub(crate) struct Scrub {
    reading: Option<Reading>,
    /// The log that was read last.
    last: Option<CatalogueKey>,
    /// How often all logs were read.
    pub(crate) rounds: u64,
}

/// What to do next.
pub(crate) enum Next {
    /// Read this log.
    Read(CatalogueKey),
    /// There is none.
    Nothing,
}

impl Scrub {
    /// The log to be read, of those in `places`, in order.
    pub(crate) fn next<'p>(&mut self, places: impl Iterator<Item = (&'p String, &'p Ulid)> + Clone) -> Next {
        if let Some(reading) = &self.reading {
            return Next::Read(reading.place.clone());
        }
        let behind = |place: &(&String, &Ulid)| {
            self.last
                .as_ref()
                .is_none_or(|(shard, incarnation)| (place.0, place.1) > (shard, incarnation))
        };
        match places.clone().find(behind) {
            Some((shard, incarnation)) => Next::Read((shard.clone(), *incarnation)),
            None => {
                self.rounds += u64::from(self.last.is_some());
                self.last = None;
                Next::Nothing
            }
        }
    }

    /// Forgets a log that is not there any more, and goes on behind it.
    pub(crate) fn skip(&mut self, place: CatalogueKey) {
        self.reading = None;
        self.last = Some(place);
    }

    /// Whether a second look is due later.
    pub(crate) fn waits(&self, now: u64) -> bool {
        let again = self.reading.as_ref().and_then(|reading| reading.again_at);
        again.is_some_and(|at| now < at)
    }

    /// A second look is due at `latest` at the latest.
    pub(crate) fn turn_back(&mut self, latest: u64) {
        if let Some(again_at) = self
            .reading
            .as_mut()
            .and_then(|reading| reading.again_at.as_mut())
        {
            *again_at = latest.min(*again_at);
        }
    }

    /// Whether something looked wrong and was not looked at again yet.
    pub(crate) fn suspects(&self) -> bool {
        self.reading
            .as_ref()
            .is_some_and(|reading| reading.again_at.is_some())
    }

    /// Reads a log on; what does not verify, also when it is read again `delay` microseconds later, is raised.
    pub(crate) fn read(
        &mut self,
        storage: &dyn ReadStorage,
        log: &mut Log,
        budget: &mut Budget,
        (now, delay): (u64, u64),
        raised: &mut Raised,
    ) {
        let place = (log.row.shard.clone(), log.row.incarnation);
        let Some(head) = &log.row.head else {
            return self.skip(place);
        };
        let reading = self.reading.get_or_insert_with(|| Reading {
            place: place.clone(),
            size: head.size,
            root: head.root,
            tail: Tail::default(),
            again_at: None,
        });
        let step = reading
            .tail
            .advance(storage, &log.dir, log.row.incarnation, reading.size, budget);
        let (code, message) = match step {
            Ok(Step::Paused) => return,
            Ok(Step::Reached) if reading.tail.root() == reading.root => {
                log.know_configurations(&reading.tail.facts);
                return self.skip(place);
            }
            Ok(Step::Reached) => (
                Code::RecordsChanged,
                format!(
                    "the first {} records no longer hash to the signed root",
                    reading.size
                ),
            ),
            Ok(Step::Short) => (
                Code::Truncated,
                format!(
                    "it had {} records, but only {} are there",
                    reading.size,
                    reading.tail.size()
                ),
            ),
            Ok(Step::Flawed(flaw)) => (
                Code::RecordsDamaged,
                format!(
                    "{} at byte {}, record {}: {}",
                    flaw.path.display(),
                    flaw.offset,
                    flaw.seq,
                    flaw.reason
                ),
            ),
            Ok(Step::Refused(message)) => (Code::RecordsChanged, message),
            Err(error) if is_gone(&error) || is_away(&error) => return self.skip(place),
            Err(error) => (Code::Unreadable, error.to_string()),
        };
        match reading.again_at {
            None => {
                reading.again_at = Some(now.saturating_add(delay));
                reading.tail = Tail::default();
            }
            Some(_) => {
                raised.raise_now(code, &log.origin, &log.row.shard, message);
                self.skip(place);
            }
        }
    }
}
