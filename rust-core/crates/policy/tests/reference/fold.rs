//! The views of a text (SEMANTICS.md, "Views of a text"), character by character from `homoglyphs.toml`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;
use unicode_normalization::UnicodeNormalization;

/// The replacement of each character in the file; `None` means that it is removed.
pub struct Table {
    named: BTreeMap<char, Option<char>>,
    marks: Vec<char>,
    entities: BTreeMap<String, char>,
}

static REFERENCE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("^&(?:#([0-9]{1,8})|#[xX]([0-9A-Fa-f]{1,8})|([A-Za-z]+));").unwrap());

/// Markup, and the first letter after it.
static MARKUP: LazyLock<Regex> = LazyLock::new(|| {
    let element =
        "</?(?:a|abbr|b|big|code|del|em|font|i|ins|mark|s|small|span|strike|strong|sub|sup|tt|u|wbr)";
    let inside = "[^<>]{0,62}";
    Regex::new(&format!(
        r"^(?:\*{{1,3}}|`{{1,3}}|~~|{element}(?:[ /]{inside})?>|<!--{inside}-->){{1,4}}[a-z\x{{80}}-\x{{10ffff}}]"
    ))
    .unwrap()
});

fn is_letter(character: char) -> bool {
    character.is_ascii_lowercase() || !character.is_ascii()
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
        let entities = file["entities"].as_table().unwrap().iter();
        let entities = entities.map(|(name, character)| (name.clone(), characters(character)[0]));
        Self {
            named,
            marks: characters(&file["marks"]),
            entities: entities.collect(),
        }
    }

    fn fold(&self, character: char) -> String {
        if let Some(replacement) = self.named.get(&character) {
            return replacement.iter().collect();
        }
        if character.is_ascii() {
            return plain_character(character).to_string();
        }
        let decomposed = std::iter::once(character).nfkd();
        let bare = decomposed.filter(|part| !self.marks.contains(part)).nfc();
        let part = |part: char| match self.named.get(&part) {
            Some(replacement) => replacement.iter().collect(),
            None if part.is_ascii() => plain_character(part).to_string(),
            None => part.to_lowercase().collect(),
        };
        bare.map(part).collect()
    }

    /// Returns the folded copy, and for each of its bytes the range of the character that produced it.
    pub fn copy(&self, text: &str) -> (String, Vec<(usize, usize)>) {
        let mut copy: Vec<(char, (usize, usize))> = Vec::new();
        let mut at = 0;
        while let Some(first) = text[at..].chars().next() {
            let (character, length) = self.reference(&text[at..]).unwrap_or((first, first.len_utf8()));
            for folded in self.fold(character).chars() {
                if folded != ' ' || copy.last().is_none_or(|(last, _)| *last != ' ') {
                    copy.push((folded, (at, at + length)));
                }
            }
            at += length;
        }
        let written: String = copy.iter().map(|(character, _)| character).collect();
        let (mut kept, mut origins) = (String::new(), Vec::new());
        let mut hidden = 0;
        for ((place, character), (_, origin)) in written.char_indices().zip(copy) {
            if kept.ends_with(is_letter) && place >= hidden {
                let markup = MARKUP.find(&written[place..]);
                hidden = markup.map_or(hidden, |markup| {
                    let behind = markup.as_str().chars().next_back().map_or(0, char::len_utf8);
                    place + markup.len() - behind
                });
            }
            if place >= hidden {
                kept.push(character);
                origins.resize(kept.len(), origin);
            }
        }
        (kept, origins)
    }

    /// Returns the character reference at the beginning of a text, and its length.
    fn reference(&self, text: &str) -> Option<(char, usize)> {
        let captures = REFERENCE.captures(text)?;
        let number = |group: regex::Match<'_>, radix| u32::from_str_radix(group.as_str(), radix).ok();
        let character = match (captures.get(1), captures.get(2)) {
            (Some(digits), _) => char::from_u32(number(digits, 10)?)?,
            (_, Some(digits)) => char::from_u32(number(digits, 16)?)?,
            _ => *self.entities.get(&captures[3])?,
        };
        Some((character, captures[0].len()))
    }

    /// Folds the non-ASCII characters of a pattern.
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

/// Returns the plain copy of a text.
pub fn plain(text: &str) -> String {
    text.chars().map(plain_character).collect()
}

fn plain_character(character: char) -> char {
    match character {
        '\t'..='\r' => ' ',
        other => other.to_ascii_lowercase(),
    }
}

/// Parses the characters of "U+XXXX" and "U+XXXX-U+YYYY", alone or in a list.
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
