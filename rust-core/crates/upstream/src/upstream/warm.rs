//! Connections that are made ahead of need.

use std::rc::Rc;
use std::time::{Duration, Instant};

use super::Upstream;
use super::pool::Pool;

/// Maximum number of connections that are made ahead of need at a time.
const MAX_CONCURRENT: usize = 8;
/// How long none is made after a failure.
const FAILURE_PAUSE: Duration = Duration::from_secs(10);

impl Upstream {
    /// Restores the minimum of idle connections; called once a second. Makes none to a provider that gets no requests now.
    pub fn keep_warm(&self, now: Instant) {
        if self.min_idle > 0 && !self.lacks_credentials(now) && self.pool.health.is_reachable(now) {
            self.pool.warm(&self.name, self.min_idle, now);
        }
    }
}

impl Pool {
    fn warm(self: &Rc<Self>, provider: &str, wanted: usize, now: Instant) {
        let warming = &self.warm_up;
        if warming.paused_until.get().is_some_and(|until| now < until) {
            return;
        }
        // If there are more than enough, unusable ones are found when they are used.
        if self.idle_count() <= wanted {
            self.idle
                .borrow_mut()
                .retain_mut(|idle| idle.stream.can_be_reused());
        }
        // One session carries many requests.
        let wanted = match &self.sessions {
            Some(sessions) if sessions.count() > 0 => return,
            _ => wanted,
        };
        let there = self.idle_count() + warming.in_progress.get();
        let room = MAX_CONCURRENT.saturating_sub(warming.in_progress.get());
        for _ in 0..wanted.saturating_sub(there).min(room) {
            let (pool, provider) = (Rc::clone(self), provider.to_owned());
            warming.in_progress.set(warming.in_progress.get() + 1);
            tokio::task::spawn_local(async move {
                let made = pool.connect(&provider).await;
                let warming = &pool.warm_up;
                warming
                    .in_progress
                    .set(warming.in_progress.get().saturating_sub(1));
                match made {
                    Ok(stream) => pool.put_back(stream),
                    Err(_) => warming
                        .paused_until
                        .set(Instant::now().checked_add(FAILURE_PAUSE)),
                }
            });
        }
    }
}
