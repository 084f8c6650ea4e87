//! JSON schemas of answers and arguments, as providers take them.

mod claude;
mod members;
mod strict;

pub(crate) use claude::{write as write_for_claude, write_arguments};
pub(crate) use strict::can_be_strict;

/// How deep a schema is looked into. What lies deeper passes as it came, and no stack is used up.
const DEEPEST: usize = 48;
