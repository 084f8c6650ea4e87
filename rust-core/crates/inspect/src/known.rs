//! Runs that were scanned before, and what was found in them.
//!
//! What a scan finds in a [run](crate::Run) depends on its text, its scope, the rules and those of them that take part for
//! the tenant, and on nothing else. All of that, and the tenant, are in the key of an entry. So what is known of a run is
//! what a scan of it would find; which message each match belongs to, and what that comes to, is judged anew each time.

use std::collections::VecDeque;

use proofgate_policy::{Match, Profile, Scope};

use crate::tags::{Kind, Tag, Tagger};

/// Bytes of memory that an entry takes beside its matches: itself, and two to four places of the index.
const ENTRY: usize = 64;

/// A run with more matches is scanned each time.
const MOST_KEPT: usize = 64;

/// Bytes that an allocation costs beyond what is asked for, about.
const ALLOCATION: usize = 16;

/// No entry.
const NONE: u32 = u32::MAX;

/// Numbers of entries begin anew behind this one.
const LAST_NUMBER: u32 = u32::MAX >> 1;

/// The run that was scanned, and under which conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    /// The hash of the tenant, the scope and the rules.
    pub(crate) conditions: Tag,
    /// The hash of the text.
    pub(crate) text: Tag,
}

impl Key {
    /// Where the search for it begins; both tags are as good as random.
    fn home(&self) -> usize {
        let word = |tag: Tag| usize::from_le_bytes(std::array::from_fn(|byte| tag[byte]));
        word(self.text) ^ word(self.conditions)
    }
}

struct Entry {
    key: Key,
    /// With offsets from the beginning of the run.
    matches: Box<[Match]>,
}

impl Entry {
    fn bytes_of_matches(&self) -> usize {
        match self.matches.len() {
            0 => 0,
            count => count * size_of::<Match>() + ALLOCATION,
        }
    }
}

/// What is counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KnownCounts {
    /// Runs that were known.
    pub hits: u64,
    /// Runs that were scanned because they were not.
    pub misses: u64,
    /// Bytes of text that were known.
    pub hit_bytes: u64,
    /// Bytes of text that were scanned because they were not.
    pub miss_bytes: u64,
    /// Entries that made room for others.
    pub evictions: u64,
}

/// Runs that were scanned before, of all tenants, the oldest of which make room for new ones.
pub struct KnownRuns {
    /// `None`: nothing is kept.
    tagger: Option<Tagger>,
    /// Bytes that it may take.
    most: usize,
    /// The oldest first.
    entries: VecDeque<Entry>,
    /// The number of the oldest.
    first: u32,
    /// The numbers of entries, each at the first free place from its home on; at least half of the places are free.
    index: Box<[u32]>,
    bytes_of_matches: usize,
    /// Kept from one hash of conditions to the next.
    buffer: Vec<u8>,
    pub(crate) counts: KnownCounts,
}

impl KnownRuns {
    /// Nothing known yet, in at most `most` bytes of memory, which are taken when the first run is kept.
    pub fn new(most: usize) -> Self {
        Self {
            tagger: Tagger::new(),
            most,
            entries: VecDeque::new(),
            first: 0,
            index: Box::default(),
            bytes_of_matches: 0,
            buffer: Vec::new(),
            counts: KnownCounts::default(),
        }
    }

    /// Forgets all runs and gives their memory back. From now on it takes at most `most` bytes.
    pub fn forget(&mut self, most: usize) {
        self.most = most;
        self.entries = VecDeque::new();
        self.index = Box::default();
        self.bytes_of_matches = 0;
    }

    /// Bytes of memory that it may take.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Bytes of memory that it takes.
    pub fn bytes(&self) -> usize {
        let entries = self.entries.capacity() * size_of::<Entry>();
        entries + size_of_val(&*self.index) + self.bytes_of_matches
    }

    /// What was counted since the last call.
    pub fn take_counts(&mut self) -> KnownCounts {
        std::mem::take(&mut self.counts)
    }

    /// What hashes the keys of runs; `None` if none are kept.
    pub(crate) fn tagger(&self) -> Option<&Tagger> {
        self.tagger.as_ref().filter(|_| self.most_entries() > 0)
    }

    /// The hash of what a scan depends on beside its text, and of the tenant.
    pub(crate) fn conditions(&mut self, profile: &Profile, scope: Scope, tenant: &str) -> Option<Tag> {
        // What comes first always has the same length.
        self.buffer.clear();
        profile.write_conditions(scope, &mut self.buffer);
        self.buffer.extend_from_slice(tenant.as_bytes());
        self.tagger.as_ref()?.tag(Kind::Conditions, &self.buffer)
    }

    /// What was found in a run, if it is known.
    pub(crate) fn find(&self, key: &Key) -> Option<&[Match]> {
        let place = self.place(key)?;
        let entry = self.entry(self.index[place])?;
        Some(&entry.matches)
    }

    /// Keeps what a scan that is done has found in a run.
    pub(crate) fn keep(&mut self, key: Key, matches: &[Match]) {
        if matches.len() > MOST_KEPT || self.most_entries() == 0 || self.place(&key).is_some() {
            return;
        }
        let entry = Entry {
            key,
            matches: matches.into(),
        };
        let most_of_matches = self.most / 4;
        if entry.bytes_of_matches() > most_of_matches {
            return;
        }
        if self.index.is_empty() {
            self.entries.reserve_exact(self.most_entries());
            self.index = vec![NONE; (2 * self.most_entries()).next_power_of_two()].into();
        }
        while self.entries.len() == self.most_entries()
            || self.bytes_of_matches + entry.bytes_of_matches() > most_of_matches
        {
            self.evict();
        }
        let number = self.first.wrapping_add(self.entries.len() as u32) & LAST_NUMBER;
        let mut place = key.home() & self.mask();
        while self.index[place] != NONE {
            place = (place + 1) & self.mask();
        }
        self.index[place] = number;
        self.bytes_of_matches += entry.bytes_of_matches();
        self.entries.push_back(entry);
    }

    /// Entries that three quarters of the memory have room for.
    fn most_entries(&self) -> usize {
        (self.most / 4 * 3 / ENTRY).min(LAST_NUMBER as usize / 4)
    }

    fn mask(&self) -> usize {
        self.index.len().wrapping_sub(1)
    }

    fn entry(&self, number: u32) -> Option<&Entry> {
        let position = number.wrapping_sub(self.first) & LAST_NUMBER;
        self.entries.get(position as usize)
    }

    /// Where in the index a key stands.
    fn place(&self, key: &Key) -> Option<usize> {
        if self.index.is_empty() {
            return None;
        }
        let mut place = key.home() & self.mask();
        while self.index[place] != NONE {
            if self
                .entry(self.index[place])
                .is_some_and(|entry| entry.key == *key)
            {
                return Some(place);
            }
            place = (place + 1) & self.mask();
        }
        None
    }

    /// Forgets the oldest entry.
    fn evict(&mut self) {
        let oldest = self.entries.front().and_then(|entry| self.place(&entry.key));
        if let Some(place) = oldest {
            self.free(place);
        }
        if let Some(entry) = self.entries.pop_front() {
            self.bytes_of_matches -= entry.bytes_of_matches();
            self.first = self.first.wrapping_add(1) & LAST_NUMBER;
            self.counts.evictions += 1;
        }
    }

    /// Frees a place of the index. Those behind it move up as far as their homes allow, so that each is still found.
    fn free(&mut self, mut place: usize) {
        let mask = self.mask();
        let mut next = (place + 1) & mask;
        while let Some(entry) = self.entry(self.index[next]).filter(|_| self.index[next] != NONE) {
            let from_home = next.wrapping_sub(entry.key.home()) & mask;
            if from_home >= (next.wrapping_sub(place) & mask) {
                self.index[place] = self.index[next];
                place = next;
            }
            next = (next + 1) & mask;
        }
        self.index[place] = NONE;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::collections::VecDeque;

    use proofgate_policy::{Engine, Match, PolicyConfig};
    use proptest::prelude::*;

    use super::{ENTRY, Key, KnownRuns};

    /// Few homes, so that keys stand in each other's way.
    fn key(number: u8) -> Key {
        let mut key = Key {
            conditions: [0; 16],
            text: [0; 16],
        };
        key.text[0] = number % 7;
        key.conditions[15] = number;
        key
    }

    fn some_match(start: usize) -> Match {
        let rule = serde_json::json!({"rules": [{"id": "r", "regex": "r", "action": "flag", "reason": "r"}]});
        let config: PolicyConfig = serde_json::from_value(rule).unwrap();
        let rule = Engine::compile(&config).unwrap().index_of("r").unwrap();
        Match {
            rule,
            start,
            end: start + 1,
        }
    }

    proptest! {
        #[test]
        fn it_knows_the_newest_runs_and_no_others(
            most in 0_usize..40,
            kept in proptest::collection::vec((0_u8..64, 0_usize..4), 0..100),
        ) {
            let found = some_match(3);
            let most = most * ENTRY;
            let mut known = KnownRuns::new(most);
            // As it would be without an index.
            let mut model: VecDeque<(u8, usize)> = VecDeque::new();
            let cost = |count: usize| if count == 0 { 0 } else { count * size_of::<Match>() + 16 };
            for (number, count) in kept {
                known.keep(key(number), &vec![found; count]);
                let is_new = model.iter().all(|(other, _)| *other != number);
                if is_new && most / 4 * 3 / ENTRY > 0 && cost(count) <= most / 4 {
                    let sum = |model: &VecDeque<(u8, usize)>| model.iter().map(|(_, count)| cost(*count)).sum::<usize>();
                    while model.len() == most / 4 * 3 / ENTRY || sum(&model) + cost(count) > most / 4 {
                        model.pop_front();
                    }
                    model.push_back((number, count));
                }
                for number in 0..64 {
                    let expected = model.iter().find(|(other, _)| *other == number).map(|(_, count)| *count);
                    prop_assert_eq!(known.find(&key(number)).map(<[Match]>::len), expected);
                }
                prop_assert!(known.bytes() <= most, "{} of {}", known.bytes(), most);
            }
        }
    }

    #[test]
    fn numbers_begin_anew() {
        let mut known = KnownRuns::new(100 * ENTRY);
        known.first = super::LAST_NUMBER - 20;
        for number in 0..=u8::MAX {
            known.keep(key(number), &[]);
            assert!(known.find(&key(number)).is_some());
        }
        assert_eq!(
            (0..=u8::MAX)
                .filter(|number| known.find(&key(*number)).is_some())
                .count(),
            75
        );
        assert_eq!(known.counts.evictions, 256 - 75);
        known.forget(100 * ENTRY);
        assert_eq!((known.find(&key(255)), known.bytes()), (None, 0));
    }
}
