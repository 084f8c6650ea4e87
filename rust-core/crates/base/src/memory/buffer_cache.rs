//! Unused large buffers, kept for the next bodies.

use std::cell::{Cell, RefCell};

/// Minimum size of a kept buffer: the allocator maps a block of this size separately
/// (`proofgate.allocator`), and the system allocates each of its pages at the first write. Smaller
/// blocks come from a heap that keeps its pages.
pub(super) const MIN_RETAINED_SIZE: usize = 256 * 1024;
/// Maximum size of a kept buffer; larger buffers are returned to the system.
const MAX_RETAINED_SIZE: usize = 1024 * 1024;
/// Maximum bytes of all kept buffers: about the size of a processor cache.
const MAX_RETAINED_BYTES: u64 = 8 * 1024 * 1024;
/// The unit of capacities: capacities are multiples of it, so that a slightly longer body still
/// fits.
const CAPACITY_UNIT: usize = 64 * 1024;

/// The unused buffers; the most recently used one is last.
#[derive(Default)]
pub(super) struct BufferCache {
    buffers: RefCell<Vec<Vec<u8>>>,
    bytes: Cell<u64>,
}

impl BufferCache {
    /// Takes the most recently used buffer with a capacity from `needed` to twice `needed` bytes.
    pub(super) fn take(&self, needed: usize) -> Option<Vec<u8>> {
        let mut buffers = self.buffers.borrow_mut();
        let fits = |buffer: &Vec<u8>| (needed..=needed.saturating_mul(2)).contains(&buffer.capacity());
        let place = buffers.iter().rposition(fits)?;
        let buffer = buffers.remove(place);
        self.bytes.set(self.bytes.get() - buffer.capacity() as u64);
        Some(buffer)
    }

    /// Keeps a buffer, and frees the least recently used ones until at most `room` bytes are kept.
    pub(super) fn insert(&self, mut memory: Vec<u8>, room: u64) {
        let bytes = memory.capacity() as u64;
        let most = room.min(MAX_RETAINED_BYTES);
        if !(MIN_RETAINED_SIZE..=MAX_RETAINED_SIZE).contains(&memory.capacity()) || bytes > most {
            return;
        }
        self.shrink_to(most - bytes);
        memory.clear();
        self.bytes.set(self.bytes.get() + bytes);
        self.buffers.borrow_mut().push(memory);
    }

    /// Frees buffers until at most `most` bytes are kept.
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
impl BufferCache {
    /// Returns the bytes of all kept buffers.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.get()
    }
}

/// Returns the capacity for a buffer of `bytes` that will be kept, rounded up so that the next body
/// fits too.
pub(super) fn round_up_capacity(bytes: usize) -> usize {
    match (MIN_RETAINED_SIZE..=MAX_RETAINED_SIZE).contains(&bytes) {
        true => bytes.next_multiple_of(CAPACITY_UNIT),
        false => bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::{BufferCache, MAX_RETAINED_BYTES, MAX_RETAINED_SIZE, MIN_RETAINED_SIZE, round_up_capacity};

    #[test]
    fn memory_serves_what_fits_it_and_is_not_twice_too_small_for_it() {
        let kept = BufferCache::default();
        kept.insert(Vec::with_capacity(MIN_RETAINED_SIZE * 2), MAX_RETAINED_BYTES);
        assert!(kept.take(MIN_RETAINED_SIZE * 2 + 1).is_none());
        assert!(kept.take(MIN_RETAINED_SIZE - 1).is_none());
        assert_eq!(
            kept.take(MIN_RETAINED_SIZE).unwrap().capacity(),
            MIN_RETAINED_SIZE * 2
        );
        assert!(kept.take(MIN_RETAINED_SIZE).is_none());
    }

    #[test]
    fn what_was_in_it_is_forgotten() {
        let kept = BufferCache::default();
        kept.insert(vec![7; MIN_RETAINED_SIZE], MAX_RETAINED_BYTES);
        assert!(kept.take(MIN_RETAINED_SIZE).unwrap().is_empty());
    }

    #[test]
    fn small_and_very_large_memory_is_not_kept() {
        let kept = BufferCache::default();
        kept.insert(Vec::with_capacity(MIN_RETAINED_SIZE - 1), MAX_RETAINED_BYTES);
        kept.insert(Vec::with_capacity(MAX_RETAINED_SIZE + 1), MAX_RETAINED_BYTES);
        assert_eq!(kept.bytes.get(), 0);
    }

    #[test]
    fn no_more_is_kept_than_there_is_room_and_what_was_used_last_stays() {
        let kept = BufferCache::default();
        for blocks in [4, 1, 2] {
            kept.insert(
                Vec::with_capacity(MIN_RETAINED_SIZE * blocks),
                4 * MIN_RETAINED_SIZE as u64,
            );
        }
        assert_eq!(kept.bytes.get(), 3 * MIN_RETAINED_SIZE as u64);
        kept.shrink_to(2 * MIN_RETAINED_SIZE as u64);
        assert!(
            kept.take(MIN_RETAINED_SIZE)
                .is_some_and(|memory| memory.capacity() == 2 * MIN_RETAINED_SIZE)
        );
        assert_eq!((kept.bytes.get(), kept.buffers.borrow().len()), (0, 0));
        for _ in 0..100 {
            kept.insert(Vec::with_capacity(MAX_RETAINED_SIZE), u64::MAX);
        }
        assert_eq!(kept.bytes.get(), MAX_RETAINED_BYTES);
    }

    #[test]
    fn a_body_that_grows_a_little_has_room_in_the_memory_of_the_one_before() {
        let kept = BufferCache::default();
        kept.insert(Vec::with_capacity(round_up_capacity(450_000)), MAX_RETAINED_BYTES);
        assert!(kept.take(455_000).is_some());
        for alone in [MIN_RETAINED_SIZE - 1, MAX_RETAINED_SIZE + 1] {
            assert_eq!(round_up_capacity(alone), alone);
        }
    }
}
