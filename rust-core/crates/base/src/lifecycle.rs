use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use slab::Slab;
use tokio::sync::watch;
use tokio::time::timeout;

/// The phase of a worker's shutdown. Retiring is reversible; from the lame duck on, phases only
/// advance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Ready for traffic.
    Serving,
    /// Not ready, but still serving, until the worker has to drain or its retirement is cancelled.
    Retiring,
    /// Not ready, but still accepting connections, because load balancers need time to notice.
    LameDuck,
    /// The listener and idle connections are closed; exchanges in flight continue.
    Draining,
    /// The drain deadline has passed: exchanges in flight are cancelled.
    Cancelled,
}

/// A handle to the phase on the data-plane thread, one for each connection.
///
/// Every exchange waits for the phase too: a handle registers its waker once, and reading the phase
/// takes no lock.
pub struct Lifecycle {
    shared: Rc<Shared>,
    /// The slot of this handle's waker, and the waker; `None` before the handle first waits.
    waker_slot: Option<(usize, Waker)>,
}

struct Shared {
    receiver: watch::Receiver<Phase>,
    /// The last phase for which waiting handles were woken.
    notified: Cell<Phase>,
    waiting: RefCell<Slab<Waker>>,
}

impl Lifecycle {
    /// Creates the first handle, which receives phases from `told`; [`Lifecycle::run`] wakes
    /// waiting handles.
    pub fn new(told: watch::Receiver<Phase>) -> Self {
        let now = *told.borrow();
        Lifecycle {
            shared: Rc::new(Shared {
                receiver: told,
                notified: Cell::new(now),
                waiting: RefCell::default(),
            }),
            waker_slot: None,
        }
    }

    /// Wakes all waiting handles at each phase, forever. If the sender is dropped, the phase
    /// becomes [`Phase::Cancelled`].
    pub async fn run(self) {
        let mut told = self.shared.receiver.clone();
        loop {
            self.notify(*told.borrow_and_update());
            if told.changed().await.is_err() {
                self.notify(Phase::Cancelled);
                return std::future::pending().await;
            }
        }
    }

    fn notify(&self, phase: Phase) {
        if self.shared.notified.replace(phase) != phase {
            for (_, waker) in self.shared.waiting.borrow().iter() {
                waker.wake_by_ref();
            }
        }
    }

    /// Returns the current phase, even if waiting handles have not been woken for it yet.
    pub fn phase(&self) -> Phase {
        *self.shared.receiver.borrow()
    }

    /// Waits until `phase` is reached; returns immediately if it already was.
    pub async fn wait_for(&mut self, phase: Phase) {
        self.wait_until(|now| now >= phase).await;
    }

    /// Waits until `wanted` accepts the phase, and returns the phase.
    async fn wait_until(&mut self, wanted: impl Fn(Phase) -> bool) -> Phase {
        poll_fn(|context| {
            let now = self.shared.notified.get();
            if wanted(now) {
                return Poll::Ready(now);
            }
            self.wake_on_change(context);
            Poll::Pending
        })
        .await
    }

    fn wake_on_change(&mut self, context: &Context<'_>) {
        let waker = context.waker();
        match &mut self.waker_slot {
            Some((_, known)) if known.will_wake(waker) => {}
            Some((place, known)) => {
                known.clone_from(waker);
                self.shared.waiting.borrow_mut()[*place].clone_from(waker);
            }
            None => {
                let place = self.shared.waiting.borrow_mut().insert(waker.clone());
                self.waker_slot = Some((place, waker.clone()));
            }
        }
    }

    /// Waits until a connection without a request may be closed: the worker drains, or has been in
    /// the phase retiring or later for `patience` since this call. A client that uses its
    /// connection more often learns of the closing from a response, and never loses a request to a
    /// closed connection.
    pub async fn wait_for_idle_close(&mut self, patience: Duration) {
        loop {
            self.wait_for(Phase::Retiring).await;
            let turned = self.wait_until(|now| now == Phase::Serving || now >= Phase::Draining);
            match timeout(patience, turned).await {
                Ok(Phase::Serving) => {}
                _ => return,
            }
        }
    }
}

impl Clone for Lifecycle {
    fn clone(&self) -> Self {
        Lifecycle {
            shared: Rc::clone(&self.shared),
            waker_slot: None,
        }
    }
}

impl Drop for Lifecycle {
    fn drop(&mut self) {
        if let Some((place, _)) = &self.waker_slot {
            self.shared.waiting.borrow_mut().remove(*place);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::watch;
    use tokio::task::{LocalSet, spawn_local};
    use tokio::time::{Instant, sleep, timeout};

    use super::{Lifecycle, Phase};

    const SECOND: Duration = Duration::from_secs(1);

    /// Returns a handle to phases that advance every second.
    fn passing(phases: &'static [Phase]) -> Lifecycle {
        let (sender, told) = watch::channel(Phase::Serving);
        let view = Lifecycle::new(told);
        spawn_local(view.clone().run());
        spawn_local(async move {
            for phase in phases {
                sleep(SECOND).await;
                sender.send_replace(*phase);
            }
            sleep(SECOND * 1000).await;
        });
        view
    }

    async fn seconds_of(wait: impl Future<Output = ()>) -> u64 {
        let begin = Instant::now();
        wait.await;
        begin.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn everybody_who_waits_for_a_phase_hears_of_it_and_of_every_later_one() {
        let local = LocalSet::new();
        let waits = local.run_until(async {
            let mut view = passing(&[
                Phase::Retiring,
                Phase::LameDuck,
                Phase::Draining,
                Phase::Cancelled,
            ]);
            let mut other = view.clone();
            let mut third = view.clone();
            tokio::join!(
                seconds_of(view.wait_for(Phase::Draining)),
                seconds_of(other.wait_for(Phase::LameDuck)),
                seconds_of(third.wait_for(Phase::Serving)),
            )
        });
        assert_eq!(waits.await, (3, 2, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_connection_closes_when_it_has_been_on_its_way_out_for_long_enough() {
        let local = LocalSet::new();
        let waited = local.run_until(async {
            let mut view = passing(&[Phase::Retiring, Phase::Serving, Phase::Retiring]);
            seconds_of(view.wait_for_idle_close(SECOND * 5)).await
        });
        assert_eq!(waited.await, 8);
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_connection_closes_at_once_when_the_worker_drains() {
        let local = LocalSet::new();
        let waited = local.run_until(async {
            let mut view = passing(&[Phase::Retiring, Phase::Draining]);
            seconds_of(view.wait_for_idle_close(SECOND * 500)).await
        });
        assert_eq!(waited.await, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn all_is_over_when_nobody_steers_any_more() {
        let local = LocalSet::new();
        let reached = local.run_until(async {
            let (sender, told) = watch::channel(Phase::Serving);
            let mut view = Lifecycle::new(told);
            spawn_local(view.clone().run());
            drop(sender);
            timeout(SECOND, view.wait_for(Phase::Cancelled)).await
        });
        assert!(reached.await.is_ok());
    }

    #[test]
    fn a_phase_holds_from_the_moment_it_is_told() {
        let (sender, told) = watch::channel(Phase::Serving);
        let view = Lifecycle::new(told);
        for phase in [Phase::Retiring, Phase::Serving] {
            sender.send_replace(phase);
            assert_eq!(view.phase(), phase);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_view_that_is_gone_leaves_nothing_behind() {
        let (_sender, told) = watch::channel(Phase::Serving);
        let view = Lifecycle::new(told);
        let mut other = view.clone();
        assert!(timeout(SECOND, other.wait_for(Phase::Draining)).await.is_err());
        assert_eq!(view.shared.waiting.borrow().len(), 1);
        drop(other);
        assert!(view.shared.waiting.borrow().is_empty());
    }
}
