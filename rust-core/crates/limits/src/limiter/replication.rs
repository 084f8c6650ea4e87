//! The limiter's side of the hand-over: publishing changes, applying the changes of other workers,
//! and removing idle subjects.

use super::grant::{Booking, LimitReservation, NO_SUBJECT};
use super::{Limiter, TenantId, take_window};
use crate::snapshot::{Change, Changes};
use crate::subject::Subject;
use crate::usage::{SubjectKind, SubjectName, Usage};
use crate::window::Window;
use std::sync::Arc;

/// The maximum number of spare windows for subjects that become active.
const MAX_FREE_WINDOWS: usize = 4096;

impl Limiter {
    /// Replaces the total consumption of other origins for each named subject; see
    /// [`crate::RemoteSnapshots`]. Subjects without limits in this limiter are skipped, so request
    /// all sums again after [`Limiter::set_limits`].
    pub fn apply_remote(&mut self, foreign: &[(SubjectName, Usage)], now: u64) {
        let moment = self.update_time(now);
        for (name, usage) in foreign {
            let Some(index) = self.local_subject(name) else {
                continue;
            };
            let subject = &mut self.subjects[index as usize];
            if usage.is_empty() {
                let window = subject.remote.take().and_then(|gone| gone.window);
                self.free_windows.extend(window);
                continue;
            }
            let foreign = subject.remote.get_or_insert_default();
            if usage.seconds.is_empty() {
                self.free_windows.extend(foreign.window.take());
            } else if foreign.window.is_none() {
                foreign.window = Some(take_window(&mut self.free_windows, moment.second));
            }
            foreign.replace(usage, moment.second);
        }
    }

    /// Returns the subject with this name, if it has limits in this limiter.
    fn local_subject(&mut self, name: &SubjectName) -> Option<u32> {
        if let SubjectKind::Shared(_) = name.kind {
            return self.groups.get(name).map(|group| group.subject);
        }
        let TenantId(id) = self.by_name.get(&*name.tenant).copied()?;
        let tenant = &self.tenants[id as usize];
        let quotas = tenant.counted_quotas()?;
        match &name.kind {
            SubjectKind::Tenant => Some(tenant.subject),
            SubjectKind::Key(key) if quotas.counts_key_requests => Some(self.key_subject(id as usize, *key)),
            SubjectKind::Model(model) => {
                let model = Arc::clone(&quotas.model(model)?.0);
                Some(self.model_subject(id as usize, &model))
            }
            SubjectKind::Key(_) | SubjectKind::Shared(_) => None,
        }
    }

    /// Writes to `changes` the own consumption of all subjects that changed since the last call.
    /// `through_seq` is the number of records appended to the ledger so far. Requests that are
    /// admitted but not recorded yet are omitted, so that the snapshot and the records from
    /// `through_seq` on do not overlap.
    pub fn take_changes(&mut self, through_seq: u64, now: u64, changes: &mut Changes) {
        let moment = self.update_time(now);
        (changes.through_seq, changes.taken_at) = (through_seq, self.now);
        changes.needs_all_counts = self.needs_all_counts;
        changes.entries.clear();
        changes.seconds.clear();
        for index in &self.changed_subjects {
            self.subjects[*index as usize].local.advance(moment);
        }
        self.for_each_unrecorded(Self::unbook);
        for index in self.changed_subjects.drain(..) {
            let subject = &mut self.subjects[index as usize];
            subject.changed = false;
            let start = changes.seconds.len();
            changes.seconds.extend(subject.local.seconds());
            changes.entries.push(Change {
                name: subject.name.clone(),
                usage: subject.local.without_seconds(),
                seconds: start..changes.seconds.len(),
            });
        }
        self.for_each_unrecorded(Self::rebook);
    }

    /// Checks the next `budget` subjects, and removes subjects of keys and of removed tenants whose
    /// windows are empty and whose day is over or unused. Call this about once a second.
    pub fn sweep(&mut self, budget: usize, now: u64) {
        let moment = self.update_time(now);
        for _ in 0..budget.min(self.subjects.len()) {
            self.sweep_position = (self.sweep_position + 1) % self.subjects.len();
            let subject = &mut self.subjects[self.sweep_position];
            if subject.vacant {
                continue;
            }
            subject.local.advance(moment);
            if subject.local.window.as_deref().is_some_and(Window::is_empty) {
                self.free_windows.extend(subject.local.window.take());
            }
            if let Some(foreign) = &mut subject.remote {
                foreign.advance(moment);
                if foreign.is_idle() {
                    self.free_windows.extend(foreign.window.take());
                    subject.remote = None;
                }
            }
            if subject.local.is_idle() && subject.remote.is_none() && !subject.changed {
                self.remove_if_idle(self.sweep_position as u32);
            }
        }
        self.free_windows.truncate(MAX_FREE_WINDOWS);
    }

    /// Removes a subject for which nothing counts, unless it belongs to a configured tenant.
    fn remove_if_idle(&mut self, index: u32) {
        let name = &self.subjects[index as usize].name;
        if let SubjectKind::Shared(_) = name.kind {
            let name = name.clone();
            if !self.remove_group_if_idle(&name) {
                return;
            }
        } else if let Some(id) = self.by_name.get(&name.tenant).copied() {
            let tenant = &mut self.tenants[id.0 as usize];
            match &name.kind {
                SubjectKind::Key(key) => {
                    self.keys.remove(&(id.0, *key));
                    tenant.keys = tenant.keys.saturating_sub(1);
                }
                SubjectKind::Model(_) => tenant.models.retain(|(_, subject)| *subject != index),
                SubjectKind::Shared(_) => {}
                SubjectKind::Tenant if tenant.quotas.is_some() => return,
                SubjectKind::Tenant => tenant.subject = NO_SUBJECT,
            }
            self.remove_idle_tenant(id);
        }
        self.subjects[index as usize].vacant = true;
        self.vacant_subjects.push(index);
    }

    fn for_each_unrecorded(&mut self, each: impl Fn(&mut Subject, &Booking, LimitReservation)) {
        for booking in self.unrecorded.iter().flatten() {
            for share in booking.reservations() {
                if let Some(subject) = self.subjects.get_mut(share.subject as usize) {
                    each(subject, booking, share);
                }
            }
        }
    }

    fn unbook(subject: &mut Subject, booking: &Booking, share: LimitReservation) {
        subject.local.in_flight = subject.local.in_flight.saturating_sub(1);
        subject.local.subtract(
            booking.at,
            share.request_count(),
            share.counted_usage(booking.used),
        );
    }

    fn rebook(subject: &mut Subject, booking: &Booking, share: LimitReservation) {
        subject.local.in_flight += 1;
        subject.local.add(
            booking.at,
            share.request_count(),
            share.counted_usage(booking.used),
        );
    }
}
