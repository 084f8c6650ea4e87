//! Consumption as it is handed over: by origin, tenant and key.

use crate::MICROS_PER_SECOND;
use crate::moment::Moment;
use crate::subject::Totals;
use crate::usage::{SubjectKind, SubjectName, Usage};
use crate::window::{Second, WINDOW_SECONDS};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// How long an origin's requests in flight are believed after its last snapshot. A worker that lives publishes more
/// often while it has any; one that was killed without a successor must not hold a tenant's places permanently.
pub const IN_FLIGHT_FRESH_SECONDS: u64 = 60;
/// By how much the clock of another worker may be ahead, in microseconds: a day, as where somebody set it to the wrong zone.
const MAX_CLOCK_LEAD: u64 = 86_400 * MICROS_PER_SECOND;

/// Who consumed: one incarnation of a worker. It alone publishes what it consumed, until its successor does for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// The shard.
    pub shard: u32,
    /// The ULID of the incarnation, as a number.
    pub incarnation: u128,
}

/// What one origin consumed, as far as it still counts.
///
/// Of two snapshots of one origin the newer one is the truth: the one that knows more records, then the one made after
/// the origin's end, then the later one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Who consumed.
    pub origin: Origin,
    /// Records 0 to `through_seq` − 1 of the origin's log are in it, and nothing that a later record says.
    pub through_seq: u64,
    /// Whether the origin has ended and will consume no more.
    pub finished: bool,
    /// When it was true, in unix microseconds.
    pub taken_at: u64,
    /// Consumption by subject; none is empty.
    pub subjects: BTreeMap<SubjectName, Usage>,
}

impl Snapshot {
    /// An origin that has consumed nothing yet.
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

    /// Whether this one is the truth, rather than `other` of the same origin.
    #[must_use]
    pub fn is_newer_than(&self, other: &Self) -> bool {
        let version = |snapshot: &Self| (snapshot.through_seq, snapshot.finished, snapshot.taken_at);
        version(self) > version(other)
    }

    /// Brings this snapshot to the state that the limiter had when the changes were taken. Changes are applied in the
    /// order in which they were taken, and none is left out.
    pub fn apply(&mut self, changes: &Changes) {
        self.through_seq = self.through_seq.max(changes.through_seq);
        // A limiter that was turned back tells an earlier time.
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

    /// Adds to the totals of each tenant, and of what the tenants of each namespace share, what of this origin's
    /// consumption counts at `now` (unix microseconds). `fresh`: whether its requests in flight do.
    pub fn add_to(&self, totals: &mut HashMap<SubjectName, Totals>, now: u64, fresh: bool) {
        let is_shown = |part: &SubjectKind| matches!(part, SubjectKind::Tenant | SubjectKind::Shared(_));
        for (name, usage) in self.subjects.iter().filter(|(name, _)| is_shown(&name.kind)) {
            let totals = totals.entry(name.clone()).or_default();
            totals.add(usage, now / MICROS_PER_SECOND, fresh);
        }
    }

    /// Drops what no longer counts at `now` (unix microseconds).
    pub fn prune(&mut self, now: u64) {
        let second = now / MICROS_PER_SECOND;
        self.subjects.retain(|_, usage| {
            usage.prune(second);
            !usage.is_empty()
        });
    }

    /// Whether nothing in it counts any more at `now` (unix microseconds).
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

    /// Dates what is more than a day ahead of `now` (unix microseconds) to `now`: it is of a worker whose clock was wrong,
    /// and would count in every day until that one comes. So it counts in this day, and in no other.
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

    /// Whether its requests in flight can be believed at `now` (unix microseconds).
    #[must_use]
    pub(crate) fn is_fresh(&self, now: u64) -> bool {
        let end = self
            .taken_at
            .saturating_add(IN_FLIGHT_FRESH_SECONDS.saturating_mul(MICROS_PER_SECOND));
        !self.finished && now <= end
    }
}

/// What changed in a limiter since changes were last taken; reused, so that taking them allocates nothing.
#[derive(Debug, Default)]
pub struct Changes {
    pub(crate) through_seq: u64,
    /// Unix microseconds.
    pub(crate) taken_at: u64,
    pub(crate) needs_all_counts: bool,
    pub(crate) entries: Vec<Change>,
    pub(crate) seconds: Vec<Second>,
}

#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) name: SubjectName,
    /// Without its seconds.
    pub(crate) usage: Usage,
    /// Where its seconds are in `Changes::seconds`.
    pub(crate) seconds: Range<usize>,
}

impl Changes {
    /// Whether a limit needs counts that state files before version 4 do not have.
    #[must_use]
    pub fn needs_all_counts(&self) -> bool {
        self.needs_all_counts
    }

    /// Whether no subject changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Number of subjects that changed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }
}
