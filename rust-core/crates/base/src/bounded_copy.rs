//! A copy of a body as it goes by, and the memory of all of them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The memory of all copies of a kind, from the first byte on until nobody needs them.
pub struct CopyPool {
    taken: AtomicUsize,
    /// Of a part it changes, when the settings are read again.
    most: AtomicUsize,
    /// Of which it is a part.
    whole: Option<Arc<CopyPool>>,
}

impl CopyPool {
    pub fn new(most: usize) -> Self {
        CopyPool {
            taken: AtomicUsize::new(0),
            most: AtomicUsize::new(most),
            whole: None,
        }
    }

    /// What takes at most `most` bytes of a room that others have a part in, too.
    fn part_of(whole: &Arc<CopyPool>, most: usize) -> Self {
        CopyPool {
            whole: Some(Arc::clone(whole)),
            ..CopyPool::new(most)
        }
    }

    /// Bytes that copies take.
    pub fn taken(&self) -> usize {
        self.taken.load(Ordering::Acquire)
    }

    fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }

    /// Whether so many bytes more would find room now.
    pub fn has(&self, bytes: usize) -> bool {
        self.fits(self.taken(), bytes).is_some() && self.whole.as_ref().is_none_or(|whole| whole.has(bytes))
    }

    fn fits(&self, taken: usize, bytes: usize) -> Option<usize> {
        taken.checked_add(bytes).filter(|taken| *taken <= self.most())
    }

    fn take(&self, bytes: usize) -> bool {
        let fit = |taken| self.fits(taken, bytes);
        let updated = self.taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, fit);
        if updated.is_err() {
            return false;
        }
        let taken = self.whole.as_ref().is_none_or(|whole| whole.take(bytes));
        if !taken {
            self.taken.fetch_sub(bytes, Ordering::AcqRel);
        }
        taken
    }

    fn give_back(&self, bytes: usize) {
        self.taken.fetch_sub(bytes, Ordering::AcqRel);
        if let Some(whole) = &self.whole {
            whole.give_back(bytes);
        }
    }
}

/// Bytes of a room, or places in it, for as long as they are held.
pub struct CopyPermit {
    room: Arc<CopyPool>,
    taken: usize,
}

impl CopyPermit {
    /// `None` when there is no room for so many.
    pub fn new(room: Arc<CopyPool>, taken: usize) -> Option<Self> {
        room.take(taken).then(|| CopyPermit { room, taken })
    }
}

impl Drop for CopyPermit {
    fn drop(&mut self) {
        self.room.give_back(self.taken);
    }
}

/// A room in which each tenant has a part, so that it leaves room to the others.
pub struct SharedRoom {
    whole: Arc<CopyPool>,
    parts: RefCell<HashMap<Arc<str>, Arc<CopyPool>>>,
}

/// From so many tenants on, parts that nobody uses are given up.
const MANY: usize = 256;

impl SharedRoom {
    pub fn new(most: usize) -> Self {
        SharedRoom {
            whole: Arc::new(CopyPool::new(most)),
            parts: RefCell::default(),
        }
    }

    /// What all tenants take.
    pub fn taken(&self) -> usize {
        self.whole.taken()
    }

    /// The part of a tenant: half of all, or `least` if that is more, also for what it holds already.
    pub fn part(&self, tenant: &Arc<str>, least: usize) -> Arc<CopyPool> {
        let mut parts = self.parts.borrow_mut();
        let most = (self.whole.most() / 2).max(least);
        if let Some(part) = parts.get(tenant) {
            part.most.store(most, Ordering::Relaxed);
            return Arc::clone(part);
        }
        if parts.len() >= MANY {
            parts.retain(|_, part| Arc::strong_count(part) > 1);
        }
        let part = Arc::new(CopyPool::part_of(&self.whole, most));
        parts.insert(Arc::clone(tenant), Arc::clone(&part));
        part
    }
}

/// The least that a copy grows by, in bytes.
pub const STEP: usize = 4096;

/// A copy of what goes by, as far as there is room.
pub struct BoundedCopy {
    bytes: Vec<u8>,
    /// What they take of the room.
    taken: usize,
    /// Most bytes of it.
    most: usize,
    /// Whether more came than those.
    pub partly: bool,
    /// Whether there was no room for it.
    pub is_lost: bool,
    room: Arc<CopyPool>,
}

impl BoundedCopy {
    pub fn new(most: usize, room: Arc<CopyPool>) -> Self {
        BoundedCopy {
            bytes: Vec::new(),
            taken: 0,
            most,
            partly: false,
            is_lost: false,
            room,
        }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes; their room is given back with the copy.
    pub fn take_bytes(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    /// Adds what goes by.
    pub fn take(&mut self, bytes: &[u8]) {
        if self.is_lost {
            return;
        }
        let fitting = bytes.len().min(self.most - self.bytes.len());
        self.partly |= fitting < bytes.len();
        let length = self.bytes.len() + fitting;
        if length > self.taken {
            let wanted = length.max(self.taken * 2).max(STEP).min(self.most);
            if !self.room.take(wanted - self.taken) {
                self.is_lost = true;
                self.free();
                return;
            }
            self.taken = wanted;
            self.bytes.reserve_exact(wanted - self.bytes.len());
        }
        self.bytes.extend_from_slice(&bytes[..fitting]);
    }

    /// Has it take at least [`STEP`] of the room, however short it is: what takes none could be without number.
    pub fn take_least(&mut self) {
        let missing = STEP.saturating_sub(self.taken);
        if self.is_lost || missing == 0 {
            return;
        }
        match self.room.take(missing) {
            true => self.taken = STEP,
            false => {
                self.is_lost = true;
                self.free();
            }
        }
    }

    /// Gives its memory back; nothing is added any more.
    pub fn free(&mut self) {
        self.bytes = Vec::new();
        self.most = 0;
        self.room.give_back(std::mem::take(&mut self.taken));
    }
}

impl Drop for BoundedCopy {
    fn drop(&mut self) {
        self.free();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_holds_what_came_up_to_its_bound_and_says_so() {
        let room = Arc::new(CopyPool::new(1 << 20));
        let mut copy = BoundedCopy::new(10_000, Arc::clone(&room));
        for piece in [&[1; 6000][..], &[2; 3000], &[3; 2000], &[4; 5]] {
            copy.take(piece);
        }
        assert!(copy.partly && !copy.is_lost);
        assert_eq!((copy.bytes().len(), copy.bytes()[9_999]), (10_000, 3));
        assert_eq!(room.taken(), 10_000);
        drop(copy);
        assert_eq!(room.taken(), 0);
    }

    #[test]
    fn a_part_grows_with_the_largest_that_it_must_hold_and_counts_what_it_holds_already() {
        let (rooms, tenant) = (SharedRoom::new(1000), Arc::from("acme"));
        let small = CopyPermit::new(rooms.part(&tenant, 10), 400);
        assert!(CopyPermit::new(rooms.part(&tenant, 10), 200).is_none());
        // After a reload that changed the largest: up, and down again.
        assert!(small.is_some() && CopyPermit::new(rooms.part(&tenant, 600), 300).is_none());
        let more = CopyPermit::new(rooms.part(&tenant, 600), 200);
        assert!(more.is_some() && CopyPermit::new(rooms.part(&tenant, 10), 1).is_none());
        assert!(CopyPermit::new(rooms.part(&Arc::from("globex"), 10), 400).is_some());
        drop((small, more));
        assert_eq!(rooms.taken(), 0);
        assert!(CopyPermit::new(rooms.part(&tenant, 10), 501).is_none());
    }

    #[test]
    fn a_copy_that_takes_the_least_takes_it_once_and_is_lost_without_room() {
        let room = Arc::new(CopyPool::new(2 * STEP));
        let mut copies = [0, 100, STEP + 1].map(|most| BoundedCopy::new(most, Arc::clone(&room)));
        copies[1].take(&[1; 100]);
        for (copy, taken) in copies.iter_mut().zip([STEP + 100, 2 * STEP, 2 * STEP]) {
            copy.take_least();
            copy.take_least();
            assert_eq!(room.taken(), taken);
        }
        assert_eq!(copies.each_ref().map(|copy| copy.is_lost), [false, false, true]);
        assert_eq!(copies[1].bytes(), [1; 100]);
        drop(copies);
        assert_eq!(room.taken(), 0);
    }

    #[test]
    fn a_part_of_a_room_is_taken_from_both_or_from_neither() {
        let whole = Arc::new(CopyPool::new(100));
        let [one, other] = [60, 60].map(|most| Arc::new(CopyPool::part_of(&whole, most)));
        assert!(one.take(60) && !one.has(1) && !one.take(1));
        assert!(other.has(40) && !other.has(41) && !other.take(50));
        assert_eq!((one.taken(), other.taken(), whole.taken()), (60, 0, 60));
        one.give_back(60);
        assert!(other.take(60));
        assert_eq!((one.taken(), other.taken(), whole.taken()), (0, 60, 60));
    }

    #[test]
    fn copies_without_room_are_lost_and_leave_theirs_to_others() {
        let room = Arc::new(CopyPool::new(STEP + 100));
        let mut one = BoundedCopy::new(1 << 20, Arc::clone(&room));
        let mut other = BoundedCopy::new(1 << 20, Arc::clone(&room));
        one.take(b"one");
        other.take(b"other");
        assert!(!one.is_lost && other.is_lost && other.bytes().is_empty());
        assert!(room.has(100) && !room.has(101));
        one.take(&[0; 2 * STEP]);
        assert!(one.is_lost);
        assert_eq!(room.taken(), 0);
        one.take(b"more");
        assert_eq!(room.taken(), 0);
    }
}
