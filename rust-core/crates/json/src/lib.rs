//! A strict JSON reader that does not allocate and reports the location of every value.
//!
//! [`Reader`] is a pull parser for one document (RFC 8259). It refuses everything that two parsers could read
//! differently: duplicate keys, unpaired surrogates, invalid UTF-8, a byte order mark, data after the value, and
//! nesting beyond a limit. Strings and numbers are returned as written, with their location, so that a caller can
//! replace one and leave every other byte unchanged.
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
