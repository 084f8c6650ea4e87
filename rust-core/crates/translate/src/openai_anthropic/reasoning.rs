use serde_json::value::RawValue;

use crate::Untranslatable;
use crate::chat_place::Place;
use crate::openai_anthropic::left_out::LeftOut;
use crate::reasoning_details::{Detail, read};

/// A block of reasoning that returns to the provider.
pub(super) struct Reasoning<'b>(Detail<'b>);

/// The blocks of reasoning that an assistant's message brings back in `reasoning_details`.
///
/// They are bound to the conversation and signed: each returns as it came, or not at all.
pub(super) fn details<'b>(
    value: Option<&'b RawValue>,
    place: Place,
    left_out: &mut LeftOut,
) -> Result<Vec<Reasoning<'b>>, Untranslatable> {
    let details = read(value);
    let is_signed = |detail: &Detail<'_>| {
        matches!(
            detail,
            Detail::Encrypted(_)
                | Detail::Text {
                    signature: Some(_),
                    ..
                }
        )
    };
    if details.lost || !details.blocks.iter().all(is_signed) {
        left_out.leave("messages[].reasoning_details", || {
            place.field("reasoning_details")
        })?;
    }
    let signed = details.blocks.into_iter().filter(is_signed);
    Ok(signed.map(Reasoning).collect())
}

impl Reasoning<'_> {
    /// Writes it as a block, and a comma behind it.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match &self.0 {
            Detail::Text { fragments, signature } => {
                out.extend_from_slice(b"{\"type\":\"thinking\",\"thinking\":\"");
                for fragment in fragments {
                    out.extend_from_slice(fragment.as_bytes());
                }
                out.extend_from_slice(b"\",\"signature\":\"");
                out.extend_from_slice(signature.unwrap_or_default().as_bytes());
            }
            Detail::Encrypted(data) => {
                out.extend_from_slice(b"{\"type\":\"redacted_thinking\",\"data\":\"");
                out.extend_from_slice(data.as_bytes());
            }
        }
        out.extend_from_slice(b"\"},");
    }
}
