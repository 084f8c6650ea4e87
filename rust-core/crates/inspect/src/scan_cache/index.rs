//! A hash index of numbers, such as the numbers of entries that are stored elsewhere.

/// Numbers from 1 on, with linear probing: each is in the first free slot from its home on. At least half of the slots are
/// free.
#[derive(Default)]
pub(super) struct HashIndex(Box<[u32]>);

impl HashIndex {
    /// Creates an index for at most this many numbers.
    pub(super) fn with_capacity(most: usize) -> Self {
        // The system allocates zeroed memory only when it is written.
        Self(vec![0; (2 * most).next_power_of_two()].into())
    }

    /// Returns the memory in use, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.0)
    }

    /// Returns the number at or after `home` for which `is_it` returns true.
    pub(super) fn find(&self, home: usize, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        self.slot(home, is_it).map(|place| self.0[place])
    }

    pub(super) fn insert(&mut self, home: usize, number: u32) {
        if let Some(place) = self.free_slot(home) {
            self.0[place] = number;
        }
    }

    /// Removes a number. Later ones move up as far as their homes allow, so that each can still be found.
    pub(super) fn remove(&mut self, home: usize, number: u32, home_of: impl Fn(u32) -> usize) {
        let Some(mut place) = self.slot(home, |other| other == number) else {
            return;
        };
        let mask = self.mask();
        let mut next = (place + 1) & mask;
        while self.0[next] != 0 {
            let from_home = next.wrapping_sub(home_of(self.0[next])) & mask;
            if from_home >= (next.wrapping_sub(place) & mask) {
                self.0[place] = self.0[next];
                place = next;
            }
            next = (next + 1) & mask;
        }
        self.0[place] = 0;
    }

    fn mask(&self) -> usize {
        self.0.len().wrapping_sub(1)
    }

    fn slot(&self, home: usize, is_it: impl Fn(u32) -> bool) -> Option<usize> {
        if self.0.is_empty() {
            return None;
        }
        let mut place = home & self.mask();
        while self.0[place] != 0 {
            if is_it(self.0[place]) {
                return Some(place);
            }
            place = (place + 1) & self.mask();
        }
        None
    }

    fn free_slot(&self, home: usize) -> Option<usize> {
        if self.0.is_empty() {
            return None;
        }
        let mut place = home & self.mask();
        while self.0[place] != 0 {
            place = (place + 1) & self.mask();
        }
        Some(place)
    }
}
