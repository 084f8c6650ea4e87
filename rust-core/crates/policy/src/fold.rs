//! The folded copy of a text: what a reader sees, in lower case.
//!
//! Letters are lower-cased, look-alikes and compatibility forms become ASCII, accents and invisible characters are left
//! out, every whitespace character becomes one space. Each character is folded by itself (SEMANTICS.md), so a text can be
//! folded in pieces. An ASCII text keeps its length and needs no map back to the text.

use crate::begins::is_word;
use crate::fold_table::{Fold, FoldTable};

/// Lower-cases a letter, makes a space of whitespace, keeps every other byte. Without a branch, so that loops over it
/// are vectorised.
#[inline]
pub(crate) fn plain_byte(byte: u8) -> u8 {
    let upper = u8::from(byte.wrapping_sub(b'A') < 26);
    let space = byte.wrapping_sub(b'\t') < 5;
    if space { b' ' } else { byte | (upper << 5) }
}

/// Replaces the content of `plain` by the plain copy of `text`.
pub(crate) fn fill_plain(plain: &mut Vec<u8>, text: &[u8]) {
    plain.clear();
    plain.extend(text.iter().map(|byte| plain_byte(*byte)));
}

/// A stretch of the folded copy. In a *run* (`width` 0) offsets advance together with those of the text; otherwise the
/// stretch is what one character of `width` bytes became.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    folded: usize,
    text: usize,
    width: usize,
}

/// A folded copy and its map back to the text. Offsets of the copy include `lead`.
#[derive(Debug, Default)]
pub(crate) struct Folded {
    bytes: Vec<u8>,
    stretches: Vec<Stretch>,
    lead: usize,
    ascii: bool,
}

impl Folded {
    /// Replaces the content by the folded copy of `text`. `before` is the byte that stands before it in the folded copy
    /// of a longer text; only whether it belongs to a word matters.
    pub(crate) fn fill(&mut self, table: &FoldTable, text: &str, before: Option<u8>) {
        self.bytes.clear();
        self.stretches.clear();
        self.bytes
            .extend(before.map(|byte| if is_word(byte) { b'a' } else { b' ' }));
        self.lead = self.bytes.len();
        self.ascii = text.is_ascii();
        if self.ascii {
            self.bytes
                .extend(text.as_bytes().iter().map(|byte| plain_byte(*byte)));
        } else {
            self.fill_mapped(table, text);
        }
    }

    fn fill_mapped(&mut self, table: &FoldTable, text: &str) {
        let bytes = text.as_bytes();
        let mut at = 0;
        let mut in_run = false;
        while at < bytes.len() {
            let ascii = ascii_length(&bytes[at..]);
            if ascii > 0 {
                self.open_run(&mut in_run, at);
                self.bytes
                    .extend(bytes[at..at + ascii].iter().map(|byte| plain_byte(*byte)));
                at += ascii;
            }
            let Some(character) = text.get(at..).and_then(|rest| rest.chars().next()) else {
                break;
            };
            let width = character.len_utf8();
            match table.fold(character) {
                Fold::Character(folded) if folded.len_utf8() == width => {
                    self.open_run(&mut in_run, at);
                    self.bytes
                        .extend_from_slice(folded.encode_utf8(&mut [0; 4]).as_bytes());
                }
                Fold::Character(folded) => {
                    self.stretches.push(Stretch {
                        folded: self.bytes.len(),
                        text: at,
                        width,
                    });
                    self.bytes
                        .extend_from_slice(folded.encode_utf8(&mut [0; 4]).as_bytes());
                    in_run = false;
                }
                Fold::Characters(folded) => {
                    self.stretches.push(Stretch {
                        folded: self.bytes.len(),
                        text: at,
                        width,
                    });
                    self.bytes.extend_from_slice(folded.as_bytes());
                    in_run = false;
                }
                Fold::Dropped => in_run = false,
            }
            at += width;
        }
    }

    fn open_run(&mut self, in_run: &mut bool, at: usize) {
        if !*in_run {
            self.stretches.push(Stretch {
                folded: self.bytes.len(),
                text: at,
                width: 0,
            });
            *in_run = true;
        }
    }

    /// The copy, with the byte before it if there is one.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many bytes stand before the copy: 0 or 1.
    pub(crate) fn lead(&self) -> usize {
        self.lead
    }

    /// Whether the text was ASCII; then the copy is the plain copy.
    pub(crate) fn is_ascii(&self) -> bool {
        self.ascii
    }

    fn stretch(&self, folded: usize) -> Stretch {
        let after = self.stretches.partition_point(|stretch| stretch.folded <= folded);
        match after.checked_sub(1) {
            Some(index) => self.stretches[index],
            None => Stretch {
                folded: self.lead,
                text: 0,
                width: 0,
            },
        }
    }

    /// Where in the text the character begins that the byte at `folded` was made from.
    pub(crate) fn text_start(&self, folded: usize) -> usize {
        let stretch = self.stretch(folded);
        if stretch.width > 0 {
            stretch.text
        } else {
            stretch.text + (folded - stretch.folded)
        }
    }

    /// Where in the text the character ends that the byte before `folded` was made from.
    pub(crate) fn text_end(&self, folded: usize) -> usize {
        let stretch = self.stretch(folded.saturating_sub(1));
        if stretch.width > 0 {
            stretch.text + stretch.width
        } else {
            stretch.text + (folded - stretch.folded)
        }
    }

    /// The offset in the copy at which the character begins that the byte at `folded` was made from; at the end of the
    /// copy, the end.
    pub(crate) fn character_start(&self, folded: usize) -> usize {
        if folded >= self.bytes.len() {
            return self.bytes.len();
        }
        let stretch = self.stretch(folded);
        if stretch.width > 0 { stretch.folded } else { folded }
    }
}

fn ascii_length(bytes: &[u8]) -> usize {
    let mut length = 0;
    for chunk in bytes.chunks(16) {
        if !chunk.is_ascii() {
            return length + chunk.iter().take_while(|byte| byte.is_ascii()).count();
        }
        length += chunk.len();
    }
    length
}

/// The last beginning of a character at or before `at`.
pub(crate) fn floor_boundary(text: &[u8], mut at: usize) -> usize {
    while at > 0 && text.get(at).is_some_and(|byte| byte & 0xc0 == 0x80) {
        at -= 1;
    }
    at
}
