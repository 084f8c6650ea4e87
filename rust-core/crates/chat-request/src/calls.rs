//! Reads the tool calls of a message.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::body::{Call, Message};
use crate::dropped_fields::{DroppedFields, raw_json};
use crate::message_path::MessagePath;
use crate::request::ChatRequest;
use proofgate_dialect::UntranslatableRequest;
use proofgate_dialect::json_text::JsonText;
use proofgate_dialect::object::UnescapedString;

/// A tool call.
pub struct ToolInvocation<'c, 'b> {
    pub id: &'c UnescapedString<'b>,
    pub name: &'c UnescapedString<'b>,
    pub is_custom: bool,
    /// The arguments of a function, or the input of a custom tool.
    payload: Option<JsonText<'b>>,
    /// `cache_control`; `None` if the client sends none.
    pub cache: Option<&'b RawValue>,
    /// Provider-specific data that clients store with a call.
    pub extra_content: Option<&'b RawValue>,
    place: MessagePath,
    index: usize,
}

impl<'b> Message<'b> {
    /// Returns the calls of an assistant message. Calls of custom tools are accepted if the writer handles
    /// `messages[].tool_calls[].custom`.
    pub fn calls<'c>(
        &'c self,
        place: MessagePath,
        losses: &mut DroppedFields,
    ) -> Result<Vec<ToolInvocation<'c, 'b>>, UntranslatableRequest> {
        let calls = self.tool_calls.as_deref().unwrap_or_default();
        let read = calls.iter().enumerate();
        read.map(|(at, call)| call.read(place, at, losses)).collect()
    }
}

impl<'b> Call<'b> {
    fn read<'c>(
        &'c self,
        place: MessagePath,
        at: usize,
        losses: &mut DroppedFields,
    ) -> Result<ToolInvocation<'c, 'b>, UntranslatableRequest> {
        let path = |field: &str| place.field_path(&format!("tool_calls[{at}].{field}"));
        losses.drop_unknown(self.unknown.as_ref());
        for (key, field, value) in [
            (
                "messages[].tool_calls[].cache_control",
                "cache_control",
                self.cache_control,
            ),
            ("messages[].extra_content", "extra_content", self.extra_content),
        ] {
            losses.drop_unless_handled(key, raw_json(value), || path(field))?;
        }
        let (is_custom, name, given) = match self.kind.as_deref() {
            None | Some("function") => {
                let function = self.function.as_ref();
                losses.drop_unknown(function.and_then(|function| function.unknown.as_ref()));
                let name = function.and_then(|function| function.name.as_ref());
                (false, name, function.and_then(|function| function.arguments))
            }
            Some("custom") if losses.is_handled("messages[].tool_calls[].custom") => {
                let custom = self.custom.as_ref();
                losses.drop_unknown(custom.and_then(|custom| custom.unknown.as_ref()));
                let name = custom.and_then(|custom| custom.name.as_ref());
                (true, name, custom.and_then(|custom| custom.input))
            }
            Some(_) => {
                let message = "the provider of this model does not support calls of this type";
                return Err(UntranslatableRequest::new(path("type"), message));
            }
        };
        let missing = |field: &str| {
            let message = "a call must have an id and the name of a tool";
            UntranslatableRequest::new(path(field), message)
        };
        Ok(ToolInvocation {
            id: self.id.as_ref().ok_or_else(|| missing("id"))?,
            name: name.ok_or_else(|| missing("function.name"))?,
            is_custom,
            payload: given,
            cache: self.cache_control,
            extra_content: self.extra_content,
            place,
            index: at,
        })
    }
}

impl<'b> ToolInvocation<'_, 'b> {
    /// Returns the tool's input as a JSON string.
    pub fn raw_payload(&self) -> &'b str {
        match self.payload.filter(|given| !given.is_empty()) {
            Some(given) => given.raw(),
            None if self.is_custom => "\"\"",
            None => "\"{}\"",
        }
    }

    /// Returns the arguments, which must be a JSON object; absent arguments become an empty object.
    pub fn arguments(&self) -> Result<Cow<'b, str>, UntranslatableRequest> {
        let Some(given) = self.payload.filter(|given| !given.is_blank()) else {
            return Ok(Cow::Borrowed("{}"));
        };
        let is_object = |text: &str| {
            text.trim_start().starts_with('{') && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
        };
        let arguments = given.decode().filter(|text| is_object(text));
        arguments.ok_or_else(|| {
            UntranslatableRequest::new(
                self.field_path("function.arguments"),
                "arguments must be a JSON object in a string",
            )
        })
    }

    /// Returns the path of a field of the call.
    pub fn field_path(&self, field: &str) -> String {
        self.place
            .field_path(&format!("tool_calls[{}].{field}", self.index))
    }
}

impl ChatRequest<'_> {
    /// Whether the message has any tool calls.
    pub fn has_calls(&self) -> bool {
        let messages = self.messages.as_deref().unwrap_or_default();
        messages.iter().any(|message| {
            let calls = message.tool_calls.as_deref().unwrap_or_default();
            !calls.is_empty() || message.tool_call_id.is_some()
        })
    }
}

/// Returns a call id with only allowed characters and of the allowed length: the id itself if possible, otherwise a
/// deterministic replacement, so that the call and its result match.
pub fn sanitize_call_id(id: &str, is_allowed: impl Fn(char) -> bool, longest: usize) -> Cow<'_, str> {
    /// Length of an underscore and a hash in hexadecimal digits, in bytes.
    const HASH_SUFFIX_LEN: usize = 17;
    if !id.is_empty() && id.len() <= longest && id.chars().all(&is_allowed) {
        return Cow::Borrowed(id);
    }
    let mut replaced = String::new();
    for char in id.chars().filter(|char| is_allowed(*char)) {
        if replaced.len() + char.len_utf8() > longest.saturating_sub(HASH_SUFFIX_LEN) {
            break;
        }
        replaced.push(char);
    }
    Cow::Owned(format!("{replaced}_{:016x}", fnv1a(id.bytes())))
}

/// Returns a 64-bit hash that is the same on every platform. Source: G. Fowler, L. C. Noll, K.-P. Vo and D. Eastlake,
/// FNV-1a.
pub fn fnv1a(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
