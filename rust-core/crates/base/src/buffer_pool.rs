//! Buffers that connections share, one after another.
//!
//! Most connections are idle at any time, and an idle connection needs no buffer for relayed bytes.
//! A connection acquires a buffer when bytes arrive, and releases it before it waits again. The few
//! buffers in use stay in the processor's cache.

use std::cell::RefCell;

/// Maximum number of buffers in the pool.
const MAX_BUFFERS: usize = 64;
/// Maximum size of a buffer that is kept, in bytes.
const MAX_BUFFER_BYTES: usize = 64 * 1024;

/// A pool of unused buffers.
#[derive(Default)]
pub struct BufferPool(RefCell<Vec<Vec<u8>>>);

impl BufferPool {
    /// Gives memory to a buffer that has none: that of the most recently used buffer, if there is
    /// one.
    pub fn acquire(&self, buffer: &mut Vec<u8>) {
        if buffer.capacity() == 0
            && let Some(spare) = self.0.borrow_mut().pop()
        {
            *buffer = spare;
        }
    }

    /// Returns the memory of a buffer to the pool, if the buffer is empty.
    pub fn release(&self, buffer: &mut Vec<u8>) {
        if buffer.capacity() == 0 || !buffer.is_empty() {
            return;
        }
        let buffer = std::mem::take(buffer);
        let mut spare = self.0.borrow_mut();
        if buffer.capacity() <= MAX_BUFFER_BYTES && spare.len() < MAX_BUFFERS {
            spare.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BufferPool, MAX_BUFFER_BYTES, MAX_BUFFERS};

    #[test]
    fn what_one_gives_back_empty_serves_the_next() {
        let spare = BufferPool::default();
        let mut one = Vec::with_capacity(100);
        let memory = one.as_ptr();
        spare.release(&mut one);
        assert_eq!(one.capacity(), 0);
        let mut other = Vec::new();
        spare.acquire(&mut other);
        assert_eq!((other.as_ptr(), other.len()), (memory, 0));
        spare.acquire(&mut one);
        assert_eq!(one.capacity(), 0, "there is none left");
    }

    #[test]
    fn a_buffer_with_something_in_it_stays_with_its_owner() {
        let spare = BufferPool::default();
        let mut used = b"secret".to_vec();
        spare.release(&mut used);
        assert_eq!(used, b"secret");
        let mut owned = Vec::with_capacity(10);
        let memory = owned.as_ptr();
        spare.release(&mut Vec::with_capacity(20));
        spare.acquire(&mut owned);
        assert_eq!(owned.as_ptr(), memory);
    }

    #[test]
    fn neither_many_buffers_nor_large_ones_are_kept() {
        let spare = BufferPool::default();
        spare.release(&mut Vec::with_capacity(MAX_BUFFER_BYTES + 1));
        assert!(spare.0.borrow().is_empty());
        for _ in 0..MAX_BUFFERS + 1 {
            spare.release(&mut Vec::with_capacity(10));
        }
        assert_eq!(spare.0.borrow().len(), MAX_BUFFERS);
    }
}
