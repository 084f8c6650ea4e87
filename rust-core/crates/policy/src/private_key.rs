//! Finds the end of a private key whose beginning a rule has matched (RFC 7468; RFC 9580, 6.2): a key of 4096 bits is longer
//! than a match may be.

/// Minimum base64 characters of a line of a key. Shorter base64 is treated as a word, unless the
/// end of a key follows.
const MIN_LINE: usize = 16;
/// Maximum number of short lines at the end of a key: the rest of the key, and a checksum.
const MAX_SHORT_LINES: usize = 2;
const MAX_NUMBER_LEN: usize = 6;
const END_MARKER: &[u8] = b"-----END ";
const MAX_LABEL: usize = 48;

/// Returns the end of the key in `text` whose beginning is before `from`: after its last line, or after its end marker.
/// Between lines there may be characters that source code, JSON and tools that display files write there: quotes, escapes,
/// punctuation, line numbers.
pub(crate) fn key_end(text: &str, from: usize) -> usize {
    let bytes = text.as_bytes();
    let (mut end, mut at, mut short) = (from, from, 0);
    // The match may have ended within a line.
    at += base64_len(&bytes[at.min(bytes.len())..]);
    end = end.max(at);
    loop {
        at += separator_len(&bytes[at.min(bytes.len())..]);
        let rest = bytes.get(at..).unwrap_or_default();
        if let Some(label) = rest.strip_prefix(END_MARKER) {
            return at + END_MARKER.len() + label_end(label).unwrap_or(0);
        }
        let length = base64_len(rest);
        let is_number = length <= MAX_NUMBER_LEN && rest[..length].iter().all(u8::is_ascii_digit);
        match length {
            0 => return end,
            MIN_LINE.. => {
                end = at + length;
                short = 0;
            }
            _ if is_number || rest[..length] == *b"+" => {}
            _ if short < MAX_SHORT_LINES => short += 1,
            _ => return end,
        }
        at += length;
    }
}

/// Returns the number of bytes up to the end of the dashes after a label.
fn label_end(label: &[u8]) -> Option<usize> {
    let end = label
        .windows(5)
        .take(MAX_LABEL)
        .position(|five| five == b"-----")?;
    Some(end + 5)
}

fn base64_len(bytes: &[u8]) -> usize {
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    bytes.iter().take_while(|byte| is_digit(byte)).count()
}

/// Returns the number of bytes of a separator between two lines.
fn separator_len(bytes: &[u8]) -> usize {
    let mut at = 0;
    loop {
        let rest = &bytes[at..];
        at += match rest {
            [b'\\', b'r' | b'n' | b't', ..] => 2,
            _ if rest.starts_with(END_MARKER) => return at,
            [
                b' ' | b'\t' | b'\r' | b'\n' | b'\\' | b'"' | b'\'' | b'`' | b',' | b'-' | b'|' | b'>' | b':'
                | b'#' | b'*',
                ..,
            ] => 1,
            _ if rest.starts_with("→".as_bytes()) => "→".len(),
            _ => return at,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::key_end;

    const LINE: &str = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj";

    /// Returns the text left after a key written like this is removed.
    fn left(between: &str, last: &str, behind: &str) -> String {
        let text = format!("BEGIN-----{between}{LINE}{between}{LINE}{between}{last}{between}{behind}");
        let from = text.find("MII").unwrap_or_default() + 24;
        text[key_end(&text, from)..].to_owned()
    }

    #[test]
    fn a_key_ends_behind_its_last_words_however_its_lines_are_parted() {
        for between in [
            "\n",
            "\r\n",
            "\\n",
            "\\\\n",
            "\",\n  \"",
            "\\n\" +\n    \"",
            "\n     2\t",
            "\n  17→",
            "\n> ",
            "\n+",
            "\n-",
        ] {
            assert_eq!(
                left(between, "qHkr3Q==", "-----END PRIVATE KEY----- and a word"),
                " and a word",
                "{between:?}"
            );
        }
        let armor = "qHkr3Q==\n=x4Bc";
        assert_eq!(
            left("\n", armor, "-----END PGP PRIVATE KEY BLOCK-----\nNext"),
            "\nNext"
        );
    }

    #[test]
    fn words_behind_a_key_that_is_cut_off_stay() {
        assert_eq!(
            left("\n", "", "Then he went home again."),
            "\n\nThen he went home again."
        );
        assert_eq!(
            left("\\n", "", "\", \"client_email\": \"a\"}"),
            "\\n\\n\", \"client_email\": \"a\"}"
        );
        assert_eq!(left("\n", LINE, ""), "\n");
        assert_eq!(left("\n", "", "-----END "), "");
    }

    #[test]
    fn every_end_is_one_of_the_text() {
        let text = format!("{LINE}\n  2→{LINE}\n3→é");
        for from in (0..=text.len()).filter(|from| text.is_char_boundary(*from)) {
            assert!(text.is_char_boundary(key_end(&text, from)));
        }
    }
}
