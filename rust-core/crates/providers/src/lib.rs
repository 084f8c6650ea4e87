//! How a request is rewritten for an upstream, and what its answer says about itself.
//!
//! A body is forwarded as it came. The only bytes ever replaced are those of the `model` value, when the manifest
//! gives the model another name upstream.
#![forbid(unsafe_code)]

mod chat;
mod done;
mod upstream;
mod usage;

pub use chat::{BadRequest, ChatRequest};
pub use done::DoneScanner;
pub use upstream::{BaseUrl, BaseUrlError, RequestTemplate};
pub use usage::{Usage, UsageTail};
