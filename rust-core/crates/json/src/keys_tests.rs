use std::cell::Cell;
use std::fmt::Write;

use crate::{JsonError, Reader, Workspace};

thread_local! {
    /// Number of times that two names were compared byte by byte because their hashes were equal.
    pub(super) static NAMES_COMPARED: Cell<u64> = const { Cell::new(0) };
}

const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(state: u64, word: u64) -> u64 {
    let product = (state ^ word).wrapping_mul(FACTOR);
    product ^ (product >> 32)
}

/// Returns names of 16 ASCII characters, written as escapes, that all have the same value of the unkeyed
/// multiplicative hash that is common in hash tables. Anyone who knows such a hash can generate any number of them.
fn names_of_one_hash(count: usize) -> Vec<String> {
    let target = 0x0123_4567_89ab_cdef;
    let names = (0u64..).filter_map(|number| {
        let digits = format!("{number:08}");
        let first = u64::from_le_bytes(*digits.as_bytes().first_chunk()?);
        let last = mix(16, first) ^ target;
        let bytes = [first.to_le_bytes(), last.to_le_bytes()].concat();
        bytes.is_ascii().then(|| {
            bytes.iter().fold(String::new(), |mut name, byte| {
                let _ = write!(name, "\\u{byte:04x}");
                name
            })
        })
    });
    names.take(count).collect()
}

fn read(names: &[String]) -> Result<(), JsonError> {
    let members: Vec<String> = names.iter().map(|name| format!("\"{name}\":0")).collect();
    let document = format!("{{{}}}", members.join(","));
    let mut workspace = Workspace::new();
    let mut reader = Reader::from_text(&document, &mut workspace)?;
    while reader.next()?.is_some() {}
    reader.finish()
}

#[test]
fn names_that_were_made_to_have_one_hash_are_not_compared_with_each_other() {
    let names = names_of_one_hash(1_000);
    NAMES_COMPARED.set(0);
    assert_eq!(read(&names), Ok(()));
    assert!(NAMES_COMPARED.get() < 100, "{}", NAMES_COMPARED.get());
}

#[test]
fn a_name_that_is_repeated_among_them_is_found() {
    let mut names = names_of_one_hash(1_000);
    names.push(names[17].clone());
    assert!(matches!(read(&names), Err(JsonError::DuplicateKey { .. })));
}
