//! Snapshots of consumption for the hand-over: by origin, tenant and key.

use crate::MICROS_PER_SECOND;
use crate::moment::Moment;
use crate::subject::Totals;
use crate::usage::{SubjectKind, SubjectName, Usage};
use crate::window::{Second, WINDOW_SECONDS};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// Seconds after its last snapshot during which an origin's requests in flight count. A live worker
/// publishes more often while it has requests in flight. A worker that was killed without a
/// successor must not hold a tenant's slots permanently.
pub const IN_FLIGHT_FRESH_SECONDS: u64 = 60;
/// The maximum lead of another worker's clock, in microseconds. The value is one day, which covers
/// a wrong time zone.
const MAX_CLOCK_LEAD: u64 = 86_400 * MICROS_PER_SECOND;

/// The source of consumption: one incarnation of a worker. Only this incarnation publishes its
/// consumption, and after its end its successor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// The shard.
    pub shard: u32,
    /// The ULID of the incarnation, as a number.
    pub incarnation: u128,
}

/// The consumption of one origin that still counts.
///
/// The newest snapshot of an origin is valid. The newer of two snapshots has more records; if
/// equal, it was taken after the origin's end; if equal, it was taken later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The incarnation that consumed.
    pub origin: Origin,
    /// The snapshot includes records 0 to `through_seq` − 1 of the origin's log, and no later
    /// record.
    pub through_seq: u64,
    /// Whether the origin has ended and will consume no more.
    pub finished: bool,
    /// Time at which the snapshot was taken, in unix microseconds.
    pub taken_at: u64,
    /// Consumption by subject; no entry is empty.
    pub subjects: BTreeMap<SubjectName, Usage>,
}

impl Snapshot {
    /// Creates the snapshot of an origin that has consumed nothing.
    #[must_use]
    pub fn empty(origin: Origin) -> Self {
        Self {
            origin,
            through_seq: 0,
            finished: false,
            taken_at: 0,
            subjects: BTreeMap::new(),
        }
    }

    /// Returns whether this snapshot is newer than `other` of the same origin.
    #[must_use]
    pub fn is_newer_than(&self, other: &Self) -> bool {
        let version = |snapshot: &Self| (snapshot.through_seq, snapshot.finished, snapshot.taken_at);
        version(self) > version(other)
    }

    /// Updates this snapshot to the state of the limiter at the time when the changes were taken.
    /// Apply all changes in the order in which they were taken.
    pub fn apply(&mut self, changes: &Changes) {
        self.through_seq = self.through_seq.max(changes.through_seq);
        // A limiter that was rolled back has an earlier time.
        self.taken_at = changes.taken_at;
        for change in &changes.entries {
            let seconds = changes.seconds.get(change.seconds.clone()).unwrap_or_default();
            if change.usage.is_empty() && seconds.is_empty() {
                self.subjects.remove(&change.name);
                continue;
            }
            let usage = self.subjects.entry(change.name.clone()).or_default();
            let mut held = std::mem::take(&mut usage.seconds);
            held.clear();
            held.extend_from_slice(seconds);
            *usage = Usage {
                seconds: held,
                ..change.usage.clone()
            };
        }
    }

    /// Adds this origin's consumption that counts at `now` (unix microseconds) to the totals of
    /// each tenant and of shared limits. `fresh` states whether the origin's requests in flight
    /// count.
    pub fn add_to(&self, totals: &mut HashMap<SubjectName, Totals>, now: u64, fresh: bool) {
        let is_shown = |part: &SubjectKind| matches!(part, SubjectKind::Tenant | SubjectKind::Shared(_));
        for (name, usage) in self.subjects.iter().filter(|(name, _)| is_shown(&name.kind)) {
            let totals = totals.entry(name.clone()).or_default();
            totals.add(usage, now / MICROS_PER_SECOND, fresh);
        }
    }

    /// Drops consumption that no longer counts at `now` (unix microseconds).
    pub fn prune(&mut self, now: u64) {
        let second = now / MICROS_PER_SECOND;
        self.subjects.retain(|_, usage| {
            usage.prune(second);
            !usage.is_empty()
        });
    }

    /// Returns whether no consumption in the snapshot counts at `now` (unix microseconds).
    #[must_use]
    pub fn is_expired(&self, now: u64) -> bool {
        let second = now / MICROS_PER_SECOND;
        let at = Moment::from_second(second);
        let fresh = self.is_fresh(now);
        self.subjects.values().all(|usage| {
            let minute_is_past = usage
                .seconds
                .iter()
                .all(|held| held.second.saturating_add(WINDOW_SECONDS) <= second);
            let counts = usage.periods_at(at);
            minute_is_past && counts.is_empty() && (usage.in_flight == 0 || !fresh)
        })
    }

    /// Moves consumption with a time more than a day after `now` (unix microseconds) to `now`. Such
    /// consumption comes from a worker whose clock was wrong, and would count on every day until
    /// its date. After this call it counts only on the current day.
    pub(crate) fn backdate(&mut self, now: u64) {
        let latest = now.saturating_add(MAX_CLOCK_LEAD);
        if self.taken_at > latest {
            self.taken_at = now;
        }
        let (now, latest) = (Moment::from_micros(now), Moment::from_micros(latest));
        for usage in self.subjects.values_mut() {
            usage.backdate(now, latest);
        }
    }

    /// Returns whether the origin's requests in flight count at `now` (unix microseconds).
    #[must_use]
    pub(crate) fn is_fresh(&self, now: u64) -> bool {
        let end = self
            .taken_at
            .saturating_add(IN_FLIGHT_FRESH_SECONDS.saturating_mul(MICROS_PER_SECOND));
        !self.finished && now <= end
    }
}

/// The changes in a limiter since changes were last taken. Reuse this value, so that taking changes
/// allocates nothing.
#[derive(Debug, Default)]
pub struct Changes {
    pub(crate) through_seq: u64,
    /// Time at which the changes were taken, in unix microseconds.
    pub(crate) taken_at: u64,
    pub(crate) needs_all_counts: bool,
    pub(crate) entries: Vec<Change>,
    pub(crate) seconds: Vec<Second>,
}

#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) name: SubjectName,
    /// The usage of the subject, without its seconds.
    pub(crate) usage: Usage,
    /// The range of the usage's seconds in `Changes::seconds`.
    pub(crate) seconds: Range<usize>,
}

impl Changes {
    /// Returns whether a limit needs counts that are missing in state files before version 4.
    #[must_use]
    pub fn needs_all_counts(&self) -> bool {
        self.needs_all_counts
    }

    /// Returns whether no subject changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the number of subjects that changed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }
}
