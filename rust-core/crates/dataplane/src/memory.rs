//! The memory that clients and providers can fill: one budget for all of it, and buffers that hold their share.
//!
//! What a connection always has is bounded by the number of connections: [`OWN`] bytes of each buffer. What it needs
//! beyond that is taken from the budget before the memory is, and goes back with it. Nothing waits for room: what
//! finds none is refused. A quarter of the budget is for what every exchange needs, so that small requests are served
//! however many large ones there are.

use std::cell::Cell;
use std::ops::Deref;
use std::rc::Rc;

use prometheus_client::metrics::gauge::Gauge;

/// Bytes that a buffer has without asking.
pub(crate) const OWN: usize = 8 * 1024;
/// Bytes of memory that a buffer keeps when what it held has been used.
const KEPT: usize = 4 * 1024;
/// Bytes of a body that are read, made ready, hashed or sent together before everybody else is served: a fraction of a
/// millisecond's work.
pub(crate) const AT_ONCE: usize = 256 * 1024;
/// Up to so many bytes a buffer that grows doubles; then it grows by as many.
const STEP: usize = 256 * 1024;

/// What is taken of the memory for bodies, in bytes.
pub(crate) struct Budget {
    used: Cell<u64>,
    most: Cell<u64>,
    gauge: Gauge,
}

/// The budget has no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exhausted;

impl Budget {
    /// A budget of `most` bytes that tells `gauge` how many are taken.
    pub(crate) fn new(most: u64, gauge: Gauge) -> Self {
        Budget {
            used: Cell::new(0),
            most: Cell::new(most),
            gauge,
        }
    }

    /// Changes the budget; what is taken above it stays until it is given back.
    pub(crate) fn set_most(&self, most: u64) {
        self.most.set(most);
    }

    /// A share of `bytes` for what an exchange needs whatever its size.
    ///
    /// # Errors
    /// [`Exhausted`].
    pub(crate) fn share(self: &Rc<Self>, bytes: usize) -> Result<Share, Exhausted> {
        self.replace(0, bytes, self.most.get())?;
        Ok(Share {
            budget: Rc::clone(self),
            bytes,
        })
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
        self.used.set(used);
        self.gauge.set(i64::try_from(used).unwrap_or(i64::MAX));
        Ok(())
    }
}

/// A part of the budget; given back when it is dropped.
pub(crate) struct Share {
    budget: Rc<Budget>,
    bytes: usize,
}

impl Share {
    /// An empty share.
    pub(crate) fn new(budget: &Rc<Budget>) -> Self {
        Share {
            budget: Rc::clone(budget),
            bytes: 0,
        }
    }

    /// All of it; what is left is empty.
    pub(crate) fn take(&mut self) -> Self {
        let empty = Share::new(&self.budget);
        std::mem::replace(self, empty)
    }

    /// Makes this the share of something that takes `bytes` of memory, the first [`OWN`] of which do not count.
    ///
    /// # Errors
    /// [`Exhausted`] when it would grow and there is no room; it stays as it was then.
    pub(crate) fn resize(&mut self, bytes: usize) -> Result<(), Exhausted> {
        let bytes = bytes.saturating_sub(OWN);
        if bytes != self.bytes {
            self.budget
                .replace(self.bytes, bytes, self.budget.most_of_bodies())?;
            self.bytes = bytes;
        }
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        // What becomes less is never refused.
        let _ = self.budget.replace(self.bytes, 0, 0);
    }
}

/// Bytes together with their share of the budget.
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    share: Share,
}

impl Buffer {
    /// An empty buffer without memory.
    pub(crate) fn new(budget: &Rc<Budget>) -> Self {
        Buffer {
            bytes: Vec::new(),
            share: Share::new(budget),
        }
    }

    /// An empty buffer of the same budget in the place of this one.
    pub(crate) fn take(&mut self) -> Self {
        let empty = Buffer::new(&self.share.budget);
        std::mem::replace(self, empty)
    }

    /// Makes room for `more` bytes and some beyond, so that many small pieces do not each move the buffer.
    ///
    /// # Errors
    /// [`Exhausted`]; the buffer stays as it was.
    pub(crate) fn reserve(&mut self, more: usize) -> Result<(), Exhausted> {
        let needed = self.bytes.len().checked_add(more).ok_or(Exhausted)?;
        if needed <= self.bytes.capacity() {
            return Ok(());
        }
        let ahead = self.bytes.capacity().min(STEP);
        // What would be spare is not insisted on.
        self.resize(needed.max(self.bytes.capacity().saturating_add(ahead)))
            .or_else(|Exhausted| self.resize(needed))
    }

    /// Makes room for `more` bytes and no more than these.
    ///
    /// # Errors
    /// [`Exhausted`]; the buffer stays as it was.
    pub(crate) fn reserve_exact(&mut self, more: usize) -> Result<(), Exhausted> {
        let needed = self.bytes.len().checked_add(more).ok_or(Exhausted)?;
        match needed <= self.bytes.capacity() {
            true => Ok(()),
            false => self.resize(needed),
        }
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
    pub(crate) fn extend(&mut self, bytes: &[u8]) -> Result<(), Exhausted> {
        self.reserve(bytes.len())?;
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Bytes that can be written to [`Buffer::spare`].
    pub(crate) fn room(&self) -> usize {
        self.bytes.capacity() - self.bytes.len()
    }

    /// Whether it has memory that is counted.
    pub(crate) fn is_large(&self) -> bool {
        self.bytes.capacity() > OWN
    }

    /// For a reader that fills no more than the [`Buffer::room`], and no more than is read together.
    pub(crate) fn spare(&mut self) -> impl bytes::BufMut + '_ {
        let room = self.room().min(AT_ONCE);
        bytes::BufMut::limit(&mut self.bytes, room)
    }

    /// Has `write` append at most `most` bytes.
    ///
    /// # Errors
    /// [`Exhausted`]; nothing is written then.
    pub(crate) fn write<T>(
        &mut self,
        most: usize,
        write: impl FnOnce(&mut Vec<u8>) -> T,
    ) -> Result<T, Exhausted> {
        self.reserve_exact(most)?;
        Ok(write(&mut self.bytes))
    }

    /// Moves `range` to `to`, which lies before it.
    pub(crate) fn move_back(&mut self, range: std::ops::Range<usize>, to: usize) {
        self.bytes.copy_within(range, to);
    }

    /// Drops what stands behind `length`.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.bytes.truncate(length);
    }

    /// Drops the first `length` bytes, and gives memory back that the rest does not need.
    pub(crate) fn consume(&mut self, length: usize) {
        self.bytes.drain(..length);
        if self.bytes.capacity() > KEPT {
            self.bytes.shrink_to(KEPT);
            // What becomes less is never refused.
            let _ = self.share.resize(self.bytes.capacity());
        }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use bytes::BufMut;
    use prometheus_client::metrics::gauge::Gauge;

    use super::{Budget, Buffer, Exhausted, KEPT, OWN, STEP, Share};

    fn budget(most: u64) -> (Rc<Budget>, Gauge) {
        let gauge = Gauge::default();
        (Rc::new(Budget::new(most, gauge.clone())), gauge)
    }

    #[test]
    fn a_buffer_takes_its_share_before_it_grows_and_gives_it_back_with_its_memory() {
        let (budget, used) = budget(1 << 20);
        let mut buffer = Buffer::new(&budget);
        buffer.reserve_exact(OWN).unwrap();
        assert_eq!(used.get(), 0);
        buffer.reserve_exact(OWN + 1000).unwrap();
        assert_eq!(used.get(), 1000);
        buffer.extend(&[7; OWN + 1001]).unwrap();
        assert_eq!(used.get() as usize, buffer.len() + buffer.room() - OWN);
        drop(buffer);
        assert_eq!(used.get(), 0);
    }

    #[test]
    fn what_has_no_room_is_refused_and_changes_nothing() {
        let (budget, used) = budget(13_333);
        let mut buffer = Buffer::new(&budget);
        buffer.extend(&[7; OWN + 9000]).unwrap();
        let before = (used.get(), buffer.room());
        assert_eq!(buffer.extend(&[7; 1001]), Err(Exhausted));
        assert_eq!(buffer.write(1001, |_| ()), Err(Exhausted));
        assert_eq!((used.get(), buffer.room()), before);
        assert_eq!(buffer.len(), OWN + 9000);
        // The last bytes of the budget are not lost to growth ahead of its need.
        assert_eq!(buffer.extend(&[7; 1000]), Ok(()));
        assert_eq!(used.get(), 10_000);
        let mut other = Buffer::new(&budget);
        assert_eq!(other.extend(&[7; OWN]), Ok(()));
        assert_eq!(other.extend(&[7; 1]), Err(Exhausted));
    }

    #[test]
    fn what_is_consumed_takes_its_memory_along() {
        let (budget, used) = budget(1 << 20);
        let mut buffer = Buffer::new(&budget);
        buffer.extend(&[7; 100_000]).unwrap();
        buffer.extend(b"next").unwrap();
        buffer.consume(100_000);
        assert_eq!(&buffer[..], b"next");
        assert_eq!(used.get(), 0);
        assert!(buffer.room() <= KEPT);
    }

    #[test]
    fn a_large_buffer_grows_by_steps_and_not_by_its_own_size() {
        let (budget, _) = budget(1 << 30);
        let mut buffer = Buffer::new(&budget);
        for _ in 0..10_000 {
            buffer.extend(&[7; 1000]).unwrap();
            assert!(buffer.room() <= STEP, "{}", buffer.room());
        }
    }

    #[test]
    fn no_more_is_read_into_a_buffer_than_its_share_covers() {
        let (budget, _) = budget(1 << 20);
        let mut buffer = Buffer::new(&budget);
        buffer.reserve_exact(10).unwrap();
        let room = buffer.room();
        assert_eq!(buffer.spare().remaining_mut(), room);
        buffer.spare().put_bytes(7, room);
        assert_eq!((buffer.len(), buffer.room()), (room, 0));
    }

    #[test]
    fn a_smaller_budget_holds_for_what_comes_and_takes_nothing_away() {
        let (budget, used) = budget(120_000);
        let mut share = Share::new(&budget);
        share.resize(OWN + 90_000).unwrap();
        budget.set_most(50_000);
        assert_eq!(share.resize(OWN + 90_001), Err(Exhausted));
        assert_eq!(used.get(), 90_000);
        share.resize(OWN + 60_000).unwrap();
        assert_eq!(used.get(), 60_000);
        drop(share);
        assert_eq!(used.get(), 0);
    }

    #[test]
    fn bodies_leave_a_quarter_to_what_every_exchange_needs() {
        let (budget, used) = budget(100_000);
        let mut bodies = Share::new(&budget);
        bodies.resize(OWN + 75_000).unwrap();
        assert_eq!(bodies.resize(OWN + 75_001), Err(Exhausted));
        let exchange = budget.share(25_000).unwrap();
        assert!(budget.share(1).is_err());
        assert_eq!(used.get(), 100_000);
        drop(exchange);
        assert!(budget.share(1).is_ok());
        assert_eq!(used.get(), 75_000);
    }
}
