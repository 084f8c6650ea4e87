//! Reads chat completion requests, for all providers alike.
//!
//! [`translate`] reads a request and calls a writer that translates it into the provider's dialect. This crate
//! defines the types of the fields, the required content of messages, parts, tools and choices, and the handling of
//! fields without a counterpart. A writer names the fields that it handles itself; all others are dropped or refused
//! according to the
//! [list](proofgate_dialect::droppable_fields).
#![forbid(unsafe_code)]
#![allow(missing_docs, reason = "internal crate: the names of the items describe them")]

mod body;
mod calls;
mod dropped_fields;
mod effort;
mod media;
mod message_path;
mod messages;
mod parse_error;
mod parts;
mod reasoning;
mod request;
mod settings;
mod tools;
mod turn_writer;

pub use body::{Call, Custom, File, Function, Image, Message, Tool, ToolChoice};
pub use calls::{ToolInvocation, fnv1a, sanitize_call_id};
pub use dropped_fields::{DroppedFields, raw_json};
pub use effort::{ThinkingSetting, thinking_setting, thinks_only_on_request};
pub use media::{MediaSource, document_extension, media_type_of};
pub use message_path::MessagePath;
pub use messages::Role;
pub use parts::{ContentPart, PartContent};
pub use request::ChatRequest;
pub use settings::{JSON_OBJECT_INSTRUCTION, OutputFormat};
pub use tools::{NO_ARGUMENTS_SCHEMA, OfferedTool, OfferedToolKind, ToolReference, ToolSelection};
pub use turn_writer::{Speaker, TurnWriter};

use proofgate_dialect::{RequestContext, Target, UntranslatableRequest};

/// Reads a request and appends its translation to `out`, using a writer that handles the fields with the keys `says`
/// itself. `out` is unchanged if the request is refused.
///
/// # Errors
/// [`UntranslatableRequest`] when the body is not a valid request, or has a part without a
/// counterpart that must not be dropped.
pub fn translate(
    body: &[u8],
    target: &Target<'_>,
    out: &mut Vec<u8>,
    says: &'static [&'static str],
    write: impl FnOnce(&ChatRequest<'_>, &mut DroppedFields, &mut Vec<u8>) -> Result<(), UntranslatableRequest>,
) -> Result<RequestContext, UntranslatableRequest> {
    let text =
        std::str::from_utf8(body).map_err(|_| UntranslatableRequest::new("", "the body is not UTF-8"))?;
    let chat = ChatRequest::read(text)?;
    let model = chat.model.as_deref().filter(|model| !model.is_empty());
    let model = model.ok_or_else(|| UntranslatableRequest::new("model", "model is missing"))?;
    let mut losses = DroppedFields::new(target.untranslatable, says);
    chat.drop_unhandled_settings(&mut losses)?;

    let start = out.len();
    out.reserve(text.len().saturating_add(256));
    if let Err(refused) = write(&chat, &mut losses, out) {
        out.truncate(start);
        return Err(refused);
    }
    let options = chat.stream_options.as_ref();
    Ok(RequestContext {
        model: model.to_owned(),
        stream: chat.stream == Some(true),
        include_usage: options.and_then(|options| options.include_usage) == Some(true),
        dropped_fields: losses.into_names(),
        ..RequestContext::default()
    })
}
