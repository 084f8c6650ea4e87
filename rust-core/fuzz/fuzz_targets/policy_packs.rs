//! The built-in packs find the same in a text that arrives in pieces as in the whole text; see `policy_stream`, which
//! tries more texts on fewer rules.
#![no_main]

#[path = "policy/pieces.rs"]
mod pieces;

use libfuzzer_sys::fuzz_target;
use pieces::Evaluation;
use proofgate_policy::{Action, Engine, Pack, PolicyConfig, pattern_pack_names};
use std::cell::RefCell;

thread_local! {
    static EVALUATION: RefCell<Evaluation> = RefCell::new(Evaluation::of(engine()));
}

/// All rules of the packs, wherever they could look.
fn engine() -> Engine {
    let packs = pattern_pack_names().map(|name| Pack::built_in(name).expect("it exists").without_limits());
    let mut packs: Vec<_> = packs.collect();
    let rules = packs.iter_mut().flat_map(|pack| &mut pack.rules);
    rules.for_each(|rule| rule.action = Action::Block);
    Engine::compile_packs(&PolicyConfig::default(), packs).expect("the rules are valid")
}

fuzz_target!(|input: &[u8]| EVALUATION.with_borrow_mut(|evaluation| evaluation.compare(input)));
