//! A copy of an answer, and the memory of all of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proofgate_analysis::Dialect;

/// The memory of all copies, from the first byte on until they are analysed.
pub(super) struct Room {
    taken: AtomicUsize,
    most: usize,
}

impl Room {
    pub(super) fn new(most: usize) -> Self {
        Room {
            taken: AtomicUsize::new(0),
            most,
        }
    }

    fn take(&self, bytes: usize) -> bool {
        let fits = |taken: usize| taken.checked_add(bytes).filter(|taken| *taken <= self.most);
        self.taken
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, fits)
            .is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.taken.fetch_sub(bytes, Ordering::AcqRel);
    }
}

/// The least that a copy grows by, in bytes.
const STEP: usize = 4096;

/// A copy of an answer as its client gets it, as far as there is room.
pub(crate) struct AnswerCopy {
    bytes: Vec<u8>,
    /// What they take of the room.
    taken: usize,
    pub(super) dialect: Dialect,
    /// Most bytes of it.
    most: usize,
    /// Whether more came than those.
    pub(super) partly: bool,
    /// Whether there was no room for it.
    pub(super) is_lost: bool,
    room: Arc<Room>,
}

impl AnswerCopy {
    pub(super) fn new(dialect: Dialect, most: usize, room: Arc<Room>) -> Self {
        AnswerCopy {
            bytes: Vec::new(),
            taken: 0,
            dialect,
            most,
            partly: false,
            is_lost: false,
            room,
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Adds what the client gets.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        if self.is_lost {
            return;
        }
        let fitting = bytes.len().min(self.most - self.bytes.len());
        self.partly |= fitting < bytes.len();
        let length = self.bytes.len() + fitting;
        if length > self.taken {
            let wanted = length.max(self.taken * 2).max(STEP).min(self.most);
            if !self.room.take(wanted - self.taken) {
                self.lose();
                return;
            }
            self.taken = wanted;
            self.bytes.reserve_exact(wanted - self.bytes.len());
        }
        self.bytes.extend_from_slice(&bytes[..fitting]);
    }

    fn lose(&mut self) {
        self.is_lost = true;
        self.free();
    }

    fn free(&mut self) {
        self.bytes = Vec::new();
        self.room.give_back(std::mem::take(&mut self.taken));
    }
}

impl Drop for AnswerCopy {
    fn drop(&mut self) {
        self.free();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(room: &Room) -> usize {
        room.taken.load(Ordering::Acquire)
    }

    #[test]
    fn a_copy_holds_what_came_up_to_its_bound_and_says_so() {
        let room = Arc::new(Room::new(1 << 20));
        let mut copy = AnswerCopy::new(Dialect::Chat, 10_000, Arc::clone(&room));
        for piece in [&[1; 6000][..], &[2; 3000], &[3; 2000], &[4; 5]] {
            copy.take(piece);
        }
        assert!(copy.partly && !copy.is_lost);
        assert_eq!((copy.bytes().len(), copy.bytes()[9_999]), (10_000, 3));
        assert_eq!(taken(&room), 10_000);
        drop(copy);
        assert_eq!(taken(&room), 0);
    }

    #[test]
    fn copies_without_room_are_lost_and_leave_theirs_to_others() {
        let room = Arc::new(Room::new(STEP + 100));
        let mut one = AnswerCopy::new(Dialect::Chat, 1 << 20, Arc::clone(&room));
        let mut other = AnswerCopy::new(Dialect::Chat, 1 << 20, Arc::clone(&room));
        one.take(b"one");
        other.take(b"other");
        assert!(!one.is_lost && other.is_lost && other.bytes().is_empty());
        one.take(&[0; 2 * STEP]);
        assert!(one.is_lost);
        assert_eq!(taken(&room), 0);
        one.take(b"more");
        assert_eq!(taken(&room), 0);
    }
}
