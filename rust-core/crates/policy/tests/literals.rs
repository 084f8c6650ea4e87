//! The prefilter finds every occurrence of every literal, whatever their lengths and overlaps.
#![cfg(feature = "testing")]

use std::collections::BTreeSet;

use proofgate_policy::prefilter::Prefilter;
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;

fn found(literals: &[Vec<u8>], text: &[u8]) -> BTreeSet<(usize, usize)> {
    let mut found = BTreeSet::new();
    Prefilter::new(literals).search(text, |literal, start| {
        found.insert((literal, start));
    });
    found
}

fn occurrences(literals: &[Vec<u8>], text: &[u8]) -> BTreeSet<(usize, usize)> {
    let mut all = BTreeSet::new();
    for (number, literal) in literals.iter().enumerate() {
        for (start, window) in text.windows(literal.len()).enumerate() {
            if window == literal {
                all.insert((number, start));
            }
        }
    }
    all
}

#[test]
fn literals_of_three_bytes_are_found_where_they_overlap() {
    let literals: Vec<Vec<u8>> = ["dni", "nie", "nif", "iee"]
        .map(|text| text.as_bytes().to_vec())
        .into();
    assert_eq!(
        found(&literals, b"dniee"),
        BTreeSet::from([(0, 0), (1, 1), (3, 2)])
    );
}

proptest! {
    #[test]
    fn every_occurrence_of_every_literal_is_found(
        literals in btree_set(vec(b'a'..=b'c', 1..9), 1..12),
        text in vec(b'a'..=b'd', 0..200),
    ) {
        let literals: Vec<Vec<u8>> = literals.into_iter().collect();
        prop_assert_eq!(found(&literals, &text), occurrences(&literals, &text));
    }
}
