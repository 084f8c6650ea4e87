//! The writer of turns.

use super::destination::Destination;
use super::dropped_fields::DroppedFields;
use super::json::write_json;
use proofgate_dialect::constraints::{Constraint, has_constraint};

/// Writes messages, each with a comma before it.
#[derive(Debug)]
pub(super) struct MessageWriter<'o> {
    pub(super) dropped_fields: &'o mut DroppedFields,
    pub(super) out: &'o mut Vec<u8>,
    pub(super) has_messages: bool,
    /// Whether the model accepts its earlier thinking: OpenAI's own models have no field for it.
    pub(super) accepts_reasoning: bool,
    pub(super) destination: Destination,
}

impl<'o> MessageWriter<'o> {
    pub(super) fn new(
        model: &str,
        way: Destination,
        left_out: &'o mut DroppedFields,
        out: &'o mut Vec<u8>,
    ) -> Self {
        MessageWriter {
            dropped_fields: left_out,
            out,
            has_messages: false,
            accepts_reasoning: !has_constraint(model, Constraint::MaxCompletionTokens),
            destination: way,
        }
    }

    pub(super) fn start_message(&mut self, json: &str) {
        if std::mem::replace(&mut self.has_messages, true) {
            self.out.push(b',');
        }
        write_json(self.out, json);
    }
}
