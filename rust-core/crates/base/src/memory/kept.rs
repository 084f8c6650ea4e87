//! Large buffers that are done with and wait for the next body.

use std::cell::{Cell, RefCell};

/// From so many bytes on a buffer is kept: the system maps a block of this size by itself (`proofgate.allocator`), and
/// gives each of its pages when it is first written to. A smaller one comes out of a heap that keeps its pages.
pub(super) const LARGE: usize = 256 * 1024;
/// Larger ones go back to the system.
const LARGEST: usize = 1024 * 1024;
/// Bytes of all that are kept: as many as a processor's cache may hold.
const MOST: u64 = 8 * 1024 * 1024;
/// Capacities are multiples of it, so that a body that is a little longer than the one before has room in its buffer.
const UNIT: usize = 64 * 1024;

/// Buffers that nobody uses, the last one to be used last.
#[derive(Default)]
pub(super) struct KeptBuffers {
    buffers: RefCell<Vec<Vec<u8>>>,
    bytes: Cell<u64>,
}

impl KeptBuffers {
    /// The memory that was used last among that which has at least `needed` bytes, and no more than twice as many.
    pub(super) fn take(&self, needed: usize) -> Option<Vec<u8>> {
        let mut buffers = self.buffers.borrow_mut();
        let fits = |buffer: &Vec<u8>| (needed..=needed.saturating_mul(2)).contains(&buffer.capacity());
        let place = buffers.iter().rposition(fits)?;
        let buffer = buffers.remove(place);
        self.bytes.set(self.bytes.get() - buffer.capacity() as u64);
        Some(buffer)
    }

    /// Keeps memory, where no more than `room` bytes are to be kept. What was used longest ago makes room for it.
    pub(super) fn put(&self, mut memory: Vec<u8>, room: u64) {
        let bytes = memory.capacity() as u64;
        let most = room.min(MOST);
        if !(LARGE..=LARGEST).contains(&memory.capacity()) || bytes > most {
            return;
        }
        self.shrink_to(most - bytes);
        memory.clear();
        self.bytes.set(self.bytes.get() + bytes);
        self.buffers.borrow_mut().push(memory);
    }

    /// Gives memory back to the system until no more than `most` bytes are kept.
    pub(super) fn shrink_to(&self, most: u64) {
        if self.bytes.get() <= most {
            return;
        }
        self.buffers.borrow_mut().retain(|buffer| {
            let is_kept = self.bytes.get() <= most;
            if !is_kept {
                self.bytes.set(self.bytes.get() - buffer.capacity() as u64);
            }
            is_kept
        });
    }
}

#[cfg(test)]
impl KeptBuffers {
    /// Bytes that are kept.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.get()
    }
}

/// Of a buffer that will be kept a capacity from `bytes` on that fits what comes next, too.
pub(super) fn rounded(bytes: usize) -> usize {
    match (LARGE..=LARGEST).contains(&bytes) {
        true => bytes.next_multiple_of(UNIT),
        false => bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::{KeptBuffers, LARGE, LARGEST, MOST, rounded};

    #[test]
    fn memory_serves_what_fits_it_and_is_not_twice_too_small_for_it() {
        let kept = KeptBuffers::default();
        kept.put(Vec::with_capacity(LARGE * 2), MOST);
        assert!(kept.take(LARGE * 2 + 1).is_none());
        assert!(kept.take(LARGE - 1).is_none());
        assert_eq!(kept.take(LARGE).unwrap().capacity(), LARGE * 2);
        assert!(kept.take(LARGE).is_none());
    }

    #[test]
    fn what_was_in_it_is_forgotten() {
        let kept = KeptBuffers::default();
        kept.put(vec![7; LARGE], MOST);
        assert!(kept.take(LARGE).unwrap().is_empty());
    }

    #[test]
    fn small_and_very_large_memory_is_not_kept() {
        let kept = KeptBuffers::default();
        kept.put(Vec::with_capacity(LARGE - 1), MOST);
        kept.put(Vec::with_capacity(LARGEST + 1), MOST);
        assert_eq!(kept.bytes.get(), 0);
    }

    #[test]
    fn no_more_is_kept_than_there_is_room_and_what_was_used_last_stays() {
        let kept = KeptBuffers::default();
        for blocks in [4, 1, 2] {
            kept.put(Vec::with_capacity(LARGE * blocks), 4 * LARGE as u64);
        }
        assert_eq!(kept.bytes.get(), 3 * LARGE as u64);
        kept.shrink_to(2 * LARGE as u64);
        assert!(
            kept.take(LARGE)
                .is_some_and(|memory| memory.capacity() == 2 * LARGE)
        );
        assert_eq!((kept.bytes.get(), kept.buffers.borrow().len()), (0, 0));
        for _ in 0..100 {
            kept.put(Vec::with_capacity(LARGEST), u64::MAX);
        }
        assert_eq!(kept.bytes.get(), MOST);
    }

    #[test]
    fn a_body_that_grows_a_little_has_room_in_the_memory_of_the_one_before() {
        let kept = KeptBuffers::default();
        kept.put(Vec::with_capacity(rounded(450_000)), MOST);
        assert!(kept.take(455_000).is_some());
        for alone in [LARGE - 1, LARGEST + 1] {
            assert_eq!(rounded(alone), alone);
        }
    }
}
