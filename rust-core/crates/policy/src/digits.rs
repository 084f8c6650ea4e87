//! Where in a text there are digits, and where words begin.

use std::array;

use crate::begins::is_word;
use crate::fold::{STEP, mask};

/// Places of which the bits are together.
pub(crate) const WORD: usize = u64::BITS as usize;

/// Bits for the places of a text, the lowest first.
#[derive(Debug, Default)]
pub(crate) struct Places {
    pub(crate) digits: Vec<u64>,
    /// Where a byte of a word follows one of none.
    pub(crate) begins: Vec<u64>,
}

impl Places {
    /// Replaces the content by what is in `text` behind `from`; one word more than it needs.
    pub(crate) fn fill(&mut self, text: &[u8], from: usize) {
        self.digits.clear();
        self.begins.clear();
        let mut in_word = u64::from(from.checked_sub(1).is_some_and(|last| is_word(text[last])));
        let bytes = &text[from..];
        let mut push = |chunk: &[u8; WORD]| {
            let words = bits(chunk, is_word);
            self.digits.push(bits(chunk, |byte| byte.is_ascii_digit()));
            self.begins.push(words & !(words << 1 | in_word));
            in_word = words >> (WORD - 1);
        };
        let (chunks, rest) = bytes.as_chunks::<WORD>();
        chunks.iter().for_each(&mut push);
        let mut last = [0; WORD];
        last[..rest.len()].copy_from_slice(rest);
        push(&last);
        push(&[0; WORD]);
    }
}

/// A bit for each byte that fits, the first one the lowest. Without a branch, so that it is vectorised.
#[inline(always)]
pub(crate) fn bits(chunk: &[u8; WORD], fits: impl Fn(u8) -> bool) -> u64 {
    let mut bits = 0;
    for (step, first) in chunk.as_chunks::<STEP>().0.iter().zip((0..).step_by(STEP)) {
        bits |= u64::from(mask(array::from_fn(|place| fits(step[place])))) << first;
    }
    bits
}
