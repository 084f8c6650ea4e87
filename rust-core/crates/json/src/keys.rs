//! Finds repeated keys.
//!
//! The keys of a small object are compared one by one as they come. Those of a larger one are sorted when it ends, by a
//! hash first. The hash has a secret of its own in every workspace, so that nobody can make names of one hash; if some
//! have it all the same, the sort compares names and stays O(n log n).

use std::cmp::Ordering;
use std::hash::BuildHasher;
use std::ops::Range;

use foldhash::quality::RandomState;

use crate::text::Str;

/// Up to how many keys of an object are compared with each other.
const MAX_PAIRWISE_KEYS: usize = 24;

/// A key of an object that is open.
#[derive(Debug, Clone, Copy)]
struct Key {
    hash: u32,
    start: u32,
    /// Length in bytes; the highest bit says that the key holds escapes.
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

/// A string's value, character by character.
fn characters(text: Str<'_>) -> impl Iterator<Item = char> {
    text.segments().flat_map(|piece| {
        let (plain, escape) = match piece {
            crate::StrSegment::Plain(plain) => (plain, None),
            crate::StrSegment::Escape { decoded, .. } => ("", Some(decoded)),
        };
        plain.chars().chain(escape)
    })
}

/// The keys of all open objects, those of the innermost last.
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

    /// Gives back the memory of a buffer that has more than `most` bytes.
    pub(crate) fn release_memory(&mut self, most: usize) {
        self.keys.clear();
        self.keys.shrink_to(most / size_of::<Key>());
        self.decoded.clear();
        self.decoded.shrink_to(most);
    }

    /// Bytes of memory that the buffers take.
    pub(crate) fn capacity(&self) -> usize {
        self.keys.capacity() * size_of::<Key>() + self.decoded.capacity()
    }

    /// How many keys there are; the number at which the next object begins.
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Adds a key to the object that began at `first`; `false` if the object already has it, as far as that is checked
    /// before the object ends.
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

    /// Ends the object that began at `first`; where its key stands that repeats another, if one does.
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
