//! A hash index of numbers that are kept elsewhere, such as those of entries.

/// Numbers from 1 on, each at the first free place from its home on. At least half of the places are free.
#[derive(Default)]
pub(super) struct HashIndex(Box<[u32]>);

impl HashIndex {
    /// One for at most so many numbers.
    pub(super) fn with_capacity(most: usize) -> Self {
        // Zeros are taken from the system only once they are written to.
        Self(vec![0; (2 * most).next_power_of_two()].into())
    }

    /// Bytes of memory that it takes.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.0)
    }

    /// The number from `home` on that `is_it` knows.
    pub(super) fn find(&self, home: usize, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        self.slot(home, is_it).map(|place| self.0[place])
    }

    pub(super) fn insert(&mut self, home: usize, number: u32) {
        if let Some(place) = self.free_slot(home) {
            self.0[place] = number;
        }
    }

    /// Takes out a number. Those behind it move up as far as their homes allow, so that each is still found.
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
