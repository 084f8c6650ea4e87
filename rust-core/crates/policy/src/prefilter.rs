//! Finds all occurrences of some hundred literals in one pass, before any rule runs.
//!
//! Every second position of the text is looked up in a table by a hash of the three bytes at the
//! position. The entry holds the classes of bytes that may be the fourth. If the fourth byte fits,
//! a second entry holds the classes of bytes that may precede the three, and of those that may be
//! the fifth. For each literal, the table contains the two adjacent windows that are rarest in
//! English, so that one of them is at an even position. A hit is compared with the literals that
//! share the window. Literals of three bytes have their own searcher; shorter ones are searched one
//! by one.
//!
//! Measured with `cargo run --release -p proofgate-policy --example prefilters` (1 KB of lower-case English prose, one
//! core of a shared 2-core VM, ns per KB, with 200 and with 766 literals):
//!
//! | variant | 200 | 766 |
//! |---|---|---|
//! | this table | 530 | 860 |
//! | aho-corasick DFA, overlapping | 1,900 | 3,800 |
//! | Teddy (`aho_corasick::packed`), groups of 16 | 2,100 | 9,200 |
//! | Teddy, groups of 64 | 2,500 | 7,800 |
//!
//! Vectorscan 5.4.9, a C++ library, finds 798 literals in 540 ns of the same prose and 420 ns of
//! source code, where this table took 910 ns on the same machine: half a microsecond of the time of
//! a scan. With the regexes of all 190 rules instead, it rejects 12 as too large, takes three
//! minutes to compile the others, and searches a kilobyte of any kind of text in 12 to 17 µs.

use std::collections::BTreeMap;

use aho_corasick::packed;
use memchr::memmem::Finder;

use crate::english::window_frequency;

const TABLE_BITS: u32 = 12;
const TABLE_SIZE: usize = 1 << TABLE_BITS;
/// Bytes of text that are examined together, and how far the last window and the byte after it extend beyond them.
const CHUNK_BYTES: usize = 128;
const LOOKAHEAD: usize = 2;
const SHORT: usize = 4;
const TRIPLE: usize = 3;
/// Minimum number of literals for which a joint search is worth its cost.
const MIN_TRIPLES: usize = 3;
/// Maximum bytes of a literal: a longer one would not exclude more.
pub const MAX_LITERAL_BYTES: usize = 64;

/// A searcher for a set of literals. Literals are numbered in the order in which they were passed.
pub struct Prefilter {
    /// The classes of the bytes that may directly follow a window, by the window's hash.
    behind: Box<[u32; TABLE_SIZE]>,
    /// By hash of a window, in two halves: the classes of the bytes that may precede it, and of those that may be the second
    /// after it.
    around: Box<[[u32; 2]; TABLE_SIZE]>,
    /// Literals by a window and the byte after it, and those that end with their window.
    long_entries: LiteralIndex,
    ending_entries: LiteralIndex,
    literals: Vec<Box<[u8]>>,
    short: Vec<(usize, Finder<'static>)>,
    /// For literals of three bytes, a searcher for all of them, if the CPU supports it, and their numbers.
    triples: Option<(packed::Searcher, Vec<usize>)>,
}

/// Literals by windows, or by windows with the byte after them.
#[derive(Default)]
struct LiteralIndex {
    /// Open-addressing table: the range of `entries` that share a window.
    slots: Vec<Slot>,
    entries: Vec<Entry>,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    window: u32,
    first: u32,
    end: u32,
}

/// A literal that has a window at an offset. Small, so that the relevant entries stay in the cache.
#[derive(Clone, Copy)]
struct Entry {
    /// The last eight bytes of the literal, in text order: literals that share a window differ in
    /// these bytes. A shorter literal is preceded by zeros.
    tail: u64,
    literal: u32,
    offset: u16,
    length: u16,
}

impl Entry {
    fn new(number: usize, literal: &[u8], offset: usize) -> Self {
        let known = literal.len().min(8);
        let mut tail = [0; 8];
        tail[8 - known..].copy_from_slice(&literal[literal.len() - known..]);
        Self {
            tail: u64::from_le_bytes(tail),
            literal: number as u32,
            offset: offset as u16,
            length: literal.len() as u16,
        }
    }

    /// Whether `literal`, which belongs to this entry, is at `start`.
    fn matches_at(&self, start: usize, text: &[u8], literal: &[u8]) -> bool {
        let length = usize::from(self.length);
        let Some(before) = text.get(..start + length) else {
            return false;
        };
        let unknown = 64 - 8 * length.min(8) as u32;
        match before.last_chunk::<8>() {
            Some(last) if (u64::from_le_bytes(*last) ^ self.tail) >> unknown != 0 => false,
            Some(_) if length <= 8 => true,
            _ => before[start..] == *literal,
        }
    }
}

type Candidates = [u8; 256];

/// Returns which of 32 classes `byte` belongs to, as a bit. Letters have their own classes, ignoring case.
fn byte_class(byte: u8) -> u32 {
    1_u32.wrapping_shl(u32::from(byte))
}

fn table_index(window: u32) -> usize {
    ((window << 8).wrapping_mul(0x9e37_79b1) >> (32 - TABLE_BITS)) as usize & (TABLE_SIZE - 1)
}

fn around_index(window: u32) -> usize {
    ((window << 8).wrapping_mul(0x85eb_ca6b) >> (32 - TABLE_BITS)) as usize & (TABLE_SIZE - 1)
}

fn slot_index(window: u32, slots: usize) -> usize {
    (window.wrapping_mul(0x85eb_ca6b) >> 12) as usize & (slots - 1)
}

/// Returns the three bytes at `at` as a number.
fn window(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], 0])
}

impl Prefilter {
    /// Builds a searcher for `literals`, none of which may be empty or longer than [`MAX_LITERAL_BYTES`].
    #[must_use]
    pub fn new(literals: &[Vec<u8>]) -> Self {
        let mut behind = Box::new([0_u32; TABLE_SIZE]);
        let mut around = Box::new([[0_u32; 2]; TABLE_SIZE]);
        let classes = |byte: Option<&u8>| byte.map_or(u32::MAX, |byte| byte_class(*byte));
        let [mut longer, mut ending] = [const { BTreeMap::<u32, Vec<Entry>>::new() }; 2];
        let triples = triples(literals);
        let mut short = Vec::new();
        for (number, literal) in literals.iter().enumerate() {
            if literal.len() < SHORT {
                if triples.is_none() || literal.len() < TRIPLE {
                    short.push((number, Finder::new(literal).into_owned()));
                }
                continue;
            }
            let first = rarest_pair_offset(literal);
            for offset in [first, first + 1] {
                let window = window(literal, offset);
                behind[table_index(window)] |= classes(literal.get(offset + 3));
                let [before, second] = &mut around[around_index(window)];
                *before |= classes(offset.checked_sub(1).map(|last| &literal[last]));
                *second |= classes(literal.get(offset + 4));
                let entry = Entry::new(number, literal, offset);
                let known = match literal.get(offset + 3) {
                    Some(byte) => longer.entry(window | u32::from(*byte) << 24),
                    None => ending.entry(window),
                };
                known.or_default().push(entry);
            }
        }
        let literals = literals
            .iter()
            .map(|literal| literal.clone().into_boxed_slice())
            .collect();
        Self {
            behind,
            around,
            long_entries: LiteralIndex::from_windows(longer),
            ending_entries: LiteralIndex::from_windows(ending),
            literals,
            short,
            triples,
        }
    }

    /// Calls `found` with the number and the start of every occurrence of every literal in `text`, in no particular order.
    #[inline]
    pub fn search(&self, text: &[u8], mut found: impl FnMut(usize, usize)) {
        let mut at = 0;
        let mut candidates = [0; 256];
        for pass in text.windows(CHUNK_BYTES + LOOKAHEAD).step_by(CHUNK_BYTES) {
            if let Ok(pass) = pass.try_into() {
                self.scan_chunk(pass, CHUNK_BYTES, text, at, &mut candidates, &mut found);
            }
            at += CHUNK_BYTES;
        }
        while at < text.len() {
            // The rest, padded with zeros: a literal that needs the padding is not in the text.
            let mut pass = [0; CHUNK_BYTES + LOOKAHEAD];
            let rest = &text[at..];
            let length = rest.len().min(pass.len());
            pass[..length].copy_from_slice(&rest[..length]);
            let length = length.min(CHUNK_BYTES);
            self.scan_chunk(&pass, length, text, at, &mut candidates, &mut found);
            at += CHUNK_BYTES;
        }
        for (number, finder) in &self.short {
            for_each_overlapping(text, |rest| finder.find(rest), |start| found(*number, start));
        }
        if let Some((searcher, numbers)) = &self.triples {
            let mut from = 0;
            while let Some(hit) = searcher.find_in(text, (from..text.len()).into()) {
                found(numbers[hit.pattern().as_usize()], hit.start());
                from = hit.start() + 1;
            }
        }
    }

    /// Examines every second one of the first `length` positions of `pass`, which is located at `at` in `text`.
    ///
    /// In English, one position in seven has a window and a following byte that fit, too many for a branch to be predicted:
    /// they are collected without one.
    #[inline(always)]
    fn scan_chunk(
        &self,
        pass: &[u8; CHUNK_BYTES + LOOKAHEAD],
        length: usize,
        text: &[u8],
        at: usize,
        candidates: &mut Candidates,
        found: &mut impl FnMut(usize, usize),
    ) {
        let mut count = 0_u8;
        for place in (0..length.min(CHUNK_BYTES)).step_by(8) {
            let [Some(even), Some(odd)] = [place, place + 2].map(|place| pass[place..].first_chunk::<8>())
            else {
                break;
            };
            let (even, odd) = (u64::from_le_bytes(*even), u64::from_le_bytes(*odd));
            for (place, four) in (place as u8..).step_by(2).zip([
                even as u32,
                odd as u32,
                (even >> 32) as u32,
                (odd >> 32) as u32,
            ]) {
                candidates[usize::from(count)] = place;
                count =
                    count.wrapping_add((self.behind[table_index(four)].wrapping_shr(four >> 24) & 1) as u8);
            }
        }
        for place in &candidates[..usize::from(count)] {
            let place = usize::from(*place);
            if place >= length {
                break;
            }
            let window = window(pass, place);
            let [before, second] = self.around[around_index(window)];
            let at = at + place;
            let last = at.checked_sub(1).map(|last| text[last]);
            if last.is_none_or(|last| before & byte_class(last) != 0)
                && text
                    .get(at + 4)
                    .is_none_or(|next| second & byte_class(*next) != 0)
            {
                self.compare(window, text, at, found);
            }
        }
    }

    #[inline(never)]
    fn compare(&self, window: u32, text: &[u8], at: usize, found: &mut impl FnMut(usize, usize)) {
        let next = text.get(at + 3).map_or(0, |byte| u32::from(*byte) << 24);
        for entries in [
            self.long_entries.entries_for(window | next),
            self.ending_entries.entries_for(window),
        ] {
            for entry in entries {
                let literal = entry.literal as usize;
                if let Some(start) = at.checked_sub(usize::from(entry.offset))
                    && entry.matches_at(start, text, &self.literals[literal])
                {
                    found(literal, start);
                }
            }
        }
    }
}

impl LiteralIndex {
    fn from_windows(windows: BTreeMap<u32, Vec<Entry>>) -> Self {
        let mut slots = vec![Slot::default(); (windows.len() * 2).next_power_of_two()];
        let mut entries = Vec::new();
        for (window, sharing) in windows {
            let mut index = slot_index(window, slots.len());
            while slots[index].end != 0 {
                index = (index + 1) & (slots.len() - 1);
            }
            let first = entries.len() as u32;
            entries.extend(sharing);
            slots[index] = Slot {
                window,
                first,
                end: entries.len() as u32,
            };
        }
        Self { slots, entries }
    }

    /// Returns the entries of a window.
    #[inline]
    fn entries_for(&self, window: u32) -> &[Entry] {
        let mut index = slot_index(window, self.slots.len());
        loop {
            let slot = self.slots[index];
            if slot.end == 0 {
                return &[];
            }
            if slot.window == window {
                return &self.entries[slot.first as usize..slot.end as usize];
            }
            index = (index + 1) & (self.slots.len() - 1);
        }
    }
}

fn triples(literals: &[Vec<u8>]) -> Option<(packed::Searcher, Vec<usize>)> {
    let numbers: Vec<usize> = (0..literals.len())
        .filter(|number| literals[*number].len() == TRIPLE)
        .collect();
    let searcher = packed::Searcher::new(numbers.iter().map(|number| &literals[*number]))?;
    (numbers.len() >= MIN_TRIPLES).then_some((searcher, numbers))
}

/// Calls `found` with every position at which `find` finds an occurrence, including overlapping ones.
fn for_each_overlapping(text: &[u8], find: impl Fn(&[u8]) -> Option<usize>, mut found: impl FnMut(usize)) {
    let mut from = 0;
    while let Some(start) = find(&text[from..]) {
        found(from + start);
        from += start + 1;
    }
}

/// Returns the offset of the rarest pair of adjacent windows of a literal of at least four bytes.
fn rarest_pair_offset(literal: &[u8]) -> usize {
    let cost = |offset: usize| {
        let window = |offset: usize| window_frequency(&literal[offset..literal.len().min(offset + 4)]);
        window(offset) + window(offset + 1)
    };
    (0..=literal.len() - SHORT)
        .min_by(|one, other| cost(*one).total_cmp(&cost(*other)))
        .unwrap_or(0)
}
