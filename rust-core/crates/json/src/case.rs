/// Whether `text` equals `name`, an ASCII name, for a parser that ignores case.
///
/// Go's `encoding/json` compares names by Unicode simple case folding, in which U+017F equals `s` and U+212A equals
/// `k`; Java's `equalsIgnoreCase` also matches U+0130 and U+0131 with `i`. Neither matches any other non-ASCII
/// character with an ASCII letter.
#[must_use]
pub fn equals_ignore_case(text: &str, name: &str) -> bool {
    let mut letters = text.chars().map(|letter| match letter {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        '\u{130}' | '\u{131}' => 'i',
        other => other.to_ascii_lowercase(),
    });
    name.chars()
        .all(|wanted| letters.next() == Some(wanted.to_ascii_lowercase()))
        && letters.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The only character of `cases`, if there is exactly one.
    fn single(mut cases: impl Iterator<Item = char>) -> Option<char> {
        cases.next().filter(|_| cases.next().is_none())
    }

    #[test]
    fn of_all_characters_those_are_a_letter_whose_upper_and_lower_case_say_so() {
        // No character beyond these two planes has a case.
        for character in '\0'..='\u{1ffff}' {
            let upper = single(character.to_uppercase()).unwrap_or(character);
            let folded = match character {
                '\u{130}' => 'i',
                _ => single(upper.to_lowercase()).unwrap_or(upper),
            };
            let text = character.to_string();
            for letter in 'a'..='z' {
                let same = equals_ignore_case(&text, letter.encode_utf8(&mut [0; 4]));
                assert_eq!(same, folded == letter, "{character:?} and {letter}");
            }
        }
    }

    #[test]
    fn a_longer_or_shorter_name_is_another_one() {
        assert!(equals_ignore_case("MODEL", "model"));
        assert!(equals_ignore_case("FILEURI", "fileUri"));
        for other in ["", "mode", "models", "model ", "\u{130}model"] {
            assert!(!equals_ignore_case(other, "model"), "{other}");
        }
    }
}
