//! Connections that are made before requests need them.

use std::rc::Rc;
use std::time::{Duration, Instant};

use super::Upstream;
use super::pool::Pool;

/// Maximum number of such connections that are being made at the same time.
const MAX_CONCURRENT: usize = 8;
/// The time after a failure during which none is made.
const FAILURE_PAUSE: Duration = Duration::from_secs(10);

impl Upstream {
    /// Restores the minimum number of idle connections; called once a second. Makes none to a
    /// provider that may not be called now.
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
        // Checks idle connections only if there are not more than needed. Otherwise, unusable ones
        // are found when a request takes them.
        if self.idle_count() <= wanted {
            self.idle
                .borrow_mut()
                .retain_mut(|idle| idle.stream.can_be_reused());
        }
        // One HTTP/2 session is enough, because it carries many requests.
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
