//! Finds where a run of plain characters ends inside a string.

use crate::block::{BLOCK_SIZE, special_bits};

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Returns the first offset at or after `at` whose byte is a quote, a backslash or a control
/// character; the length if there is none.
#[inline]
pub(crate) fn plain_run_end(bytes: &[u8], at: usize) -> usize {
    match short_run_end(bytes, at) {
        Ok(end) => end,
        Err(at) => long_run_end(bytes, at),
    }
}

/// Searches like [`plain_run_end`], but only in the next two words; `Err` contains the offset at
/// which the run continues.
#[inline]
pub(crate) fn short_run_end(bytes: &[u8], mut at: usize) -> Result<usize, usize> {
    for _ in 0..2 {
        match bytes.get(at..).and_then(<[u8]>::first_chunk) {
            Some(word) => match first_special(u64::from_le_bytes(*word)) {
                Some(offset) => return Ok(at + offset),
                None => at += 8,
            },
            None => return Ok(tail_run_end(bytes, at)),
        }
    }
    Err(at)
}

fn long_run_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(block) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        match special_bits(block) {
            0 => at += BLOCK_SIZE,
            found => return at + found.trailing_zeros() as usize,
        }
    }
    tail_run_end(bytes, at)
}

fn tail_run_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(word) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        match first_special(u64::from_le_bytes(*word)) {
            Some(offset) => return at + offset,
            None => at += 8,
        }
    }
    let rest = bytes.get(at..).unwrap_or_default();
    rest.iter()
        .position(|&byte| is_special(byte))
        .map_or(bytes.len(), |offset| at + offset)
}

fn is_special(byte: u8) -> bool {
    byte == b'"' || byte == b'\\' || byte < 0x20
}

/// Returns the index of the first special byte of eight, where the lowest byte is the first. A borrow can only give
/// false matches above a true one (Sean Eron Anderson, Bit Twiddling Hacks, "Determine if a word has a byte less than
/// n").
fn first_special(word: u64) -> Option<usize> {
    let equal = |byte: u8| {
        let difference = word ^ (ONES * u64::from(byte));
        difference.wrapping_sub(ONES) & !difference
    };
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    let found = (equal(b'"') | equal(b'\\') | control) & HIGH;
    (found != 0).then(|| (found.trailing_zeros() / 8) as usize)
}
