//! The reasoning that an assistant's message brings back, as a provider of Claude gets it again.

use crate::{DroppedFields, Message, MessagePath, Speaker, TurnWriter};
use proofgate_dialect::UntranslatableRequest;
use proofgate_dialect::reasoning_details::{Detail, read};

impl Message<'_> {
    /// Writes the blocks of `reasoning_details` by `write`, byte for byte: a signature covers them, so that each returns as it came
    /// or not at all; whether there is any. A model that signs its thoughts (`is_signed`) refuses those without a signature, and
    /// reasoning without `reasoning_details` has none.
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
