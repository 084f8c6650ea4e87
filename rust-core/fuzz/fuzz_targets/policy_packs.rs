//! The built-in packs find the same in a text that arrives in pieces as in the whole text; see `policy_stream`, which
//! tries more texts on fewer rules.
#![no_main]

#[path = "policy/pieces.rs"]
mod pieces;

use libfuzzer_sys::fuzz_target;
use pieces::Evaluation;
use proofgate_policy::{PolicyConfig, pack_names};
use std::cell::RefCell;

thread_local! {
    static EVALUATION: RefCell<Evaluation> = RefCell::new(Evaluation::of(&PolicyConfig {
        packs: pack_names().map(str::to_owned).collect(),
        ..PolicyConfig::default()
    }));
}

fuzz_target!(|input: &[u8]| EVALUATION.with_borrow_mut(|evaluation| evaluation.compare(input)));
