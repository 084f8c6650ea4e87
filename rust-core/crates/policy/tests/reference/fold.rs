//! The views of a text (SEMANTICS.md, "Views of a text"), character by character from `homoglyphs.toml`.

use std::collections::BTreeMap;

use unicode_normalization::UnicodeNormalization;

/// What the file says of each character that it names; nothing is "left out".
pub struct Table {
    named: BTreeMap<char, Option<char>>,
    marks: Vec<char>,
}

impl Table {
    pub fn read() -> Self {
        let file: toml::Table = include_str!("../../src/homoglyphs.toml").parse().unwrap();
        let mut named = BTreeMap::new();
        for (ascii, glyphs) in file["homoglyphs"].as_table().unwrap() {
            for glyph in glyphs.as_str().unwrap().chars() {
                named.insert(glyph, ascii.chars().next());
            }
        }
        for first in characters(&file["alphabets"]) {
            named.extend((first..).zip(('a'..='z').map(Some)));
        }
        let shadow = |tag: char| char::from_u32(u32::from(tag) - 0xe0000);
        let tags = characters(&file["tags"]).into_iter();
        named.extend(tags.map(|tag| (tag, shadow(tag).map(plain_character))));
        named.extend(
            characters(&file["whitespace"])
                .into_iter()
                .map(|space| (space, Some(' '))),
        );
        named.extend(
            characters(&file["dropped"])
                .into_iter()
                .map(|dropped| (dropped, None)),
        );
        Self {
            named,
            marks: characters(&file["marks"]),
        }
    }

    fn fold(&self, character: char) -> String {
        if character.is_ascii() {
            return plain_character(character).to_string();
        }
        if let Some(replacement) = self.named.get(&character) {
            return replacement.iter().collect();
        }
        let decomposed = std::iter::once(character).nfkd();
        let bare = decomposed.filter(|part| !self.marks.contains(part)).nfc();
        let part = |part: char| match self.named.get(&part) {
            _ if part.is_ascii() => plain_character(part).to_string(),
            Some(replacement) => replacement.iter().collect(),
            None => part.to_lowercase().collect(),
        };
        bare.map(part).collect()
    }

    /// The folded copy, and for each of its bytes where the character begins and ends that it was made from.
    pub fn copy(&self, text: &str) -> (String, Vec<(usize, usize)>) {
        let (mut copy, mut origins) = (String::new(), Vec::new());
        for (start, character) in text.char_indices() {
            copy.push_str(&self.fold(character));
            origins.resize(copy.len(), (start, start + character.len_utf8()));
        }
        (copy, origins)
    }

    /// Folds the characters of a pattern that are not ASCII.
    pub fn fold_unless_ascii(&self, pattern: &str) -> String {
        let fold = |character: char| {
            if character.is_ascii() {
                character.to_string()
            } else {
                regex::escape(&self.fold(character))
            }
        };
        pattern.chars().map(fold).collect()
    }
}

/// The plain copy of a text.
pub fn plain(text: &str) -> String {
    text.chars().map(plain_character).collect()
}

fn plain_character(character: char) -> char {
    match character {
        '\t'..='\r' => ' ',
        other => other.to_ascii_lowercase(),
    }
}

/// The characters of "U+XXXX" and "U+XXXX-U+YYYY", alone or in a list.
fn characters(value: &toml::Value) -> Vec<char> {
    if let Some(values) = value.as_array() {
        return values.iter().flat_map(characters).collect();
    }
    let code = |code: &str| u32::from_str_radix(&code[2..], 16).unwrap();
    let (first, last) = value
        .as_str()
        .map(|range| range.split_once('-').unwrap_or((range, range)))
        .unwrap();
    (code(first)..=code(last)).filter_map(char::from_u32).collect()
}
