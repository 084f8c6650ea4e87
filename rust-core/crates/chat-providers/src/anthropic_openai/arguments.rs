//! Detection of truncated call arguments that arrive in fragments.

/// Tracks the brackets and strings of one JSON object, without buffering it.
///
/// It distinguishes a truncated object from a complete one; other errors between the brackets are
/// left to the client's parser.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ArgumentScanner {
    state: State,
    depth: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    /// Only white space so far.
    #[default]
    Before,
    Inside,
    InString,
    /// After a backslash in a string.
    Escaped,
    Complete,
    /// Not an object, or an object followed by other content.
    Invalid,
}

impl ArgumentScanner {
    /// Reads the next fragment, as written between the quotes of a JSON string.
    pub(crate) fn push(&mut self, fragment: &str) {
        let mut rest = fragment.as_bytes();
        while let Some((&byte, behind)) = rest.split_first() {
            rest = behind;
            if byte != b'\\' {
                self.push_byte(byte);
                continue;
            }
            let Some((&escape, behind)) = rest.split_first() else {
                break;
            };
            rest = behind;
            match escape {
                b'u' => {
                    let (digits, behind) = rest.split_at_checked(4).unwrap_or((rest, &[]));
                    rest = behind;
                    self.push_byte(decode_ascii_escape(digits));
                }
                b'"' | b'\\' | b'/' => self.push_byte(escape),
                // b, f, n, r and t: white space, or invalid everywhere.
                _ => self.push_byte(b'\n'),
            }
        }
    }

    fn push_byte(&mut self, byte: u8) {
        self.state = match (self.state, byte) {
            (State::Before | State::Complete, b' ' | b'\t' | b'\n' | b'\r') => self.state,
            (State::Before, b'{') => {
                self.depth = 1;
                State::Inside
            }
            (State::Inside, b'"') => State::InString,
            (State::Inside, b'{' | b'[') => {
                self.depth = self.depth.saturating_add(1);
                State::Inside
            }
            (State::Inside, b'}' | b']') => {
                self.depth = self.depth.saturating_sub(1);
                if self.depth == 0 {
                    State::Complete
                } else {
                    State::Inside
                }
            }
            (State::InString, b'\\') => State::Escaped,
            (State::InString, b'"') => State::Inside,
            (State::Escaped, _) => State::InString,
            (State::Inside | State::InString, _) => self.state,
            (State::Before | State::Complete | State::Invalid, _) => State::Invalid,
        };
    }

    /// Returns whether there was only white space: a call without arguments.
    pub(crate) fn is_empty(self) -> bool {
        self.state == State::Before
    }

    pub(crate) fn is_complete(self) -> bool {
        self.state == State::Complete
    }

    pub(crate) fn is_invalid(self) -> bool {
        self.state == State::Invalid
    }
}

/// Returns the ASCII character for four hexadecimal digits; a letter for any other character.
fn decode_ascii_escape(digits: &[u8]) -> u8 {
    let code = std::str::from_utf8(digits)
        .ok()
        .and_then(|digits| u8::from_str_radix(digits, 16).ok());
    code.filter(u8::is_ascii).unwrap_or(b'x')
}

#[cfg(test)]
mod tests {
    use super::ArgumentScanner;

    fn after(fragments: &[&str]) -> ArgumentScanner {
        let mut progress = ArgumentScanner::default();
        fragments.iter().for_each(|fragment| progress.push(fragment));
        progress
    }

    #[test]
    fn an_object_is_whole_with_its_last_bracket() {
        assert!(after(&[r#"{\"a\":"#, r#"[{\"b\":1}]"#, "}"]).is_complete());
        assert!(after(&["{}", r" \n"]).is_complete());
    }

    #[test]
    fn brackets_and_quotes_inside_strings_do_not_count() {
        assert!(after(&[r#"{\"a\":\"}\\\"}\"}"#]).is_complete());
        assert!(after(&[r#"{\u0022a\u0022:\u0022\u007d\u0022"#, "}"]).is_complete());
    }

    #[test]
    fn an_escape_that_two_fragments_share_is_one() {
        assert!(after(&[r#"{\"a\":\"\\"#, r#"\"\"}"#]).is_complete());
    }

    #[test]
    fn a_torso_is_neither_whole_nor_broken() {
        let torso = after(&[r#"{\"a\":\"b"#]);
        assert!(!torso.is_complete() && !torso.is_invalid() && !torso.is_empty());
    }

    #[test]
    fn what_is_no_object_is_broken() {
        assert!(after(&["[]"]).is_invalid());
        assert!(after(&["{}", "{}"]).is_invalid());
    }
}
