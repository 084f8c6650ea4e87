//! JSON schemas of answers and arguments, as providers take them.

mod claude;
mod members;
mod strict;

pub(crate) use claude::{write as write_for_claude, write_arguments};
pub(crate) use strict::can_be_strict;
