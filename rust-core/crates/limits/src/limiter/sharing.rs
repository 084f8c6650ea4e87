//! Limits shared by the tenants of one namespace with the same plan.

use super::grant::NO_SUBJECT;
use super::group::Group;
use super::{Limiter, TenantId};
use crate::config::Ceilings;
use crate::demand::ActualUsage;
use crate::limit_exceeded::{LimitExceeded, Scope};
use crate::moment::Moment;
use crate::quotas::Quotas;
use crate::subject::Totals;
use crate::usage::SubjectName;
use std::sync::Arc;

impl Limiter {
    /// Moves a tenant from its previous group into the group that its quotas name.
    pub(super) fn set_group(&mut self, id: TenantId, quotas: Option<&Quotas>) {
        let at = id.0 as usize;
        let before = std::mem::replace(&mut self.tenants[at].shared, NO_SUBJECT);
        let shared = quotas.and_then(|quotas| quotas.shared.as_ref());
        if let Some((plan, ceilings)) = shared
            && let Some(name) = SubjectName::for_shared(&self.tenants[at].name, plan)
        {
            self.tenants[at].shared = self.join(name, *ceilings);
        }
        self.leave(before);
    }

    fn join(&mut self, name: SubjectName, ceilings: Ceilings) -> u32 {
        if let Some(group) = self.groups.get_mut(&name) {
            group.join(ceilings);
            return group.subject;
        }
        let subject = self.insert(name.clone());
        self.groups.insert(name, Group::new(subject, ceilings));
        subject
    }

    fn leave(&mut self, subject: u32) {
        if let Some(subject) = self.subjects.get(subject as usize)
            && let Some(group) = self.groups.get_mut(&subject.name)
        {
            group.leave();
        }
    }

    /// Removes a group without tenants. Returns whether the group no longer exists.
    pub(super) fn remove_group_if_idle(&mut self, name: &SubjectName) -> bool {
        let is_empty = self.groups.get(name).is_none_or(Group::is_empty);
        if is_empty {
            self.groups.remove(name);
        }
        is_empty
    }

    /// Returns the plan whose limits the tenant shares; `None` if it shares no limits.
    #[inline]
    pub(super) fn plan_of(&self, tenant: usize) -> Option<Arc<str>> {
        if self.tenants[tenant].shared == NO_SUBJECT {
            return None;
        }
        let (plan, _) = self.tenants[tenant].counted_quotas()?.shared.as_ref()?;
        Some(Arc::clone(plan))
    }

    /// Returns whether a request fits the limits shared by its tenant's namespace.
    #[inline]
    pub(super) fn fits_shared_limits(&mut self, tenant: usize, asked: ActualUsage, now: Moment) -> bool {
        let Some(subject) = self.subjects.get_mut(self.tenants[tenant].shared as usize) else {
            return true;
        };
        let quotas = self.tenants[tenant].quotas.as_deref();
        let shared = quotas.and_then(|quotas| quotas.shared.as_ref());
        shared.is_none_or(|(_, ceilings)| subject.totals(now).fits(ceilings, asked))
    }

    /// Returns the shared limit with the longest wait.
    pub(super) fn exceeded_shared_limit(
        &mut self,
        tenant: usize,
        asked: ActualUsage,
        time: (Moment, u64),
    ) -> Option<LimitExceeded> {
        let subject = self.subjects.get_mut(self.tenants[tenant].shared as usize)?;
        let (_, ceilings) = self.tenants[tenant].quotas.as_deref()?.shared.as_ref()?;
        let totals = subject.totals(time.0);
        subject.exceeded_limit(Scope::Namespace, ceilings, &totals, asked, time)
    }

    /// Returns the total usage of the tenants that share limits with this tenant; `None` if the
    /// tenant shares no limits.
    pub(crate) fn shared_totals(&mut self, tenant: TenantId, now: Moment) -> Option<Totals> {
        let subject = self.tenants[tenant.0 as usize].shared;
        let subject = self.subjects.get_mut(subject as usize)?;
        Some(subject.totals(now))
    }
}
