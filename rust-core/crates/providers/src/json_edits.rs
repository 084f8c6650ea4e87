//! Replacing parts of a string that is JSON itself, such as the arguments of a tool call, so that it stays JSON.
//!
//! What is replaced in a string stays in the string, a number becomes 0, and a key that is changed gets a name that no other
//! changed key has. Everything between them (braces, commas, `true`, `null`) is kept, even where a match spans it.

use std::borrow::Cow;
use std::ops::Range;

use proofgate_json::{Event, Piece, Pieces, Reader, Workspace};

/// A part of a text and what takes its place.
pub type Edit<'r> = (Range<usize>, Cow<'r, str>);

/// The edits that carry out `edits` (in order, without overlaps) in `value` and leave it JSON; `None` if it is no JSON object
/// or array.
pub fn within_json<'r>(value: &str, edits: &[Edit<'r>]) -> Option<Vec<Edit<'r>>> {
    if !value.trim_ascii_start().starts_with(['{', '[']) {
        return None;
    }
    let mut workspace = Workspace::new();
    let mut reader = Reader::of_text(value, &mut workspace).ok()?;
    let mut kept = Vec::new();
    let mut written = vec![false; edits.len()];
    let mut keys = KeyNames::default();
    while let Some(event) = reader.next().ok()? {
        let (token, is_key) = match event {
            Event::Key(key) => (key.range(), true),
            Event::String(string) => (string.range(), false),
            Event::Number(number) => {
                let end = reader.offset();
                let token = end - number.len()..end;
                let first = edits.partition_point(|(edit, _)| edit.end <= token.start);
                if let Some(written) = written
                    .get_mut(first)
                    .filter(|_| edits[first].0.start < token.end)
                {
                    *written = true;
                    kept.push((token, Cow::Borrowed("0")));
                }
                continue;
            }
            _ => continue,
        };
        let first = edits.partition_point(|(edit, _)| edit.end <= token.start);
        for (number, (edit, replacement)) in edits.iter().enumerate().skip(first) {
            if edit.start >= token.end {
                break;
            }
            let part = edit.start.max(token.start)..edit.end.min(token.end);
            let part = around_escapes(&value[token.clone()], token.start, part);
            let again = std::mem::replace(&mut written[number], true);
            let replacement = match (again, is_key) {
                (_, true) => keys.distinct(replacement),
                (true, false) => Cow::Borrowed(""),
                (false, false) => replacement.clone(),
            };
            kept.push((part, replacement));
        }
    }
    Some(kept)
}

/// The names that changed keys get.
#[derive(Debug, Default)]
pub struct KeyNames {
    given: usize,
}

impl KeyNames {
    /// `name`, with the number of the key from the second one on: two keys of an object never become the same.
    pub fn distinct<'r>(&mut self, name: &Cow<'r, str>) -> Cow<'r, str> {
        self.given += 1;
        match self.given {
            1 => name.clone(),
            number => format!("{name}#{number}").into(),
        }
    }
}

/// Widens a part of the string `raw`, which begins at `start`, so that it cuts through no escape.
fn around_escapes(raw: &str, start: usize, part: Range<usize>) -> Range<usize> {
    let (mut at, mut widened) = (start, part.clone());
    for piece in Pieces::of(raw) {
        let length = match piece {
            Piece::Plain(plain) => plain.len(),
            Piece::Escape { length, .. } => {
                if at < part.start && part.start < at + length {
                    widened.start = at;
                }
                if at < part.end && part.end < at + length {
                    widened.end = at + length;
                }
                length
            }
        };
        at += length;
    }
    widened
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::within_json;

    /// Replaces `words` in `value` by `[x]`, as a rule would.
    fn redacted(value: &str, words: &[&str]) -> String {
        let mut edits: Vec<_> = words
            .iter()
            .flat_map(|word| value.match_indices(word))
            .map(|(start, word)| (start..start + word.len(), Cow::Borrowed("[x]")))
            .collect();
        edits.sort_by_key(|(range, _)| range.start);
        let mut out = value.to_owned();
        for (range, replacement) in within_json(value, &edits).unwrap().iter().rev() {
            out.replace_range(range.clone(), replacement);
        }
        out
    }

    #[test]
    fn a_number_becomes_zero_and_a_string_stays_a_string() {
        let value = r#"{"card": 4111111111111111, "note": "card 4111111111111111."}"#;
        assert_eq!(
            redacted(value, &["4111111111111111"]),
            r#"{"card": 0, "note": "card [x]."}"#
        );
    }

    #[test]
    fn a_match_over_a_key_and_its_value_keeps_both() {
        let value = r#"{"a": 1, "password": "hunter2-hunter2", "b": [true]}"#;
        assert_eq!(
            redacted(value, &[r#"password": "hunter2-hunter2"#]),
            r#"{"a": 1, "[x]": "", "b": [true]}"#
        );
    }

    #[test]
    fn keys_never_become_the_same() {
        let value = r#"{"ann@a.example": 1, "bob@a.example": 2}"#;
        assert_eq!(
            redacted(value, &["ann@a.example", "bob@a.example"]),
            r##"{"[x]": 1, "[x]#2": 2}"##
        );
    }

    #[test]
    fn no_escape_is_cut() {
        let value = r#"{"path": "C:\\secret\nnext \u00e9"}"#;
        assert_eq!(
            redacted(value, &[r"\secret\", "00e9"]),
            r#"{"path": "C:[x]next [x]"}"#
        );
    }

    #[test]
    fn what_is_no_json_is_left_to_others() {
        assert!(within_json("{not json", &[]).is_none());
        assert!(within_json("\"text\"", &[]).is_none());
        assert!(within_json("a [bracket]", &[]).is_none());
    }
}
