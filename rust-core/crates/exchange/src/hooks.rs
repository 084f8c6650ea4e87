//! Evaluates the external policies of a request that the rules passed, and applies their
//! replacements to its text.

mod evaluation;
mod masks;
mod replacement;

pub use evaluation::{HookRequest, evaluate_hooks};
pub use masks::Masks;
