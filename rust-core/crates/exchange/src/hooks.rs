//! Asks the policies that are evaluated outside of the data plane, once the rules have let a request pass, and does what they
//! say of its text.

mod consult;
mod masks;
mod replacement;

pub use consult::{HookRequest, evaluate_hooks};
pub use masks::Masks;
