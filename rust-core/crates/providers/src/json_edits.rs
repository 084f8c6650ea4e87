//! Replaces parts of a text that is itself JSON, such as the arguments of a tool call, so that it remains valid JSON.
//!
//! A replacement in a string stays within the string, a number becomes a string, and a changed key
//! gets a name that no other changed key has. Everything else (braces, commas, `true`, `null`) is
//! kept, even where a match spans it. In a text that is JSON only up to some point, the rest is
//! replaced as plain text.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Range;

use crate::json_tokenizer::{JsonTokenKind, JsonTokenizer};

/// A range of a text and its replacement.
pub type Edit<'r> = (Range<usize>, Cow<'r, str>);

/// A range of a text that has to be replaced to apply an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextReplacement {
    /// The range.
    pub range: Range<usize>,
    /// The index of the edit.
    pub edit_index: usize,
    /// Whether it is the first range of the edit.
    pub is_first: bool,
    kind: Option<JsonTokenKind>,
}

impl TextReplacement {
    /// Returns the replacement of this range, where `by` replaces the whole edit: the first range
    /// becomes `by`, the other ranges are removed; for a key, `by` is made a unique name, and a
    /// number becomes a string.
    pub fn replacement_text<'r>(&self, by: &Cow<'r, str>, keys: &mut UniqueKeyNames) -> Cow<'r, str> {
        match (self.kind, self.is_first) {
            (Some(JsonTokenKind::Key), _) => keys.make_unique(by),
            (Some(JsonTokenKind::Number), _) => format!("\"{by}\"").into(),
            (_, true) => by.clone(),
            (_, false) => Cow::Borrowed(""),
        }
    }
}

/// Tracks which parts of a text, which may be JSON and arrives in pieces, can be replaced.
#[derive(Debug, Default)]
pub struct JsonEditTracker {
    walk: JsonTokenizer,
    /// Keys, strings and numbers that are complete.
    finished_tokens: VecDeque<(JsonTokenKind, Range<usize>)>,
    escapes: VecDeque<Range<usize>>,
}

impl JsonEditTracker {
    /// Returns a tracker with the tokens of a complete text that edits touch.
    pub fn from_edits(text: &str, edits: &[Edit<'_>]) -> Self {
        let mut json = JsonEditTracker::default();
        let JsonEditTracker {
            walk,
            finished_tokens: tokens,
            escapes,
        } = &mut json;
        let mut take = |token, range: Range<usize>| {
            let next = edits.partition_point(|(edit, _)| edit.end <= range.start);
            if edits.get(next).is_some_and(|(edit, _)| edit.start < range.end) {
                record_token(tokens, escapes, token, range);
            }
        };
        walk.push(text, &mut take);
        walk.finish(take);
        json
    }

    /// Reads the next piece.
    pub fn push(&mut self, piece: &str) {
        let (tokens, escapes) = (&mut self.finished_tokens, &mut self.escapes);
        self.walk
            .push(piece, |token, range| record_token(tokens, escapes, token, range));
    }

    /// Ends the text.
    pub fn finish(&mut self) {
        let (tokens, escapes) = (&mut self.finished_tokens, &mut self.escapes);
        self.walk
            .finish(|token, range| record_token(tokens, escapes, token, range));
    }

    /// Whether no part of the text so far is JSON.
    pub fn is_not_json(&self) -> bool {
        self.walk.valid_json_end() == Some(0)
    }

    /// Returns the last offset at or before `place` that is not inside a number or an escape, which can only be
    /// replaced whole.
    pub fn floor_boundary(&self, place: usize) -> usize {
        if let Some(start) = self.walk.unfinished_unit_start().filter(|start| *start < place) {
            return start;
        }
        let number = self
            .finished_tokens
            .partition_point(|(_, token)| token.end <= place);
        match self.finished_tokens.get(number) {
            Some((JsonTokenKind::Number, number)) if number.start < place => number.start,
            _ => self.expand_to_escapes(place..place).start,
        }
    }

    /// Returns the first offset at or after `place` that is not inside a number or an escape.
    pub fn ceil_boundary(&self, place: usize) -> usize {
        let number = self
            .finished_tokens
            .partition_point(|(_, token)| token.end <= place);
        match self.finished_tokens.get(number) {
            Some((JsonTokenKind::Number, number)) if number.start < place => number.end,
            _ => self.expand_to_escapes(place..place).end,
        }
    }

    /// Discards tokens that end before `place`; later edits must not refer to them.
    pub fn discard_before(&mut self, place: usize) {
        while self
            .finished_tokens
            .front()
            .is_some_and(|(_, token)| token.end <= place)
        {
            self.finished_tokens.pop_front();
        }
        while self.escapes.front().is_some_and(|escape| escape.end <= place) {
            self.escapes.pop_front();
        }
    }

    /// Returns the approximate number of bytes of memory in use.
    pub fn capacity(&self) -> usize {
        self.finished_tokens.capacity() * size_of::<(JsonTokenKind, Range<usize>)>()
            + self.escapes.capacity() * size_of::<Range<usize>>()
    }

    /// Returns the ranges to replace, in order and without overlaps. The edits must also be in order and must not
    /// overlap.
    pub fn replacements(&self, edits: impl Iterator<Item = Range<usize>>) -> Vec<TextReplacement> {
        let mut cuts: Vec<TextReplacement> = Vec::new();
        let mut covered = 0;
        let json_end = self.walk.valid_json_end().unwrap_or(usize::MAX);
        for (number, edit) in edits.enumerate() {
            let mut is_first = true;
            let mut cut = |range: Range<usize>, kind| {
                if range.start < range.end {
                    covered = range.end;
                    cuts.push(TextReplacement {
                        range,
                        edit_index: number,
                        is_first: std::mem::take(&mut is_first),
                        kind,
                    });
                }
                covered
            };
            let mut from = cut(0..0, None);
            let first = self
                .finished_tokens
                .partition_point(|(_, token)| token.end <= edit.start);
            let tokens = self
                .finished_tokens
                .range(first..)
                .cloned()
                .chain(self.walk.unfinished_token());
            for (token, place) in tokens.take_while(|(_, place)| place.start < edit.end) {
                let range = match token {
                    JsonTokenKind::Number if edit.start < place.end => place,
                    JsonTokenKind::Number => continue,
                    _ => {
                        let part = edit.start.max(place.start)..edit.end.min(place.end);
                        if part.start >= part.end {
                            continue;
                        }
                        self.shrink_to_escapes(part)
                    }
                };
                // A number that an earlier edit has replaced is not replaced again.
                let is_number = token == JsonTokenKind::Number;
                if !is_number || range.start >= from {
                    from = cut(range.start.max(from)..range.end, Some(token));
                }
            }
            cut(edit.start.max(json_end).max(from)..edit.end, None);
        }
        cuts
    }

    /// Moves the ends of a range so that it cuts through no escape, like [`align_to_escapes`].
    fn shrink_to_escapes(&self, part: Range<usize>) -> Range<usize> {
        let around = self.expand_to_escapes(part.clone());
        let holding = |from: usize, to: usize| {
            let next = self.escapes.partition_point(|escape| escape.end <= from);
            self.escapes
                .get(next)
                .filter(|escape| escape.start <= from && to <= escape.end)
        };
        let is_sign =
            |escape: Option<&Range<usize>>| escape.is_some_and(|escape| escape.len() == SHORT_ESCAPE_LEN);
        let cuts_first = around.start < part.start && is_sign(holding(around.start, part.start));
        let cuts_last = part.end < around.end && is_sign(holding(part.end, around.end));
        let start = if cuts_first {
            around.start + SHORT_ESCAPE_LEN
        } else {
            around.start
        };
        start..if cuts_last {
            around.end - SHORT_ESCAPE_LEN
        } else {
            around.end
        }
    }

    /// Widens a range so that it cuts through no escape.
    fn expand_to_escapes(&self, part: Range<usize>) -> Range<usize> {
        let holding = |place: usize| {
            let next = self.escapes.partition_point(|escape| escape.end <= place);
            self.escapes.get(next).filter(|escape| escape.start < place)
        };
        let start = holding(part.start).map_or(part.start, |escape| escape.start);
        start..holding(part.end).map_or(part.end, |escape| escape.end)
    }
}

/// Length of an escape for a quote, a backslash, a slash or a control character, such as `\n`, in bytes.
const SHORT_ESCAPE_LEN: usize = 2;
/// Length of a `\uXXXX` escape, in bytes.
const UNICODE_ESCAPE_LEN: usize = 6;

/// Moves the ends of a range in a JSON text so that it cuts through no escape. At a short escape, such as a line
/// break or a quote, the range begins after it or ends before it; a `\uXXXX` escape is included whole.
pub(crate) fn align_to_escapes(text: &str, part: Range<usize>) -> Range<usize> {
    let bytes = text.as_bytes();
    let start = match escape_spanning(bytes, part.start) {
        Some(escape) if escape.len() == SHORT_ESCAPE_LEN => escape.end,
        Some(escape) => escape.start,
        None => part.start,
    };
    let end = match escape_spanning(bytes, part.end) {
        Some(escape) if escape.len() == SHORT_ESCAPE_LEN => escape.start,
        Some(escape) => escape.end,
        None => part.end,
    };
    if start < end { start..end } else { part }
}

/// Returns the escape of a string that begins before `place` and ends after it.
fn escape_spanning(text: &[u8], place: usize) -> Option<Range<usize>> {
    (place.saturating_sub(UNICODE_ESCAPE_LEN - 1)..place).find_map(|start| {
        let backslashes = |end: usize| {
            text[..end]
                .iter()
                .rev()
                .take_while(|byte| **byte == b'\\')
                .count()
        };
        if *text.get(start)? != b'\\' || backslashes(start) % 2 == 1 {
            return None;
        }
        let length = match text.get(start + 1)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => SHORT_ESCAPE_LEN,
            b'u' => UNICODE_ESCAPE_LEN,
            _ => return None,
        };
        (place < start + length).then_some(start..start + length)
    })
}

fn record_token(
    finished_tokens: &mut VecDeque<(JsonTokenKind, Range<usize>)>,
    escapes: &mut VecDeque<Range<usize>>,
    token: JsonTokenKind,
    range: Range<usize>,
) {
    match token {
        JsonTokenKind::Escape => escapes.push_back(range),
        _ => finished_tokens.push_back((token, range)),
    }
}

/// Returns the edits that apply `edits` (in order, without overlaps) in `value` and keep its JSON part valid; `None`
/// if no part of it is JSON.
pub fn edits_within_json<'r>(value: &str, edits: &[Edit<'r>]) -> Option<Vec<Edit<'r>>> {
    if edits.is_empty() || !value.trim_ascii_start().starts_with(['{', '[']) {
        return None;
    }
    let json = JsonEditTracker::from_edits(value, edits);
    let mut keys = UniqueKeyNames::default();
    let cuts = json.replacements(edits.iter().map(|(range, _)| range.clone()));
    let edits = cuts.into_iter().map(|cut| {
        let by = cut.replacement_text(&edits[cut.edit_index].1, &mut keys);
        (cut.range, by)
    });
    Some(edits.collect())
}

/// The names assigned to changed keys.
#[derive(Debug, Default)]
pub struct UniqueKeyNames {
    used_count: usize,
}

impl UniqueKeyNames {
    /// Returns `name`, numbered from the second key on, so that two keys of an object never become
    /// equal. A name that represents a single value is kept, so that the value can be restored.
    pub fn make_unique<'r>(&mut self, name: &Cow<'r, str>) -> Cow<'r, str> {
        if is_placeholder(name) {
            return name.clone();
        }
        self.used_count += 1;
        match self.used_count {
            1 => name.clone(),
            number => format!("{name}#{number}").into(),
        }
    }
}

/// Whether a name is the placeholder of a masked value, such as `[email-1]`.
fn is_placeholder(name: &str) -> bool {
    let inner = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    let parts = inner.and_then(|inner| inner.rsplit_once('-'));
    parts.is_some_and(|(kind, number)| {
        let is_of_id = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        kind.bytes().all(is_of_id) && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::{align_to_escapes, edits_within_json};

    /// Replaces `words` in `value` with `[x]`, as a rule would.
    fn redacted(value: &str, words: &[&str]) -> String {
        let mut edits: Vec<_> = words
            .iter()
            .flat_map(|word| value.match_indices(word))
            .map(|(start, word)| (start..start + word.len(), Cow::Borrowed("[x]")))
            .collect();
        edits.sort_by_key(|(range, _)| range.start);
        let mut out = value.to_owned();
        for (range, replacement) in edits_within_json(value, &edits).unwrap().iter().rev() {
            out.replace_range(range.clone(), replacement);
        }
        out
    }

    #[test]
    fn a_number_becomes_a_string_and_never_another_number() {
        let value =
            r#"{"card": 4111111111111111, "share": -0.5564543226524334, "note": "card 4111111111111111."}"#;
        assert_eq!(
            redacted(value, &["4111111111111111", "556454322652433"]),
            r#"{"card": "[x]", "share": "[x]", "note": "card [x]."}"#
        );
        assert_eq!(redacted("[12, 12]", &["1", "2"]), r#"["[x]", "[x]"]"#);
    }

    #[test]
    fn a_match_over_a_key_and_its_value_keeps_both() {
        let value = r#"{"a": 1, "password": "hunter2-hunter2", "b": [true]}"#;
        assert_eq!(
            redacted(value, &[r#"password": "hunter2-hunter2"#]),
            r#"{"a": 1, "[x]": "", "b": [true]}"#
        );
        assert_eq!(
            redacted(r#"{"a": "b", "c": 3}"#, &[r#"b", "c": 3"#]),
            r##"{"a": "[x]", "[x]": "[x]"}"##
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
        let value = r#"{"path": "C:\\secret\nnext \u00e9\ud83d\ude00"}"#;
        assert_eq!(
            redacted(value, &[r"\secret\", "00e9", "de00"]),
            r#"{"path": "C:\\[x]\nnext [x][x]"}"#
        );
    }

    #[test]
    fn a_part_is_moved_off_the_escapes_that_it_cuts_through() {
        for (text, part, expected) in [
            (r"\nann", 1..5, 2..5),
            (r"a\\nb", 2..5, 3..5),
            (r"ab\n", 0..3, 0..2),
            (r"\u0041b", 2..7, 0..7),
            (r"\\u0041b", 3..8, 3..8),
            (r"\x", 1..2, 1..2),
            ("ab", 0..2, 0..2),
            (r"\n", 1..2, 1..2),
        ] {
            assert_eq!(align_to_escapes(text, part), expected, "{text}");
        }
    }

    #[test]
    fn behind_json_a_text_is_replaced_as_it_stands() {
        assert_eq!(
            redacted(r#"{"a": 12} 12, "12""#, &["12"]),
            r#"{"a": "[x]"} [x], "[x]""#
        );
        assert_eq!(redacted(r#"{"a": "12", 12"#, &["12"]), r#"{"a": "[x]", [x]"#);
    }

    #[test]
    fn lines_of_json_stay_such() {
        assert_eq!(
            redacted("{\"a\": 12}\n{\"a\": 12}\n", &["12"]),
            "{\"a\": \"[x]\"}\n{\"a\": \"[x]\"}\n"
        );
    }

    #[test]
    fn what_is_no_json_is_left_to_others() {
        let edits = [(0..1, Cow::Borrowed("[x]"))];
        assert!(edits_within_json("\"text\"", &edits).is_none());
        assert!(edits_within_json("a [bracket]", &edits).is_none());
    }
}
