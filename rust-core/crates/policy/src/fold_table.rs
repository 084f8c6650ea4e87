//! The table behind the folded copy, built once from `homoglyphs.toml` and Unicode's compatibility decompositions.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use serde::Deserialize;
use unicode_normalization::UnicodeNormalization;

use crate::PolicyError;

/// Lower-cases a letter, turns whitespace into a space, and keeps every other byte. Branch-free, so that loops over it are
/// vectorised.
#[inline]
pub(crate) fn plain_byte(byte: u8) -> u8 {
    let upper = u8::from(byte.wrapping_sub(b'A') < 26);
    let space = byte.wrapping_sub(b'\t') < 5;
    if space { b' ' } else { byte | (upper << 5) }
}

/// The result of folding a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FoldResult<'t> {
    Dropped,
    Character(char),
    Characters(&'t str),
}

/// The folding results of all characters, stored only for blocks of 256 characters that contain at
/// least one character changed by folding.
#[derive(Debug)]
pub(crate) struct FoldTable {
    blocks: Vec<u16>,
    cells: Vec<[u32; 256]>,
    strings: Vec<String>,
    entities: Vec<(String, char)>,
}

const DROPPED: u32 = 0;
const STRING: u32 = 1 << 31;
/// A block in which folding changes no character.
const UNCHANGED: u16 = u16::MAX;

/// Returns the fold table.
///
/// # Errors
/// [`PolicyError::Internal`] if the embedded file does not have the expected content.
pub(crate) fn table() -> Result<&'static FoldTable, PolicyError> {
    static TABLE: LazyLock<Result<FoldTable, String>> = LazyLock::new(|| {
        FoldSource::read(include_str!("homoglyphs.toml")).map(|source| FoldTable::build(&source))
    });
    TABLE
        .as_ref()
        .map_err(|reason| PolicyError::Internal(format!("homoglyphs.toml: {reason}")))
}

impl FoldTable {
    fn build(source: &FoldSource) -> Self {
        let mut table = Self {
            blocks: vec![UNCHANGED; 0x11_0000 >> 8],
            cells: Vec::new(),
            strings: Vec::new(),
            entities: source.entities.clone(),
        };
        // Planes 0 and 1, the compatibility ideographs, and the invisible part of plane 14: all other characters fold to
        // themselves.
        for block in (0..0x200).chain(0x2f8..0x2fb).chain(0xe00..0xe10) {
            let mut cells = [DROPPED; 256];
            let mut changed = false;
            for (low, cell) in (0_u32..256).zip(&mut cells) {
                let code = (block << 8) | low;
                let Some(character) = char::from_u32(code) else {
                    continue;
                };
                let folded = source.fold(character);
                let mut characters = folded.chars();
                *cell = match (characters.next(), characters.next()) {
                    (None, _) => DROPPED,
                    (Some(only), None) => u32::from(only),
                    _ => {
                        table.strings.push(folded);
                        STRING | (table.strings.len() as u32 - 1)
                    }
                };
                changed |= *cell != code;
            }
            if changed {
                table.blocks[block as usize] = table.cells.len() as u16;
                table.cells.push(cells);
            }
        }
        table
    }

    /// Returns the result of folding `character`.
    pub(crate) fn fold(&self, character: char) -> FoldResult<'_> {
        let code = u32::from(character);
        let block = self.blocks[(code >> 8) as usize];
        if block == UNCHANGED {
            return FoldResult::Character(character);
        }
        match self.cells[usize::from(block)][(code & 0xff) as usize] {
            DROPPED => FoldResult::Dropped,
            cell if cell & STRING != 0 => FoldResult::Characters(&self.strings[(cell & !STRING) as usize]),
            cell => char::from_u32(cell).map_or(FoldResult::Dropped, FoldResult::Character),
        }
    }

    /// Returns the supported named character references: name and character.
    pub(crate) fn entities(&self) -> &[(String, char)] {
        &self.entities
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SourceFile {
    dropped: Vec<String>,
    marks: Vec<String>,
    whitespace: Vec<String>,
    alphabets: Vec<String>,
    tags: String,
    entities: BTreeMap<String, String>,
    homoglyphs: HashMap<String, String>,
}

/// The parsed file: the replacement of each character; `None` means that it is removed.
struct FoldSource {
    replaced: HashMap<char, Option<char>>,
    marks: Vec<(char, char)>,
    entities: Vec<(String, char)>,
}

impl FoldSource {
    fn read(file: &str) -> Result<Self, String> {
        let file: SourceFile = toml::from_str(file).map_err(|error| error.message().to_owned())?;
        let mut replaced = HashMap::new();
        for (looks_like, characters) in &file.homoglyphs {
            let mut ascii = looks_like.chars();
            let (Some(ascii), None) = (ascii.next(), ascii.next()) else {
                return Err(format!("{looks_like:?} is not one character"));
            };
            replaced.extend(characters.chars().map(|character| (character, Some(ascii))));
        }
        for first in &file.alphabets {
            let (first, _) = parse_range(first)?;
            replaced.extend(
                (first..)
                    .zip('a'..='z')
                    .map(|(character, letter)| (character, Some(letter))),
            );
        }
        let (first, last) = parse_range(&file.tags)?;
        let printable = (b' '..=b'~').map(|byte| Some(char::from(plain_byte(byte))));
        replaced.extend((first..=last).zip(printable));
        for spaces in &file.whitespace {
            let (first, last) = parse_range(spaces)?;
            replaced.extend((first..=last).map(|character| (character, Some(' '))));
        }
        for dropped in &file.dropped {
            let (first, last) = parse_range(dropped)?;
            replaced.extend((first..=last).map(|character| (character, None)));
        }
        let marks = file
            .marks
            .iter()
            .map(|marks| parse_range(marks))
            .collect::<Result<_, _>>()?;
        let entities = file
            .entities
            .into_iter()
            .map(|(name, character)| Ok((name, parse_range(&character)?.0)))
            .collect::<Result<_, String>>()?;
        Ok(Self {
            replaced,
            marks,
            entities,
        })
    }

    fn fold(&self, character: char) -> String {
        if let Some(replacement) = self.replaced.get(&character) {
            return replacement.iter().collect();
        }
        if character.is_ascii() {
            return char::from(plain_byte(character as u8)).to_string();
        }
        let is_mark = |mark: &char| {
            self.marks
                .iter()
                .any(|(first, last)| (first..=last).contains(&mark))
        };
        let mut folded = String::new();
        for part in std::iter::once(character)
            .nfkd()
            .filter(|part| !is_mark(part))
            .nfc()
        {
            match self.replaced.get(&part) {
                _ if part.is_ascii() => folded.push(char::from(plain_byte(part as u8))),
                Some(replacement) => folded.extend(replacement),
                None => folded.extend(part.to_lowercase()),
            }
        }
        folded
    }
}

/// Reads "U+XXXX" or "U+XXXX-U+YYYY".
fn parse_range(text: &str) -> Result<(char, char), String> {
    let character = |text: &str| {
        let code = text
            .strip_prefix("U+")
            .and_then(|hex| u32::from_str_radix(hex, 16).ok());
        code.and_then(char::from_u32)
            .ok_or_else(|| format!("{text:?} is not U+XXXX"))
    };
    match text.split_once('-') {
        Some((first, last)) => Ok((character(first)?, character(last)?)),
        None => Ok((character(text)?, character(text)?)),
    }
}
