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
pub use calls::{Called, call_id, fnv1a};
pub use effort::{Thought, thinks_if_asked, thought};
pub use losses::{Losses, json};
pub use media::{Media, document_extension, media_type_of};
pub use messages::Role;
pub use parts::{Piece, Said};
pub use place::Place;
pub use request::Chat;
pub use settings::{Format, JSON_OBJECT};
pub use tools::{Choice, Kind, NO_ARGUMENTS, Named, Offered};
pub use turns::{Side, Turns};

use proofgate_dialect::{Asked, Target, Untranslatable};

/// Reads a request and has it written behind what `out` has, by a writer that says the fields with these keys itself. `out` is as
/// it was when the request is refused.
///
/// # Errors
/// [`Untranslatable`] when the body is no such request, or has what the provider has no words for and what must not be left out.
pub fn translate(
    body: &[u8],
    target: &Target<'_>,
    out: &mut Vec<u8>,
    says: &'static [&'static str],
    write: impl FnOnce(&Chat<'_>, &mut Losses, &mut Vec<u8>) -> Result<(), Untranslatable>,
) -> Result<Asked, Untranslatable> {
    let text = std::str::from_utf8(body).map_err(|_| Untranslatable::new("", "the body is not UTF-8"))?;
    let chat = Chat::read(text)?;
    let model = chat.model.as_deref().filter(|model| !model.is_empty());
    let model = model.ok_or_else(|| Untranslatable::new("model", "model is missing"))?;
    let mut losses = Losses::new(target.untranslatable, says);
    chat.lose_settings(&mut losses)?;

    let start = out.len();
    out.reserve(text.len().saturating_add(256));
    if let Err(refused) = write(&chat, &mut losses, out) {
        out.truncate(start);
        return Err(refused);
    }
    let options = chat.stream_options.as_ref();
    Ok(Asked {
        model: model.to_owned(),
        stream: chat.stream == Some(true),
        include_usage: options.and_then(|options| options.include_usage) == Some(true),
        dropped: losses.into_names(),
        ..Asked::default()
    })
}
