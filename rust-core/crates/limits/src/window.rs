//! The consumption of the last minute, per second.

/// The number of seconds for which consumption counts. A span of 60 seconds touches up to 61 clock
/// seconds, so the window holds the current second and the 60 seconds before it. No span of 60
/// seconds therefore contains more consumption than is counted.
pub const WINDOW_SECONDS: u64 = 61;

/// The consumption of one second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Second {
    /// Unix seconds.
    pub second: u64,
    /// Requests admitted.
    pub requests: u32,
    /// Tokens reserved or used.
    pub tokens: u64,
}

/// Number of slots in the ring. Each slot is one bit of `occupied`. The three slots outside the
/// window are always empty.
const SLOTS: usize = 64;

/// A ring of one-second slots with running sums. Every filled slot is emptied once, so a call costs O(1) on average and at
/// most one pass over the ring.
#[derive(Debug)]
pub(crate) struct Window {
    /// The second up to which the window has moved.
    newest: u64,
    /// Bit mask of the slots that are not empty.
    occupied: u64,
    requests: u64,
    tokens: u64,
    /// The tokens reserved by requests in flight.
    reserved: u64,
    requests_in: [u32; SLOTS],
    tokens_in: [u64; SLOTS],
    reserved_in: [u64; SLOTS],
}

impl Window {
    pub(crate) fn new(second: u64) -> Self {
        Self {
            newest: second,
            occupied: 0,
            requests: 0,
            tokens: 0,
            reserved: 0,
            requests_in: [0; SLOTS],
            tokens_in: [0; SLOTS],
            reserved_in: [0; SLOTS],
        }
    }

    /// Clears the window and starts at `second`.
    pub(crate) fn reset(&mut self, second: u64) {
        self.clear_slots(self.occupied);
        (self.requests, self.tokens, self.reserved) = (0, 0, 0);
        self.newest = second;
    }

    /// Goes back to `second`, because the clock was wrong. All consumption in the window counts in
    /// this second.
    pub(crate) fn backdate(&mut self, second: u64) {
        if self.newest > second {
            self.move_to(second);
        }
    }

    /// Moves to `second`, because the clock was set. No minute has passed, so all consumption in
    /// the window counts in this second.
    pub(crate) fn move_to(&mut self, second: u64) {
        let (requests, tokens, reserved) = (self.requests, self.tokens, self.reserved);
        self.reset(second);
        self.add(second, u32::try_from(requests).unwrap_or(u32::MAX), tokens);
        self.reserve(second, reserved);
    }

    /// Returns the requests and tokens in the window.
    pub(crate) fn sums(&self) -> (u64, u64) {
        (self.requests, self.tokens)
    }

    /// Returns the tokens in the window that are reserved by requests in flight.
    pub(crate) fn reserved(&self) -> u64 {
        self.reserved
    }

    /// Marks tokens booked in a second as reserved by a request in flight.
    #[inline]
    pub(crate) fn reserve(&mut self, second: u64, tokens: u64) {
        if self.contains(second) {
            let slot = slot(second);
            self.reserved_in[slot] = self.reserved_in[slot].saturating_add(tokens);
            self.reserved = self.reserved.saturating_add(tokens);
        }
    }

    /// Removes the mark of tokens whose request has ended.
    #[inline]
    pub(crate) fn release(&mut self, second: u64, tokens: u64) {
        if self.contains(second) {
            let slot = slot(second);
            let tokens = tokens.min(self.reserved_in[slot]);
            self.reserved_in[slot] -= tokens;
            self.reserved = self.reserved.saturating_sub(tokens);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.occupied == 0
    }

    /// Advances to `second`. An earlier second changes nothing.
    #[inline]
    pub(crate) fn advance(&mut self, second: u64) {
        if second <= self.newest {
            return;
        }
        let passed = second - self.newest;
        if self.occupied != 0 {
            // The slots by age, with the newest in the highest bit. The lowest bits leave the
            // window.
            let leaving = if passed >= WINDOW_SECONDS {
                u64::MAX
            } else {
                (1 << (passed + SLOTS as u64 - WINDOW_SECONDS)) - 1
            };
            self.clear_slots(leaving.rotate_right(self.rotation_to_top()) & self.occupied);
        }
        self.newest = second;
    }

    /// Books consumption in a second if the window holds this second; otherwise does nothing.
    #[inline]
    pub(crate) fn add(&mut self, second: u64, requests: u32, tokens: u64) {
        if !self.contains(second) || (requests == 0 && tokens == 0) {
            return;
        }
        let slot = slot(second);
        self.requests_in[slot] = self.requests_in[slot].saturating_add(requests);
        self.tokens_in[slot] = self.tokens_in[slot].saturating_add(tokens);
        self.requests = self.requests.saturating_add(u64::from(requests));
        self.tokens = self.tokens.saturating_add(tokens);
        self.occupied |= 1 << slot;
    }

    /// Subtracts consumption that was booked in a second. Does nothing if the window no longer
    /// holds this second.
    #[inline]
    pub(crate) fn subtract(&mut self, second: u64, requests: u32, tokens: u64) {
        if !self.contains(second) {
            return;
        }
        let slot = slot(second);
        let requests = requests.min(self.requests_in[slot]);
        let tokens = tokens.min(self.tokens_in[slot]);
        self.requests_in[slot] -= requests;
        self.tokens_in[slot] -= tokens;
        self.requests = self.requests.saturating_sub(u64::from(requests));
        self.tokens = self.tokens.saturating_sub(tokens);
        if self.requests_in[slot] == 0 && self.tokens_in[slot] == 0 {
            self.occupied &= !(1 << slot);
        }
    }

    /// Returns the oldest second with consumption.
    pub(crate) fn oldest(&self) -> Option<u64> {
        let by_age = self.occupied.rotate_left(self.rotation_to_top());
        (by_age != 0).then(|| {
            self.newest
                .saturating_sub(u64::from(63 - by_age.trailing_zeros()))
        })
    }

    /// Returns the latest second with consumption.
    pub(crate) fn latest(&self) -> Option<u64> {
        let by_age = self.occupied.rotate_left(self.rotation_to_top());
        (by_age != 0).then(|| self.newest.saturating_sub(u64::from(by_age.leading_zeros())))
    }

    /// Iterates over the seconds with consumption, oldest first.
    pub(crate) fn seconds(&self) -> impl Iterator<Item = Second> + '_ {
        let mut by_age = self.occupied.rotate_left(self.rotation_to_top());
        std::iter::from_fn(move || {
            if by_age == 0 {
                return None;
            }
            let age = 63 - by_age.trailing_zeros();
            by_age &= by_age - 1;
            let second = self.newest.saturating_sub(u64::from(age));
            let slot = slot(second);
            Some(Second {
                second,
                requests: self.requests_in[slot],
                tokens: self.tokens_in[slot],
            })
        })
    }

    #[inline]
    fn contains(&self, second: u64) -> bool {
        second <= self.newest && self.newest - second < WINDOW_SECONDS
    }

    /// Returns the number of bits by which `occupied` must be rotated left so that the newest slot
    /// is the highest bit.
    #[inline]
    fn rotation_to_top(&self) -> u32 {
        63 - (self.newest % SLOTS as u64) as u32
    }

    #[inline]
    fn clear_slots(&mut self, slots: u64) {
        let mut left = slots;
        while left != 0 {
            let slot = left.trailing_zeros() as usize;
            left &= left - 1;
            self.requests = self.requests.saturating_sub(u64::from(self.requests_in[slot]));
            self.tokens = self.tokens.saturating_sub(self.tokens_in[slot]);
            self.reserved = self.reserved.saturating_sub(self.reserved_in[slot]);
            self.requests_in[slot] = 0;
            self.tokens_in[slot] = 0;
            self.reserved_in[slot] = 0;
        }
        self.occupied &= !slots;
    }
}

#[inline]
fn slot(second: u64) -> usize {
    (second % SLOTS as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Compares with a map from second to consumption, over steps of every size.
    #[test]
    fn sums_are_those_of_the_seconds_held() {
        let mut random: u64 = 1;
        let mut next = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) % below
        };
        for start in [0, 5, 63, 64, 1_700_000_000] {
            let mut window = Window::new(start);
            let mut model: BTreeMap<u64, (u32, u64)> = BTreeMap::new();
            let mut now = start;
            for _ in 0..20_000 {
                now += match next(10) {
                    0..=5 => 0,
                    6 | 7 => next(3),
                    8 => next(70),
                    _ => next(200),
                };
                window.advance(now);
                model.retain(|second, _| now - second < WINDOW_SECONDS);
                let second = now.saturating_sub(next(65)).max(start);
                let (requests, tokens) = (next(3) as u32, next(100));
                if now - second < WINDOW_SECONDS {
                    let held = model.entry(second).or_default();
                    if next(2) == 0 {
                        *held = (held.0 + requests, held.1 + tokens);
                        window.add(second, requests, tokens);
                    } else {
                        *held = (held.0.saturating_sub(requests), held.1.saturating_sub(tokens));
                        window.subtract(second, requests, tokens);
                    }
                } else {
                    window.add(second, requests, tokens);
                }
                model.retain(|_, held| *held != (0, 0));
                let sums = model
                    .values()
                    .fold((0, 0), |sums, held| (sums.0 + u64::from(held.0), sums.1 + held.1));
                assert_eq!(window.sums(), sums);
                let seconds: Vec<_> = window.seconds().collect();
                let expected: Vec<_> = model
                    .iter()
                    .map(|(second, held)| Second {
                        second: *second,
                        requests: held.0,
                        tokens: held.1,
                    })
                    .collect();
                assert_eq!(seconds, expected);
            }
        }
    }

    #[test]
    fn the_oldest_and_the_latest_second_are_found() {
        let mut window = Window::new(100);
        assert_eq!((window.oldest(), window.latest()), (None, None));
        window.add(100, 1, 1);
        window.advance(130);
        window.add(130, 1, 1);
        window.advance(140);
        assert_eq!((window.oldest(), window.latest()), (Some(100), Some(130)));
        window.advance(160);
        assert_eq!(window.oldest(), Some(100), "61 seconds are held");
        window.advance(161);
        assert_eq!((window.oldest(), window.latest()), (Some(130), Some(130)));
        window.subtract(130, 1, 1);
        assert!(window.is_empty());
    }
}
