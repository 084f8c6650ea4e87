//! Common parts of all translations between dialects of model APIs: the [target](Target) of a request, the
//! [state](RequestContext) needed to translate its response, the errors for [requests](UntranslatableRequest) and
//! [responses](ResponseError) that cannot be translated, the [list](droppable_fields) of fields without a counterpart, and
//! reading and writing JSON without copying it.
//!
//! Constraints of single models are in one table, [`constraints`]; their capabilities are in [`capabilities`].
#![forbid(unsafe_code)]
#![allow(missing_docs, reason = "internal crate: the names of the items describe them")]

pub mod bedrock_error;
pub mod capabilities;
pub mod constraints;
pub mod droppable_fields;
pub mod dropped_field_log;
pub mod field;
pub mod json;
pub mod json_text;
pub mod object;
pub mod reasoning_details;
pub mod schema;

mod error;
mod events;
mod request_context;
mod responses_context;
mod usage;

pub use error::{ResponseError, UntranslatableRequest};
pub use events::{EventKind, StreamStatus, write_data, write_event};
pub use request_context::{RequestContext, Target, UntranslatableFieldPolicy};
pub use responses_context::{ResponsesContext, ToolKind, ToolMapping};
pub use usage::Usage;
