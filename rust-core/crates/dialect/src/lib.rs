//! What all translations between dialects of model APIs have in common: what a request [goes to](Target) and what the way back
//! [has to know of it](Asked), why a request or an answer [cannot be said](Untranslatable), what becomes of fields
//! [without a counterpart](losses), and how JSON is read and written without copying it.
//!
//! What single models refuse stands in one table, [`constraints`]; what they can do, in [`capabilities`].
#![forbid(unsafe_code)]
#![allow(
    missing_docs,
    reason = "only the translation crates use it, and the names are clear enough"
)]

pub mod abilities;
pub mod bedrock_error;
pub mod constraints;
pub mod dropped;
pub mod field;
pub mod json;
pub mod json_text;
pub mod losses;
pub mod object;
pub mod reasoning_details;
pub mod schema;

mod asked;
mod asked_response;
mod error;
mod events;
mod usage;

pub use asked::{RequestContext, Target, UntranslatableFieldPolicy};
pub use asked_response::{ResponsesContext, ToolKind, ToolMapping};
pub use error::{ResponseError, UntranslatableRequest};
pub use events::{EventKind, StreamStatus, write_data, write_event};
pub use usage::Usage;
