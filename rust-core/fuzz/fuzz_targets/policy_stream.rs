//! Rules find the same in a text that arrives in pieces as in the whole text, and what was cleared early is touched by
//! no later match. The rules are short, so that random texts match them, and few, so that many texts can be tried.
#![no_main]

#[path = "policy/pieces.rs"]
mod pieces;

use libfuzzer_sys::fuzz_target;
use pieces::Evaluation;
use proofgate_policy::{Engine, PolicyConfig, RuleSpec};
use std::cell::RefCell;

/// Literals that overlap, both views, a filter, a check, word boundaries, and repetitions over a boundary of pieces.
const RULES: &str = r#"[
    {"id": "literals", "reason": "-", "literals": ["ab", "abcd", "b c", "é"]},
    {"id": "folded", "reason": "-", "regex": "x[yz]{1,6}x|\\byes\\b"},
    {"id": "filtered", "reason": "-", "regex": "[a-f ]{2,12}!", "literals": ["fa", "d"]},
    {"id": "text", "reason": "-", "view": "Text", "regex": "\\bsk-[A-Za-z0-9]{3,8}\\b"},
    {"id": "checked", "reason": "-", "view": "Text", "regex": "\\b[0-9](?:[ -]?[0-9]){12,18}\\b", "check": "Luhn"},
    {"id": "answers", "reason": "-", "target": "Response", "view": "Text", "regex": "Q.{0,20}Q"}
]"#;

thread_local! {
    static EVALUATION: RefCell<Evaluation> = RefCell::new(Evaluation::of(engine()));
}

fn engine() -> Engine {
    let config = PolicyConfig {
        rules: serde_json::from_str::<Vec<RuleSpec>>(RULES).expect("it is JSON"),
        ..PolicyConfig::default()
    };
    Engine::compile(&config).expect("the rules are valid")
}

fuzz_target!(|input: &[u8]| EVALUATION.with_borrow_mut(|evaluation| evaluation.compare(input)));
