//! JSON schemas of answers and arguments, as providers take them.

mod members;
mod strict;

pub(crate) use strict::can_be_strict;

/// How deep a schema is looked into, that no stack is used up.
const DEEPEST: usize = 48;
