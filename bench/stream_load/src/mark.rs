//! The moment at which a token was due, written into the token's text.
//!
//! Letters only, short and with a hyphen: no guard of a gateway should take it for a number, a key or a secret.

use memchr::memmem;
use rustix::time::{ClockId, clock_gettime};

/// What every mark begins with.
pub const PREFIX: &[u8] = b"tick-";
const LETTERS: usize = 10;

/// Bytes of one mark.
pub const LENGTH: usize = PREFIX.len() + LETTERS;

/// Microseconds of the monotonic clock, which all processes of a machine share.
#[must_use]
pub fn now_us() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0) / 1_000
}

/// Writes `due_us` as a mark: four bits for each letter from `a` to `p`, highest first.
#[must_use]
pub fn write(due_us: u64) -> [u8; LENGTH] {
    let mut mark = [0; LENGTH];
    mark[..PREFIX.len()].copy_from_slice(PREFIX);
    for (place, letter) in mark[PREFIX.len()..].iter_mut().enumerate() {
        let shift = 4 * (LETTERS - 1 - place);
        *letter = b'a' + u8::try_from((due_us >> shift) & 15).unwrap_or(0);
    }
    mark
}

/// Reads the mark in a line of a stream; none when the line holds none.
#[must_use]
pub fn read(line: &[u8]) -> Option<u64> {
    let start = memmem::find(line, PREFIX)? + PREFIX.len();
    let letters = line.get(start..start + LETTERS)?;
    letters.iter().try_fold(0, |value, letter| match letter {
        b'a'..=b'p' => Some(value << 4 | u64::from(letter - b'a')),
        _ => None,
    })
}

/// How late `now_us` is against a mark, in microseconds. A mark holds the lowest forty bits of the clock, 12 days.
#[must_use]
pub fn lateness_us(now_us: u64, mark: u64) -> u64 {
    const RANGE: u64 = 1 << (4 * LETTERS);
    let difference = (now_us % RANGE + RANGE - mark) % RANGE;
    // Above half the range the mark lies ahead of the clock.
    if difference > RANGE / 2 { 0 } else { difference }
}
