//! The random number generator of the data-plane thread.

use std::cell::RefCell;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// A random number generator that the system seeds once.
pub struct Random(RefCell<StdRng>);

impl Random {
    pub fn new() -> Self {
        Random(RefCell::new(StdRng::from_os_rng()))
    }

    /// Calls `draw` with the generator, and returns its result.
    pub fn with_rng<T>(&self, draw: impl FnOnce(&mut StdRng) -> T) -> T {
        draw(&mut self.0.borrow_mut())
    }

    /// Returns `duration` with a random change of up to a tenth, so that events that started
    /// together do not end together.
    pub fn jitter(&self, duration: Duration) -> Duration {
        let factor = self.with_rng(|random| random.random_range(0.9..1.1));
        Duration::try_from_secs_f64(duration.as_secs_f64() * factor).unwrap_or(duration)
    }
}
