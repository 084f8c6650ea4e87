//! The table of all subjects, owned by one thread.

mod grant;
mod group;
mod keys;
mod replication;
mod sharing;

pub use grant::Grant;

use crate::MICROS_PER_SECOND;
use crate::config::{Ceilings, CredentialId};
use crate::demand::{ActualUsage, Demand, MAX_COST, MAX_TOKENS};
use crate::limit_exceeded::{LimitExceeded, Scope};
use crate::limit_status::LimitStatus;
use crate::moment::Moment;
use crate::quotas::{Quotas, TenantLimits};
use crate::subject::{Consumption, Subject, Totals, has_longer_wait};
use crate::usage::{SubjectKind, SubjectName};
use crate::window::Window;
use grant::{Booking, NO_SUBJECT};
use group::Group;
use keys::KeyMap;
use std::collections::HashMap;
use std::sync::Arc;

/// The id of a tenant in a limiter. [`Limiter::set_limits`] does not change the id of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TenantId(u32);

#[derive(Debug)]
struct Tenant {
    name: Arc<str>,
    /// The tenant's quotas; `None` if the tenant is no longer configured. It is then unlimited, and
    /// is removed once none of its consumption counts.
    quotas: Option<Arc<Quotas>>,
    subject: u32,
    /// Number of the tenant's keys that are counted.
    keys: u32,
    /// The tenant's models that are counted. Few models have budgets.
    models: Vec<(Arc<str>, u32)>,
    /// The subject that the tenant shares with other tenants of its namespace.
    shared: u32,
}

impl Tenant {
    /// Returns the tenant's quotas if its requests are counted.
    #[inline]
    fn counted_quotas(&self) -> Option<&Arc<Quotas>> {
        self.quotas.as_ref().filter(|quotas| quotas.counts_requests)
    }
}

/// The counts and limits of all tenants, owned by one thread.
///
/// Times are unix microseconds. A time before the time of an earlier call is replaced by that
/// earlier time, until the limiter is [rolled back](Limiter::roll_back_clock).
#[derive(Debug, Default)]
pub struct Limiter {
    /// The latest time passed by a caller.
    now: u64,
    /// The moment of the last roll-back.
    rolled_back_to: Option<Moment>,
    tenants: Vec<Tenant>,
    vacant_tenants: Vec<TenantId>,
    by_name: HashMap<Arc<str>, TenantId>,
    subjects: Vec<Subject>,
    vacant_subjects: Vec<u32>,
    keys: KeyMap,
    groups: HashMap<SubjectName, Group>,
    changed_subjects: Vec<u32>,
    unrecorded: Vec<Option<Booking>>,
    unrecorded_vacant: Vec<u32>,
    #[expect(
        clippy::vec_box,
        reason = "boxes move between this list and the subjects without being copied"
    )]
    free_windows: Vec<Box<Window>>,
    /// Whether a limit needs counts that are missing in old state files.
    needs_all_counts: bool,
    /// Position at which [`Limiter::sweep`] resumes.
    sweep_position: usize,
}

impl Limiter {
    /// Creates a limiter without tenants.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Replaces all limits and returns the id of each tenant, in the order of `limits`. Counters do
    /// not change. A tenant that is not in `limits` is removed. Counting starts at zero with the
    /// first limit of a tenant or its keys.
    pub fn set_limits(&mut self, limits: &[TenantLimits]) -> Vec<TenantId> {
        self.needs_all_counts = false;
        for tenant in &mut self.tenants {
            tenant.quotas = None;
        }
        let ids = limits.iter().map(|limits| self.set_tenant(limits)).collect();
        for id in (0..self.tenants.len()).map(|id| TenantId(id as u32)) {
            if self.tenants[id.0 as usize].quotas.is_none() {
                self.set_group(id, None);
            }
            self.remove_idle_tenant(id);
        }
        ids
    }

    /// Replaces the limits of one tenant.
    pub fn set_tenant(&mut self, limits: &TenantLimits) -> TenantId {
        let id = match self.by_name.get(&limits.name) {
            Some(id) => *id,
            None => self.add_tenant(&limits.name),
        };
        self.needs_all_counts |= limits.quotas.needs_all_counts;
        let tenant = &mut self.tenants[id.0 as usize];
        tenant.quotas = Some(Arc::clone(&limits.quotas));
        if limits.quotas.counts_requests && tenant.subject == NO_SUBJECT {
            let name = SubjectName {
                tenant: Arc::clone(&tenant.name),
                kind: SubjectKind::Tenant,
            };
            self.tenants[id.0 as usize].subject = self.insert(name);
        }
        self.set_group(id, Some(&limits.quotas));
        id
    }

    /// Removes a tenant that is no longer configured. Its usage is no longer limited. Once none of
    /// its consumption counts, [`Limiter::sweep`] removes its data, and its id can be reused.
    pub fn remove_tenant(&mut self, name: &str) {
        if let Some(id) = self.by_name.get(name).copied() {
            self.tenants[id.0 as usize].quotas = None;
            self.set_group(id, None);
            self.remove_idle_tenant(id);
        }
    }

    /// Removes the data of a removed tenant for which nothing is counted.
    fn remove_idle_tenant(&mut self, id: TenantId) {
        let tenant = &self.tenants[id.0 as usize];
        let counts = tenant.quotas.is_some() || tenant.subject != NO_SUBJECT || tenant.keys > 0;
        let counts = counts || !tenant.models.is_empty();
        if !counts && self.by_name.get(&tenant.name) == Some(&id) {
            self.by_name.remove(&tenant.name);
            self.vacant_tenants.push(id);
        }
    }

    /// Returns the tenant with this name, if it is configured.
    #[inline]
    #[must_use]
    pub fn find(&self, name: &str) -> Option<TenantId> {
        let id = *self.by_name.get(name)?;
        self.tenants[id.0 as usize].quotas.as_ref().map(|_| id)
    }

    fn add_tenant(&mut self, name: &Arc<str>) -> TenantId {
        let tenant = Tenant {
            name: Arc::clone(name),
            quotas: None,
            subject: NO_SUBJECT,
            keys: 0,
            models: Vec::new(),
            shared: NO_SUBJECT,
        };
        let id = match self.vacant_tenants.pop() {
            Some(id) => {
                self.tenants[id.0 as usize] = tenant;
                id
            }
            None => {
                self.tenants.push(tenant);
                TenantId((self.tenants.len() - 1) as u32)
            }
        };
        self.by_name.insert(Arc::clone(name), id);
        id
    }

    /// Admits a request with this maximum usage if it fits all limits of the tenant, the key, the
    /// model and the tenant's namespace; otherwise books nothing. The reservation counts until the
    /// grant is returned with the actual usage. Cost is counted only if a budget limits it. A
    /// budget admits no request of unknown cost.
    ///
    /// # Errors
    /// Returns [`LimitExceeded`] for the limit with the longest wait.
    #[inline]
    pub fn admit<'d>(
        &mut self,
        tenant: TenantId,
        key: CredentialId,
        demand: impl Into<Demand<'d>>,
        now: u64,
    ) -> Result<Grant, LimitExceeded> {
        let demand = demand.into();
        let moment = self.update_time(now);
        let at = tenant.0 as usize;
        let Some(quotas) = self.tenants[at].counted_quotas() else {
            return Ok(Grant {
                tenant: NO_SUBJECT,
                key: NO_SUBJECT,
                model: NO_SUBJECT,
                shared: NO_SUBJECT,
                shared_plan: None,
                unrecorded: NO_SUBJECT,
                admitted_at: self.now,
                moment,
                reserved: ActualUsage::default(),
                money_counted: false,
            });
        };
        let keys_counted = quotas.counts_key_requests;
        let budget = quotas
            .model(demand.model)
            .map(|(name, ceilings)| (Arc::clone(name), *ceilings));
        let money_counted = quotas.money_counted || budget.is_some();
        let cost = match demand.cost {
            _ if !money_counted => 0,
            None => u64::MAX,
            Some(cost) => cost.min(MAX_COST),
        };
        let asked = ActualUsage {
            tokens: demand.tokens,
            cost,
        };
        let tenant = self.tenants[at].subject;
        let key = if keys_counted {
            self.key_subject(at, key)
        } else {
            NO_SUBJECT
        };
        let model = match &budget {
            Some((name, _)) => self.model_subject(at, name),
            None => NO_SUBJECT,
        };
        let limits = self.tenants[at].counted_quotas();
        let tenant_fits = self.subjects[tenant as usize]
            .totals(moment)
            .fits(limits.map_or(&Ceilings::NONE, |limits| &limits.ceilings), asked);
        let key_fits = key == NO_SUBJECT
            || self.subjects[key as usize].totals(moment).fits(
                limits.map_or(&Ceilings::NONE, |limits| &limits.key_ceilings),
                asked,
            );
        let model_fits = budget.as_ref().is_none_or(|(_, ceilings)| {
            let totals = self.subjects[model as usize].totals(moment);
            totals.fits(ceilings, asked)
        });
        let shared_fits = self.fits_shared_limits(at, asked, moment);
        if !(tenant_fits && key_fits && model_fits && shared_fits)
            && let Some(exceeded) = self.exceeded(
                at,
                key,
                (model, budget.map(|(_, ceilings)| ceilings)),
                asked,
                (moment, now),
            )
        {
            return Err(exceeded);
        }
        let booking = Booking {
            tenant,
            key,
            model,
            shared: self.tenants[at].shared,
            at: moment,
            used: ActualUsage {
                tokens: asked.tokens.min(MAX_TOKENS),
                cost,
            },
        };
        self.book(&booking);
        let unrecorded = match self.unrecorded_vacant.pop() {
            Some(free) => {
                self.unrecorded[free as usize] = Some(booking);
                free
            }
            None => {
                self.unrecorded.push(Some(booking));
                (self.unrecorded.len() - 1) as u32
            }
        };
        Ok(Grant {
            tenant,
            key,
            model,
            shared: booking.shared,
            shared_plan: self.plan_of(at),
            unrecorded,
            admitted_at: self.now,
            moment,
            reserved: booking.used,
            money_counted,
        })
    }

    /// Marks the admission's record as appended to the ledger. Do not call
    /// [`Limiter::take_changes`] between the append and this call, because a snapshot must include
    /// exactly the admissions with an earlier record.
    #[inline]
    pub fn mark_recorded(&mut self, grant: &mut Grant) {
        if self.remove_unrecorded(grant) {
            for share in grant.reservations() {
                self.mark_changed(share.subject);
            }
        }
    }

    /// Reserves `cost` again for a request in flight, if `cost` fits all budgets of the request.
    /// Returns whether it fits or no budget counts it. Call this before a retry, because the
    /// provider may have charged for the first attempt.
    pub fn reserve_retry_cost(&mut self, grant: &mut Grant, cost: u64, now: u64) -> bool {
        let moment = self.update_time(now);
        if !grant.money_counted {
            return true;
        }
        let more = ActualUsage {
            tokens: 0,
            cost: cost.min(MAX_COST),
        };
        let booked = self.effective_moment(grant.moment);
        let fits = grant.reservations().into_iter().all(|share| {
            let Some(subject) = self.subjects.get_mut(share.subject as usize) else {
                return true;
            };
            let totals = subject.totals(moment);
            if let Some(group) = self.groups.get(&subject.name) {
                return totals.fits_money(&group.ceilings, more.cost);
            }
            let tenant = self.by_name.get(&subject.name.tenant);
            let quotas = tenant.and_then(|tenant| self.tenants[tenant.0 as usize].counted_quotas());
            let ceilings = quotas.map(|quotas| match &subject.name.kind {
                SubjectKind::Tenant => quotas.ceilings,
                SubjectKind::Key(_) => quotas.key_ceilings,
                SubjectKind::Model(model) => quotas
                    .model(model)
                    .map_or(Ceilings::NONE, |(_, ceilings)| *ceilings),
                SubjectKind::Shared(_) => Ceilings::NONE,
            });
            totals.fits_money(&ceilings.unwrap_or(Ceilings::NONE), more.cost)
        });
        if fits {
            for share in grant.reservations() {
                if let Some(subject) = self.subjects.get_mut(share.subject as usize) {
                    subject.local.add(booked, 0, more);
                    subject.local.reserve(booked, more);
                    self.mark_changed(share.subject);
                }
            }
            grant.reserved.cost = grant.reserved.cost.saturating_add(more.cost);
        }
        fits
    }

    /// Ends a request and replaces its reservation with its actual usage. Usage beyond the
    /// reservation is booked now. The unused part is released in the second in which it was
    /// reserved.
    #[inline]
    pub fn settle(&mut self, mut grant: Grant, used: impl Into<ActualUsage>, now: u64) {
        let moment = self.update_time(now);
        if grant.tenant == NO_SUBJECT {
            return;
        }
        self.remove_unrecorded(&mut grant);
        let used: ActualUsage = used.into();
        let used = used.bookable(grant.money_counted);
        let (unused, beyond) = (grant.reserved.excess_over(used), used.excess_over(grant.reserved));
        let booked = self.effective_moment(grant.moment);
        for share in grant.reservations() {
            self.release_slot(share.subject, |own| {
                own.release(booked, share.counted_usage(grant.reserved));
                own.subtract(booked, 0, share.counted_usage(unused));
                own.subtract_past(grant.moment, 0, share.counted_usage(unused));
            });
            let beyond = share.counted_usage(beyond);
            if beyond != ActualUsage::default() && share.subject != NO_SUBJECT {
                if beyond.tokens > 0 {
                    self.ensure_window(share.subject, moment);
                }
                let own = &mut self.subjects[share.subject as usize].local;
                own.advance(moment);
                own.add(moment, 0, beyond);
            }
        }
    }

    /// Ends a request whose usage is unknown. Its reservation remains booked.
    pub fn keep_reservation(&mut self, mut grant: Grant) {
        self.remove_unrecorded(&mut grant);
        let booked = self.effective_moment(grant.moment);
        for share in grant.reservations() {
            self.release_slot(share.subject, |own| {
                own.release(booked, share.counted_usage(grant.reserved))
            });
        }
    }

    /// Ends a request that used nothing, because it was refused before its admission was recorded.
    /// If `keep_request` is true, it still counts as a request.
    pub fn refund(&mut self, mut grant: Grant, keep_request: bool) {
        self.remove_unrecorded(&mut grant);
        let booked = self.effective_moment(grant.moment);
        for share in grant.reservations() {
            let requests = if keep_request { 0 } else { share.request_count() };
            self.release_slot(share.subject, |own| {
                own.release(booked, share.counted_usage(grant.reserved));
                own.subtract(booked, requests, share.counted_usage(grant.reserved));
                own.subtract_past(grant.moment, requests, share.counted_usage(grant.reserved));
            });
        }
    }

    /// Returns the remaining amounts of a tenant's and a key's limits now, for response headers.
    pub fn limit_status(&mut self, tenant: TenantId, key: CredentialId, now: u64) -> LimitStatus<'_> {
        let moment = self.update_time(now);
        let at = tenant.0 as usize;
        let key = match self.tenants[at].counted_quotas() {
            None => return LimitStatus::new(&[], moment.second),
            Some(quotas) if quotas.counts_key_requests => self.key_subject(at, key),
            Some(_) => NO_SUBJECT,
        };
        let tenant = &self.tenants[at];
        let Some(limits) = tenant.counted_quotas() else {
            return LimitStatus::new(&[], moment.second);
        };
        let mut standing = LimitStatus::new(&limits.rate_limit_policy, moment.second);
        let subject = &mut self.subjects[tenant.subject as usize];
        standing.add(
            Scope::Tenant,
            &limits.ceilings,
            subject.totals(moment),
            subject.span(),
        );
        if key != NO_SUBJECT {
            let subject = &mut self.subjects[key as usize];
            standing.add(
                Scope::Key,
                &limits.key_ceilings,
                subject.totals(moment),
                subject.span(),
            );
        }
        if let Some((_, ceilings)) = &limits.shared
            && let Some(subject) = self.subjects.get_mut(tenant.shared as usize)
        {
            let totals = subject.totals(moment);
            standing.add(Scope::Namespace, ceilings, totals, subject.span());
        }
        standing
    }

    /// Returns the effective time at `now`, in unix microseconds. A request that is admitted now is
    /// admitted at this time.
    pub fn effective_now(&mut self, now: u64) -> u64 {
        self.update_time(now);
        self.now
    }

    /// Rolls back to `now`, in unix microseconds, after the clock was wrong. This releases nothing:
    /// consumption in a future minute, day or month counts in the minute, day and month of `now`.
    pub fn roll_back_clock(&mut self, now: u64) {
        if self.now <= now {
            return;
        }
        self.now = now;
        let moment = Moment::from_micros(now);
        self.rolled_back_to = Some(moment);
        for booking in self.unrecorded.iter_mut().flatten() {
            booking.at = clamp_moment(booking.at, moment);
        }
        for index in 0..self.subjects.len() {
            let subject = &mut self.subjects[index];
            if subject.vacant {
                continue;
            }
            subject.local.backdate(moment);
            if let Some(foreign) = &mut subject.remote {
                foreign.backdate(moment);
            }
            self.mark_changed(index as u32);
        }
    }

    /// Jumps from `from` to `to`, both in unix microseconds, because the clock was set ahead. The
    /// consumption of the days and months that it leaves is stored, because the clock may be wrong
    /// and be set back.
    pub fn jump_forward(&mut self, from: u64, to: u64) {
        let (from, to) = (self.now.max(from), self.now.max(to));
        let (was, moment) = (Moment::from_micros(from), Moment::from_micros(to));
        self.now = to;
        for index in 0..self.subjects.len() {
            let subject = &mut self.subjects[index];
            if subject.vacant {
                continue;
            }
            subject.local.jump_forward(was, moment);
            if let Some(foreign) = &mut subject.remote {
                foreign.jump_forward(was, moment);
            }
            self.mark_changed(index as u32);
        }
    }

    /// Returns the moment at which a booking counts: its own moment, or the moment of the roll-back
    /// if its own moment is in the future.
    fn effective_moment(&self, moment: Moment) -> Moment {
        match self.rolled_back_to {
            Some(turned) if moment.second > self.now / MICROS_PER_SECOND => turned,
            _ => moment,
        }
    }

    /// Returns the quotas of a tenant that is counted.
    pub(crate) fn quotas_of(&self, tenant: TenantId) -> Option<Arc<Quotas>> {
        self.tenants[tenant.0 as usize].counted_quotas().cloned()
    }

    pub(crate) fn totals_of_tenant(&mut self, tenant: TenantId, now: Moment) -> Totals {
        let subject = self.tenants[tenant.0 as usize].subject;
        self.totals_of(subject, now)
    }

    /// Returns the totals of a key; empty for an unknown key.
    pub(crate) fn totals_of_key(&mut self, tenant: TenantId, key: CredentialId, now: Moment) -> Totals {
        let subject = self.keys.get(&(tenant.0, key)).copied();
        self.totals_of(subject.unwrap_or(NO_SUBJECT), now)
    }

    /// Returns the totals of a model; empty for an unknown model.
    pub(crate) fn totals_of_model(&mut self, tenant: TenantId, model: &str, now: Moment) -> Totals {
        let models = &self.tenants[tenant.0 as usize].models;
        let subject = models.iter().find(|(name, _)| **name == *model);
        self.totals_of(subject.map_or(NO_SUBJECT, |(_, subject)| *subject), now)
    }

    fn totals_of(&mut self, subject: u32, now: Moment) -> Totals {
        let subject = self.subjects.get_mut(subject as usize);
        subject.map(|subject| subject.totals(now)).unwrap_or_default()
    }

    /// Returns the number of tenants, keys, models and namespaces with shared limits that are
    /// counted now.
    #[must_use]
    pub fn subject_count(&self) -> usize {
        self.subjects.len() - self.vacant_subjects.len()
    }

    /// Advances to `now` and returns the effective moment.
    #[inline]
    fn update_time(&mut self, now: u64) -> Moment {
        self.now = self.now.max(now);
        Moment::from_micros(self.now)
    }

    fn insert(&mut self, name: SubjectName) -> u32 {
        match self.vacant_subjects.pop() {
            Some(index) => {
                self.subjects[index as usize] = Subject::new(name);
                index
            }
            None => {
                self.subjects.push(Subject::new(name));
                (self.subjects.len() - 1) as u32
            }
        }
    }

    #[inline]
    fn key_subject(&mut self, tenant: usize, key: CredentialId) -> u32 {
        let at = (tenant as u32, key);
        if let Some(index) = self.keys.get(&at) {
            return *index;
        }
        let name = SubjectName {
            tenant: Arc::clone(&self.tenants[tenant].name),
            kind: SubjectKind::Key(key),
        };
        let index = self.insert(name);
        self.keys.insert(at, index);
        self.tenants[tenant].keys += 1;
        index
    }

    #[inline]
    fn model_subject(&mut self, tenant: usize, model: &Arc<str>) -> u32 {
        let known = self.tenants[tenant].models.iter();
        if let Some((_, index)) = known.into_iter().find(|(name, _)| name == model) {
            return *index;
        }
        let name = SubjectName {
            tenant: Arc::clone(&self.tenants[tenant].name),
            kind: SubjectKind::Model(Arc::clone(model)),
        };
        let index = self.insert(name);
        self.tenants[tenant].models.push((Arc::clone(model), index));
        index
    }

    #[inline]
    fn mark_changed(&mut self, index: u32) {
        if let Some(subject) = self.subjects.get_mut(index as usize)
            && !subject.changed
        {
            subject.changed = true;
            self.changed_subjects.push(index);
        }
    }

    #[inline]
    fn book(&mut self, booking: &Booking) {
        for share in booking.reservations() {
            if share.subject == NO_SUBJECT {
                continue;
            }
            if share.request_count() > 0 {
                self.ensure_window(share.subject, booking.at);
            }
            let own = &mut self.subjects[share.subject as usize].local;
            own.in_flight += 1;
            own.add(
                booking.at,
                share.request_count(),
                share.counted_usage(booking.used),
            );
            own.reserve(booking.at, share.counted_usage(booking.used));
            self.mark_changed(share.subject);
        }
    }

    #[inline]
    fn ensure_window(&mut self, index: u32, at: Moment) {
        let own = &mut self.subjects[index as usize].local;
        if own.window.is_none() {
            own.window = Some(take_window(&mut self.free_windows, at.second));
        }
    }

    /// Releases the request's concurrency slot and applies `settle` to the subject's consumption.
    #[inline]
    fn release_slot(&mut self, index: u32, settle: impl FnOnce(&mut Consumption)) {
        if let Some(subject) = self.subjects.get_mut(index as usize) {
            subject.local.in_flight = subject.local.in_flight.saturating_sub(1);
            settle(&mut subject.local);
            self.mark_changed(index);
        }
    }

    #[inline]
    fn remove_unrecorded(&mut self, grant: &mut Grant) -> bool {
        let index = std::mem::replace(&mut grant.unrecorded, NO_SUBJECT);
        match self.unrecorded.get_mut(index as usize) {
            Some(entry) => {
                *entry = None;
                self.unrecorded_vacant.push(index);
                true
            }
            None => false,
        }
    }

    #[cold]
    fn exceeded(
        &mut self,
        tenant: usize,
        key: u32,
        (model, budget): (u32, Option<Ceilings>),
        asked: ActualUsage,
        time: (Moment, u64),
    ) -> Option<LimitExceeded> {
        let of_namespace = self.exceeded_shared_limit(tenant, asked, time);
        let tenant = &self.tenants[tenant];
        let limits = tenant.counted_quotas()?;
        let subject = &mut self.subjects[tenant.subject as usize];
        let totals = subject.totals(time.0);
        let of_tenant = subject.exceeded_limit(Scope::Tenant, &limits.ceilings, &totals, asked, time);
        let of_key = self.subjects.get_mut(key as usize).and_then(|subject| {
            let totals = subject.totals(time.0);
            subject.exceeded_limit(Scope::Key, &limits.key_ceilings, &totals, asked, time)
        });
        let of_model = self.subjects.get_mut(model as usize).and_then(|subject| {
            let totals = subject.totals(time.0);
            subject.exceeded_limit(Scope::Model, &budget?, &totals, asked, time)
        });
        let found = [of_tenant, of_key, of_model, of_namespace].into_iter().flatten();
        found.reduce(|longest, next| {
            if has_longer_wait(&next, &longest) {
                next
            } else {
                longest
            }
        })
    }
}

/// Returns the earlier moment of `moment` and `latest`.
fn clamp_moment(moment: Moment, latest: Moment) -> Moment {
    match moment.second > latest.second {
        true => latest,
        false => moment,
    }
}

/// Returns an empty window at `second`, either a spare window or a new one.
#[expect(
    clippy::vec_box,
    reason = "boxes move between this list and the subjects without being copied"
)]
fn take_window(spare: &mut Vec<Box<Window>>, second: u64) -> Box<Window> {
    match spare.pop() {
        Some(mut window) => {
            window.reset(second);
            window
        }
        None => Box::new(Window::new(second)),
    }
}
