//! A strict JSON reader that allocates nothing and knows where every value stands.
//!
//! [`Reader`] pulls events out of one document (RFC 8259). What two parsers could read differently is refused: a
//! repeated key, a lone surrogate, invalid UTF-8, a byte order mark, anything after the value, nesting beyond a limit.
//! Strings and numbers are handed out as they stand in the document, with their place, so that a caller can replace one
//! and leave every other byte as it came.
#![forbid(unsafe_code)]

mod block;
mod case;
mod error;
mod escape;
mod event;
mod keys;
mod number;
mod reader;
mod run;
mod text;
mod unescape;

pub use case::equals_ignore_case;
pub use error::JsonError;
pub use event::Event;
pub use reader::{DEFAULT_MAX_DEPTH, Reader, Workspace};
pub use text::{Str, StrSegment, StrSegments, escape_into};
