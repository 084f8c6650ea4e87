//! Collects the parts of a provider's reasoning that are stored in `encrypted_content`, which
//! [`turn_reasoning`](super::turn_reasoning) reads.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::responses_openai::tools::{unquoted, write_json};
use crate::responses_openai::turn_reasoning::STATE_PREFIX;
use proofgate_dialect::json::{write_number, write_string};
use proofgate_dialect::reasoning_details::{ENCRYPTED, TEXT};

/// An element of `reasoning_details`, or a fragment of one.
#[derive(Deserialize)]
pub(super) struct DetailFragment<'f> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'f RawValue>,
    index: Option<u64>,
    #[serde(borrow)]
    text: Option<&'f RawValue>,
    #[serde(borrow)]
    summary: Option<&'f RawValue>,
    #[serde(borrow)]
    signature: Option<&'f RawValue>,
    #[serde(borrow)]
    data: Option<&'f RawValue>,
    #[serde(borrow)]
    format: Option<&'f RawValue>,
    #[serde(borrow)]
    id: Option<&'f RawValue>,
}

impl<'f> DetailFragment<'f> {
    /// Reads the fragments; an invalid list has none.
    pub(super) fn read(details: &'f RawValue) -> Vec<Self> {
        serde_json::from_str(details.get()).unwrap_or_default()
    }

    /// Returns its text, JSON-escaped and without quotes.
    pub(super) fn text(&self) -> Option<&'f str> {
        let text = self.text.or(self.summary)?.get();
        (text.starts_with('"') && text != "\"\"").then(|| unquoted(text))
    }
}

/// The part of the provider's reasoning, other than its text, that a reasoning item stores.
#[derive(Debug, Default)]
pub(super) struct ReasoningState {
    blocks: Vec<Block>,
    /// The name of the member that had the text.
    pub(super) text_member: Option<&'static str>,
    /// Gemini's signature of the message, JSON-escaped and without quotes.
    pub(super) signature: Option<String>,
    /// Ids of calls and their signatures, JSON-escaped and without quotes.
    pub(super) calls: Vec<(String, String)>,
}

#[derive(Debug, Default)]
struct Block {
    kind: String,
    index: Option<u64>,
    /// String members, each with a comma before it, except for the signature, which may arrive in pieces.
    members: String,
    signature: String,
    summary: Option<usize>,
}

impl ReasoningState {
    /// Adds a fragment. Returns whether it begins another block, and how many of its bytes are
    /// kept.
    pub(super) fn push(&mut self, fragment: &DetailFragment<'_>) -> (bool, usize) {
        let kind = fragment.kind.map_or(TEXT, |kind| unquoted(kind.get()));
        let goes_on = |block: &&mut Block| {
            block.kind == kind
                && kind != ENCRYPTED
                && fragment.index.is_some()
                && block.index == fragment.index
        };
        let begins = self.blocks.last_mut().filter(goes_on).is_none();
        if begins {
            self.blocks.push(Block {
                kind: kind.to_owned(),
                index: fragment.index,
                ..Block::default()
            });
        }
        let Some(block) = self.blocks.last_mut() else {
            return (begins, 0);
        };
        let before = block.members.len() + block.signature.len();
        let strings = [
            ("data", fragment.data),
            ("format", fragment.format),
            ("id", fragment.id),
        ];
        for (name, value) in strings {
            let value = value.map(RawValue::get).filter(|value| value.starts_with('"'));
            let name = format!(",\"{name}\":");
            if let Some(value) = value.filter(|_| !block.members.contains(&name)) {
                block.members.push_str(&name);
                block.members.push_str(value);
            }
        }
        let signature = fragment.signature.map(RawValue::get);
        block.signature.push_str(
            signature
                .filter(|text| text.starts_with('"'))
                .map_or("", unquoted),
        );
        let grown = (block.members.len() + block.signature.len()).saturating_sub(before);
        (begins, grown.saturating_add(if begins { 64 } else { 0 }))
    }

    /// Sets the part of the summary that has the current block's text.
    pub(super) fn set_summary_part(&mut self, part: usize) {
        if let Some(block) = self.blocks.last_mut() {
            block.summary.get_or_insert(part);
        }
    }

    /// Appends the `encrypted_content` as a string; `null` if there is nothing to store.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let has_text = self.blocks.iter().any(|block| block.summary.is_some());
        let field = self.text_member.filter(|_| !has_text);
        if self.blocks.is_empty() && field.is_none() && self.signature.is_none() && self.calls.is_empty() {
            write_json(out, "null");
            return;
        }
        let mut kept = Vec::new();
        let mut before = "{\"details\":[";
        for block in &self.blocks {
            write_json(&mut kept, std::mem::replace(&mut before, ","));
            block.write(&mut kept);
        }
        write_json(
            &mut kept,
            if self.blocks.is_empty() {
                "{\"details\":[]"
            } else {
                "]"
            },
        );
        if let Some(field) = field {
            for piece in [",\"field\":\"", field, "\""] {
                write_json(&mut kept, piece);
            }
        }
        if let Some(signature) = &self.signature {
            for piece in [",\"signature\":\"", signature, "\""] {
                write_json(&mut kept, piece);
            }
        }
        let mut before = ",\"calls\":[";
        for (id, signature) in &self.calls {
            write_json(&mut kept, std::mem::replace(&mut before, ","));
            for piece in ["{\"id\":\"", id, "\",\"signature\":\"", signature, "\"}"] {
                write_json(&mut kept, piece);
            }
        }
        write_json(&mut kept, if self.calls.is_empty() { "}" } else { "]}" });
        let kept = String::from_utf8(kept).unwrap_or_default();
        write_string(out, &[STATE_PREFIX, &kept].concat());
    }
}

impl Block {
    fn write(&self, out: &mut Vec<u8>) {
        for piece in ["{\"type\":\"", &self.kind, "\""] {
            write_json(out, piece);
        }
        for (name, number) in [
            (",\"index\":", self.index),
            (",\"summary\":", self.summary.map(|part| part as u64)),
        ] {
            if let Some(number) = number {
                write_json(out, name);
                write_number(out, number);
            }
        }
        if !self.signature.is_empty() {
            for piece in [",\"signature\":\"", &self.signature, "\""] {
                write_json(out, piece);
            }
        }
        write_json(out, &self.members);
        out.push(b'}');
    }
}
