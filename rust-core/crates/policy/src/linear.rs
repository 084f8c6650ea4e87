//! The linear score: how much a part of a text resembles an instruction that overrides a model's
//! other instructions.
//!
//! Every word of a text and every pair of words has a weight, found by its hash. The score of a window of 64 words is the
//! sum of their weights, and the score of a text is that of its highest window. It uses integers only, and one pass without
//! allocation. `bench/linear` learns the weights, and computes the same scores in Python. `SEMANTICS.md` defines what a word
//! is.

use crate::PolicyError;

const BUCKET_BITS: u32 = 18;
/// Words of half a window. Windows begin at half-window boundaries.
const WORDS_PER_HALF: usize = 32;
/// Maximum bytes of a half window; no word begins after them.
const MAX_HALF_BYTES: usize = 4096;
/// Maximum bytes of a word; a longer word is split.
const MAX_WORD_BYTES: usize = 64;
/// Maximum number of word buckets remembered within a half window, so that repetitions count once.
const SLOTS: usize = 256;
/// Maximum number of matches reported for one text.
const MAX_MATCHES: usize = 32;
/// Maximum bytes without words that are skipped in one step.
const MAX_BLANK_BYTES: usize = 16 * 1024;

const FNV_OFFSET: u32 = 0x811c_9dc5;
const FNV_PRIME: u32 = 0x0100_0193;
const PAIR_MULTIPLIER: u32 = 0x85eb_ca6b;
const HASH_MULTIPLIER: u32 = 0x9e37_79b1;

/// For every byte of a word, the byte in lower case; 0 for every other byte. All bytes of non-ASCII characters are word
/// bytes.
const LETTER_TABLE: [u8; 256] = {
    let mut letters = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let folded = (byte as u8).to_ascii_lowercase();
        if folded.is_ascii_lowercase() || !folded.is_ascii() {
            letters[byte] = folded;
        }
        byte += 1;
    }
    letters
};

/// Weights as stored in a file; `bench/linear/weights.py` describes the format.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Weights {
    values: &'static [u8],
    bias: i32,
    half_percent: i32,
    one_percent: i32,
}

/// The share of benign texts that reach a threshold, on the texts with which the threshold was set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
pub enum FalsePositiveRate {
    /// Half a percent.
    HalfPercent,
    /// One percent.
    OnePercent,
}

impl Weights {
    /// Loads the weights that are embedded in this library.
    pub(crate) fn built_in() -> Result<Self, PolicyError> {
        let file = include_bytes!("../scores/instruction-likeness.bin");
        Self::read(file)
            .ok_or_else(|| PolicyError::Internal("the weights of the linear score are damaged".to_owned()))
    }

    fn read(file: &'static [u8]) -> Option<Self> {
        let rest = file.strip_prefix(b"PGLINEAR")?;
        let (numbers, rest) = rest.split_at_checked(24)?;
        let (_digest, values) = rest.split_at_checked(32)?;
        let number = |place: usize| {
            let bytes = numbers.get(4 * place..)?.first_chunk()?;
            Some(i32::from_le_bytes(*bytes))
        };
        let is_known = number(0)? == 1 && number(1)? == BUCKET_BITS as i32;
        (is_known && values.len() == 1 << BUCKET_BITS).then_some(Self {
            values,
            bias: number(2)?,
            half_percent: number(3)?,
            one_percent: number(4)?,
        })
    }

    /// Returns the threshold for this false positive rate.
    pub(crate) fn threshold(&self, likeness: FalsePositiveRate) -> i32 {
        match likeness {
            FalsePositiveRate::HalfPercent => self.half_percent,
            FalsePositiveRate::OnePercent => self.one_percent,
        }
    }

    fn weight(&self, bucket: usize) -> i32 {
        self.values
            .get(bucket)
            .map_or(0, |value| i32::from(value.cast_signed()))
    }

    /// Returns the half that begins at or after `at`; `None` if no word begins within the next [`MAX_BLANK_BYTES`] bytes.
    /// Advances `at`.
    fn next_half(&self, text: &[u8], at: &mut usize, before: &mut u32) -> Option<WindowScore> {
        let letter = |at: usize| text.get(at).map_or(0, |byte| LETTER_TABLE[usize::from(*byte)]);
        let blank = text.len().min(at.saturating_add(MAX_BLANK_BYTES));
        while *at < blank && letter(*at) == 0 {
            *at += 1;
        }
        if *at == blank {
            return None;
        }
        let start = *at;
        let last = text.len().min(start + MAX_HALF_BYTES);
        let mut slots = [u32::MAX; SLOTS];
        let mut part = WindowScore {
            start,
            end: start,
            sum: 0,
        };
        for _ in 0..WORDS_PER_HALF {
            let longest = *at + MAX_WORD_BYTES;
            let mut word = FNV_OFFSET;
            while *at < longest {
                let byte = letter(*at);
                if byte == 0 {
                    break;
                }
                word = (word ^ u32::from(byte)).wrapping_mul(FNV_PRIME);
                *at += 1;
            }
            part.end = *at;
            for hash in [word, before.wrapping_mul(PAIR_MULTIPLIER) ^ word] {
                let bucket = hash.wrapping_mul(HASH_MULTIPLIER) >> (32 - BUCKET_BITS);
                let slot = &mut slots[bucket as usize % SLOTS];
                if *slot != bucket {
                    *slot = bucket;
                    part.sum += self.weight(bucket as usize);
                }
            }
            *before = word;
            while *at < last && letter(*at) == 0 {
                *at += 1;
            }
            if *at >= last {
                break;
            }
        }
        Some(part)
    }
}

/// A half window or a window: its range, and the sum of its weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WindowScore {
    /// The first byte.
    pub(crate) start: usize,
    /// The end of the last word, exclusive.
    pub(crate) end: usize,
    sum: i32,
}

impl WindowScore {
    fn merge(self, next: WindowScore) -> WindowScore {
        WindowScore {
            start: self.start,
            end: next.end,
            sum: self.sum + next.sum,
        }
    }
}

/// Progress of scoring a text's windows.
#[derive(Debug, Clone, Default)]
pub(crate) struct WindowScan {
    position: usize,
    /// The hash of the last word.
    last_word_hash: u32,
    last_half: Option<WindowScore>,
    /// Whether there was a window of two halves.
    has_full_window: bool,
}

impl WindowScan {
    /// Returns the window that ends with the next half, if one does; `None` at the end of the text. Reads at most some 16
    /// KiB.
    fn next(&mut self, weights: &Weights, text: &[u8]) -> Option<Option<WindowScore>> {
        if self.position >= text.len() {
            // A text of one half is one window.
            let only = self.last_half.take()?;
            return (!self.has_full_window).then_some(Some(only));
        }
        let Some(half) = weights.next_half(text, &mut self.position, &mut self.last_word_hash) else {
            return Some(None);
        };
        let window = self.last_half.replace(half).map(|last| last.merge(half));
        self.has_full_window |= window.is_some();
        Some(window)
    }
}

/// The search for the parts of a text whose score reaches the threshold.
#[derive(Debug, Clone, Default)]
pub(crate) struct LinearScan {
    windows: WindowScan,
    /// The highest of consecutive windows that reach the threshold; the first window if several are
    /// equal.
    highest: Option<WindowScore>,
    found_count: usize,
}

impl LinearScan {
    /// Reads at most about 16 KiB more of a text, which must be the same in every call. Returns the
    /// number of bytes read and the match found; `None` at the end of the text, when no match
    /// remains.
    pub(crate) fn advance(
        &mut self,
        weights: &Weights,
        threshold: i32,
        text: &str,
    ) -> Option<(usize, Option<WindowScore>)> {
        let from = self.windows.position;
        let Some(window) = self.windows.next(weights, text.as_bytes()) else {
            return self.take_highest().map(|part| (0, Some(part)));
        };
        let passed = self.windows.position - from;
        let Some(window) = window else {
            return Some((passed, None));
        };
        if window.sum.saturating_add(weights.bias) < threshold {
            return Some((passed, self.take_highest()));
        }
        if self.highest.is_none_or(|highest| highest.sum < window.sum) {
            self.highest = Some(window);
        }
        Some((passed, None))
    }

    fn take_highest(&mut self) -> Option<WindowScore> {
        let highest = self.highest.take()?;
        self.found_count += 1;
        (self.found_count <= MAX_MATCHES).then_some(highest)
    }
}

/// Returns the linear score of a text: that of its highest window; `None` for a text without words.
///
/// # Errors
/// [`PolicyError::Internal`] if the data embedded in this library is inconsistent.
pub fn linear_score(text: &str) -> Result<Option<i32>, PolicyError> {
    let weights = Weights::built_in()?;
    let mut windows = WindowScan::default();
    let mut highest = None;
    while let Some(window) = windows.next(&weights, text.as_bytes()) {
        highest = highest.max(window.map(|window| window.sum));
    }
    Ok(highest.map(|sum| sum.saturating_add(weights.bias)))
}
