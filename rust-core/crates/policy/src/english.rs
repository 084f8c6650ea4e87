//! Approximate frequency of literals in ordinary English: good enough to choose between literals, and to estimate their
//! cost.

use std::collections::HashMap;
use std::sync::LazyLock;

/// Words that occur in every conversation: about once per kilobyte each, the shortest more often.
const FREQUENT: &[&str] = &[
    "about", "all", "also", "an", "and", "any", "are", "as", "be", "but", "by", "can", "do", "for", "from",
    "have", "how", "if", "in", "is", "it", "like", "me", "more", "my", "no", "not", "of", "on", "one", "or",
    "please", "so", "that", "the", "them", "then", "these", "this", "to", "use", "was", "what", "when",
    "which", "will", "with", "would", "you", "your",
];
/// Words that occur in many conversations.
const COMMON: &[&str] = &[
    "above",
    "act",
    "answer",
    "answers",
    "back",
    "become",
    "before",
    "begin",
    "best",
    "call",
    "case",
    "change",
    "chat",
    "check",
    "code",
    "come",
    "context",
    "copy",
    "could",
    "create",
    "data",
    "describe",
    "display",
    "down",
    "each",
    "end",
    "everything",
    "example",
    "explain",
    "file",
    "find",
    "first",
    "following",
    "give",
    "good",
    "great",
    "help",
    "here",
    "http",
    "https",
    "information",
    "into",
    "just",
    "key",
    "know",
    "language",
    "line",
    "list",
    "look",
    "made",
    "make",
    "many",
    "message",
    "mode",
    "model",
    "most",
    "must",
    "name",
    "need",
    "never",
    "new",
    "now",
    "number",
    "only",
    "open",
    "order",
    "other",
    "output",
    "over",
    "page",
    "part",
    "people",
    "person",
    "place",
    "point",
    "points",
    "print",
    "problem",
    "prompt",
    "question",
    "read",
    "repeat",
    "reply",
    "respond",
    "response",
    "result",
    "return",
    "role",
    "rules",
    "run",
    "say",
    "send",
    "set",
    "share",
    "should",
    "show",
    "some",
    "start",
    "step",
    "story",
    "such",
    "summarize",
    "system",
    "take",
    "tell",
    "text",
    "than",
    "there",
    "thing",
    "things",
    "think",
    "time",
    "token",
    "translate",
    "used",
    "user",
    "using",
    "value",
    "values",
    "very",
    "want",
    "warning",
    "way",
    "well",
    "where",
    "word",
    "words",
    "work",
    "world",
    "write",
];
/// Frequent word endings, and the most frequent words.
const ENDINGS: &[&str] = &[
    "able", "ance", "and", "ation", "ence", "ever", "for", "ight", "ing", "ment", "ning", "of", "other",
    "ould", "ous", "ted", "that", "the", "ther", "ting", "to",
];
const ENDING_RATE: f64 = 5e-3;
const FREQUENT_RATE: f64 = 1e-3;
const COMMON_RATE: f64 = 1e-4;
/// Factor by which each further word reduces the rate of a phrase.
const EXTRA_WORD_FACTOR: f64 = 0.02;

/// Returns the rate at which the bytes of `literal` occur at a position of a text, as if they were independent: accurate for
/// a few bytes.
pub(crate) fn frequency(literal: &[u8]) -> f64 {
    literal.iter().map(|byte| byte_frequency(*byte)).product()
}

/// Returns the rate at which up to four bytes occur at a position of a text, derived from the words that can contain them.
pub(crate) fn window_frequency(window: &[u8]) -> f64 {
    static FRAGMENT_RATES: LazyLock<HashMap<Vec<u8>, f64>> = LazyLock::new(fragment_rates);
    // After a space another, unknown word begins.
    let space = window.iter().rposition(|byte| *byte == b' ').unwrap_or(0);
    let (known, next) = window.split_at(if space > 0 { space + 1 } else { window.len() });
    (frequency(known) + FRAGMENT_RATES.get(known).copied().unwrap_or(0.0)) * frequency(next)
}

/// Returns the rates of all substrings of two to four bytes of the known words, with the spaces around them.
fn fragment_rates() -> HashMap<Vec<u8>, f64> {
    let mut pieces = HashMap::new();
    let whole = |word: &&str| format!(" {word} ");
    let ending = |end: &&str| format!("{end} ");
    let words = FREQUENT.iter().map(whole).map(|word| (word, FREQUENT_RATE));
    let words = words.chain(COMMON.iter().map(whole).map(|word| (word, COMMON_RATE)));
    for (word, rate) in words.chain(ENDINGS.iter().map(ending).map(|end| (end, ENDING_RATE))) {
        for piece in (2..=4).flat_map(|length| word.as_bytes().windows(length)) {
            *pieces.entry(piece.to_vec()).or_insert(0.0) += rate;
        }
    }
    pieces
}

/// Returns the rate at which `literal` (plain) occurs at a position of a text, derived from its words.
pub(crate) fn phrase_frequency(literal: &[u8]) -> f64 {
    let is_letter = |byte: &u8| byte.is_ascii_lowercase();
    let mut rate = 1.0_f64;
    let mut words = 0;
    for piece in literal.chunk_by(|one, other| is_letter(one) == is_letter(other)) {
        if piece.iter().all(is_letter) {
            words += 1;
            let word = word_rate(piece);
            rate = if words == 1 {
                rate * word
            } else {
                rate.min(word) * EXTRA_WORD_FACTOR
            };
        } else {
            // A space between or beside words does not change the rate.
            let other: Vec<u8> = piece.iter().copied().filter(|byte| *byte != b' ').collect();
            rate *= frequency(&other);
        }
    }
    rate
}

fn word_rate(word: &[u8]) -> f64 {
    let known = |list: &[&str]| list.iter().any(|known| known.as_bytes() == word);
    if known(FREQUENT) {
        return FREQUENT_RATE;
    }
    if known(COMMON) {
        return COMMON_RATE;
    }
    match word.len() {
        0..=2 => frequency(word),
        3 => frequency(word).min(5e-4),
        4 => 5e-5,
        _ => 1.5e-5,
    }
}

fn byte_frequency(byte: u8) -> f64 {
    match byte {
        b' ' => 0.17,
        b'e' => 0.1,
        b't' => 0.075,
        b'a' | b'o' => 0.064,
        b'i' | b'n' => 0.057,
        b's' | b'r' | b'h' => 0.05,
        b'l' | b'd' => 0.033,
        b'u' | b'c' | b'm' => 0.022,
        b'f' | b'w' | b'g' | b'y' | b'p' => 0.016,
        b'b' | b'v' | b',' | b'.' => 0.01,
        b'k' | b'0'..=b'9' => 0.005,
        b'-' | b'\'' | b':' | b'"' | b'(' | b')' | b'/' | b'?' => 0.003,
        0x80.. => 0.002,
        _ => 0.0005,
    }
}
