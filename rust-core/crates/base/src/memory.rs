//! The memory that clients and providers can fill: one budget for all of it, and buffers with
//! reservations.
//!
//! The number of connections limits their base memory: [`UNRESERVED_BYTES`] of each buffer. More
//! memory is reserved from the budget before it is allocated, and released with it. Nothing waits
//! for memory: if there is not enough, the request is refused. A quarter of the budget is reserved
//! for the memory that every exchange needs, so that small requests are served even if there are
//! many large ones.
//!
//! Large buffers are reused while their memory is not needed otherwise: the system frees a page
//! quickly, but allocates one slowly.

mod buffer_cache;

use std::cell::Cell;
use std::ops::Deref;
use std::rc::Rc;

use prometheus_client::metrics::gauge::Gauge;

use self::buffer_cache::{BufferCache, MIN_RETAINED_SIZE};

/// Bytes of a buffer that need no reservation.
pub const UNRESERVED_BYTES: usize = 8 * 1024;
/// Bytes of memory that a buffer keeps after its contents were consumed.
const RETAINED_BYTES: usize = 4 * 1024;
/// Bytes of a body that are read, prepared, hashed or sent before the task yields: a fraction of a millisecond's work.
pub const SLICE_BYTES: usize = 256 * 1024;
/// Maximum growth of a buffer in bytes: below it, a growing buffer doubles.
const MAX_GROWTH: usize = 256 * 1024;

/// The memory budget for bodies, in bytes.
pub struct MemoryBudget {
    used: Cell<u64>,
    limit: Cell<u64>,
    gauge: Gauge,
    /// Unused memory: together with the used memory it does not exceed the budget.
    cache: BufferCache,
}

/// The error of an exhausted budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryExhausted;

impl MemoryBudget {
    /// Creates a budget of `most` bytes that reports its use in `gauge`.
    pub fn new(most: u64, gauge: Gauge) -> Self {
        MemoryBudget {
            used: Cell::new(0),
            limit: Cell::new(most),
            gauge,
            cache: BufferCache::default(),
        }
    }

    /// Changes the budget; reservations above the new limit stay until they are released.
    pub fn set_limit(&self, most: u64) {
        self.limit.set(most);
    }

    /// Reserves `bytes` from the whole budget, for memory that an exchange needs regardless of its
    /// size.
    ///
    /// # Errors
    /// [`MemoryExhausted`].
    pub fn reserve(self: &Rc<Self>, bytes: usize) -> Result<MemoryReservation, MemoryExhausted> {
        self.replace(0, bytes, self.limit.get())?;
        Ok(MemoryReservation {
            budget: Rc::clone(self),
            bytes,
        })
    }

    /// Keeps the memory of an unused buffer, if the budget permits.
    fn recycle(&self, memory: Vec<u8>) {
        let room = self.limit.get().saturating_sub(self.used.get());
        self.cache.insert(memory, room);
    }

    /// Returns the part of the budget for bodies and held responses.
    fn max_body_bytes(&self) -> u64 {
        self.limit.get() - self.limit.get() / 4
    }

    fn replace(&self, before: usize, after: usize, most: u64) -> Result<(), MemoryExhausted> {
        let rest = self.used.get().saturating_sub(before as u64);
        let used = rest.checked_add(after as u64).ok_or(MemoryExhausted)?;
        if after > before && used > most {
            return Err(MemoryExhausted);
        }
        self.cache.shrink_to(self.limit.get().saturating_sub(used));
        self.used.set(used);
        self.gauge.set(i64::try_from(used).unwrap_or(i64::MAX));
        Ok(())
    }
}

/// A reservation of the budget, released on drop.
pub struct MemoryReservation {
    budget: Rc<MemoryBudget>,
    bytes: usize,
}

impl MemoryReservation {
    /// Creates an empty reservation.
    pub fn new(budget: &Rc<MemoryBudget>) -> Self {
        MemoryReservation {
            budget: Rc::clone(budget),
            bytes: 0,
        }
    }

    /// Takes the whole reservation, and leaves an empty one.
    pub fn take(&mut self) -> Self {
        let empty = MemoryReservation::new(&self.budget);
        std::mem::replace(self, empty)
    }

    /// Resizes the reservation for `bytes` of memory, the first [`UNRESERVED_BYTES`] of which do not count.
    ///
    /// # Errors
    /// [`MemoryExhausted`] if it would grow beyond the budget; it is unchanged then.
    pub fn resize(&mut self, bytes: usize) -> Result<(), MemoryExhausted> {
        let bytes = bytes.saturating_sub(UNRESERVED_BYTES);
        if bytes != self.bytes {
            self.budget
                .replace(self.bytes, bytes, self.budget.max_body_bytes())?;
            self.bytes = bytes;
        }
        Ok(())
    }
}

impl Drop for MemoryReservation {
    fn drop(&mut self) {
        // Shrinking never fails.
        let _ = self.budget.replace(self.bytes, 0, 0);
    }
}

/// Bytes together with their reservation.
pub struct Buffer {
    bytes: Vec<u8>,
    reservation: MemoryReservation,
}

impl Buffer {
    /// Creates an empty buffer without memory.
    pub fn new(budget: &Rc<MemoryBudget>) -> Self {
        Buffer {
            bytes: Vec::new(),
            reservation: MemoryReservation::new(budget),
        }
    }

    /// Takes the buffer, and leaves an empty one of the same budget.
    pub fn take(&mut self) -> Self {
        let empty = Buffer::new(&self.reservation.budget);
        std::mem::replace(self, empty)
    }

    /// Reserves capacity for `more` bytes and some beyond, so that many small pieces do not each move the buffer.
    ///
    /// # Errors
    /// [`MemoryExhausted`]; the buffer is unchanged.
    pub fn reserve(&mut self, more: usize) -> Result<(), MemoryExhausted> {
        let needed = self.bytes.len().checked_add(more).ok_or(MemoryExhausted)?;
        if needed <= self.bytes.capacity() {
            return Ok(());
        }
        let ahead = self.bytes.capacity().min(MAX_GROWTH);
        self.resize_best_effort(needed.max(self.bytes.capacity().saturating_add(ahead)), needed)
    }

    /// Reserves capacity for `more` bytes, and slightly more for a large buffer: the next body has about the same length and
    /// can reuse the memory.
    ///
    /// # Errors
    /// [`MemoryExhausted`]; the buffer is unchanged.
    pub fn reserve_exact(&mut self, more: usize) -> Result<(), MemoryExhausted> {
        let needed = self.bytes.len().checked_add(more).ok_or(MemoryExhausted)?;
        match needed <= self.bytes.capacity() {
            true => Ok(()),
            false => self.resize_best_effort(buffer_cache::round_up_capacity(needed), needed),
        }
    }

    /// Resizes the buffer to about `wanted` bytes, or to at least `needed` bytes if the budget does
    /// not permit more.
    fn resize_best_effort(&mut self, wanted: usize, needed: usize) -> Result<(), MemoryExhausted> {
        if needed >= MIN_RETAINED_SIZE
            && let Some(kept) = self.reservation.budget.cache.take(needed)
        {
            if self.reservation.resize(kept.capacity()).is_ok() {
                let before = std::mem::replace(&mut self.bytes, kept);
                self.bytes.extend_from_slice(&before);
                self.reservation.budget.recycle(before);
                return Ok(());
            }
            self.reservation.budget.recycle(kept);
        }
        self.resize(wanted).or_else(|MemoryExhausted| self.resize(needed))
    }

    fn resize(&mut self, capacity: usize) -> Result<(), MemoryExhausted> {
        self.reservation.resize(capacity)?;
        self.bytes.reserve_exact(capacity - self.bytes.len());
        Ok(())
    }

    /// Appends `bytes`.
    ///
    /// # Errors
    /// [`MemoryExhausted`]; the buffer is unchanged.
    pub fn extend(&mut self, bytes: &[u8]) -> Result<(), MemoryExhausted> {
        self.reserve(bytes.len())?;
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Returns the bytes that can be written to [`Buffer::available_mut`].
    pub fn available(&self) -> usize {
        self.bytes.capacity() - self.bytes.len()
    }

    /// Whether the buffer has memory that counts against the budget.
    pub fn has_reserved_memory(&self) -> bool {
        self.bytes.capacity() > UNRESERVED_BYTES
    }

    /// Returns the unused capacity for a reader, limited to [`Buffer::available`] and to [`SLICE_BYTES`].
    pub fn available_mut(&mut self) -> impl bytes::BufMut + '_ {
        let room = self.available().min(SLICE_BYTES);
        bytes::BufMut::limit(&mut self.bytes, room)
    }

    /// Calls `write`, which appends at most `most` bytes.
    ///
    /// # Errors
    /// [`MemoryExhausted`]; nothing is written then.
    pub fn write<T>(
        &mut self,
        most: usize,
        write: impl FnOnce(&mut Vec<u8>) -> T,
    ) -> Result<T, MemoryExhausted> {
        self.reserve_exact(most)?;
        Ok(write(&mut self.bytes))
    }

    /// Moves `range` to `to`, which must be before it.
    pub fn move_range(&mut self, range: std::ops::Range<usize>, to: usize) {
        self.bytes.copy_within(range, to);
    }

    /// Drops the bytes after `length`.
    pub fn truncate(&mut self, length: usize) {
        self.bytes.truncate(length);
    }

    /// Drops the first `length` bytes, and releases memory that the rest does not need.
    pub fn consume(&mut self, length: usize) {
        let rest = self.bytes.get(length..).unwrap_or_default();
        if self.bytes.capacity() >= MIN_RETAINED_SIZE && rest.len() <= RETAINED_BYTES {
            let rest = rest.to_vec();
            let memory = std::mem::replace(&mut self.bytes, rest);
            self.recycle_memory(memory);
            return;
        }
        self.bytes.drain(..length);
        if self.bytes.capacity() > RETAINED_BYTES {
            self.bytes.shrink_to(RETAINED_BYTES);
            // Shrinking never fails.
            let _ = self.reservation.resize(self.bytes.capacity());
        }
    }

    /// Makes the buffer's old memory available to the next buffer.
    fn recycle_memory(&mut self, memory: Vec<u8>) {
        // Shrinking never fails.
        let _ = self.reservation.resize(self.bytes.capacity());
        self.reservation.budget.recycle(memory);
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let memory = std::mem::take(&mut self.bytes);
        self.recycle_memory(memory);
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
