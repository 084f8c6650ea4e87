use crate::Untranslatable;
use crate::chat::{Losses, Message, Place, Side, Turns};
use crate::json::write_all;
use crate::reasoning_details::{Detail, read};

/// Writes the blocks of reasoning that an assistant's message brings back in `reasoning_details`.
///
/// They are bound to the conversation and signed: each returns as it came, or not at all.
pub(super) fn write(
    message: &Message<'_>,
    place: Place,
    losses: &mut Losses,
    turns: &mut Turns<'_>,
) -> Result<(), Untranslatable> {
    let details = read(message.reasoning_details);
    let (mut lost, mut returned) = (details.lost, false);
    for detail in &details.blocks {
        if matches!(detail, Detail::Text { signature: None, .. }) {
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
    if returned {
        return Ok(());
    }
    message.lose_thoughts(place, losses)
}

fn write_detail(detail: &Detail<'_>, out: &mut Vec<u8>) {
    match detail {
        Detail::Text { fragments, signature } => {
            write_all(out, &["{\"type\":\"thinking\",\"thinking\":\""]);
            write_all(out, fragments);
            write_all(out, &["\",\"signature\":\"", signature.unwrap_or_default()]);
        }
        Detail::Encrypted(data) => write_all(out, &["{\"type\":\"redacted_thinking\",\"data\":\"", data]),
    }
    write_all(out, &["\"}"]);
}
