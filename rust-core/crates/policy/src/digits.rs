//! Positions of digits and of word starts in a text.

use std::array;

use crate::fold::{STEP, bitmask};
use crate::start_bytes::is_word_byte;

/// Positions covered by one word of the bitmap.
pub(crate) const WORD_BITS: usize = u64::BITS as usize;

/// Bits for the positions of a text, the lowest first.
#[derive(Debug, Default)]
pub(crate) struct PositionBitmap {
    pub(crate) digits: Vec<u64>,
    /// Word starts: positions where a word byte follows a non-word byte.
    pub(crate) word_starts: Vec<u64>,
}

impl PositionBitmap {
    /// Replaces the content with the positions of `text` after `from`, followed by one extra word.
    pub(crate) fn fill(&mut self, text: &[u8], from: usize) {
        self.digits.clear();
        self.word_starts.clear();
        let mut in_word = u64::from(from.checked_sub(1).is_some_and(|last| is_word_byte(text[last])));
        let bytes = &text[from..];
        let mut push = |chunk: &[u8; WORD_BITS]| {
            let words = word_bitmask(chunk, is_word_byte);
            self.digits
                .push(word_bitmask(chunk, |byte| byte.is_ascii_digit()));
            self.word_starts.push(words & !(words << 1 | in_word));
            in_word = words >> (WORD_BITS - 1);
        };
        let (chunks, rest) = bytes.as_chunks::<WORD_BITS>();
        chunks.iter().for_each(&mut push);
        let mut last = [0; WORD_BITS];
        last[..rest.len()].copy_from_slice(rest);
        push(&last);
        push(&[0; WORD_BITS]);
    }
}

/// Sets a bit for each byte that fits, the first byte the lowest. Branch-free, so that it is vectorised.
#[inline(always)]
pub(crate) fn word_bitmask(chunk: &[u8; WORD_BITS], fits: impl Fn(u8) -> bool) -> u64 {
    let mut bits = 0;
    for (step, first) in chunk.as_chunks::<STEP>().0.iter().zip((0..).step_by(STEP)) {
        bits |= u64::from(bitmask(array::from_fn(|place| fits(step[place])))) << first;
    }
    bits
}
