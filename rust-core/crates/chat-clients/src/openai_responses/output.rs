//! The shape of a response and of its items (openai 3.54.0, `types/responses/response.py`), reduced
//! to the members that are read. Members whose type depends on the item's type are left raw.

use serde::Deserialize;
use serde_json::value::RawValue;

use proofgate_dialect::json::write_member;
use proofgate_dialect::json::{write_number, write_string};
use proofgate_dialect::json_text::JsonText;
use proofgate_dialect::object::UnescapedString;
use proofgate_dialect::reasoning_details::{ENCRYPTED, RESPONSES, SUMMARY, TEXT};
use proofgate_dialect::{ResponseError, Usage};

/// A response, whole or in an event.
#[derive(Default, Deserialize)]
pub(super) struct Response<'b> {
    #[serde(borrow)]
    pub(super) id: Option<JsonText<'b>>,
    #[serde(borrow)]
    created_at: Option<&'b RawValue>,
    #[serde(borrow)]
    pub(super) status: Option<UnescapedString<'b>>,
    #[serde(borrow)]
    pub(super) error: Option<&'b RawValue>,
    #[serde(borrow)]
    incomplete_details: Option<&'b RawValue>,
    #[serde(borrow)]
    pub(super) output: Option<Vec<Item<'b>>>,
    pub(super) usage: Option<Tokens>,
    #[serde(borrow)]
    service_tier: Option<&'b RawValue>,
}

/// An item of the output, of any type.
#[derive(Default, Deserialize)]
pub(super) struct Item<'b> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<UnescapedString<'b>>,
    #[serde(borrow)]
    id: Option<&'b RawValue>,
    #[serde(borrow)]
    call_id: Option<&'b RawValue>,
    #[serde(borrow)]
    name: Option<&'b RawValue>,
    #[serde(borrow)]
    arguments: Option<&'b RawValue>,
    #[serde(borrow)]
    input: Option<&'b RawValue>,
    #[serde(borrow)]
    content: Option<&'b RawValue>,
    #[serde(borrow)]
    summary: Option<&'b RawValue>,
    #[serde(borrow)]
    encrypted_content: Option<&'b RawValue>,
}

/// A part of a message, of a summary or of reasoning.
#[derive(Default, Deserialize)]
pub(super) struct Part<'b> {
    #[serde(borrow)]
    text: Option<&'b RawValue>,
    #[serde(borrow)]
    refusal: Option<&'b RawValue>,
    #[serde(borrow)]
    annotations: Option<&'b RawValue>,
    #[serde(borrow)]
    pub(super) logprobs: Option<&'b RawValue>,
}

/// A citation in a part of a text.
#[derive(Default, Deserialize)]
pub(super) struct Annotation<'b> {
    #[serde(borrow, rename = "type")]
    kind: Option<UnescapedString<'b>>,
    start_index: Option<u64>,
    end_index: Option<u64>,
    #[serde(borrow)]
    title: Option<&'b RawValue>,
    #[serde(borrow)]
    url: Option<&'b RawValue>,
}

/// Token counts under the names of Responses.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub(super) struct Tokens {
    input_tokens: Option<u64>,
    input_tokens_details: Option<InputDetails>,
    output_tokens: Option<u64>,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
struct InputDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
struct OutputDetails {
    reasoning_tokens: Option<u64>,
}

impl Tokens {
    /// Returns the usage.
    pub(super) fn usage(self) -> Usage {
        let cached = self.input_tokens_details.unwrap_or_default();
        let input = self.input_tokens.unwrap_or(0);
        let cache_read = cached.cached_tokens.unwrap_or(0).min(input);
        let output = self.output_tokens.unwrap_or(0);
        let thought = self.output_tokens_details.unwrap_or_default();
        Usage {
            input,
            cache_read,
            cache_write: cached
                .cache_write_tokens
                .unwrap_or(0)
                .min(input.saturating_sub(cache_read)),
            output,
            reasoning: thought.reasoning_tokens.unwrap_or(0).min(output),
        }
    }
}

impl<'b> Response<'b> {
    /// Returns the creation time in seconds since 1970; some providers write the number as a fraction.
    pub(super) fn created(&self) -> Option<u64> {
        let digits = self.created_at?.get();
        digits.split('.').next()?.parse().ok()
    }

    /// Returns the service tier, if it is named.
    pub(super) fn service_tier(&self) -> Option<JsonText<'b>> {
        self.service_tier.and_then(JsonText::from_raw)
    }

    /// Returns the finish reason in terms of chat completions.
    pub(super) fn finish_reason(&self, has_calls: bool) -> &'static str {
        #[derive(Deserialize)]
        struct Details<'b> {
            #[serde(borrow)]
            reason: Option<UnescapedString<'b>>,
        }
        if self.status.as_deref() == Some("incomplete") {
            let details = self.incomplete_details;
            let details: Option<Details<'_>> =
                details.and_then(|details| serde_json::from_str(details.get()).ok());
            let reason = details.and_then(|details| details.reason);
            return match reason.as_deref() {
                Some("content_filter") => "content_filter",
                // The token limit, and any other early end.
                _ => "length",
            };
        }
        if has_calls { "tool_calls" } else { "stop" }
    }
}

/// A call, reduced to the members that chat completions have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call<'b> {
    pub(super) is_custom: bool,
    pub(super) id: JsonText<'b>,
    pub(super) name: JsonText<'b>,
    /// The arguments of a function, or the input of a custom tool; only a whole item has them.
    pub(super) argument: Option<JsonText<'b>>,
}

impl<'b> Item<'b> {
    /// Returns the call; `None` for an item of another type.
    pub(super) fn call(&self) -> Option<Result<Call<'b>, ResponseError>> {
        let text = |value: Option<&'b RawValue>| value.and_then(JsonText::from_raw);
        let (is_custom, argument) = match self.kind.as_deref() {
            Some("function_call") => (false, text(self.arguments)),
            Some("custom_tool_call") => (true, text(self.input)),
            _ => return None,
        };
        let (Some(id), Some(name)) = (text(self.call_id), text(self.name)) else {
            return Some(Err(ResponseError::Malformed("a call without call_id or name")));
        };
        Some(Ok(Call {
            is_custom,
            id,
            name,
            argument: argument.filter(|argument| !argument.is_empty()),
        }))
    }

    pub(super) fn id(&self) -> Option<JsonText<'b>> {
        self.id.and_then(JsonText::from_raw)
    }

    /// Returns the parts of its content; none if it has no content.
    ///
    /// # Errors
    /// Returns [`ResponseError::Malformed`] if the content is not a list of parts.
    pub(super) fn parts(&self) -> Result<Vec<Part<'b>>, ResponseError> {
        parts(self.content)
    }

    /// Returns the parts of its summary.
    ///
    /// # Errors
    /// As for [`parts`](Item::parts).
    pub(super) fn summary(&self) -> Result<Vec<Part<'b>>, ResponseError> {
        parts(self.summary)
    }

    pub(super) fn encrypted_content(&self) -> Option<JsonText<'b>> {
        let content = self.encrypted_content.and_then(JsonText::from_raw);
        content.filter(|content| !content.is_empty())
    }
}

fn parts(list: Option<&RawValue>) -> Result<Vec<Part<'_>>, ResponseError> {
    let Some(list) = list else { return Ok(Vec::new()) };
    serde_json::from_str(list.get()).map_err(|_| ResponseError::Malformed("the parts of an item are invalid"))
}

impl<'b> Part<'b> {
    /// Returns its text, if it has any.
    pub(super) fn text(&self) -> Option<JsonText<'b>> {
        let text = self.text.and_then(JsonText::from_raw);
        text.filter(|text| !text.is_empty())
    }

    /// Returns the model's refusal, if it is one.
    pub(super) fn refusal(&self) -> Option<JsonText<'b>> {
        let refusal = self.refusal.and_then(JsonText::from_raw);
        refusal.filter(|refusal| !refusal.is_empty())
    }

    /// Returns the citations of known kinds.
    pub(super) fn annotations(&self) -> Vec<Annotation<'b>> {
        let list = self.annotations.map_or("[]", RawValue::get);
        let list: Vec<&RawValue> = serde_json::from_str(list).unwrap_or_default();
        let read = list
            .iter()
            .map(|annotation| serde_json::from_str(annotation.get()));
        read.filter_map(Result::ok).collect()
    }
}

impl Annotation<'_> {
    /// Returns whether chat completions support the citation: they have only web URLs.
    pub(super) fn is_supported(&self) -> bool {
        self.kind.as_deref() == Some("url_citation")
    }

    /// Writes the citation for chat completions. `before` is the number of characters before its
    /// text.
    pub(super) fn write(&self, before: u64, out: &mut Vec<u8>) {
        let index = |at: Option<u64>| at.unwrap_or(0).saturating_add(before).to_string();
        let text = |value: Option<&'_ RawValue>| {
            let text = value.and_then(|value| JsonText::from_raw(value).map(JsonText::raw));
            text.unwrap_or("\"\"").to_owned()
        };
        out.extend_from_slice(b"{\"type\":\"url_citation\",\"url_citation\":{\"start_index\":");
        for piece in [
            &index(self.start_index),
            ",\"end_index\":",
            &index(self.end_index),
            ",\"title\":",
            &text(self.title),
            ",\"url\":",
            &text(self.url),
            "}}",
        ] {
            out.extend_from_slice(piece.as_bytes());
        }
    }
}

/// Returns the number of characters in a JSON string: an escape is one, and a surrogate pair is one.
pub(super) fn char_count(text: JsonText<'_>) -> u64 {
    let mut count = 0_u64;
    let mut chars = text.inner().chars();
    while let Some(char) = chars.next() {
        let is_second_half = char == '\\' && chars.next() == Some('u') && {
            let half = chars.as_str().as_bytes().first_chunk::<2>();
            chars.nth(3);
            half.is_some_and(|[first, second]| {
                matches!(first, b'd' | b'D') && matches!(second, b'c'..=b'f' | b'C'..=b'F')
            })
        };
        count = count.saturating_add(u64::from(!is_second_half));
    }
    count
}

/// An element of `reasoning_details`, or a fragment of one.
#[derive(Debug, Clone, Copy)]
pub(super) enum Detail<'b> {
    Summary(JsonText<'b>),
    /// Reasoning text, which open models return.
    Text(JsonText<'b>),
    Encrypted(JsonText<'b>),
}

/// Writes an element of `reasoning_details`. `id` is the item's id as JSON.
pub(super) fn write_detail(detail: Detail<'_>, index: u64, id: Option<&str>, out: &mut Vec<u8>) {
    let (kind, name, value) = match detail {
        Detail::Summary(text) => (SUMMARY, "summary", text),
        Detail::Text(text) => (TEXT, "text", text),
        Detail::Encrypted(data) => (ENCRYPTED, "data", data),
    };
    out.extend_from_slice(b"{\"type\":");
    write_string(out, kind);
    out.extend_from_slice(b",\"index\":");
    write_number(out, index);
    write_member(out, "id", id);
    out.extend_from_slice(b",\"format\":");
    write_string(out, RESPONSES);
    write_member(out, name, Some(value.raw()));
    out.push(b'}');
}
