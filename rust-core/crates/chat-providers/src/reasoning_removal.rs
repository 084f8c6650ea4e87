//! Removes from requests the reasoning that the gateway added to answers so that clients send it
//! back, if a request goes to another provider than the one that wrote the reasoning. No provider
//! reads another provider's reasoning, and most refuse a request with it, so it is left out and
//! named.
//!
//! * In Responses: reasoning items whose `encrypted_content` has the gateway's form, and references to reasoning items that
//!   were never stored anywhere, because the gateway made their ids (OpenAI's have no number after a second underscore).
//! * In Messages: thinking whose signature has the gateway's form, and, in requests to Claude,
//!   unsigned thinking: Claude accepts thinking only with its signature (Anthropic, "Extended
//!   thinking: preserving thinking blocks"; other vendors of this API do not sign thinking).
//!
//! A body without such content, or a body that is not such a request, is not changed.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::anthropic_openai::SEALED;
use crate::edits::{self, value_range};
use crate::responses_openai::STATE_PREFIX;

/// Texts that identify bodies to read: every body with content to remove contains one of these, and
/// few other bodies do.
pub const GATEWAY_MARKERS: [&str; 5] = [
    "\"item_reference\"",
    "\"proofgate-1:",
    "\"reasoning_details:",
    "\"signature\":\"\"",
    "\"signature\": \"\"",
];

/// The changes to a body: parts of it, and the replacement of each.
#[derive(Debug, Default)]
struct BodyEdits {
    edits: edits::Edits,
    dropped_names: Vec<&'static str>,
}

/// Appends a Responses request without the content that only the gateway can read, and returns the
/// names of the parts left out. Returns `None` and appends nothing if there is nothing to leave
/// out. `is_passed` is whether the provider receives the items unchanged; otherwise reasoning items
/// stay, because they are translated.
pub fn strip_gateway_items(body: &[u8], is_passed: bool, out: &mut Vec<u8>) -> Option<Vec<&'static str>> {
    #[derive(Deserialize)]
    struct Request<'b> {
        #[serde(borrow)]
        input: &'b RawValue,
    }
    #[derive(Deserialize)]
    struct Item<'b> {
        #[serde(borrow, rename = "type", default)]
        kind: Option<Cow<'b, str>>,
        #[serde(borrow, default)]
        id: Option<Cow<'b, str>>,
        #[serde(borrow, default)]
        encrypted_content: Option<Cow<'b, str>>,
    }
    let body = std::str::from_utf8(body).ok()?;
    let request: Request<'_> = serde_json::from_str(body).ok()?;
    let items: Vec<&RawValue> = serde_json::from_str(request.input.get()).ok()?;
    let mut edits = BodyEdits::default();
    let mut kept = Vec::with_capacity(items.len());
    for raw in items {
        let item: Option<Item<'_>> = serde_json::from_str(raw.get()).ok();
        let name = item.and_then(|item| {
            let is_sealed = |content: &str| content.starts_with(STATE_PREFIX);
            match item.kind.as_deref() {
                Some("item_reference") if item.id.as_deref().is_some_and(is_gateway_item_id) => {
                    Some("item_reference")
                }
                Some("reasoning")
                    if is_passed && item.encrypted_content.as_deref().is_some_and(is_sealed) =>
                {
                    Some("input[].encrypted_content")
                }
                _ => None,
            }
        });
        match name {
            Some(name) => edits.note(name),
            None => kept.push(raw.get()),
        }
    }
    edits.replace_array(body, request.input, &kept);
    edits.write(body, out)
}

/// Returns whether the gateway made the id of a reasoning item: `rs_`, the id of an answer and a number.
fn is_gateway_item_id(id: &str) -> bool {
    let parts = id.strip_prefix("rs_").and_then(|rest| rest.rsplit_once('_'));
    parts.is_some_and(|(of_answer, number)| {
        let is_number = (1..=4).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit());
        !of_answer.is_empty() && is_number
    })
}

/// Appends a Messages request without thinking that its provider has not signed, and returns the
/// names of the parts left out. Returns `None` and appends nothing if there is nothing to leave
/// out. `model` is the model's name at the provider.
///
/// A message without other content is left out too. If the model is to continue after tool results, a thinking budget is
/// switched off, because the turn would have to begin with the earlier thinking.
pub fn strip_unsigned_thinking(body: &[u8], model: &str, out: &mut Vec<u8>) -> Option<Vec<&'static str>> {
    #[derive(Deserialize)]
    struct Request<'b> {
        #[serde(borrow)]
        messages: &'b RawValue,
        #[serde(borrow, default)]
        thinking: Option<&'b RawValue>,
    }
    let body = std::str::from_utf8(body).ok()?;
    let request: Request<'_> = serde_json::from_str(body).ok()?;
    let messages: Vec<&RawValue> = serde_json::from_str(request.messages.get()).ok()?;
    let is_claude = model.contains("claude");
    let mut edits = BodyEdits::default();
    let mut kept: Vec<Cow<'_, str>> = Vec::with_capacity(messages.len());
    let mut is_open = false;
    for raw in messages {
        let message = Message::read(raw);
        let without = message
            .as_ref()
            .and_then(|message| message.without_unsigned_thinking(raw.get(), is_claude));
        let is_result = message.is_some_and(|message| message.content.get().contains("\"tool_result\""));
        // Tool results follow the turn from which something was removed.
        is_open = without.is_some() || (is_open && is_result);
        match without {
            None => kept.push(raw.get().into()),
            Some(rest) => {
                edits.note("thinking");
                kept.extend(rest.map(Cow::Owned));
            }
        }
    }
    let kept: Vec<&str> = kept.iter().map(AsRef::as_ref).collect();
    edits.replace_array(body, request.messages, &kept);
    if let Some(thinking) = request
        .thinking
        .filter(|thinking| is_open && thinking.get().contains("\"enabled\""))
    {
        edits.replace_value(body, thinking, r#"{"type":"disabled"}"#.to_owned());
    }
    edits.write(body, out)
}

#[derive(Deserialize)]
struct Message<'b> {
    #[serde(borrow)]
    role: Cow<'b, str>,
    #[serde(borrow)]
    content: &'b RawValue,
}

impl<'b> Message<'b> {
    fn read(raw: &'b RawValue) -> Option<Self> {
        serde_json::from_str(raw.get()).ok()
    }

    /// Removes thinking that the provider has not signed from a message. Returns `None` if there is
    /// no such thinking, and `Some(None)` if there is no other content.
    fn without_unsigned_thinking(&self, raw: &str, is_claude: bool) -> Option<Option<String>> {
        #[derive(Deserialize)]
        struct Block<'b> {
            #[serde(borrow, rename = "type")]
            kind: Cow<'b, str>,
            #[serde(borrow, default)]
            signature: Option<Cow<'b, str>>,
        }
        if self.role != "assistant" {
            return None;
        }
        let blocks: Vec<&RawValue> = serde_json::from_str(self.content.get()).ok()?;
        let is_foreign = |raw: &&RawValue| {
            let block: Option<Block<'_>> = serde_json::from_str(raw.get()).ok();
            block.is_some_and(|block| {
                let signature = block.signature.as_deref().unwrap_or_default();
                let is_unsigned = is_claude && signature.is_empty();
                block.kind == "thinking" && (signature.starts_with(SEALED) || is_unsigned)
            })
        };
        let count = blocks.len();
        let kept: Vec<&str> = blocks
            .into_iter()
            .filter(|raw| !is_foreign(raw))
            .map(RawValue::get)
            .collect();
        if kept.len() == count {
            return None;
        }
        if kept.is_empty() {
            return Some(None);
        }
        let place = value_range(raw, self.content)?;
        let (before, after) = (raw.get(..place.start)?, raw.get(place.end..)?);
        Some(Some([before, "[", &kept.join(","), "]", after].concat()))
    }
}

impl BodyEdits {
    fn note(&mut self, name: &'static str) {
        if !self.dropped_names.contains(&name) {
            self.dropped_names.push(name);
        }
    }

    /// Replaces an array with these elements, if any was left out.
    fn replace_array(&mut self, body: &str, array: &RawValue, kept: &[&str]) {
        if !self.dropped_names.is_empty() {
            self.replace_value(body, array, ["[", &kept.join(","), "]"].concat());
        }
    }

    fn replace_value(&mut self, body: &str, value: &RawValue, text: String) {
        self.edits.replace(body, value, text);
    }

    fn write(self, body: &str, out: &mut Vec<u8>) -> Option<Vec<&'static str>> {
        if self.dropped_names.is_empty() {
            return None;
        }
        self.edits.write(body, out)?;
        Some(self.dropped_names)
    }
}
