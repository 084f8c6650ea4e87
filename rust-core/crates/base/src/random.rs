//! The random numbers of the data-plane thread.

use std::cell::RefCell;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// A generator that the system seeds once.
pub struct Random(RefCell<StdRng>);

impl Random {
    pub fn new() -> Self {
        Random(RefCell::new(StdRng::from_os_rng()))
    }

    /// What `draw` makes of the thread's random numbers.
    pub fn with_rng<T>(&self, draw: impl FnOnce(&mut StdRng) -> T) -> T {
        draw(&mut self.0.borrow_mut())
    }

    /// A duration up to a tenth shorter or longer, another one with each call: what began together does not end
    /// together.
    pub fn jitter(&self, duration: Duration) -> Duration {
        let factor = self.with_rng(|random| random.random_range(0.9..1.1));
        Duration::try_from_secs_f64(duration.as_secs_f64() * factor).unwrap_or(duration)
    }
}
