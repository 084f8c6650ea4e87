//! Measures how much a text repeats itself.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Maximum number of words analysed, from the beginning: limits memory and time.
const MAX_WORDS: usize = 8192;
/// Words in a group.
const GROUP_WORDS: usize = 4;
/// Maximum length, in words, of a block whose repetition in a row is detected.
const MAX_PERIOD: usize = 48;
/// Minimum number of words for a measurement.
const MIN_WORDS: usize = 64;
/// Minimum number of consecutive occurrences of a block in a loop.
const MIN_LOOP_REPEATS: usize = 8;

/// The measured repetition in a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Repetition {
    /// The share of groups of four words that occurred before: 0 for a text without repetition, near 1 for a loop.
    pub repeated_share: f64,
    /// The share of words in the longest stretch that repeats one block of at most 48 words.
    pub longest_run_share: f64,
    /// Whether a stretch is a loop: at least 64 words, and at least eight consecutive occurrences of a block.
    pub is_loop: bool,
}

impl Repetition {
    /// Measures a text; `None` if it has fewer than 64 words. A word is text between white space, or one character of a
    /// script that is written without spaces.
    #[must_use]
    pub fn measure(text: &str) -> Option<Self> {
        let words = hash_words(text);
        if words.len() < MIN_WORDS {
            return None;
        }
        let mut seen = HashSet::with_capacity(words.len());
        let groups = words.len() + 1 - GROUP_WORDS;
        let new = words
            .windows(GROUP_WORDS)
            .filter(|group| seen.insert(*group))
            .count();
        let (longest, is_loop) = longest_run(&words);
        Some(Repetition {
            repeated_share: (groups - new) as f64 / groups as f64,
            longest_run_share: longest as f64 / words.len() as f64,
            is_loop,
        })
    }
}

/// Returns the length in words of the longest stretch in which each word equals the word one period
/// before it, and whether a stretch of any period is a loop.
fn longest_run(words: &[u64]) -> (usize, bool) {
    let (mut longest, mut is_loop) = (0, false);
    for period in 1..=MAX_PERIOD {
        let mut same = 0;
        for at in period..words.len() {
            same = if words[at] == words[at - period] {
                same + 1
            } else {
                0
            };
            if same >= period {
                let stretch = same + period;
                longest = longest.max(stretch);
                is_loop |= stretch >= MIN_WORDS && stretch >= MIN_LOOP_REPEATS * period;
            }
        }
    }
    (longest, is_loop)
}

fn hash_words(text: &str) -> Vec<u64> {
    let mut words = Vec::new();
    let mut start = None;
    for (at, letter) in text.char_indices() {
        let stands_alone = letter >= '\u{2e80}';
        let ends = stands_alone || letter.is_whitespace();
        if ends && let Some(start) = start.take() {
            words.push(hash_word(&text[start..at]));
        }
        if stands_alone {
            words.push(hash_word(&text[at..at + letter.len_utf8()]));
        } else if !ends && start.is_none() {
            start = Some(at);
        }
        if words.len() >= MAX_WORDS {
            return words;
        }
    }
    if let Some(start) = start {
        words.push(hash_word(&text[start..]));
    }
    words
}

fn hash_word(word: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    word.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROSE: &str = "The client never waits for analysis, tree hashing, signatures or fsync. It does wait for two \
        small copies into the kernel: the admission before anything leaves, and the completion before the end of the answer \
        does. A worker that is killed between them leaves an exchange open, and its successor closes it when it starts. Of \
        two operators the holder of a lease acts, and the other follows the watches too, so it knows everything when it \
        takes over at its next try.";

    #[test]
    fn prose_repeats_almost_nothing() {
        let repetition = Repetition::measure(PROSE).unwrap();
        assert!(
            repetition.repeated_share < 0.05 && repetition.longest_run_share < 0.1 && !repetition.is_loop
        );
    }

    #[test]
    fn a_model_that_loops_is_found_whatever_it_said_before() {
        for block in [
            "no ",
            "I do not know. ",
            "one two three four five six seven eight nine ten eleven twelve ",
        ] {
            let text = format!("{PROSE} {}", block.repeat(200));
            let repetition = Repetition::measure(&text).unwrap();
            assert!(
                repetition.repeated_share > 0.6 && repetition.longest_run_share > 0.6 && repetition.is_loop,
                "{block}"
            );
        }
    }

    #[test]
    fn scripts_without_spaces_have_a_word_for_each_character() {
        let repetition = Repetition::measure(&"我不知道。".repeat(40)).unwrap();
        assert!(repetition.is_loop && repetition.repeated_share > 0.9);
    }

    #[test]
    fn a_sentence_said_three_times_is_no_loop() {
        let repetition = Repetition::measure(&PROSE.repeat(3)).unwrap();
        assert!(repetition.repeated_share > 0.6 && !repetition.is_loop);
    }

    #[test]
    fn of_a_short_answer_nothing_is_concluded() {
        assert_eq!(Repetition::measure(&"no ".repeat(63)), None);
        assert_eq!(Repetition::measure(""), None);
    }
}
