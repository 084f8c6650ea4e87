//! Buffers that serve one connection after another.
//!
//! Of many connections most wait, and what waits needs no buffer for what passes: it borrows one when something comes and
//! gives it back before it waits again. The few that are in use stay in the processor's cache.

use std::cell::RefCell;

/// Buffers that are kept for others.
const MOST_SPARE: usize = 64;
/// Of a larger buffer the memory is not kept, in bytes.
const MOST_BYTES: usize = 64 * 1024;

/// Buffers that nobody uses.
#[derive(Default)]
pub struct Spare(RefCell<Vec<Vec<u8>>>);

impl Spare {
    /// Gives a buffer that has no memory some; that which was used last, if there is any.
    pub fn lend(&self, buffer: &mut Vec<u8>) {
        if buffer.capacity() == 0
            && let Some(spare) = self.0.borrow_mut().pop()
        {
            *buffer = spare;
        }
    }

    /// Takes the memory of a buffer back, if nothing is in it.
    pub fn take_back(&self, buffer: &mut Vec<u8>) {
        if buffer.capacity() == 0 || !buffer.is_empty() {
            return;
        }
        let buffer = std::mem::take(buffer);
        let mut spare = self.0.borrow_mut();
        if buffer.capacity() <= MOST_BYTES && spare.len() < MOST_SPARE {
            spare.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST_BYTES, MOST_SPARE, Spare};

    #[test]
    fn what_one_gives_back_empty_serves_the_next() {
        let spare = Spare::default();
        let mut one = Vec::with_capacity(100);
        let memory = one.as_ptr();
        spare.take_back(&mut one);
        assert_eq!(one.capacity(), 0);
        let mut other = Vec::new();
        spare.lend(&mut other);
        assert_eq!((other.as_ptr(), other.len()), (memory, 0));
        spare.lend(&mut one);
        assert_eq!(one.capacity(), 0, "there is none left");
    }

    #[test]
    fn a_buffer_with_something_in_it_stays_with_its_owner() {
        let spare = Spare::default();
        let mut used = b"secret".to_vec();
        spare.take_back(&mut used);
        assert_eq!(used, b"secret");
        let mut owned = Vec::with_capacity(10);
        let memory = owned.as_ptr();
        spare.take_back(&mut Vec::with_capacity(20));
        spare.lend(&mut owned);
        assert_eq!(owned.as_ptr(), memory);
    }

    #[test]
    fn neither_many_buffers_nor_large_ones_are_kept() {
        let spare = Spare::default();
        spare.take_back(&mut Vec::with_capacity(MOST_BYTES + 1));
        assert!(spare.0.borrow().is_empty());
        for _ in 0..MOST_SPARE + 1 {
            spare.take_back(&mut Vec::with_capacity(10));
        }
        assert_eq!(spare.0.borrow().len(), MOST_SPARE);
    }
}
