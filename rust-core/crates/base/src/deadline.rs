//! Timeouts for waits that nearly always end long before their timeout.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::task::coop::has_budget_remaining;
use tokio::time::{Instant, Sleep, sleep_until};

/// The maximum duration of a wait: a year.
const MAX_WAIT: Duration = Duration::from_secs(365 * 24 * 3600);

/// The error of an expired timeout.
#[derive(Debug, Clone, Copy)]
pub struct Elapsed;

impl From<Elapsed> for io::Error {
    fn from(_: Elapsed) -> Self {
        io::ErrorKind::TimedOut.into()
    }
}

/// The timer of a connection.
///
/// The timer stays armed when a wait ends, and is reset only if it would fire too late; if it fires
/// too early, it is re-armed for the remaining time. So a wait does not register a timer with the
/// runtime and remove it again: if the armed timer fires in time for the same task, it is not even
/// polled. A wait that ends immediately does not read the clock.
#[derive(Default)]
pub struct Deadline {
    sleep: Option<Pin<Box<Sleep>>>,
    /// The time at which the timer fires, and the task that it wakes; `None` if it is not armed.
    armed: Option<(Instant, Waker)>,
}

impl Deadline {
    /// Returns the output of `future`.
    ///
    /// # Errors
    /// [`Elapsed`] if the future is not ready within `patience` after its first pending poll.
    pub async fn with_timeout<F: Future>(
        &mut self,
        patience: Duration,
        future: F,
    ) -> Result<F::Output, Elapsed> {
        self.with_timeout_and_deadline(patience, None, future).await
    }

    /// Returns the output of `future`.
    ///
    /// # Errors
    /// [`Elapsed`] if the future is not ready within `patience` after its first pending poll, or at
    /// `until`.
    pub async fn with_timeout_and_deadline<F: Future>(
        &mut self,
        patience: Duration,
        until: Option<Instant>,
        future: F,
    ) -> Result<F::Output, Elapsed> {
        let mut future = pin!(future);
        let mut due = None;
        poll_fn(|context| {
            if let Poll::Ready(output) = future.as_mut().poll(context) {
                return Poll::Ready(Ok(output));
            }
            if due.is_none() {
                let now = Instant::now();
                let wanted = now + patience.min(MAX_WAIT);
                let wanted = until.map_or(wanted, |until| wanted.min(until));
                due = Some(wanted);
                if self.is_armed(now, wanted, context) {
                    return Poll::Pending;
                }
            }
            let Some(due) = due else { return Poll::Pending };
            self.poll_until(due, context).map(|()| Err(Elapsed))
        })
        .await
    }

    /// Whether the timer will wake this task no later than at `due`.
    fn is_armed(&self, now: Instant, due: Instant, context: &Context<'_>) -> bool {
        let in_time = |(rings, task): &(Instant, Waker)| {
            now < *rings && *rings <= due && task.will_wake(context.waker())
        };
        self.armed.as_ref().is_some_and(in_time)
    }

    fn poll_until(&mut self, due: Instant, context: &mut Context<'_>) -> Poll<()> {
        self.armed = None;
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(due)));
        if sleep.deadline() > due {
            sleep.as_mut().reset(due);
        }
        loop {
            // Without cooperative budget, the timer is not armed and the task is polled again.
            let sets = has_budget_remaining();
            if sleep.as_mut().poll(context).is_pending() {
                self.armed = sets.then(|| (sleep.deadline(), context.waker().clone()));
                return Poll::Pending;
            }
            if sleep.deadline() >= due {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(due);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{Future, pending, poll_fn};
    use std::pin::pin;
    use std::task::Poll;
    use std::time::Duration;

    use tokio::task::coop::{consume_budget, has_budget_remaining};
    use tokio::time::{Instant, sleep, timeout};

    use super::Deadline;

    const SHORT: Duration = Duration::from_secs(10);
    const LONG: Duration = Duration::from_secs(60);

    async fn elapses_after(deadline: &mut Deadline, patience: Duration) -> Duration {
        let begin = Instant::now();
        assert!(deadline.with_timeout(patience, pending::<()>()).await.is_err());
        // The runtime's timers round up to a millisecond.
        Duration::from_secs(begin.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_ready_in_time_is_returned() {
        let mut deadline = Deadline::default();
        let found = deadline.with_timeout(SHORT, async {
            sleep(SHORT / 2).await;
            7
        });
        assert_eq!(found.await.ok(), Some(7));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_ready_in_time_elapses() {
        assert_eq!(elapses_after(&mut Deadline::default(), SHORT).await, SHORT);
    }

    #[tokio::test(start_paused = true)]
    async fn every_wait_has_its_own_time_whatever_was_waited_for_before() {
        for before in [SHORT, LONG] {
            for pause in [SHORT / 2, SHORT * 2] {
                for patience in [SHORT, LONG, Duration::ZERO] {
                    // In a separate task, like a connection.
                    let waits = tokio::spawn(async move {
                        let mut deadline = Deadline::default();
                        let second = sleep(Duration::from_secs(1));
                        assert!(deadline.with_timeout(before, second).await.is_ok());
                        sleep(pause).await;
                        let first = elapses_after(&mut deadline, patience).await;
                        (first, elapses_after(&mut deadline, patience).await)
                    });
                    assert_eq!(waits.await.unwrap(), (patience, patience));
                }
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_timer_that_was_not_set_for_want_of_budget_is_set_by_the_next_wait() {
        // In a separate task, like a connection.
        let elapsed = tokio::spawn(async {
            let mut deadline = Deadline::default();
            let mut polled = false;
            let exhausting = poll_fn(|context| {
                if std::mem::replace(&mut polled, true) {
                    return Poll::Ready(());
                }
                while has_budget_remaining() {
                    let _ = pin!(consume_budget()).poll(context);
                }
                Poll::Pending
            });
            assert!(deadline.with_timeout(SHORT, exhausting).await.is_ok());
            // An earlier wake-up of the task must not make it poll its timer.
            sleep(Duration::from_millis(1)).await;
            timeout(LONG * 10, elapses_after(&mut deadline, LONG)).await
        });
        assert_eq!(elapsed.await.unwrap().ok(), Some(LONG));
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_in_another_task_wakes_that_one() {
        let mut deadline = Deadline::default();
        assert!(deadline.with_timeout(LONG, sleep(SHORT)).await.is_ok());
        let other = tokio::spawn(async move { elapses_after(&mut deadline, LONG).await });
        assert_eq!(timeout(LONG * 10, other).await.unwrap().unwrap(), LONG);
    }

    #[tokio::test(start_paused = true)]
    async fn waits_one_after_the_other_end_when_their_time_together_is_over() {
        let mut deadline = Deadline::default();
        let begin = Instant::now();
        let until = Some(begin + LONG);
        let mut waits = 0;
        while deadline
            .with_timeout_and_deadline(SHORT, until, sleep(SHORT / 2))
            .await
            .is_ok()
        {
            waits += 1;
        }
        assert_eq!((begin.elapsed().as_secs(), waits), (LONG.as_secs(), 12));
        assert!(
            deadline
                .with_timeout_and_deadline(SHORT, until, sleep(SHORT / 2))
                .await
                .is_err()
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_patience_beyond_all_clocks_is_a_long_one() {
        let mut deadline = Deadline::default();
        assert!(deadline.with_timeout(Duration::MAX, sleep(LONG)).await.is_ok());
    }
}
