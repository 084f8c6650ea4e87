//! Writes the reasoning of an assistant message back to a provider of Claude models.

use crate::{DroppedFields, Message, MessagePath, Speaker, TurnWriter};
use proofgate_dialect::UntranslatableRequest;
use proofgate_dialect::reasoning_details::{Detail, read};

impl Message<'_> {
    /// Writes the blocks of `reasoning_details` with `write`, byte for byte, because a signature covers them; returns
    /// whether there were any. A block is sent back unchanged or not at all. A model that signs its reasoning
    /// (`is_signed`) refuses blocks without a signature; reasoning without `reasoning_details` is unsigned.
    pub fn write_reasoning_details(
        &self,
        place: MessagePath,
        is_signed: bool,
        losses: &mut DroppedFields,
        turns: &mut TurnWriter<'_>,
        write: impl Fn(&Detail<'_>, &mut Vec<u8>),
    ) -> Result<bool, UntranslatableRequest> {
        let details = read(self.reasoning_details);
        let (mut lost, mut returned) = (details.has_dropped, false);
        for detail in &details.blocks {
            if is_signed && matches!(detail, Detail::Text { signature: None, .. }) {
                lost = true;
                continue;
            }
            returned = true;
            turns.write_block(Speaker::Model, |out| {
                write(detail, out);
                Ok(())
            })?;
        }
        if lost {
            self.drop_reasoning_details(place, losses)?;
        }
        if !returned {
            self.drop_reasoning_text(place, losses)?;
        }
        Ok(returned)
    }
}
