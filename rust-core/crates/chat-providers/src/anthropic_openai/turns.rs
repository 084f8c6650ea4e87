//! What turns are written to.

use super::json::put;
use super::left_out::LeftOut;
use super::way::Way;
use proofgate_dialect::constraints::{Constraint, has};

/// Writes messages, each behind a comma.
#[derive(Debug)]
pub(super) struct Turns<'o> {
    pub(super) left_out: &'o mut LeftOut,
    pub(super) out: &'o mut Vec<u8>,
    pub(super) begun: bool,
    /// Whether the model may be sent what it thought: OpenAI's own take no such field.
    pub(super) keeps_thoughts: bool,
    pub(super) way: Way,
}

impl<'o> Turns<'o> {
    pub(super) fn new(model: &str, way: Way, left_out: &'o mut LeftOut, out: &'o mut Vec<u8>) -> Self {
        Turns {
            left_out,
            out,
            begun: false,
            keeps_thoughts: !has(model, Constraint::MaxCompletionTokens),
            way,
        }
    }

    pub(super) fn begin(&mut self, json: &str) {
        if std::mem::replace(&mut self.begun, true) {
            self.out.push(b',');
        }
        put(self.out, json);
    }
}
