//! Whose question is answered next.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Questions that wait: of each tenant one is answered at a time, in the order in which they came, and tenants take turns.
pub(super) struct Turns<Q> {
    waiting: Mutex<Waiting<Q>>,
    changed: Condvar,
    most: usize,
}

struct Waiting<Q> {
    /// Of each tenant that has one waiting or being answered.
    questions: HashMap<Arc<str>, VecDeque<Q>>,
    /// The tenants that have one waiting and none being answered, the next one first.
    next: VecDeque<Arc<str>>,
    /// How many wait.
    count: usize,
    closed: bool,
}

/// No more may wait, or nobody answers any more.
#[derive(Debug)]
pub(super) struct Refused;

impl<Q> Turns<Q> {
    /// For at most so many questions.
    pub(super) fn new(most: usize) -> Self {
        Turns {
            waiting: Mutex::new(Waiting {
                questions: HashMap::new(),
                next: VecDeque::new(),
                count: 0,
                closed: false,
            }),
            changed: Condvar::new(),
            most,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting<Q>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a question of a tenant.
    ///
    /// # Errors
    /// [`Refused`].
    pub(super) fn add(&self, tenant: &Arc<str>, question: Q) -> Result<(), Refused> {
        let mut waiting = self.lock();
        if waiting.closed || waiting.count == self.most {
            return Err(Refused);
        }
        waiting.count += 1;
        match waiting.questions.get_mut(tenant) {
            Some(questions) => questions.push_back(question),
            None => {
                let questions = VecDeque::from([question]);
                waiting.questions.insert(Arc::clone(tenant), questions);
                waiting.next.push_back(Arc::clone(tenant));
                self.changed.notify_one();
            }
        }
        Ok(())
    }

    /// Waits for the next question; its tenant has no other turn until [`Turns::answered`]. `None` once nobody asks any more.
    pub(super) fn take(&self) -> Option<(Arc<str>, Q)> {
        let mut waiting = self.lock();
        loop {
            if waiting.closed {
                return None;
            }
            if let Some(tenant) = waiting.next.pop_front()
                && let Some(question) = waiting.questions.get_mut(&tenant).and_then(VecDeque::pop_front)
            {
                waiting.count -= 1;
                return Some((tenant, question));
            }
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The question of a tenant that was taken has its answer.
    pub(super) fn answered(&self, tenant: Arc<str>) {
        let mut waiting = self.lock();
        if waiting.questions.get(&tenant).is_some_and(VecDeque::is_empty) {
            waiting.questions.remove(&tenant);
        } else {
            waiting.next.push_back(tenant);
            self.changed.notify_one();
        }
    }

    /// Nothing is asked or answered any more.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }
}
