use crate::Untranslatable;
use crate::chat::{Losses, Message, Place, Side, Turns};
use crate::json::write_all;
use crate::reasoning_details::{Detail, read};

/// Writes the reasoning that an assistant's message carries back, byte for byte: a signature covers it; whether there is any. A
/// model that signs its thoughts refuses those without a signature, and reasoning without `reasoning_details` has none.
pub(super) fn write(
    message: &Message<'_>,
    place: Place,
    is_signed: bool,
    losses: &mut Losses,
    turns: &mut Turns<'_>,
) -> Result<bool, Untranslatable> {
    let details = read(message.reasoning_details);
    let (mut lost, mut returned) = (details.lost, false);
    for detail in &details.blocks {
        if is_signed && matches!(detail, Detail::Text { signature: None, .. }) {
            lost = true;
            continue;
        }
        returned = true;
        turns.say(Side::Model, |out| {
            write_detail(detail, out);
            Ok(())
        })?;
    }
    if lost {
        message.lose_details(place, losses)?;
    }
    if !returned {
        message.lose_thoughts(place, losses)?;
    }
    Ok(returned)
}

fn write_detail(detail: &Detail<'_>, out: &mut Vec<u8>) {
    match detail {
        Detail::Text { fragments, signature } => {
            write_all(out, &[r#"{"reasoningContent":{"reasoningText":{"text":""#]);
            write_all(out, fragments);
            if let Some(signature) = signature {
                write_all(out, &[r#"","signature":""#, signature]);
            }
            write_all(out, &[r#""}}}"#]);
        }
        Detail::Encrypted(data) => {
            write_all(
                out,
                &[r#"{"reasoningContent":{"redactedContent":""#, data, r#""}}"#],
            );
        }
    }
}
