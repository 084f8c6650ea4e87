//! A queue of queries that is fair between tenants.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// A queue of waiting queries. It releases one query of each tenant at a time, in order of arrival,
/// and tenants take turns.
pub(super) struct FairQueue<Q> {
    state: Mutex<QueueState<Q>>,
    changed: Condvar,
    max_waiting: usize,
}

struct QueueState<Q> {
    /// The waiting queries of each tenant that has a query waiting or being processed.
    by_tenant: HashMap<Arc<str>, VecDeque<Q>>,
    /// The tenants that have a waiting query and no query being processed; the tenant whose turn is
    /// next is first.
    ready_tenants: VecDeque<Arc<str>>,
    /// Number of waiting queries.
    waiting_count: usize,
    closed: bool,
}

/// The error that the queue is full or closed.
#[derive(Debug)]
pub(super) struct QueueUnavailable;

impl<Q> FairQueue<Q> {
    /// Creates a queue for at most `most` queries.
    pub(super) fn new(most: usize) -> Self {
        FairQueue {
            state: Mutex::new(QueueState {
                by_tenant: HashMap::new(),
                ready_tenants: VecDeque::new(),
                waiting_count: 0,
                closed: false,
            }),
            changed: Condvar::new(),
            max_waiting: most,
        }
    }

    fn lock(&self) -> MutexGuard<'_, QueueState<Q>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a query of a tenant.
    ///
    /// # Errors
    /// [`QueueUnavailable`] if the queue is full or closed.
    pub(super) fn push(&self, tenant: &Arc<str>, question: Q) -> Result<(), QueueUnavailable> {
        let mut waiting = self.lock();
        if waiting.closed || waiting.waiting_count == self.max_waiting {
            return Err(QueueUnavailable);
        }
        waiting.waiting_count += 1;
        match waiting.by_tenant.get_mut(tenant) {
            Some(questions) => questions.push_back(question),
            None => {
                let questions = VecDeque::from([question]);
                waiting.by_tenant.insert(Arc::clone(tenant), questions);
                waiting.ready_tenants.push_back(Arc::clone(tenant));
                self.changed.notify_one();
            }
        }
        Ok(())
    }

    /// Waits for the next query. Its tenant gets no other turn before [`FairQueue::finish`] is
    /// called. Returns `None` if the queue is closed.
    pub(super) fn pop(&self) -> Option<(Arc<str>, Q)> {
        let mut waiting = self.lock();
        loop {
            if waiting.closed {
                return None;
            }
            if let Some(tenant) = waiting.ready_tenants.pop_front()
                && let Some(question) = waiting.by_tenant.get_mut(&tenant).and_then(VecDeque::pop_front)
            {
                waiting.waiting_count -= 1;
                return Some((tenant, question));
            }
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Marks a tenant's query as processed.
    pub(super) fn finish(&self, tenant: Arc<str>) {
        let mut waiting = self.lock();
        if waiting.by_tenant.get(&tenant).is_some_and(VecDeque::is_empty) {
            waiting.by_tenant.remove(&tenant);
        } else {
            waiting.ready_tenants.push_back(tenant);
            self.changed.notify_one();
        }
    }

    /// Closes the queue. It no longer accepts or returns queries.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }
}
