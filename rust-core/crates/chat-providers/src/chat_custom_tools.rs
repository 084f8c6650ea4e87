//! Translates between a client of chat completions that uses custom tools and the same API without them, for writers of the
//! crate `chat-clients` whose provider has only functions.
//!
//! A custom tool becomes a function with one string, `input`. The grammar of its texts is put in
//! the parameter's description and named in
//! [`RequestContext::dropped`](proofgate_dialect::RequestContext::dropped_fields), because no
//! provider enforces it. Calls and tool choices in the request are changed accordingly, and calls
//! in an answer become calls of custom tools again. In a stream their text is sent in one piece,
//! once it is complete. Everything else is copied byte for byte.
//!
//! A body that cannot be read is copied unchanged, and the next reader reports the error.

mod request;
mod response;
mod stream;

pub use request::translate_request;
pub use response::translate_response;
pub use stream::Stream;
