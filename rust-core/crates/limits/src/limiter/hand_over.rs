//! The limiter's side of the hand-over: what it tells and what it is told. And forgetting.

use super::grant::{Booking, LimitReservation, NONE};
use super::{Limiter, TenantId, spare_window};
use crate::snapshot::{Change, Changes};
use crate::subject::Subject;
use crate::usage::{Part, SubjectName, Usage};
use crate::window::Window;
use std::sync::Arc;

/// Spare windows that are kept for the next subjects that wake up.
const SPARE_WINDOWS: usize = 4096;

impl Limiter {
    /// Replaces what other origins have consumed together, for each subject named; see [`crate::Foreign`]. Subjects that
    /// have no limits here are passed over: after [`Limiter::set_limits`], ask for everything again.
    pub fn absorb(&mut self, foreign: &[(SubjectName, Usage)], now: u64) {
        let moment = self.tell(now);
        for (name, usage) in foreign {
            let Some(index) = self.counted_here(name) else {
                continue;
            };
            let subject = &mut self.subjects[index as usize];
            if usage.is_empty() {
                let window = subject.foreign.take().and_then(|gone| gone.window);
                self.spare.extend(window);
                continue;
            }
            let foreign = subject.foreign.get_or_insert_default();
            if usage.seconds.is_empty() {
                self.spare.extend(foreign.window.take());
            } else if foreign.window.is_none() {
                foreign.window = Some(spare_window(&mut self.spare, moment.second));
            }
            foreign.replace(usage, moment.second);
        }
    }

    /// The subject of a name, if it has limits here.
    fn counted_here(&mut self, name: &SubjectName) -> Option<u32> {
        if let Part::Shared(_) = name.part {
            return self.groups.get(name).map(|group| group.subject);
        }
        let TenantId(id) = self.by_name.get(&*name.tenant).copied()?;
        let tenant = &self.tenants[id as usize];
        let quotas = tenant.counted()?;
        match &name.part {
            Part::Whole => Some(tenant.subject),
            Part::Key(key) if quotas.keys_counted => Some(self.key_subject(id as usize, *key)),
            Part::Model(model) => {
                let model = Arc::clone(&quotas.model(model)?.0);
                Some(self.model_subject(id as usize, &model))
            }
            Part::Key(_) | Part::Shared(_) => None,
        }
    }

    /// Writes down the own consumption of all subjects that changed since the last call. `through_seq` is the number of
    /// records appended to the ledger so far. What is admitted and not recorded yet is left out, so that the snapshot and
    /// the records from `through_seq` on have nothing in common.
    pub fn take_changes(&mut self, through_seq: u64, now: u64, changes: &mut Changes) {
        let moment = self.tell(now);
        (changes.through_seq, changes.at) = (through_seq, self.now);
        changes.all_counts = self.all_counts;
        changes.entries.clear();
        changes.seconds.clear();
        for index in &self.changed {
            self.subjects[*index as usize].own.advance(moment);
        }
        self.for_unrecorded(Self::unbook);
        for index in self.changed.drain(..) {
            let subject = &mut self.subjects[index as usize];
            subject.changed = false;
            let start = changes.seconds.len();
            changes.seconds.extend(subject.own.seconds());
            changes.entries.push(Change {
                name: subject.name.clone(),
                usage: subject.own.without_seconds(),
                seconds: start..changes.seconds.len(),
            });
        }
        self.for_unrecorded(Self::rebook);
    }

    /// Looks at the next `budget` subjects and forgets those of keys, and of tenants that were removed, whose windows are
    /// empty and whose day is over or unused. Call it about once a second.
    pub fn sweep(&mut self, budget: usize, now: u64) {
        let moment = self.tell(now);
        for _ in 0..budget.min(self.subjects.len()) {
            self.swept = (self.swept + 1) % self.subjects.len();
            let subject = &mut self.subjects[self.swept];
            if subject.vacant {
                continue;
            }
            subject.own.advance(moment);
            if subject.own.window.as_deref().is_some_and(Window::is_empty) {
                self.spare.extend(subject.own.window.take());
            }
            if let Some(foreign) = &mut subject.foreign {
                foreign.advance(moment);
                if foreign.is_idle() {
                    self.spare.extend(foreign.window.take());
                    subject.foreign = None;
                }
            }
            if subject.own.is_idle() && subject.foreign.is_none() && !subject.changed {
                self.forget_idle(self.swept as u32);
            }
        }
        self.spare.truncate(SPARE_WINDOWS);
    }

    /// Forgets a subject of which nothing counts, unless it is that of a tenant that is configured.
    fn forget_idle(&mut self, index: u32) {
        let name = &self.subjects[index as usize].name;
        if let Part::Shared(_) = name.part {
            let name = name.clone();
            if !self.forget_group(&name) {
                return;
            }
        } else if let Some(id) = self.by_name.get(&name.tenant).copied() {
            let tenant = &mut self.tenants[id.0 as usize];
            match &name.part {
                Part::Key(key) => {
                    self.keys.remove(&(id.0, *key));
                    tenant.keys = tenant.keys.saturating_sub(1);
                }
                Part::Model(_) => tenant.models.retain(|(_, subject)| *subject != index),
                Part::Shared(_) => {}
                Part::Whole if tenant.quotas.is_some() => return,
                Part::Whole => tenant.subject = NONE,
            }
            self.forget_tenant(id);
        }
        self.subjects[index as usize].vacant = true;
        self.vacant.push(index);
    }

    fn for_unrecorded(&mut self, each: impl Fn(&mut Subject, &Booking, LimitReservation)) {
        for booking in self.unrecorded.iter().flatten() {
            for share in booking.shares() {
                if let Some(subject) = self.subjects.get_mut(share.subject as usize) {
                    each(subject, booking, share);
                }
            }
        }
    }

    fn unbook(subject: &mut Subject, booking: &Booking, share: LimitReservation) {
        subject.own.in_flight = subject.own.in_flight.saturating_sub(1);
        subject
            .own
            .take(booking.at, share.requests(), share.of(booking.used));
    }

    fn rebook(subject: &mut Subject, booking: &Booking, share: LimitReservation) {
        subject.own.in_flight += 1;
        subject
            .own
            .add(booking.at, share.requests(), share.of(booking.used));
    }
}
