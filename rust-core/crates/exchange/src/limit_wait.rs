//! Requests that wait until other requests of their tenant release reservations.
//!
//! The waiting requests of a tenant are retried in order of arrival. Their number is limited, and
//! further requests are rejected. A request that fits on arrival does not wait for others, so long
//! requests of one key do not block requests of another key.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::metrics::gauge::Gauge;
use proofgate_base::lifecycle::Phase;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::reply::Reply;

/// Maximum number of waiting requests per tenant.
const MAX_WAITING: usize = 32;

/// The queues of all tenants with waiting requests.
pub struct TenantQueues {
    by_tenant: RefCell<HashMap<Arc<str>, VecDeque<Rc<Notify>>>>,
    waiting: Gauge,
}

impl TenantQueues {
    /// Creates an empty set of queues; `waiting` is the metric of waiting requests.
    pub fn new(waiting: Gauge) -> Self {
        TenantQueues {
            by_tenant: RefCell::default(),
            waiting,
        }
    }

    /// Takes a slot at the end of a tenant's queue, which expires after `patience`; `None` if the
    /// queue is full.
    fn join(self: &Rc<Self>, tenant: &Arc<str>, patience: Duration) -> Option<QueueSlot> {
        let until = Instant::now().checked_add(patience)?;
        let mut queues = self.by_tenant.borrow_mut();
        let queue = queues.entry(Arc::clone(tenant)).or_default();
        if queue.len() >= MAX_WAITING {
            return None;
        }
        let woken = Rc::new(Notify::new());
        queue.push_back(Rc::clone(&woken));
        self.waiting.inc();
        Some(QueueSlot {
            queues: Rc::clone(self),
            tenant: Arc::clone(tenant),
            wakeup: woken,
            deadline: until,
        })
    }

    /// Wakes the first waiting request of a tenant that released a reservation. If `is_shared`, it
    /// also wakes the first waiting request of each tenant in the same namespace.
    pub fn notify_released(&self, tenant: &str, is_shared: bool) {
        let queues = self.by_tenant.borrow();
        if queues.is_empty() {
            return;
        }
        if let Some(first) = queues.get(tenant).and_then(VecDeque::front) {
            first.notify_one();
        }
        let namespace = namespace_of(tenant).filter(|_| is_shared);
        if namespace.is_none() {
            return;
        }
        for (other, queue) in queues.iter() {
            if namespace_of(other) == namespace
                && let Some(first) = queue.front()
            {
                first.notify_one();
            }
        }
    }
}

/// Returns the namespace of a tenant, if it has one.
fn namespace_of(tenant: &str) -> Option<&str> {
    tenant.split_once('/').map(|(namespace, _)| namespace)
}

/// The wait of one request.
pub struct LimitWait<'w> {
    queues: &'w Rc<TenantQueues>,
    tenant: &'w Arc<str>,
    max_wait: Duration,
    slot: Option<QueueSlot>,
    /// Whether the request may no longer wait.
    is_over: bool,
}

impl<'w> LimitWait<'w> {
    /// Creates the wait of a request that has not waited yet. `patience` is the maximum total wait.
    pub fn new(queues: &'w Rc<TenantQueues>, tenant: &'w Arc<str>, patience: Duration) -> Self {
        LimitWait {
            queues,
            tenant,
            max_wait: patience,
            slot: None,
            is_over: patience.is_zero(),
        }
    }

    /// Waits for capacity after a request did not fit; returns whether to try the request again.
    /// `fits_in` is the time after which it may fit without a released reservation.
    pub async fn wait_for_capacity(&mut self, fits_in: Duration, reply: &mut Reply<'_>) -> bool {
        !self.is_over && Box::pin(self.wait(fits_in, reply)).await != WaitOutcome::Abandoned
    }

    /// Waits in the queue. After its maximum wait, a request is tried once more.
    async fn wait(&mut self, again: Duration, reply: &mut Reply<'_>) -> WaitOutcome {
        let turn = match self.slot.take() {
            Some(turn) => Some(turn),
            None => self.queues.join(self.tenant, self.max_wait),
        };
        let waited = match &turn {
            Some(turn) => turn.wait(again, reply).await,
            None => WaitOutcome::TimedOut,
        };
        self.is_over = waited != WaitOutcome::MayFit;
        self.slot = turn;
        waited
    }
}

/// The reason why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WaitOutcome {
    /// The request may fit now.
    MayFit,
    /// The maximum wait is over.
    TimedOut,
    /// The client disconnected, or the worker cancels its exchanges.
    Abandoned,
}

/// A slot in a tenant's queue. When the first slot is dropped, the next request is woken and tried.
struct QueueSlot {
    queues: Rc<TenantQueues>,
    tenant: Arc<str>,
    wakeup: Rc<Notify>,
    deadline: Instant,
}

impl QueueSlot {
    /// Waits until this request becomes first. If it already is, waits until a reservation is
    /// released or `again` is over, because limits also change with time.
    async fn wait(&self, again: Duration, reply: &mut Reply<'_>) -> WaitOutcome {
        tokio::select! {
            biased;
            () = self.wait_until_first(again) => WaitOutcome::MayFit,
            () = tokio::time::sleep_until(self.deadline) => WaitOutcome::TimedOut,
            () = reply.client.wait_for_disconnect() => WaitOutcome::Abandoned,
            () = reply.lifecycle.wait_for(Phase::Cancelled) => WaitOutcome::Abandoned,
        }
    }

    async fn wait_until_first(&self, again: Duration) {
        if self.is_first() {
            let _ = tokio::time::timeout(again, self.wakeup.notified()).await;
            return;
        }
        while !self.is_first() {
            self.wakeup.notified().await;
        }
    }

    fn is_first(&self) -> bool {
        let queues = self.queues.by_tenant.borrow();
        let first = queues.get(&self.tenant).and_then(VecDeque::front);
        first.is_some_and(|first| Rc::ptr_eq(first, &self.wakeup))
    }
}

impl Drop for QueueSlot {
    fn drop(&mut self) {
        self.queues.waiting.dec();
        let mut queues = self.queues.by_tenant.borrow_mut();
        let Some(queue) = queues.get_mut(&self.tenant) else {
            return;
        };
        queue.retain(|woken| !Rc::ptr_eq(woken, &self.wakeup));
        match queue.front() {
            Some(first) => first.notify_one(),
            None => drop(queues.remove(&self.tenant)),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    fn queues() -> Rc<TenantQueues> {
        Rc::new(TenantQueues::new(Gauge::default()))
    }

    #[tokio::test]
    async fn whoever_came_first_is_woken_first_and_the_next_one_behind_it() {
        let (queues, acme) = (queues(), Arc::from("acme"));
        let first = queues.join(&acme, PATIENCE).unwrap();
        let second = queues.join(&acme, PATIENCE).unwrap();
        assert!(first.is_first() && !second.is_first());
        queues.notify_released("globex", false);
        queues.notify_released("acme", false);
        first.wait_until_first(PATIENCE).await;
        drop(first);
        second.wait_until_first(PATIENCE).await;
        assert!(second.is_first());
        drop(second);
        assert!(queues.by_tenant.borrow().is_empty());
        assert_eq!(queues.waiting.get(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_shares_with_others_of_its_namespace_tries_when_one_of_them_is_done() {
        let queues = queues();
        let [one, other] = ["blue/app", "red/app"].map(Arc::from);
        let (blue, red) = (
            queues.join(&one, PATIENCE).unwrap(),
            queues.join(&other, PATIENCE).unwrap(),
        );
        let long = Duration::from_secs(3600);
        queues.notify_released("blue/batch", false);
        queues.notify_released("bluer/app", true);
        queues.notify_released("blue/batch", true);
        let begin = Instant::now();
        blue.wait_until_first(long).await;
        assert_eq!(
            begin.elapsed(),
            Duration::ZERO,
            "a request of the same namespace has ended"
        );
        red.wait_until_first(long).await;
        assert_eq!(
            begin.elapsed(),
            long,
            "no request of the same namespace has ended"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_one_tries_again_by_itself_after_a_while() {
        let (queues, acme) = (queues(), Arc::from("acme"));
        let first = queues.join(&acme, PATIENCE).unwrap();
        let begin = Instant::now();
        first.wait_until_first(Duration::from_secs(2)).await;
        assert_eq!(begin.elapsed(), Duration::from_secs(2));
    }

    #[test]
    fn only_so_many_of_one_tenant_wait_and_one_that_leaves_makes_room() {
        let (queues, acme, globex) = (queues(), Arc::from("acme"), Arc::from("globex"));
        let mut turns: Vec<_> = (0..MAX_WAITING)
            .map(|_| queues.join(&acme, PATIENCE).unwrap())
            .collect();
        assert!(queues.join(&acme, PATIENCE).is_none());
        assert!(queues.join(&globex, PATIENCE).is_some());
        turns.remove(7);
        assert!(queues.join(&acme, PATIENCE).is_some());
    }
}
