//! Evaluates the external policies once the rules have passed a request, and applies their replacements to its text.

mod evaluation;
mod masks;
mod replacement;

pub use evaluation::{HookRequest, evaluate_hooks};
pub use masks::Masks;
