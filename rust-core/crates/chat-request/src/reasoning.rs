//! The reasoning that an assistant's message brings back, as a provider of Claude gets it again.

use crate::{Losses, Message, Place, Side, Turns};
use proofgate_dialect::Untranslatable;
use proofgate_dialect::reasoning_details::{Detail, read};

impl Message<'_> {
    /// Writes the blocks of `reasoning_details` by `write`, byte for byte: a signature covers them, so that each returns as it came
    /// or not at all; whether there is any. A model that signs its thoughts (`is_signed`) refuses those without a signature, and
    /// reasoning without `reasoning_details` has none.
    pub fn bring_back(
        &self,
        place: Place,
        is_signed: bool,
        losses: &mut Losses,
        turns: &mut Turns<'_>,
        write: impl Fn(&Detail<'_>, &mut Vec<u8>),
    ) -> Result<bool, Untranslatable> {
        let details = read(self.reasoning_details);
        let (mut lost, mut returned) = (details.lost, false);
        for detail in &details.blocks {
            if is_signed && matches!(detail, Detail::Text { signature: None, .. }) {
                lost = true;
                continue;
            }
            returned = true;
            turns.say(Side::Model, |out| {
                write(detail, out);
                Ok(())
            })?;
        }
        if lost {
            self.lose_details(place, losses)?;
        }
        if !returned {
            self.lose_thoughts(place, losses)?;
        }
        Ok(returned)
    }
}
