//! Encrypted reasoning of a chat provider, as the signature of a block of thinking: the one place that clients of Messages send
//! back as it came.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::json::{inside_quotes, write_json};
use proofgate_dialect::json::{write_number, write_string};
use proofgate_dialect::reasoning_details::{ENCRYPTED, GEMINI, SUMMARY};

/// What such a signature begins with; base64 of JSON follows.
pub(crate) const SIGNATURE_PREFIX: &str = "reasoning_details:";

/// An element of `reasoning_details` that only its provider can read. Its members stand as they came between their quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EncryptedReasoning<'a> {
    id: Option<&'a str>,
    format: Option<&'a str>,
    data: &'a str,
}

/// What is read of an element, of any type.
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
    /// What can be read, as it stands between its quotes.
    Readable(&'a str),
    Encrypted(EncryptedReasoning<'a>),
}

/// The elements of `reasoning_details`, if any of them is sealed: what can be read alone is said elsewhere, too.
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
            Some(sealed) if inside_quotes(self.kind) == Some(ENCRYPTED) => Some(Detail::Encrypted(sealed)),
            _ => inside_quotes(self.summary.or(self.text)).map(Detail::Readable),
        }
    }

    fn to_encrypted(&self) -> Option<EncryptedReasoning<'a>> {
        Some(EncryptedReasoning {
            id: inside_quotes(self.id),
            format: inside_quotes(self.format),
            data: inside_quotes(self.data)?,
        })
    }
}

impl<'a> EncryptedReasoning<'a> {
    /// What Gemini signs of a call: its id and the signature, as they stand between their quotes.
    pub(super) fn for_call(id: &'a str, signature: &'a str) -> Self {
        EncryptedReasoning {
            id: Some(id),
            format: Some(GEMINI),
            data: signature,
        }
    }

    /// It as a signature, which has no character that JSON escapes.
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

/// Whether a signature, as it stands between its quotes, is one of ours.
pub(super) fn is_gateway_signature(signature: &str) -> bool {
    signature.starts_with(SIGNATURE_PREFIX)
}

/// Appends the elements of `reasoning_details` that a signature of ours stands for, a comma before each but the first, and counts
/// them in `index`: what could be read of them (`thinking`, as it stands between its quotes), and what could not. Whether they
/// could be read; a client may have changed them.
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
