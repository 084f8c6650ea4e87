//! Translates JSON schemas of responses and arguments for providers.

mod claude;
mod members;
mod strict;

pub use claude::{write as write_for_claude, write_arguments};
pub use strict::can_be_strict;
