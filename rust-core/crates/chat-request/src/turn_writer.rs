use proofgate_dialect::UntranslatableRequest;

/// The side of a conversation; tool results belong to the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    User,
    Model,
}

/// Writes the turns of a conversation, joined by commas. Consecutive messages of one side form one turn, and no turn
/// is empty. Tool results come first in their turn, directly after the calls, as providers require.
pub struct TurnWriter<'o> {
    out: &'o mut Vec<u8>,
    /// The provider's name for the model's role.
    model_role: &'static str,
    /// The provider's key for the content of a turn.
    parts_key: &'static str,
    speaker: Option<Speaker>,
    /// The end of the tool results of the current turn.
    results_end: usize,
}

impl<'o> TurnWriter<'o> {
    /// Creates an empty conversation, to be appended to `out`.
    pub fn new(model: &'static str, list: &'static str, out: &'o mut Vec<u8>) -> Self {
        TurnWriter {
            out,
            model_role: model,
            parts_key: list,
            speaker: None,
            results_end: 0,
        }
    }

    /// Writes a content block for a side, as an element of an array.
    ///
    /// # Errors
    /// The error of writing the block.
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

    /// Writes a tool result.
    ///
    /// # Errors
    /// The error of writing the block.
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

    /// Returns the side of the current turn.
    pub fn speaker(&self) -> Option<Speaker> {
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
            // A turn ends with a comma after its last block.
            self.out.pop();
            self.out.extend_from_slice(b"]},");
        }
    }

    /// Ends the last turn.
    ///
    /// # Errors
    /// [`UntranslatableRequest`] when there are no messages.
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
