//! What a dead incarnation consumed after its last snapshot, from its ledger.

use crate::snapshot::{Snapshot, SubjectName, Usage};
use crate::{CredentialId, HELD_SECONDS, MAX_TOKENS, MICROS};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Brings the last snapshot of a dead incarnation to the end of its ledger.
///
/// Give it the records of the whole log in order: those that the snapshot holds already only tell which exchanges are
/// open. Memory grows with the number of open exchanges, not with the log.
///
/// The result is exactly what the limiter would have published, if the times of the records are those that counted
/// there: [`crate::Grant::at`] of an admission or a refusal, what was told at the settlement of a completion. A time more
/// than a minute before an earlier record's is that of a clock that stepped back, and counts as the earlier one.
#[derive(Debug)]
pub struct Replay {
    snapshot: Snapshot,
    /// Exchanges that were admitted and not ended, by the number of their admission.
    open: BTreeMap<u64, Open>,
    tenants: BTreeSet<Arc<str>>,
    /// Records seen.
    records: u64,
    /// The latest time of a record, in unix microseconds.
    latest: u64,
}

#[derive(Debug)]
struct Open {
    second: u64,
    tenant: Arc<str>,
    key: Option<CredentialId>,
    reserved: u64,
}

impl Replay {
    /// Starts at an incarnation's last snapshot; without one, at [`Snapshot::empty`].
    #[must_use]
    pub fn new(snapshot: Snapshot) -> Self {
        Self {
            records: 0,
            latest: 0,
            open: BTreeMap::new(),
            tenants: BTreeSet::new(),
            snapshot,
        }
    }

    /// An admission that reserved tokens; those that reserved none (`null`) are not to be told. `key` is `None` for
    /// tenants whose keys have no limits. `ts` is in unix microseconds.
    pub fn admission(&mut self, seq: u64, ts: u64, tenant: &str, key: Option<CredentialId>, reserved: u64) {
        let second = self.pass(seq, ts);
        let open = Open {
            second,
            tenant: self.tenant(tenant),
            key,
            reserved: reserved.min(MAX_TOKENS),
        };
        if seq >= self.snapshot.through_seq {
            self.each(&open, |usage| usage.book(second, 1, open.reserved));
        }
        self.open.insert(seq, open);
    }

    /// The completion of the exchange whose admission has the number `admission`. `charged` are the tokens it used, or
    /// `None` when its reservation stands.
    pub fn completion(&mut self, seq: u64, ts: u64, admission: u64, charged: Option<u64>) {
        self.pass(seq, ts);
        let second = self.latest / MICROS;
        let Some(open) = self.open.remove(&admission) else {
            return;
        };
        if seq < self.snapshot.through_seq {
            return;
        }
        let charged = charged.map_or(open.reserved, |tokens| tokens.min(MAX_TOKENS));
        let unused = open.reserved.saturating_sub(charged);
        let beyond = charged.saturating_sub(open.reserved);
        self.each(&open, |usage| {
            usage.release(open.second, unused);
            if beyond > 0 {
                usage.book(second, 0, beyond);
            }
        });
    }

    /// A request that was refused after it had passed the limits and that counts as a request all the same: what
    /// [`crate::Limiter::refund`] does with `keep_request`.
    pub fn counted_rejection(&mut self, seq: u64, ts: u64, tenant: &str, key: Option<CredentialId>) {
        let second = self.pass(seq, ts);
        if seq >= self.snapshot.through_seq {
            let refused = Open {
                second,
                tenant: self.tenant(tenant),
                key,
                reserved: 0,
            };
            self.each(&refused, |usage| usage.book(second, 1, 0));
        }
    }

    /// The log ends here: what is open keeps its reservation, nothing is in flight any more. `records` is the number of
    /// records of the log, `now` the time in unix microseconds.
    #[must_use]
    pub fn finish(self, records: u64, now: u64) -> Snapshot {
        let mut snapshot = self.snapshot;
        for usage in snapshot.subjects.values_mut() {
            usage.in_flight = 0;
        }
        snapshot.through_seq = snapshot.through_seq.max(records).max(self.records);
        snapshot.at = snapshot.at.max(self.latest);
        snapshot.ended = true;
        snapshot.prune(now);
        snapshot
    }

    fn pass(&mut self, seq: u64, ts: u64) -> u64 {
        self.records = self.records.max(seq.saturating_add(1));
        self.latest = self.latest.max(ts);
        let stepped_back = self.latest - ts > HELD_SECONDS * MICROS;
        let counted = if stepped_back { self.latest } else { ts };
        counted / MICROS
    }

    fn tenant(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.tenants.get(name) {
            return Arc::clone(known);
        }
        let new: Arc<str> = Arc::from(name);
        self.tenants.insert(Arc::clone(&new));
        new
    }

    fn each(&mut self, open: &Open, change: impl Fn(&mut Usage)) {
        let keys = [None, open.key];
        let count = if open.key.is_some() { 2 } else { 1 };
        for key in keys.into_iter().take(count) {
            let name = SubjectName {
                tenant: Arc::clone(&open.tenant),
                key,
            };
            change(self.snapshot.subjects.entry(name).or_default());
        }
    }
}
