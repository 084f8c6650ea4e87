//! Consumption of all other origins.

use crate::MICROS_PER_SECOND;
use crate::counts::Periods;
use crate::moment::Moment;
use crate::snapshot::{Origin, Snapshot};
use crate::subject::Totals;
use crate::usage::{SubjectName, Usage};
use crate::window::Second;
use proofgate_calendar::SECONDS_PER_DAY;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The newest snapshot of every other origin, and the sums that have changed. Use it on a slow thread.
///
/// Merging keeps only the newest snapshot of an origin, so neither the order of snapshots nor
/// duplicates matter.
#[derive(Debug)]
pub struct RemoteSnapshots {
    own_origin: Origin,
    origins: BTreeMap<Origin, LastSnapshot>,
    changed_subjects: BTreeSet<SubjectName>,
    /// UTC day of the last tick.
    last_day: u64,
}

#[derive(Debug)]
struct LastSnapshot {
    snapshot: Snapshot,
    /// Whether the requests in flight of this origin count.
    is_fresh: bool,
}

impl RemoteSnapshots {
    /// Creates an empty set, which ignores snapshots of `own`.
    #[must_use]
    pub fn new(own: Origin) -> Self {
        Self {
            own_origin: own,
            origins: BTreeMap::new(),
            changed_subjects: BTreeSet::new(),
            last_day: 0,
        }
    }

    /// Inserts a snapshot, which replaces an older snapshot of the same origin. Returns `false` if
    /// it is not newer.
    pub fn insert(&mut self, mut snapshot: Snapshot, now: u64) -> bool {
        let origin = snapshot.origin;
        let held = self.origins.get(&origin);
        if origin == self.own_origin || held.is_some_and(|held| !snapshot.is_newer_than(&held.snapshot)) {
            return false;
        }
        snapshot.backdate(now);
        let new = LastSnapshot {
            is_fresh: snapshot.is_fresh(now),
            snapshot,
        };
        let freshened = held.is_none_or(|held| held.is_fresh != new.is_fresh);
        for (name, usage) in &new.snapshot.subjects {
            let before = held.and_then(|held| held.snapshot.subjects.get(name));
            if before != Some(usage) || (freshened && usage.in_flight > 0) {
                self.changed_subjects.insert(name.clone());
            }
        }
        let before = held.map(|held| &held.snapshot.subjects);
        for name in before.into_iter().flat_map(BTreeMap::keys) {
            if !new.snapshot.subjects.contains_key(name) {
                self.changed_subjects.insert(name.clone());
            }
        }
        self.origins.insert(origin, new);
        true
    }

    /// Applies the effects of time: a new day, origins that have not published for too long, and
    /// origins whose consumption has expired. Call this about once a second.
    pub fn tick(&mut self, now: u64) {
        let day = now / MICROS_PER_SECOND / SECONDS_PER_DAY;
        if self.last_day > day {
            // The clock was set back, so snapshots that matched its earlier time are now ahead of
            // it.
            self.origins
                .values_mut()
                .for_each(|held| held.snapshot.backdate(now));
        }
        if self.last_day != day {
            self.last_day = day;
            self.mark_all_changed();
        }
        for held in self.origins.values_mut() {
            let fresh = held.snapshot.is_fresh(now);
            if held.is_fresh && !fresh {
                let names = held.snapshot.subjects.iter();
                let in_flight = names.filter(|(_, usage)| usage.in_flight > 0);
                self.changed_subjects
                    .extend(in_flight.map(|(name, _)| name.clone()));
            }
            held.is_fresh = fresh;
        }
        let changed = &self.changed_subjects;
        self.origins.retain(|_, held| {
            let unsent = || held.snapshot.subjects.keys().any(|name| changed.contains(name));
            !held.snapshot.is_expired(now) || unsent()
        });
    }

    /// Marks every subject as changed, because a limiter has new limits.
    pub fn mark_all_changed(&mut self) {
        let subjects = self
            .origins
            .values()
            .flat_map(|held| held.snapshot.subjects.keys());
        self.changed_subjects.extend(subjects.cloned());
    }

    /// Takes the sums over all origins for at most `max` subjects whose sum has changed, for
    /// [`crate::Limiter::apply_remote`]. The next call returns further subjects.
    pub fn take_changes(&mut self, max: usize, now: u64) -> Vec<(SubjectName, Usage)> {
        let mut sums = Vec::with_capacity(max.min(self.changed_subjects.len()));
        while sums.len() < max
            && let Some(name) = self.changed_subjects.pop_first()
        {
            let sum = self.sum(&name, now);
            sums.push((name, sum));
        }
        sums
    }

    /// Adds the consumption of all other origins that counts at `now` to the totals of each tenant and of shared limits.
    pub fn add_to(&self, totals: &mut HashMap<SubjectName, Totals>, now: u64) {
        for held in self.origins.values() {
            held.snapshot.add_to(totals, now, held.is_fresh);
        }
    }

    /// Returns the newest snapshot of an origin.
    #[must_use]
    pub fn get(&self, origin: &Origin) -> Option<&Snapshot> {
        self.origins.get(origin).map(|held| &held.snapshot)
    }

    /// Iterates over all snapshots.
    pub fn snapshots(&self) -> impl Iterator<Item = &Snapshot> {
        self.origins.values().map(|held| &held.snapshot)
    }

    fn sum(&self, name: &SubjectName, now: u64) -> Usage {
        let second = now / MICROS_PER_SECOND;
        let now = Moment::from_second(second);
        let mut sum = Usage {
            periods: Periods::empty_at(now),
            ..Usage::default()
        };
        let mut seconds: BTreeMap<u64, Second> = BTreeMap::new();
        for held in self.origins.values() {
            let Some(usage) = held.snapshot.subjects.get(name) else {
                continue;
            };
            let counts = usage.periods_at(now);
            sum.periods.day_counts = sum.periods.day_counts.plus(counts.day_counts);
            sum.periods.month_counts = sum.periods.month_counts.plus(counts.month_counts);
            if held.is_fresh {
                sum.in_flight = sum.in_flight.saturating_add(usage.in_flight);
            }
            for held in &usage.seconds {
                let nothing = Second {
                    second: held.second,
                    requests: 0,
                    tokens: 0,
                };
                let sum = seconds.entry(held.second).or_insert(nothing);
                sum.requests = sum.requests.saturating_add(held.requests);
                sum.tokens = sum.tokens.saturating_add(held.tokens);
            }
        }
        sum.seconds.extend(seconds.into_values());
        sum.prune(second);
        sum
    }
}
