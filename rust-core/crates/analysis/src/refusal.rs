//! Detects whether a response is a refusal.

/// The signal by which a refusal was detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalSignal {
    /// The provider ended the response because of its content, for example with `content_filter`.
    Filtered,
    /// The response contains the field for refusals.
    Declared,
    /// The text begins like a refusal. This is a guess: models also begin in this way and then
    /// help, or refuse in other words.
    Prefix,
}

/// Beginnings of refusals, in lower case, with straight apostrophes.
const REFUSAL_PREFIXES: [&str; 26] = [
    "i can't help",
    "i cannot help",
    "i can't assist",
    "i cannot assist",
    "i can't provide",
    "i cannot provide",
    "i can't fulfill",
    "i cannot fulfill",
    "i can't comply",
    "i cannot comply",
    "i'm sorry, but i can",
    "i am sorry, but i can",
    "i'm sorry, i can",
    "sorry, but i can",
    "sorry, i can",
    "i apologize, but i can",
    "i'm unable to",
    "i am unable to",
    "i'm not able to",
    "i am not able to",
    "i won't be able to",
    "i must decline",
    "es tut mir leid, aber ich kann",
    "je suis désolé, mais je ne peux",
    "lo siento, pero no puedo",
    "mi dispiace, ma non posso",
];
/// Number of characters of a text that are examined.
const MAX_PREFIX_CHARS: usize = 64;

/// Whether a text begins like a refusal.
pub(crate) fn has_refusal_prefix(text: &str) -> bool {
    let beginning: String = text
        .trim_start_matches(|letter: char| !letter.is_alphanumeric())
        .chars()
        .take(MAX_PREFIX_CHARS)
        .flat_map(char::to_lowercase)
        .map(|letter| if letter == '\u{2019}' { '\'' } else { letter })
        .collect();
    REFUSAL_PREFIXES
        .iter()
        .any(|opening| beginning.starts_with(opening))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_known_by_their_beginning_whatever_their_case_and_apostrophes() {
        for text in [
            "I can't help with that.",
            "  I CAN\u{2019}T assist you there",
            "**I'm sorry, but I cannot** do this",
            "Lo siento, pero no puedo ayudarte",
        ] {
            assert!(has_refusal_prefix(text), "{text}");
        }
    }

    #[test]
    fn what_speaks_of_refusals_later_is_none() {
        for text in [
            "",
            "!!!",
            "Sure. If I can't help",
            "I can help",
            "Sorry about the wait: here it is",
        ] {
            assert!(!has_refusal_prefix(text), "{text}");
        }
    }
}
