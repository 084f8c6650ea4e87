//! Replay of the consumption of a crashed incarnation after its last snapshot, from its ledger.

use crate::demand::ActualUsage;
use crate::moment::Moment;
use crate::snapshot::Snapshot;
use crate::usage::{SubjectKind, SubjectName, Usage};
use crate::{CredentialId, MICROS_PER_SECOND, WINDOW_SECONDS};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A replay that updates the last snapshot of a crashed incarnation to the end of its ledger.
///
/// Pass the records of the whole log in order. Records that the snapshot includes only determine
/// which exchanges are open. Memory grows with the number of open exchanges, not with the log.
///
/// The result is exactly the snapshot that the limiter would have published if the records have the
/// limiter's times: [`crate::Grant::admitted_at`] for an admission or a refusal, the time of the
/// settlement for a completion. A time more than a minute before the time of an earlier record
/// comes from a clock that stepped back, and is replaced by that earlier time.
#[derive(Debug)]
pub struct Replay {
    snapshot: Snapshot,
    /// Exchanges without an end, by the number of their admission record.
    open_exchanges: BTreeMap<u64, OpenAdmission>,
    /// Names of tenants, models and plans.
    names: BTreeSet<Arc<str>>,
    /// Number of records read.
    record_count: u64,
    /// The latest time of a record, in unix microseconds.
    latest: u64,
}

#[derive(Debug)]
struct OpenAdmission {
    second: u64,
    tenant: Arc<str>,
    key: Option<CredentialId>,
    /// The model, if its cost was counted; otherwise `None`.
    model: Option<Arc<str>>,
    /// The subject that the tenant shares with other tenants of its namespace.
    shared: Option<SubjectName>,
    reserved: ActualUsage,
}

/// A function that returns the part of a usage that counts for a subject.
type UsageShare = fn(ActualUsage) -> ActualUsage;

/// An exchange with a reservation, from its admission record.
#[derive(Clone, Copy, Debug)]
pub struct AdmittedReservation<'r> {
    /// Number of the record.
    pub seq: u64,
    /// Time of the record, in unix microseconds.
    pub ts: u64,
    /// Tenant.
    pub tenant: &'r str,
    /// The credential; `None` for tenants whose keys have no limits.
    pub key: Option<CredentialId>,
    /// The model's name in the configuration, as budgets use it. The client may have used another
    /// name.
    pub model: &'r str,
    /// Tokens reserved.
    pub reserved: u64,
    /// Nanodollars reserved; `None` if no budget counted them.
    pub reserved_cost: Option<u64>,
    /// The plan whose limits the tenants of the namespace share; `None` if the exchange counted in
    /// no plan.
    pub shared_plan: Option<&'r str>,
}

impl Replay {
    /// Creates a replay from an incarnation's last snapshot. Without a snapshot, pass
    /// [`Snapshot::empty`].
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

    /// Records an admission with a token reservation. Do not pass admissions whose reservation is
    /// `null`.
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

    /// Records the completion of the exchange with the admission record `admission`. `charged` is
    /// the usage of the exchange, or `None` if its reservation remains booked.
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

    /// Records a request that was refused after it had passed the limits but still counts as a
    /// request, like [`crate::Limiter::refund`] with `keep_request`. `shared_plan` is as in
    /// [`AdmittedReservation`].
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

    /// Records that the clock was set from `from` to `to`, in unix microseconds. The limiter
    /// follows every step ahead, but steps back only if it would otherwise be ahead by more than
    /// `most_lead` microseconds.
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

    /// Ends the replay. The reservations of open exchanges remain booked, and no request is in
    /// flight. `records` is the number of records in the log, `now` the time in unix microseconds.
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

    /// Applies `change` to the usage of each subject of an exchange, with the number of requests
    /// that count for the subject and the subject's part of a usage.
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
