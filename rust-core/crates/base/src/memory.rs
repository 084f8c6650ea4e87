//! The memory that clients and providers can fill: one budget for all of it, and buffers that hold their share.
//!
//! What a connection always has is bounded by the number of connections: [`OWN`] bytes of each buffer. What it needs
//! beyond that is taken from the budget before the memory is, and goes back with it. Nothing waits for room: what
//! finds none is refused. A quarter of the budget is for what every exchange needs, so that small requests are served
//! however many large ones there are.
//!
//! Large buffers that are done with serve the next ones, as long as nobody needs their room: the system takes a page
//! back at once, and gives another one slowly.

mod kept;

use std::cell::Cell;
use std::ops::Deref;
use std::rc::Rc;

use prometheus_client::metrics::gauge::Gauge;

use self::kept::{KeptBuffers, LARGE};

/// Bytes that a buffer has without asking.
pub const OWN: usize = 8 * 1024;
/// Bytes of memory that a buffer keeps when what it held has been used.
const KEPT: usize = 4 * 1024;
/// Bytes of a body that are read, made ready, hashed or sent together before everybody else is served: a fraction of a
/// millisecond's work.
pub const AT_ONCE: usize = 256 * 1024;
/// Up to so many bytes a buffer that grows doubles; then it grows by as many.
const STEP: usize = 256 * 1024;

/// What is taken of the memory for bodies, in bytes.
pub struct Budget {
    used: Cell<u64>,
    most: Cell<u64>,
    gauge: Gauge,
    /// Memory that nobody uses: together with what is taken it is no more than the budget.
    kept: KeptBuffers,
}

/// The budget has no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exhausted;

impl Budget {
    /// A budget of `most` bytes that tells `gauge` how many are taken.
    pub fn new(most: u64, gauge: Gauge) -> Self {
        Budget {
            used: Cell::new(0),
            most: Cell::new(most),
            gauge,
            kept: KeptBuffers::default(),
        }
    }

    /// Changes the budget; what is taken above it stays until it is given back.
    pub fn set_most(&self, most: u64) {
        self.most.set(most);
    }

    /// A share of `bytes` for what an exchange needs whatever its size.
    ///
    /// # Errors
    /// [`Exhausted`].
    pub fn share(self: &Rc<Self>, bytes: usize) -> Result<MemoryReservation, Exhausted> {
        self.replace(0, bytes, self.most.get())?;
        Ok(MemoryReservation {
            budget: Rc::clone(self),
            bytes,
        })
    }

    /// Keeps the memory of a buffer that is done with, if there is room for it.
    fn keep(&self, memory: Vec<u8>) {
        let room = self.most.get().saturating_sub(self.used.get());
        self.kept.put(memory, room);
    }

    /// What bodies and held answers may take.
    fn most_of_bodies(&self) -> u64 {
        self.most.get() - self.most.get() / 4
    }

    fn replace(&self, before: usize, after: usize, most: u64) -> Result<(), Exhausted> {
        let rest = self.used.get().saturating_sub(before as u64);
        let used = rest.checked_add(after as u64).ok_or(Exhausted)?;
        if after > before && used > most {
            return Err(Exhausted);
        }
        self.kept.shrink_to(self.most.get().saturating_sub(used));
        self.used.set(used);
        self.gauge.set(i64::try_from(used).unwrap_or(i64::MAX));
        Ok(())
    }
}

/// A part of the budget; given back when it is dropped.
pub struct MemoryReservation {
    budget: Rc<Budget>,
    bytes: usize,
}

impl MemoryReservation {
    /// An empty share.
    pub fn new(budget: &Rc<Budget>) -> Self {
        MemoryReservation {
            budget: Rc::clone(budget),
            bytes: 0,
        }
    }

    /// All of it; what is left is empty.
    pub fn take(&mut self) -> Self {
        let empty = MemoryReservation::new(&self.budget);
        std::mem::replace(self, empty)
    }

    /// Makes this the share of something that takes `bytes` of memory, the first [`OWN`] of which do not count.
    ///
    /// # Errors
    /// [`Exhausted`] when it would grow and there is no room; it stays as it was then.
    pub fn resize(&mut self, bytes: usize) -> Result<(), Exhausted> {
        let bytes = bytes.saturating_sub(OWN);
        if bytes != self.bytes {
            self.budget
                .replace(self.bytes, bytes, self.budget.most_of_bodies())?;
            self.bytes = bytes;
        }
        Ok(())
    }
}

impl Drop for MemoryReservation {
    fn drop(&mut self) {
        // What becomes less is never refused.
        let _ = self.budget.replace(self.bytes, 0, 0);
    }
}

/// Bytes together with their share of the budget.
pub struct Buffer {
    bytes: Vec<u8>,
    share: MemoryReservation,
}

impl Buffer {
    /// An empty buffer without memory.
    pub fn new(budget: &Rc<Budget>) -> Self {
        Buffer {
            bytes: Vec::new(),
            share: MemoryReservation::new(budget),
        }
    }

    /// An empty buffer of the same budget in the place of this one.
    pub fn take(&mut self) -> Self {
        let empty = Buffer::new(&self.share.budget);
        std::mem::replace(self, empty)
    }

    /// Makes room for `more` bytes and some beyond, so that many small pieces do not each move the buffer.
    ///
    /// # Errors
    /// [`Exhausted`]; the buffer stays as it was.
    pub fn reserve(&mut self, more: usize) -> Result<(), Exhausted> {
        let needed = self.bytes.len().checked_add(more).ok_or(Exhausted)?;
        if needed <= self.bytes.capacity() {
            return Ok(());
        }
        let ahead = self.bytes.capacity().min(STEP);
        self.resize_generously(needed.max(self.bytes.capacity().saturating_add(ahead)), needed)
    }

    /// Makes room for `more` bytes, and of a large buffer for a few more: what comes next is about as long, and the memory
    /// serves it then.
    ///
    /// # Errors
    /// [`Exhausted`]; the buffer stays as it was.
    pub fn reserve_exact(&mut self, more: usize) -> Result<(), Exhausted> {
        let needed = self.bytes.len().checked_add(more).ok_or(Exhausted)?;
        match needed <= self.bytes.capacity() {
            true => Ok(()),
            false => self.resize_generously(kept::rounded(needed), needed),
        }
    }

    /// Gives the buffer about `wanted` bytes, or at least `needed`: what would be spare is not insisted on.
    fn resize_generously(&mut self, wanted: usize, needed: usize) -> Result<(), Exhausted> {
        if needed >= LARGE
            && let Some(kept) = self.share.budget.kept.take(needed)
        {
            if self.share.resize(kept.capacity()).is_ok() {
                let before = std::mem::replace(&mut self.bytes, kept);
                self.bytes.extend_from_slice(&before);
                self.share.budget.keep(before);
                return Ok(());
            }
            self.share.budget.keep(kept);
        }
        self.resize(wanted).or_else(|Exhausted| self.resize(needed))
    }

    fn resize(&mut self, capacity: usize) -> Result<(), Exhausted> {
        self.share.resize(capacity)?;
        self.bytes.reserve_exact(capacity - self.bytes.len());
        Ok(())
    }

    /// Appends `bytes`.
    ///
    /// # Errors
    /// [`Exhausted`]; the buffer stays as it was.
    pub fn extend(&mut self, bytes: &[u8]) -> Result<(), Exhausted> {
        self.reserve(bytes.len())?;
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Bytes that can be written to [`Buffer::spare`].
    pub fn room(&self) -> usize {
        self.bytes.capacity() - self.bytes.len()
    }

    /// Whether it has memory that is counted.
    pub fn is_large(&self) -> bool {
        self.bytes.capacity() > OWN
    }

    /// For a reader that fills no more than the [`Buffer::room`], and no more than is read together.
    pub fn spare(&mut self) -> impl bytes::BufMut + '_ {
        let room = self.room().min(AT_ONCE);
        bytes::BufMut::limit(&mut self.bytes, room)
    }

    /// Has `write` append at most `most` bytes.
    ///
    /// # Errors
    /// [`Exhausted`]; nothing is written then.
    pub fn write<T>(&mut self, most: usize, write: impl FnOnce(&mut Vec<u8>) -> T) -> Result<T, Exhausted> {
        self.reserve_exact(most)?;
        Ok(write(&mut self.bytes))
    }

    /// Moves `range` to `to`, which lies before it.
    pub fn move_back(&mut self, range: std::ops::Range<usize>, to: usize) {
        self.bytes.copy_within(range, to);
    }

    /// Drops what stands behind `length`.
    pub fn truncate(&mut self, length: usize) {
        self.bytes.truncate(length);
    }

    /// Drops the first `length` bytes, and gives memory back that the rest does not need.
    pub fn consume(&mut self, length: usize) {
        let rest = self.bytes.get(length..).unwrap_or_default();
        if self.bytes.capacity() >= LARGE && rest.len() <= KEPT {
            let rest = rest.to_vec();
            let memory = std::mem::replace(&mut self.bytes, rest);
            self.give_back_to_budget(memory);
            return;
        }
        self.bytes.drain(..length);
        if self.bytes.capacity() > KEPT {
            self.bytes.shrink_to(KEPT);
            // What becomes less is never refused.
            let _ = self.share.resize(self.bytes.capacity());
        }
    }

    /// Leaves memory that the buffer had to the next one.
    fn give_back_to_budget(&mut self, memory: Vec<u8>) {
        // What becomes less is never refused.
        let _ = self.share.resize(self.bytes.capacity());
        self.share.budget.keep(memory);
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let memory = std::mem::take(&mut self.bytes);
        self.give_back_to_budget(memory);
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
