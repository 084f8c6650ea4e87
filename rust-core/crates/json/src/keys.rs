//! Detects duplicate keys.
//!
//! The keys of a small object are compared one by one as they arrive. Those of a larger object are sorted by hash
//! when it ends. Every workspace has its own hash secret, so that nobody can craft keys with equal hashes. If hashes
//! are equal anyway, the sort compares the keys themselves and remains O(n log n).

use std::cmp::Ordering;
use std::hash::BuildHasher;
use std::ops::Range;

use foldhash::quality::RandomState;

use crate::text::Str;

/// Maximum number of keys of an object that are compared pairwise.
const MAX_PAIRWISE_KEYS: usize = 24;

/// A key of an open object.
#[derive(Debug, Clone, Copy)]
struct Key {
    hash: u32,
    start: u32,
    /// Length in bytes; the highest bit is set if the key contains escapes.
    length: u32,
}

const ESCAPED: u32 = 1 << 31;

impl Key {
    fn text<'d>(&self, document: &'d str) -> Str<'d> {
        let start = self.start as usize;
        let end = start + (self.length & !ESCAPED) as usize;
        Str::from_range(document, start..end, self.length & ESCAPED != 0)
    }

    fn compare(&self, other: &Key, document: &str) -> Ordering {
        self.hash.cmp(&other.hash).then_with(|| {
            #[cfg(test)]
            tests::NAMES_COMPARED.set(tests::NAMES_COMPARED.get() + 1);
            let (this, other) = (self.text(document), other.text(document));
            if this.is_escaped() || other.is_escaped() {
                characters(this).cmp(characters(other))
            } else {
                this.raw().cmp(other.raw())
            }
        })
    }
}

/// Returns the value of a string, character by character.
fn characters(text: Str<'_>) -> impl Iterator<Item = char> {
    text.segments().flat_map(|piece| {
        let (plain, escape) = match piece {
            crate::StrSegment::Plain(plain) => (plain, None),
            crate::StrSegment::Escape { decoded, .. } => ("", Some(decoded)),
        };
        plain.chars().chain(escape)
    })
}

/// The keys of all open objects; the keys of the innermost object are last.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    keys: Vec<Key>,
    /// An escaped key, decoded for its hash.
    decoded: String,
    hashes: RandomState,
}

impl Keys {
    pub(crate) fn clear(&mut self) {
        self.keys.clear();
    }

    /// Releases every buffer with more than `most` bytes.
    pub(crate) fn release_memory(&mut self, most: usize) {
        self.keys.clear();
        self.keys.shrink_to(most / size_of::<Key>());
        self.decoded.clear();
        self.decoded.shrink_to(most);
    }

    /// Returns the number of bytes of memory that the buffers take.
    pub(crate) fn capacity(&self) -> usize {
        self.keys.capacity() * size_of::<Key>() + self.decoded.capacity()
    }

    /// Returns the number of keys, which is the index where the next object begins.
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Adds a key to the object whose keys begin at index `first`. Returns `false` if the key is already known to be
    /// a duplicate; large objects are checked only when they end.
    pub(crate) fn push(&mut self, first: usize, name: Str<'_>, document: &str) -> bool {
        let Range { start, end } = name.range();
        let (Ok(start), Ok(length)) = (u32::try_from(start), u32::try_from(end - start)) else {
            return false;
        };
        let key = Key {
            hash: (self.hashes.hash_one(name.decode(&mut self.decoded)) >> 32) as u32,
            start,
            length: length | if name.is_escaped() { ESCAPED } else { 0 },
        };
        let before = &self.keys[first..];
        let repeated = before.len() < MAX_PAIRWISE_KEYS
            && before
                .iter()
                .any(|other| other.hash == key.hash && other.compare(&key, document).is_eq());
        self.keys.push(key);
        !repeated
    }

    /// Ends the object whose keys begin at index `first`. Returns the offset of a duplicate key, if there is one.
    pub(crate) fn close_object(&mut self, first: usize, document: &str) -> Option<usize> {
        let repeated = match self.keys.get_mut(first..) {
            Some(keys) if keys.len() > MAX_PAIRWISE_KEYS => {
                keys.sort_unstable_by(|a, b| a.compare(b, document));
                keys.windows(2)
                    .find(|pair| pair[0].compare(&pair[1], document).is_eq())
                    .map(|pair| pair[0].start.max(pair[1].start) as usize)
            }
            _ => None,
        };
        self.keys.truncate(first);
        repeated
    }
}

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;
