//! The bytes with which a match can begin.

use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::{Anchored, Input};

/// The bytes with which a match can begin, after a non-word byte and after a word byte.
#[derive(Debug)]
pub(crate) struct StartBytes {
    bytes: [Box<[bool; 256]>; 2],
}

impl StartBytes {
    /// Derives the start bytes from an automaton that is anchored at the start of matches.
    pub(crate) fn from_dfa(dfa: &DFA, cache: &mut Cache) -> Result<Self, String> {
        let mut bytes = [Box::new([false; 256]), Box::new([false; 256])];
        for (before, bytes) in [b' ', b'a'].into_iter().zip(&mut bytes) {
            for byte in 0..=u8::MAX {
                let text = [before, byte];
                let input = Input::new(&text).range(1..).anchored(Anchored::Yes);
                let start = dfa
                    .start_state_forward(cache, &input)
                    .map_err(|error| error.to_string())?;
                let next = dfa
                    .next_state(cache, start, byte)
                    .map_err(|error| error.to_string())?;
                bytes[usize::from(byte)] = !next.is_dead();
            }
        }
        Ok(Self { bytes })
    }

    /// Whether a match can begin at `place` of `text`, judging by the byte at `place` and the byte
    /// before it.
    pub(crate) fn can_start_at(&self, text: &[u8], place: usize) -> bool {
        let in_word = place
            .checked_sub(1)
            .is_some_and(|before| is_word_byte(text[before]));
        self.bytes[usize::from(in_word)][usize::from(text[place])]
    }
}

/// Whether `byte` is a word byte for `\b`.
#[inline]
pub(crate) fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() | (byte == b'_')
}
