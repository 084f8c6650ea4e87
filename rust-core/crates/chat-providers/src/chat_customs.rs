//! A client of chat completions that has custom tools, and the same dialect without them: what a writer of the crate
//! `chat-clients` takes on to a provider that has functions alone.
//!
//! A custom tool is a function of one string, `input`; the grammar of its texts stands in the parameter's description, and is
//! named in [`RequestContext::dropped`](proofgate_dialect::RequestContext::dropped), since no provider holds to it. Calls and choices in the
//! request follow, and calls of an answer come back as those of custom tools. In a stream their text comes in one piece, when
//! it is whole. All else passes byte for byte.
//!
//! A body that cannot be read passes as it is, and the next reader says what is wrong with it.

mod answer;
mod request;
mod stream;

pub use answer::translate_response;
pub use request::translate_request;
pub use stream::Stream;
