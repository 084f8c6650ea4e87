use proofgate_dialect::UntranslatableRequest;

/// Whose turn it is; what tools return is the user's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    User,
    Model,
}

/// The turns of a conversation, joined by commas. Messages of one side in a row are one turn, and none is empty; the results of
/// tools come first in theirs, right behind the calls, as providers demand.
pub struct TurnWriter<'o> {
    out: &'o mut Vec<u8>,
    /// The provider's name of the model as a speaker.
    model_role: &'static str,
    /// And of what a turn consists of.
    parts_key: &'static str,
    speaker: Option<Speaker>,
    /// Where the results of the turn at hand end.
    results_end: usize,
}

impl<'o> TurnWriter<'o> {
    /// None yet, behind what is written.
    pub fn new(model: &'static str, list: &'static str, out: &'o mut Vec<u8>) -> Self {
        TurnWriter {
            out,
            model_role: model,
            parts_key: list,
            speaker: None,
            results_end: 0,
        }
    }

    /// Writes a block of a side, which is an element of a list.
    ///
    /// # Errors
    /// Those of the block.
    pub fn write_block(
        &mut self,
        side: Speaker,
        block: impl FnOnce(&mut Vec<u8>) -> Result<(), UntranslatableRequest>,
    ) -> Result<(), UntranslatableRequest> {
        self.start_turn(side);
        block(self.out)?;
        self.out.push(b',');
        Ok(())
    }

    /// Writes the result of a tool.
    ///
    /// # Errors
    /// Those of the block.
    pub fn write_tool_result(
        &mut self,
        block: impl FnOnce(&mut Vec<u8>) -> Result<(), UntranslatableRequest>,
    ) -> Result<(), UntranslatableRequest> {
        self.start_turn(Speaker::User);
        let start = self.out.len();
        self.write_block(Speaker::User, block)?;
        let length = self.out.len().saturating_sub(start);
        if let Some(behind) = self.out.get_mut(self.results_end..) {
            behind.rotate_right(length);
        }
        self.results_end += length;
        Ok(())
    }

    /// The side whose turn it is.
    pub fn side(&self) -> Option<Speaker> {
        self.speaker
    }

    fn start_turn(&mut self, side: Speaker) {
        if self.speaker == Some(side) {
            return;
        }
        self.close_turn();
        self.speaker = Some(side);
        let role = match side {
            Speaker::User => "user",
            Speaker::Model => self.model_role,
        };
        for piece in ["{\"role\":\"", role, "\",\"", self.parts_key, "\":["] {
            self.out.extend_from_slice(piece.as_bytes());
        }
        self.results_end = self.out.len();
    }

    fn close_turn(&mut self) {
        if self.speaker.is_some() {
            // A turn ends with the comma behind its last block.
            self.out.pop();
            self.out.extend_from_slice(b"]},");
        }
    }

    /// Ends the last turn.
    ///
    /// # Errors
    /// [`UntranslatableRequest`] when nobody has said anything.
    pub fn finish(mut self) -> Result<(), UntranslatableRequest> {
        if self.speaker.is_none() {
            let message = "at least one message must be neither blank nor a system message";
            return Err(UntranslatableRequest::new("messages", message));
        }
        self.close_turn();
        self.out.pop();
        Ok(())
    }
}
