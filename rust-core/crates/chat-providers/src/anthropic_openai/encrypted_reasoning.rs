//! Encrypted reasoning of a chat provider, stored in the signature of a thinking block, the only field that clients of
//! Messages send back unchanged.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::json::{unquoted, write_json};
use proofgate_dialect::json::{write_number, write_string};
use proofgate_dialect::reasoning_details::{ENCRYPTED, GEMINI, SUMMARY};

/// The prefix of such a signature; base64 of JSON follows.
pub(crate) const SIGNATURE_PREFIX: &str = "reasoning_details:";

/// An element of `reasoning_details` that only its provider can read. Its members are JSON-escaped
/// and without quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EncryptedReasoning<'a> {
    id: Option<&'a str>,
    format: Option<&'a str>,
    data: &'a str,
}

/// The members that are read of an element, of any type.
#[derive(Debug, Deserialize)]
struct Element<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    format: Option<&'a RawValue>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    summary: Option<&'a RawValue>,
}

/// An element of `reasoning_details`.
#[derive(Debug, Clone, Copy)]
pub(super) enum Detail<'a> {
    /// Readable reasoning, JSON-escaped and without quotes.
    Readable(&'a str),
    Encrypted(EncryptedReasoning<'a>),
}

/// Returns the elements of `reasoning_details`, if any of them is encrypted: reasoning that is only readable is also in
/// other members.
pub(super) fn details(value: Option<&RawValue>) -> Vec<Detail<'_>> {
    let list = value.map_or("[]", RawValue::get);
    let elements: Vec<Element<'_>> = serde_json::from_str(list).unwrap_or_default();
    let details: Vec<_> = elements.iter().filter_map(Element::detail).collect();
    let is_sealed = |detail: &Detail<'_>| matches!(detail, Detail::Encrypted(_));
    if details.iter().any(is_sealed) {
        details
    } else {
        Vec::new()
    }
}

impl<'a> Element<'a> {
    fn detail(&self) -> Option<Detail<'a>> {
        match self.to_encrypted() {
            Some(sealed) if unquoted(self.kind) == Some(ENCRYPTED) => Some(Detail::Encrypted(sealed)),
            _ => unquoted(self.summary.or(self.text)).map(Detail::Readable),
        }
    }

    fn to_encrypted(&self) -> Option<EncryptedReasoning<'a>> {
        Some(EncryptedReasoning {
            id: unquoted(self.id),
            format: unquoted(self.format),
            data: unquoted(self.data)?,
        })
    }
}

impl<'a> EncryptedReasoning<'a> {
    /// Creates the element for Gemini's signature of a call, from the call's id and the signature,
    /// JSON-escaped and without quotes.
    pub(super) fn for_call(id: &'a str, signature: &'a str) -> Self {
        EncryptedReasoning {
            id: Some(id),
            format: Some(GEMINI),
            data: signature,
        }
    }

    /// Returns it as a signature, which has no character that JSON escapes.
    pub(super) fn signature(&self) -> String {
        let mut json = Vec::with_capacity(self.data.len().saturating_add(128));
        write_json(&mut json, "{\"data\":\"");
        write_json(&mut json, self.data);
        json.push(b'"');
        self.write_origin(&mut json);
        json.push(b'}');
        let mut signature = SIGNATURE_PREFIX.to_owned();
        STANDARD.encode_string(json, &mut signature);
        signature
    }

    fn write_origin(&self, out: &mut Vec<u8>) {
        for (name, value) in [("id", self.id), ("format", self.format)] {
            let Some(value) = value else { continue };
            for piece in [",\"", name, "\":\"", value, "\""] {
                write_json(out, piece);
            }
        }
    }
}

/// Returns whether a signature, JSON-escaped and without quotes, was made by the gateway.
pub(super) fn is_gateway_signature(signature: &str) -> bool {
    signature.starts_with(SIGNATURE_PREFIX)
}

/// Appends the elements of `reasoning_details` stored in a signature of the gateway, with a comma
/// before each except the first, and counts them in `index`: the readable part (`thinking`,
/// JSON-escaped and without quotes) and the encrypted part. Returns whether they could be read; a
/// client may have changed them.
pub(super) fn write_details(
    signature: &str,
    thinking: Option<&str>,
    index: &mut u64,
    out: &mut Vec<u8>,
) -> bool {
    let json = signature
        .strip_prefix(SIGNATURE_PREFIX)
        .map(|base64| STANDARD.decode(base64));
    let Some(Ok(json)) = json else { return false };
    let Ok(element) = serde_json::from_slice::<Element<'_>>(&json) else {
        return false;
    };
    let Some(sealed) = element.to_encrypted() else {
        return false;
    };
    let read = thinking.map(|thinking| (SUMMARY, "summary", thinking));
    for (kind, name, value) in read.into_iter().chain([(ENCRYPTED, "data", sealed.data)]) {
        write_json(out, if *index == 0 { "{\"type\":" } else { ",{\"type\":" });
        write_string(out, kind);
        write_json(out, ",\"index\":");
        write_number(out, *index);
        sealed.write_origin(out);
        for piece in [",\"", name, "\":\"", value, "\"}"] {
            write_json(out, piece);
        }
        *index = index.saturating_add(1);
    }
    true
}
