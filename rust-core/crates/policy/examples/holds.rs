//! Measures how much of a streamed response is held back, and by which rules.
//!
//! `cargo run --release -p proofgate-policy --example holds -- [--packs a,b] FILE…`
//!
//! Each file is a response, split as a model writes it: a word with the space before it, up to three digits, or a
//! punctuation mark. Prints the share of pieces after which some text was held, for all rules of the packs together and for
//! each rule alone; rules that hold nothing are omitted.

use std::error::Error;

use proofgate_policy::{
    Action, ActionOverride, Budget, Engine, PolicyConfig, Scope, Scratch, StreamScan, pattern_pack_names,
};

fn main() -> Result<(), Box<dyn Error>> {
    let (mut packs, mut texts) = (
        pattern_pack_names().map(str::to_owned).collect::<Vec<_>>(),
        Vec::new(),
    );
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--packs" => {
                let names = arguments.next().ok_or("--packs needs names")?;
                packs = names.split(',').map(str::to_owned).collect();
            }
            file => texts.push(String::from_utf8_lossy(&std::fs::read(file)?).into_owned()),
        }
    }
    let all = Engine::compile(&only(&packs, None, &[]))?;
    println!("{:6.2} %  all rules", waiting(&all, &texts)?);
    let ids: Vec<String> = all.rules().map(|rule| rule.id.clone()).collect();
    let mut rules = Vec::new();
    for id in &ids {
        let engine = Engine::compile(&only(&packs, Some(id), &ids))?;
        rules.push((waiting(&engine, &texts)?, id));
    }
    rules.sort_by(|one, other| other.0.total_cmp(&one.0));
    for (share, id) in rules.iter().filter(|(share, _)| *share > 0.0) {
        println!("{share:6.2} %  {id}");
    }
    Ok(())
}

/// Returns the packs with one of their rules that act on responses, or with all of them.
fn only(packs: &[String], rule: Option<&String>, ids: &[String]) -> PolicyConfig {
    let others = ids.iter().filter(|id| rule.is_some_and(|rule| rule != *id));
    PolicyConfig {
        packs: packs.to_vec(),
        actions: match rule {
            None => Vec::new(),
            Some(_) => vec![ActionOverride {
                packs: Vec::new(),
                rules: others.cloned().collect(),
                scopes: None,
                action: Action::Flag,
            }],
        },
        ..PolicyConfig::default()
    }
}

/// Returns the percentage of pieces after which some text was held.
fn waiting(engine: &Engine, texts: &[String]) -> Result<f64, Box<dyn Error>> {
    let profile = engine.profile(None)?;
    let (mut scratch, mut budget) = (Scratch::new(), Budget::unlimited());
    let (mut count, mut waited) = (0_u32, 0_u32);
    for text in texts {
        let (mut scan, mut found, mut pushed) = (StreamScan::new(), Vec::new(), 0);
        for piece in pieces(text) {
            pushed += piece.len();
            let cleared = scan.push(
                engine,
                &profile,
                Scope::Response,
                piece,
                &mut budget,
                &mut scratch,
                &mut found,
            )?;
            count += 1;
            waited += u32::from(cleared < pushed);
        }
    }
    Ok(100.0 * f64::from(waited) / f64::from(count.max(1)))
}

/// Splits a text into pieces of about the size that a model writes at a time.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let mut characters = rest.char_indices().peekable();
        let (_, first) = characters.next()?;
        let of_word = |character: char| character.is_alphabetic();
        let mut is_word = of_word(first);
        if first == ' '
            && let Some((_, next)) = characters.peek()
        {
            is_word = of_word(*next);
        }
        let mut digits = u32::from(first.is_ascii_digit());
        let end = characters.find(|(_, character)| {
            if is_word {
                return !of_word(*character);
            }
            digits += 1;
            !(first.is_ascii_digit() && character.is_ascii_digit() && digits <= 3)
        });
        let (piece, behind) = rest.split_at(end.map_or(rest.len(), |(at, _)| at));
        rest = behind;
        Some(piece)
    })
}
