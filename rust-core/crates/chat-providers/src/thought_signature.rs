//! Gemini's signature of its thoughts before a call, in Google's form for clients of chat completions.

use serde::Deserialize;
use serde_json::value::RawValue;

use proofgate_dialect::json_text::unquoted;

#[derive(Deserialize)]
struct ExtraContent<'b> {
    #[serde(borrow)]
    google: Option<Vendor<'b>>,
    #[serde(borrow)]
    vertex: Option<Vendor<'b>>,
}

#[derive(Deserialize)]
struct Vendor<'b> {
    #[serde(borrow)]
    thought_signature: Option<&'b RawValue>,
}

/// Returns the signature in an `extra_content`, JSON-escaped and without quotes.
pub(crate) fn signature(extra: Option<&RawValue>) -> Option<&str> {
    let extra: ExtraContent<'_> = serde_json::from_str(extra?.get()).ok()?;
    let signature = extra.google.or(extra.vertex)?.thought_signature?;
    unquoted(signature).filter(|signature| !signature.is_empty())
}
