use proofgate_dialect::Untranslatable;

/// Whose turn it is; what tools return is the user's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    User,
    Model,
}

/// The turns of a conversation, joined by commas. Messages of one side in a row are one turn, and none is empty; the results of
/// tools come first in theirs, right behind the calls, as providers demand.
pub struct Turns<'o> {
    out: &'o mut Vec<u8>,
    /// The provider's name of the model as a speaker.
    model: &'static str,
    /// And of what a turn consists of.
    list: &'static str,
    side: Option<Side>,
    /// Where the results of the turn at hand end.
    results_end: usize,
}

impl<'o> Turns<'o> {
    /// None yet, behind what is written.
    pub fn new(model: &'static str, list: &'static str, out: &'o mut Vec<u8>) -> Self {
        Turns {
            out,
            model,
            list,
            side: None,
            results_end: 0,
        }
    }

    /// Writes a block of a side, which is an element of a list.
    ///
    /// # Errors
    /// Those of the block.
    pub fn say(
        &mut self,
        side: Side,
        block: impl FnOnce(&mut Vec<u8>) -> Result<(), Untranslatable>,
    ) -> Result<(), Untranslatable> {
        self.open(side);
        block(self.out)?;
        self.out.push(b',');
        Ok(())
    }

    /// Writes the result of a tool.
    ///
    /// # Errors
    /// Those of the block.
    pub fn answer(
        &mut self,
        block: impl FnOnce(&mut Vec<u8>) -> Result<(), Untranslatable>,
    ) -> Result<(), Untranslatable> {
        self.open(Side::User);
        let start = self.out.len();
        self.say(Side::User, block)?;
        let length = self.out.len().saturating_sub(start);
        if let Some(behind) = self.out.get_mut(self.results_end..) {
            behind.rotate_right(length);
        }
        self.results_end += length;
        Ok(())
    }

    /// The side whose turn it is.
    pub fn side(&self) -> Option<Side> {
        self.side
    }

    fn open(&mut self, side: Side) {
        if self.side == Some(side) {
            return;
        }
        self.close();
        self.side = Some(side);
        let role = match side {
            Side::User => "user",
            Side::Model => self.model,
        };
        for piece in ["{\"role\":\"", role, "\",\"", self.list, "\":["] {
            self.out.extend_from_slice(piece.as_bytes());
        }
        self.results_end = self.out.len();
    }

    fn close(&mut self) {
        if self.side.is_some() {
            // A turn ends with the comma behind its last block.
            self.out.pop();
            self.out.extend_from_slice(b"]},");
        }
    }

    /// Ends the last turn.
    ///
    /// # Errors
    /// [`Untranslatable`] when nobody has said anything.
    pub fn end(mut self) -> Result<(), Untranslatable> {
        if self.side.is_none() {
            let message = "at least one message must be neither blank nor a system message";
            return Err(Untranslatable::new("messages", message));
        }
        self.close();
        self.out.pop();
        Ok(())
    }
}
