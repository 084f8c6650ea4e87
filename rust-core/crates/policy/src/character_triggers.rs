//! Rules that a character triggers: a table over all of Unicode that stores only the blocks that some rule names.

use std::collections::HashMap;

use crate::RuleIndex;
use crate::needle::Offsets;

/// Maximum number of rules: the bits of a cell of the table.
pub(crate) const MAX_TRIGGERS: usize = u64::BITS as usize;
const BLOCK: u32 = 256;

/// Rules that a character of a class triggers.
#[derive(Default)]
pub(crate) struct CharacterTriggers {
    rules: Vec<(RuleIndex, Offsets)>,
    blocks: Vec<u16>,
    cells: Vec<[u64; BLOCK as usize]>,
}

/// A rule, the ranges of the characters that trigger it, and their offsets in its matches.
pub(crate) type CharacterTrigger<'a> = (RuleIndex, &'a [(char, char)], Offsets);

impl CharacterTriggers {
    /// Builds the table for at most [`MAX_TRIGGERS`] rules.
    pub(crate) fn new(signs: &[CharacterTrigger<'_>]) -> Self {
        if signs.is_empty() {
            return Self::default();
        }
        let mut table = Self::default();
        let mut known = HashMap::new();
        for first in (0..=u32::from(char::MAX)).step_by(BLOCK as usize) {
            let mut cells = [0_u64; BLOCK as usize];
            for (bit, (_, ranges, _)) in signs.iter().enumerate() {
                for (low, high) in *ranges {
                    let low = u32::from(*low).max(first);
                    let high = u32::from(*high).min(first + BLOCK - 1);
                    for code in low..=high {
                        cells[(code - first) as usize] |= 1 << bit;
                    }
                }
            }
            let next = table.cells.len();
            let number = *known.entry(cells).or_insert(next);
            if number == next {
                table.cells.push(cells);
            }
            table.blocks.push(number as u16);
        }
        table.rules = signs.iter().map(|(rule, _, offsets)| (*rule, *offsets)).collect();
        table
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Calls `found` with each rule that a character of `text` (UTF-8) triggers, and the first and last position at which a
    /// match with this character can begin.
    pub(crate) fn search(&self, text: &[u8], mut found: impl FnMut(RuleIndex, usize, usize)) {
        let mut at = 0;
        while let Some(ahead) = text[at..].iter().position(|byte| !byte.is_ascii()) {
            at += ahead;
            let (code, width) = decode_char(&text[at..]);
            let block = self
                .blocks
                .get((code / BLOCK) as usize)
                .map_or(0, |block| usize::from(*block));
            let mut woken = self.cells[block][(code % BLOCK) as usize];
            while woken != 0 {
                let (rule, offsets) = self.rules[woken.trailing_zeros() as usize];
                woken &= woken - 1;
                if let Some((first, last)) = offsets.start_range(at) {
                    found(rule, first, last);
                }
            }
            at += width;
        }
    }
}

/// Returns the character at the beginning of `text`, which is not ASCII, and its width in bytes.
fn decode_char(text: &[u8]) -> (u32, usize) {
    let bits = |byte: u8, count: u32| u32::from(byte) & ((1 << count) - 1);
    match *text {
        [a @ 0xf0..=0xff, b, c, d, ..] => (
            (bits(a, 3) << 18) | (bits(b, 6) << 12) | (bits(c, 6) << 6) | bits(d, 6),
            4,
        ),
        [a @ 0xe0..0xf0, b, c, ..] => ((bits(a, 4) << 12) | (bits(b, 6) << 6) | bits(c, 6), 3),
        [a @ 0xc0..0xe0, b, ..] => ((bits(a, 5) << 6) | bits(b, 6), 2),
        // Not the beginning of a character.
        _ => (0, 1),
    }
}
