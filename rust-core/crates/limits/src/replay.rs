//! What a dead incarnation consumed after its last snapshot, from its ledger.

use crate::demand::ActualUsage;
use crate::moment::Moment;
use crate::snapshot::Snapshot;
use crate::usage::{SubjectKind, SubjectName, Usage};
use crate::{CredentialId, MICROS_PER_SECOND, WINDOW_SECONDS};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Brings the last snapshot of a dead incarnation to the end of its ledger.
///
/// Give it the records of the whole log in order: those that the snapshot holds already only tell which exchanges are
/// open. Memory grows with the number of open exchanges, not with the log.
///
/// The result is exactly what the limiter would have published, if the times of the records are those that counted
/// there: [`crate::Grant::admitted_at`] of an admission or a refusal, what was told at the settlement of a completion. A time more
/// than a minute before an earlier record's is that of a clock that stepped back, and counts as the earlier one.
#[derive(Debug)]
pub struct Replay {
    snapshot: Snapshot,
    /// Exchanges that were admitted and not ended, by the number of their admission.
    open_exchanges: BTreeMap<u64, OpenAdmission>,
    /// Names of tenants, models and plans.
    names: BTreeSet<Arc<str>>,
    /// Records seen.
    record_count: u64,
    /// The latest time of a record, in unix microseconds.
    latest: u64,
}

#[derive(Debug)]
struct OpenAdmission {
    second: u64,
    tenant: Arc<str>,
    key: Option<CredentialId>,
    /// The model, where what it costs was counted.
    model: Option<Arc<str>>,
    /// What it shares with others of its namespace.
    shared: Option<SubjectName>,
    reserved: ActualUsage,
}

/// What of a use counts for a subject.
type UsageShare = fn(ActualUsage) -> ActualUsage;

/// An exchange that reserved something, as its admission record tells it.
#[derive(Clone, Copy, Debug)]
pub struct AdmittedReservation<'r> {
    /// Number of the record.
    pub seq: u64,
    /// Unix microseconds.
    pub ts: u64,
    /// Tenant.
    pub tenant: &'r str,
    /// `None` for tenants whose keys have no limits.
    pub key: Option<CredentialId>,
    /// What the model is called in the configuration, as budgets name it: a client may have asked for it by another name.
    pub model: &'r str,
    /// Tokens reserved.
    pub reserved: u64,
    /// Nanodollars reserved; `None` when no budget counted them.
    pub reserved_cost: Option<u64>,
    /// The plan whose limits the tenants of its namespace share; `None` when it counted in none.
    pub shared_plan: Option<&'r str>,
}

impl Replay {
    /// Starts at an incarnation's last snapshot; without one, at [`DurationSnapshot::empty`].
    #[must_use]
    pub fn new(snapshot: Snapshot) -> Self {
        Self {
            record_count: 0,
            latest: 0,
            open_exchanges: BTreeMap::new(),
            names: BTreeSet::new(),
            snapshot,
        }
    }

    /// An admission that reserved tokens; those that reserved none (`null`) are not to be told.
    pub fn record_admission(&mut self, admitted: &AdmittedReservation<'_>) {
        let seq = admitted.seq;
        let second = self.advance_to(seq, admitted.ts);
        let reserved = ActualUsage {
            tokens: admitted.reserved,
            cost: admitted.reserved_cost.unwrap_or(0),
        };
        let open = OpenAdmission {
            second,
            tenant: self.intern(admitted.tenant),
            key: admitted.key,
            model: admitted.reserved_cost.map(|_| self.intern(admitted.model)),
            shared: self.shared_subject(admitted.tenant, admitted.shared_plan),
            reserved: reserved.bookable(true),
        };
        if seq >= self.snapshot.through_seq {
            self.for_each_subject(&open, |usage, requests, share| {
                usage.book(second, requests, share(open.reserved));
            });
        }
        self.open_exchanges.insert(seq, open);
    }

    /// The completion of the exchange whose admission has the number `admission`. `charged` is what it used, or `None` when
    /// its reservation stands.
    pub fn record_completion(&mut self, seq: u64, ts: u64, admission: u64, charged: Option<ActualUsage>) {
        self.advance_to(seq, ts);
        let second = self.latest / MICROS_PER_SECOND;
        let Some(open) = self.open_exchanges.remove(&admission) else {
            return;
        };
        if seq < self.snapshot.through_seq {
            return;
        }
        let charged = charged.map_or(open.reserved, |used| used.bookable(open.model.is_some()));
        let unused = open.reserved.excess_over(charged);
        let beyond = charged.excess_over(open.reserved);
        self.for_each_subject(&open, |usage, _, share| {
            usage.release(open.second, share(unused));
            if share(beyond) != ActualUsage::default() {
                usage.book(second, 0, share(beyond));
            }
        });
    }

    /// A request that was refused after it had passed the limits and that counts as a request all the same: what
    /// [`crate::Limiter::refund`] does with `keep_request`. `shared_plan`: as in [`AdmittedReservation`].
    pub fn record_counted_rejection(
        &mut self,
        seq: u64,
        ts: u64,
        tenant: &str,
        key: Option<CredentialId>,
        shared_plan: Option<&str>,
    ) {
        let second = self.advance_to(seq, ts);
        if seq >= self.snapshot.through_seq {
            let refused = OpenAdmission {
                second,
                tenant: self.intern(tenant),
                key,
                model: None,
                shared: self.shared_subject(tenant, shared_plan),
                reserved: ActualUsage::default(),
            };
            self.for_each_subject(&refused, |usage, requests, _| {
                usage.book(second, requests, ActualUsage::default());
            });
        }
    }

    /// The clock was set from one time to another, in unix microseconds. The limiter goes ahead with every clock, and back where
    /// it would be ahead by more than `most_lead` microseconds.
    pub fn record_clock_step(&mut self, seq: u64, from: u64, to: u64, most_lead: u64) {
        let from = self.latest.max(from);
        if to < from && from - to <= most_lead {
            return;
        }
        self.record_count = self.record_count.max(seq.saturating_add(1));
        self.latest = to;
        if seq >= self.snapshot.through_seq {
            let (was, at) = (Moment::from_micros(from), Moment::from_micros(to));
            for usage in self.snapshot.subjects.values_mut() {
                usage.step(was, at);
            }
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
        snapshot.through_seq = snapshot.through_seq.max(records).max(self.record_count);
        snapshot.taken_at = snapshot.taken_at.max(self.latest);
        snapshot.finished = true;
        snapshot.prune(now);
        snapshot
    }

    fn advance_to(&mut self, seq: u64, ts: u64) -> u64 {
        self.record_count = self.record_count.max(seq.saturating_add(1));
        self.latest = self.latest.max(ts);
        let stepped_back = self.latest - ts > WINDOW_SECONDS * MICROS_PER_SECOND;
        let counted = if stepped_back { self.latest } else { ts };
        counted / MICROS_PER_SECOND
    }

    fn intern(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.names.get(name) {
            return Arc::clone(known);
        }
        let new: Arc<str> = Arc::from(name);
        self.names.insert(Arc::clone(&new));
        new
    }

    fn shared_subject(&mut self, tenant: &str, plan: Option<&str>) -> Option<SubjectName> {
        let plan = plan.map(|plan| self.intern(plan))?;
        SubjectName::for_shared(tenant, &plan)
    }

    /// Changes what each subject of an exchange has used: it is told how many requests count for it, and its share of a use.
    fn for_each_subject(&mut self, open: &OpenAdmission, change: impl Fn(&mut Usage, u32, UsageShare)) {
        let whole: UsageShare = |used| used;
        let cost_alone: UsageShare = |used| ActualUsage { tokens: 0, ..used };
        let of_tenant = |part| SubjectName {
            tenant: Arc::clone(&open.tenant),
            kind: part,
        };
        let model = open.model.as_ref().map(Arc::clone);
        let subjects = [
            Some((of_tenant(SubjectKind::Tenant), 1, whole)),
            open.key.map(|key| (of_tenant(SubjectKind::Key(key)), 1, whole)),
            model.map(|model| (of_tenant(SubjectKind::Model(model)), 0, cost_alone)),
            open.shared.clone().map(|name| (name, 1, whole)),
        ];
        for (name, requests, share) in subjects.into_iter().flatten() {
            change(self.snapshot.subjects.entry(name).or_default(), requests, share);
        }
    }
}
