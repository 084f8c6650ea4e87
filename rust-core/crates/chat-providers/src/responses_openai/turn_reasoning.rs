//! A provider's reasoning in a reasoning item: its text is the `summary`, with a part for each block, and all other data is
//! the `encrypted_content`. The client sends the item back unchanged, so nothing is stored here.
//!
//! The format is [`STATE_PREFIX`], followed by a JSON object with any of
//! * `details`: blocks of `reasoning_details`, each with `type`, `index`, `format`, `id`, `signature` and `data` where
//!   present, and with `summary`, the index of the part that has its text;
//! * `field`: the name under which the provider sent its thinking, if it has no such blocks;
//! * `signature`: Gemini's thought signature of the message;
//! * `calls`: the signatures of calls, each with `id` and `signature`.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::responses_openai::tools::write_json;
use proofgate_dialect::json::write_number;
use proofgate_dialect::reasoning_details::{ENCRYPTED, TEXT};

/// The prefix of an `encrypted_content` made by the gateway.
pub(crate) const STATE_PREFIX: &str = "proofgate-1:";

/// OpenRouter's type of a reasoning summary.
const SUMMARY: &str = "reasoning.summary";

#[derive(Deserialize)]
struct StoredReasoning<'k> {
    #[serde(borrow, default)]
    details: Vec<Detail<'k>>,
    field: Option<&'k str>,
    #[serde(borrow)]
    signature: Option<&'k RawValue>,
    #[serde(borrow, default)]
    calls: Vec<Call<'k>>,
}

#[derive(Deserialize)]
struct Detail<'k> {
    #[serde(borrow, rename = "type")]
    kind: &'k str,
    index: Option<u64>,
    #[serde(borrow)]
    format: Option<&'k RawValue>,
    #[serde(borrow)]
    id: Option<&'k RawValue>,
    #[serde(borrow)]
    signature: Option<&'k RawValue>,
    #[serde(borrow)]
    data: Option<&'k RawValue>,
    summary: Option<usize>,
}

#[derive(Deserialize)]
struct Call<'k> {
    #[serde(borrow)]
    id: &'k RawValue,
    #[serde(borrow)]
    signature: &'k RawValue,
}

/// The content of the reasoning items of one turn, as members of an assistant's message.
#[derive(Debug, Default)]
pub(super) struct TurnReasoning {
    /// Elements of `reasoning_details`, separated by commas.
    details: Vec<u8>,
    /// The text of the reasoning, JSON-escaped and without quotes.
    content: String,
    /// Whether the provider's member is `reasoning` instead of `reasoning_content`.
    is_reasoning: bool,
    /// The signature as a JSON string. The strings in `calls` are JSON strings, too.
    signature: Option<String>,
    calls: HashMap<String, String>,
}

impl TurnReasoning {
    /// Adds an item: the texts of its summary, JSON-escaped and without quotes, and its
    /// `encrypted_content`. Returns whether the content could be read; other providers' reasoning
    /// cannot be read and is left out.
    pub(super) fn push_item(&mut self, texts: &[&str], encrypted: Option<&str>) -> bool {
        let Some(encrypted) = encrypted else {
            self.content.extend(texts.iter().copied());
            return true;
        };
        let kept = encrypted
            .strip_prefix(STATE_PREFIX)
            .map(serde_json::from_str::<StoredReasoning<'_>>);
        let Some(Ok(kept)) = kept else { return false };
        for detail in &kept.details {
            detail.write(texts, &mut self.details);
        }
        if let Some(field) = kept.field {
            self.is_reasoning = field == "reasoning";
            self.content.extend(texts.iter().copied());
        }
        if let Some(signature) = kept.signature.and_then(string_json) {
            self.signature = Some(signature);
        }
        let calls = kept.calls.iter();
        let calls = calls.filter_map(|call| Some((string_json(call.id)?, string_json(call.signature)?)));
        self.calls.extend(calls);
        true
    }

    /// Appends the members, each with a comma before it.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        if !self.content.is_empty() {
            let name = if self.is_reasoning {
                ",\"reasoning\":\""
            } else {
                ",\"reasoning_content\":\""
            };
            for piece in [name, &self.content, "\""] {
                write_json(out, piece);
            }
        }
        if !self.details.is_empty() {
            write_json(out, ",\"reasoning_details\":[");
            out.extend_from_slice(&self.details);
            out.push(b']');
        }
        write_signature(self.signature.as_deref(), out);
    }

    /// Appends the member for a call. `id` is JSON.
    pub(super) fn write_call_member(&self, id: &str, out: &mut Vec<u8>) {
        write_signature(self.calls.get(id).map(String::as_str), out);
    }
}

fn write_signature(signature: Option<&str>, out: &mut Vec<u8>) {
    if let Some(signature) = signature {
        for piece in [
            r#","extra_content":{"google":{"thought_signature":"#,
            signature,
            "}}",
        ] {
            write_json(out, piece);
        }
    }
}

/// Returns a string as JSON.
fn string_json(value: &RawValue) -> Option<String> {
    value.get().starts_with('"').then(|| value.get().to_owned())
}

impl Detail<'_> {
    /// Appends it as an element, with its text from the item's summary.
    fn write(&self, texts: &[&str], out: &mut Vec<u8>) {
        let text = self.summary.and_then(|part| texts.get(part));
        let is_known = match self.kind {
            TEXT => text.is_some() || self.signature.is_some(),
            SUMMARY => text.is_some(),
            ENCRYPTED => self.data.is_some(),
            _ => false,
        };
        if !is_known {
            return;
        }
        write_json(
            out,
            if out.is_empty() {
                "{\"type\":\""
            } else {
                ",{\"type\":\""
            },
        );
        write_json(out, self.kind);
        out.push(b'"');
        if let Some(index) = self.index {
            write_json(out, ",\"index\":");
            write_number(out, index);
        }
        if let Some(text) = text {
            let name = if self.kind == SUMMARY {
                ",\"summary\":\""
            } else {
                ",\"text\":\""
            };
            for piece in [name, text, "\""] {
                write_json(out, piece);
            }
        }
        for (name, value) in [
            ("signature", self.signature),
            ("data", self.data),
            ("format", self.format),
            ("id", self.id),
        ] {
            if let Some(value) = value.filter(|value| value.get().starts_with('"')) {
                for piece in [",\"", name, "\":", value.get()] {
                    write_json(out, piece);
                }
            }
        }
        out.push(b'}');
    }
}
