//! Compares ways to search for some hundred literals in ordinary prose.
//!
//! `cargo run --release -p proofgate-policy --example prefilters`
//!
//! The literals are those of the built-in packs, first a selection of 200 and then all; the text is 1 KB of lower-case
//! prose. Prints nanoseconds per kilobyte: median, minimum and maximum of the rounds.

mod prose;

use std::collections::BTreeSet;
use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use aho_corasick::packed::Searcher;
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use proofgate_policy::prefilter::Prefilter;
use proofgate_policy::{Pack, pattern_pack_names};

const ROUNDS: usize = 9;

fn main() -> Result<(), Box<dyn Error>> {
    let mut all = BTreeSet::new();
    for name in pattern_pack_names() {
        let literals = Pack::built_in(name)?
            .rules
            .into_iter()
            .flat_map(|rule| rule.literals);
        all.extend(
            literals
                .map(|literal| literal.to_lowercase().into_bytes())
                .filter(|literal| literal.len() >= 4),
        );
    }
    let all: Vec<Vec<u8>> = all.into_iter().collect();
    let step = (all.len() / 200).max(1);
    let selection: Vec<Vec<u8>> = all.iter().step_by(step).take(200).cloned().collect();
    let texts: Vec<String> = prose::prompts(2000, 1024, 1)
        .into_iter()
        .map(|text| text.to_lowercase())
        .collect();
    for literals in [&selection, &all] {
        compare(literals, &texts)?;
    }
    Ok(())
}

fn compare(literals: &[Vec<u8>], texts: &[String]) -> Result<(), Box<dyn Error>> {
    println!("{} literals", literals.len());
    let prefilter = Prefilter::new(literals);
    measure("window table", texts, |text| {
        let mut hits = 0;
        prefilter.search(text, |_, _| hits += 1);
        hits
    });
    let automaton = AhoCorasick::builder()
        .kind(Some(AhoCorasickKind::DFA))
        .match_kind(MatchKind::Standard)
        .build(literals)?;
    measure("aho-corasick DFA, overlapping", texts, |text| {
        automaton.find_overlapping_iter(text).count()
    });
    for size in [16, 64] {
        let groups: Option<Vec<Searcher>> = literals.chunks(size).map(Searcher::new).collect();
        let groups = groups.ok_or("no packed searcher on this processor")?;
        let name = format!("Teddy, {} groups of {size}", groups.len());
        measure(&name, texts, |text| {
            groups.iter().map(|group| group.find_iter(text).count()).sum()
        });
    }
    Ok(())
}

fn measure(name: &str, texts: &[String], search: impl Fn(&[u8]) -> usize) {
    let mut hits = 0;
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let begin = Instant::now();
            hits = texts
                .iter()
                .map(|text| black_box(search(black_box(text.as_bytes()))))
                .sum();
            begin.elapsed().as_nanos() as f64 / texts.len() as f64
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    let (median, least, most) = (rounds[ROUNDS / 2], rounds[0], rounds[ROUNDS - 1]);
    let hits = hits as f64 / texts.len() as f64;
    println!("  {name:32} {median:>7.0} ns   ({least:.0} to {most:.0}), {hits:.1} hits");
}
