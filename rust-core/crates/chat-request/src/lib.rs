//! A request of chat completions, read once for all providers.
//!
//! [`translate`] reads it and has a writer say it in the words of its provider. What a request is, is decided here: of which types
//! its fields are, what a message, a part, a tool and a choice have to have, and what becomes of what a provider has no words
//! for. A writer names the fields that it says itself; all others are lost, by the verdict of the
//! [list](proofgate_dialect::losses).
#![forbid(unsafe_code)]
#![allow(
    missing_docs,
    reason = "only the writers for providers use it, and the names are clear enough"
)]

mod body;
mod calls;
mod effort;
mod losses;
mod media;
mod messages;
mod parts;
mod place;
mod reasoning;
mod request;
mod settings;
mod tools;
mod turns;
mod unreadable;

pub use body::{Call, Custom, File, Function, Image, Message, Tool, ToolChoice};
pub use calls::{ToolInvocation, fnv1a, sanitize_call_id};
pub use effort::{ThinkingSetting, thinking_setting, thinks_only_on_request};
pub use losses::{DroppedFields, json};
pub use media::{MediaSource, document_extension, media_type_of};
pub use messages::Role;
pub use parts::{ContentPart, PartContent};
pub use place::MessagePath;
pub use request::ChatRequest;
pub use settings::{JSON_OBJECT, OutputFormat};
pub use tools::{Kind, NO_ARGUMENTS, OfferedTool, ToolReference, ToolSelection};
pub use turns::{Speaker, TurnWriter};

use proofgate_dialect::{RequestContext, Target, UntranslatableRequest};

/// Reads a request and has it written behind what `out` has, by a writer that says the fields with these keys itself. `out` is as
/// it was when the request is refused.
///
/// # Errors
/// [`UntranslatableRequest`] when the body is no such request, or has what the provider has no words for and what must not be left out.
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
        dropped: losses.into_names(),
        ..RequestContext::default()
    })
}
