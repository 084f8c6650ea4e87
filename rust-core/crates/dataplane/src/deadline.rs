//! Bounds how long something may take, for waits that nearly always end long before that.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// No wait is longer: a year.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// The time ran out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Elapsed;

impl From<Elapsed> for io::Error {
    fn from(_: Elapsed) -> Self {
        io::ErrorKind::TimedOut.into()
    }
}

/// The timer of a connection.
///
/// It stays set when a wait ends, and is set anew only when it would ring too late; ringing too early, it goes on for
/// the rest. So a wait does not enter the runtime's timers and leave them again, and one that is over at once does not
/// even read the clock.
#[derive(Default)]
pub(crate) struct Deadline(Option<Pin<Box<Sleep>>>);

impl Deadline {
    /// What `future` comes to.
    ///
    /// # Errors
    /// [`Elapsed`] when it is not ready `patience` after it was first seen to wait.
    pub(crate) async fn within<F: Future>(
        &mut self,
        patience: Duration,
        future: F,
    ) -> Result<F::Output, Elapsed> {
        let mut future = pin!(future);
        let mut due = None;
        poll_fn(|context| {
            if let Poll::Ready(output) = future.as_mut().poll(context) {
                return Poll::Ready(Ok(output));
            }
            let due = *due.get_or_insert_with(|| Instant::now() + patience.min(LONGEST));
            self.poll_until(due, context).map(|()| Err(Elapsed))
        })
        .await
    }

    fn poll_until(&mut self, due: Instant, context: &mut Context<'_>) -> Poll<()> {
        let sleep = self.0.get_or_insert_with(|| Box::pin(sleep_until(due)));
        if sleep.deadline() > due {
            sleep.as_mut().reset(due);
        }
        while sleep.as_mut().poll(context).is_ready() {
            if sleep.deadline() >= due {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(due);
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::time::Duration;

    use tokio::time::{Instant, sleep};

    use super::Deadline;

    const SHORT: Duration = Duration::from_secs(10);
    const LONG: Duration = Duration::from_secs(60);

    async fn elapses_after(deadline: &mut Deadline, patience: Duration) -> Duration {
        let begin = Instant::now();
        assert!(deadline.within(patience, pending::<()>()).await.is_err());
        // The runtime's timers round up to a millisecond.
        Duration::from_secs(begin.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_ready_in_time_is_returned() {
        let mut deadline = Deadline::default();
        let found = deadline.within(SHORT, async {
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
                    let mut deadline = Deadline::default();
                    assert!(
                        deadline
                            .within(before, sleep(Duration::from_secs(1)))
                            .await
                            .is_ok()
                    );
                    sleep(pause).await;
                    assert_eq!(elapses_after(&mut deadline, patience).await, patience);
                    assert_eq!(elapses_after(&mut deadline, patience).await, patience);
                }
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_patience_beyond_all_clocks_is_a_long_one() {
        let mut deadline = Deadline::default();
        assert!(deadline.within(Duration::MAX, sleep(LONG)).await.is_ok());
    }
}
