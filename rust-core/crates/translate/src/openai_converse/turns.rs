use crate::openai_converse::content::{Blocks, Speaker};
use crate::openai_converse::text::write_all;

/// The turns of a conversation, each opened when its first block comes: roles alternate, whatever says nothing between them.
pub(super) struct Turns<'o> {
    pub(super) out: &'o mut Vec<u8>,
    pub(super) speaker: Option<Speaker>,
}

pub(super) struct Turn<'t, 'o> {
    pub(super) turns: &'t mut Turns<'o>,
    pub(super) speaker: Speaker,
}

impl Turns<'_> {
    /// Ends the last turn and the list; whether there was one.
    pub(super) fn end(self) -> bool {
        write_all(self.out, if self.speaker.is_some() { &["]}]"] } else { &["]"] });
        self.speaker.is_some()
    }
}

impl Turns<'_> {
    /// Gives the user's documents that were written from `start` on a text, if they have none: Converse demands one beside them
    /// (Amazon Bedrock's API reference, Message: content).
    pub(super) fn introduce_documents(&mut self, start: usize) {
        let written = self.out.get(start..).unwrap_or_default();
        // It cannot stand within a string, whose quotes are escaped.
        let text = br#"{"text":"#;
        if !written.windows(text.len()).any(|window| window == text) {
            let mut turn = Turn {
                turns: self,
                speaker: Speaker::User,
            };
            write_all(turn.next(), &[r#"{"text":"."}"#]);
        }
    }
}

impl Blocks for Turn<'_, '_> {
    fn length(&self) -> usize {
        self.turns.out.len()
    }

    fn next(&mut self) -> &mut Vec<u8> {
        let turns = &mut *self.turns;
        if turns.speaker == Some(self.speaker) {
            turns.out.push(b',');
            return turns.out;
        }
        let before = if turns.speaker.is_some() { "]}," } else { "" };
        let role = if self.speaker == Speaker::Assistant {
            "assistant"
        } else {
            "user"
        };
        write_all(turns.out, &[before, r#"{"role":""#, role, r#"","content":["#]);
        turns.speaker = Some(self.speaker);
        turns.out
    }
}
