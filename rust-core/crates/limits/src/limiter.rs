//! The table of all subjects, owned by one thread.

mod grant;
mod hand_over;
mod keys;

pub use grant::Grant;

use crate::config::{Ceilings, CredentialId, Quotas, TenantLimits};
use crate::exceeded::{Exceeded, Scope};
use crate::snapshot::SubjectName;
use crate::standing::Standing;
use crate::subject::{Consumption, Moment, Subject, waits_longer};
use crate::window::Window;
use grant::Booking;
use keys::KeyMap;
use std::collections::HashMap;
use std::sync::Arc;

/// The most tokens that are booked for one request, so that sums stay far from their ends. No model answers with as many.
pub const MAX_TOKENS: u64 = 1 << 40;

const NONE: u32 = u32::MAX;

/// A tenant of a limiter; the same for the same name across [`Limiter::set_limits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TenantId(u32);

#[derive(Debug)]
struct Tenant {
    name: Arc<str>,
    /// `None` when it is not configured any more: then it is unlimited, and forgotten when nothing of it counts.
    quotas: Option<Arc<Quotas>>,
    subject: u32,
    /// Keys of it that are counted.
    keys: u32,
}

impl Tenant {
    /// Its quotas, if its requests are counted at all.
    #[inline]
    fn counted(&self) -> Option<&Arc<Quotas>> {
        self.quotas.as_ref().filter(|quotas| quotas.counted)
    }
}

/// Counts and limits. One thread owns it.
///
/// Times are unix microseconds; a time before an earlier call's counts as the earlier one.
#[derive(Debug, Default)]
pub struct Limiter {
    /// The latest time that was told.
    now: u64,
    tenants: Vec<Tenant>,
    vacant_tenants: Vec<TenantId>,
    by_name: HashMap<Arc<str>, TenantId>,
    subjects: Vec<Subject>,
    vacant: Vec<u32>,
    keys: KeyMap,
    changed: Vec<u32>,
    unrecorded: Vec<Option<Booking>>,
    unrecorded_vacant: Vec<u32>,
    #[expect(clippy::vec_box, reason = "the boxes move between here and subjects")]
    spare: Vec<Box<Window>>,
    /// Where [`Limiter::sweep`] goes on.
    swept: usize,
}

impl Limiter {
    /// A limiter that knows no tenant.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Replaces all limits and returns the id of each tenant, in the order given. Counters stay; a tenant that is not
    /// named any more is removed. Counting begins with a tenant's or its keys' first limit, from zero.
    pub fn set_limits(&mut self, limits: &[TenantLimits]) -> Vec<TenantId> {
        for tenant in &mut self.tenants {
            tenant.quotas = None;
        }
        let ids = limits.iter().map(|limits| self.set_tenant(limits)).collect();
        for id in 0..self.tenants.len() {
            self.forget_tenant(TenantId(id as u32));
        }
        ids
    }

    /// Replaces the limits of one tenant.
    pub fn set_tenant(&mut self, limits: &TenantLimits) -> TenantId {
        let id = match self.by_name.get(&limits.name) {
            Some(id) => *id,
            None => self.add_tenant(&limits.name),
        };
        let tenant = &mut self.tenants[id.0 as usize];
        tenant.quotas = Some(Arc::clone(&limits.quotas));
        if limits.quotas.counted && tenant.subject == NONE {
            let name = SubjectName {
                tenant: Arc::clone(&tenant.name),
                key: None,
            };
            self.tenants[id.0 as usize].subject = self.insert(name);
        }
        id
    }

    /// A tenant is not configured any more. What it still uses is not limited; when nothing of it counts,
    /// [`Limiter::sweep`] forgets it, and its id can become another one's.
    pub fn remove_tenant(&mut self, name: &str) {
        if let Some(id) = self.by_name.get(name).copied() {
            self.tenants[id.0 as usize].quotas = None;
            self.forget_tenant(id);
        }
    }

    /// Forgets a tenant that was removed and of which nothing is counted.
    fn forget_tenant(&mut self, id: TenantId) {
        let tenant = &self.tenants[id.0 as usize];
        let counts = tenant.quotas.is_some() || tenant.subject != NONE || tenant.keys > 0;
        if !counts && self.by_name.get(&tenant.name) == Some(&id) {
            self.by_name.remove(&tenant.name);
            self.vacant_tenants.push(id);
        }
    }

    /// The tenant with this name, if it is configured.
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
            subject: NONE,
            keys: 0,
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

    /// Admits a request that uses at most `tokens` (prompt and answer), if it fits all limits of the tenant and the key;
    /// otherwise nothing is booked. The tokens count from now on, until the grant comes back with what was used.
    ///
    /// # Errors
    /// [`Exceeded`] for the limit that keeps the request out longest.
    #[inline]
    pub fn admit(
        &mut self,
        tenant: TenantId,
        key: CredentialId,
        tokens: u64,
        now: u64,
    ) -> Result<Grant, Exceeded> {
        let moment = self.tell(now);
        let at = tenant.0 as usize;
        let Some(keys_counted) = self.tenants[at].counted().map(|quotas| quotas.keys_counted) else {
            return Ok(Grant {
                tenant: NONE,
                key: NONE,
                unrecorded: NONE,
                at: self.now,
                moment,
                reserved: 0,
            });
        };
        let (tenant, key) = (
            self.tenants[at].subject,
            if keys_counted {
                self.key_subject(at, key)
            } else {
                NONE
            },
        );
        let limits = self.tenants[at].counted();
        let tenant_fits = self.subjects[tenant as usize]
            .totals(moment)
            .fit(limits.map_or(&Ceilings::NONE, |limits| &limits.ceilings), tokens);
        let key_fits = key == NONE
            || self.subjects[key as usize].totals(moment).fit(
                limits.map_or(&Ceilings::NONE, |limits| &limits.key_ceilings),
                tokens,
            );
        if !(tenant_fits && key_fits)
            && let Some(exceeded) = self.exceeded(at, key, tokens, (moment, now))
        {
            return Err(exceeded);
        }
        let booking = Booking {
            tenant,
            key,
            at: moment,
            tokens: tokens.min(MAX_TOKENS),
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
            unrecorded,
            at: self.now,
            moment,
            reserved: booking.tokens,
        })
    }

    /// Says that the admission's record has been appended to the ledger. Call it with no
    /// [`Limiter::take_changes`] between: a snapshot says of each record whether it is in it.
    #[inline]
    pub fn recorded(&mut self, grant: &mut Grant) {
        if self.forget_unrecorded(grant) {
            self.change(grant.tenant);
            self.change(grant.key);
        }
    }

    /// Ends a request that used so many tokens: they replace its reservation. What was used beyond it is booked now;
    /// what was not used is given back in the second in which it was reserved.
    #[inline]
    pub fn settle(&mut self, mut grant: Grant, used: u64, now: u64) {
        let moment = self.tell(now);
        if grant.tenant == NONE {
            return;
        }
        self.forget_unrecorded(&mut grant);
        let used = used.min(MAX_TOKENS);
        let unused = grant.reserved.saturating_sub(used);
        let beyond = used.saturating_sub(grant.reserved);
        for index in [grant.tenant, grant.key] {
            self.end(index, |own| own.take(grant.moment, 0, unused));
            if beyond > 0 && index != NONE {
                self.ensure_window(index, moment);
                let own = &mut self.subjects[index as usize].own;
                own.advance(moment);
                own.add(moment, 0, beyond);
            }
        }
    }

    /// Ends a request of which nobody knows what it used: its reservation stands.
    pub fn keep(&mut self, mut grant: Grant) {
        self.forget_unrecorded(&mut grant);
        for index in [grant.tenant, grant.key] {
            self.end(index, |_| {});
        }
    }

    /// Ends a request that used no tokens because it was refused after all, before its admission was recorded. With
    /// `keep_request` it still counts as a request.
    pub fn refund(&mut self, mut grant: Grant, keep_request: bool) {
        self.forget_unrecorded(&mut grant);
        for index in [grant.tenant, grant.key] {
            self.end(index, |own| {
                own.take(grant.moment, u32::from(!keep_request), grant.reserved)
            });
        }
    }

    /// What is left to a tenant and a key now, for the headers of an answer.
    pub fn standing(&mut self, tenant: TenantId, key: CredentialId, now: u64) -> Standing<'_> {
        let moment = self.tell(now);
        let at = tenant.0 as usize;
        let key = match self.tenants[at].counted() {
            None => return Standing::new(&[], moment.second),
            Some(quotas) if quotas.keys_counted => self.key_subject(at, key),
            Some(_) => NONE,
        };
        let tenant = &self.tenants[at];
        let Some(limits) = tenant.counted() else {
            return Standing::new(&[], moment.second);
        };
        let mut standing = Standing::new(&limits.policies, moment.second);
        let subject = &mut self.subjects[tenant.subject as usize];
        standing.add(
            Scope::Tenant,
            &limits.ceilings,
            subject.totals(moment),
            subject.span(),
        );
        if key != NONE {
            let subject = &mut self.subjects[key as usize];
            standing.add(
                Scope::Key,
                &limits.key_ceilings,
                subject.totals(moment),
                subject.span(),
            );
        }
        standing
    }

    /// Number of tenants and keys that are counted now.
    #[must_use]
    pub fn subjects(&self) -> usize {
        self.subjects.len() - self.vacant.len()
    }

    /// Takes note of the time and returns the moment that counts.
    #[inline]
    fn tell(&mut self, now: u64) -> Moment {
        self.now = self.now.max(now);
        Moment::of_micros(self.now)
    }

    fn insert(&mut self, name: SubjectName) -> u32 {
        match self.vacant.pop() {
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
            key: Some(key),
        };
        let index = self.insert(name);
        self.keys.insert(at, index);
        self.tenants[tenant].keys += 1;
        index
    }

    #[inline]
    fn change(&mut self, index: u32) {
        if let Some(subject) = self.subjects.get_mut(index as usize)
            && !subject.changed
        {
            subject.changed = true;
            self.changed.push(index);
        }
    }

    #[inline]
    fn book(&mut self, booking: &Booking) {
        for index in [booking.tenant, booking.key] {
            if index == NONE {
                continue;
            }
            self.ensure_window(index, booking.at);
            let own = &mut self.subjects[index as usize].own;
            own.in_flight += 1;
            own.add(booking.at, 1, booking.tokens);
            self.change(index);
        }
    }

    #[inline]
    fn ensure_window(&mut self, index: u32, at: Moment) {
        let own = &mut self.subjects[index as usize].own;
        if own.window.is_none() {
            own.window = Some(spare_window(&mut self.spare, at.second));
        }
    }

    /// Frees the place of a request and lets `settle` say what becomes of its consumption.
    #[inline]
    fn end(&mut self, index: u32, settle: impl FnOnce(&mut Consumption)) {
        if let Some(subject) = self.subjects.get_mut(index as usize) {
            subject.own.in_flight = subject.own.in_flight.saturating_sub(1);
            settle(&mut subject.own);
            self.change(index);
        }
    }

    #[inline]
    fn forget_unrecorded(&mut self, grant: &mut Grant) -> bool {
        let index = std::mem::replace(&mut grant.unrecorded, NONE);
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
    fn exceeded(&mut self, tenant: usize, key: u32, tokens: u64, time: (Moment, u64)) -> Option<Exceeded> {
        let tenant = &self.tenants[tenant];
        let limits = tenant.counted()?;
        let subject = &mut self.subjects[tenant.subject as usize];
        let totals = subject.totals(time.0);
        let of_tenant = subject.exceeded(Scope::Tenant, &limits.ceilings, &totals, tokens, time);
        let of_key = self.subjects.get_mut(key as usize).and_then(|subject| {
            let totals = subject.totals(time.0);
            subject.exceeded(Scope::Key, &limits.key_ceilings, &totals, tokens, time)
        });
        match (of_tenant, of_key) {
            (Some(tenant), Some(key)) if waits_longer(&key, &tenant) => Some(key),
            (of_tenant, of_key) => of_tenant.or(of_key),
        }
    }
}

/// A spare window or a new one, empty, at `second`.
#[expect(clippy::vec_box, reason = "the boxes move between here and subjects")]
fn spare_window(spare: &mut Vec<Box<Window>>, second: u64) -> Box<Window> {
    match spare.pop() {
        Some(mut window) => {
            window.restart(second);
            window
        }
        None => Box::new(Window::new(second)),
    }
}
