//! How a request is rewritten for an upstream, and what requests and answers say.
//!
//! A body is forwarded as it came, but for the value of `model`, when the manifest gives the model another name upstream,
//! and for what rules redact. What rules look at is read here: [`BodyText`] of a request, [`GeneratedText`] of an
//! answer, [`EventReader`] of a streamed one. Each text knows where it stands, so that a [`Rewriter`] changes nothing
//! else.
#![forbid(unsafe_code)]

mod bad_request;
mod body_text;
mod chat;
mod done;
mod events;
mod field_names;
mod generated;
mod splice;
mod upstream;
mod usage;

pub use bad_request::{BadRequest, Field};
pub use body_text::BodyText;
pub use chat::ChatRequest;
pub use done::DoneScanner;
pub use events::{EventReader, EventTooLarge, StreamEvent};
pub use generated::{GeneratedText, Part, Shape};
pub use splice::{Offsets, Place, Rewriter};
pub use upstream::{BaseUrl, BaseUrlError, RequestTemplate};
pub use usage::{Usage, UsageTail};
