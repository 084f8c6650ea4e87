//! The turns of a conversation.

use super::body::{Block, Content, Message, Piece};
use super::content::{Joined, Parts, block_refused, put_text_only, text_of};
use super::json::put;
use super::left_out::{LeftOut, Place};
use super::misfit::content_within;
use crate::Untranslatable;
use crate::json::write_string;

/// What a tool's result begins with that is an error: chat completions have no flag for it.
const ERROR: &str = "\"Error:";

/// Writes messages, each behind a comma.
#[derive(Debug)]
pub(super) struct Turns<'o> {
    pub(super) left_out: &'o mut LeftOut,
    pub(super) out: &'o mut Vec<u8>,
    begun: bool,
}

impl<'o> Turns<'o> {
    pub(super) fn new(left_out: &'o mut LeftOut, out: &'o mut Vec<u8>) -> Self {
        Turns {
            left_out,
            out,
            begun: false,
        }
    }

    /// Writes all messages of a request: those of one role in a row are one turn.
    pub(super) fn conversation(&mut self, messages: &[Message<'_>]) -> Result<(), Untranslatable> {
        let place = &Place::Body.field("messages");
        let mut at = 0;
        for turn in messages.chunk_by(|one, next| role(one) == role(next)) {
            for (message, at) in turn.iter().zip(at..) {
                self.left_out
                    .unknown(&place.item(at), message.unknown.as_deref())?;
            }
            let turn = Turn {
                place,
                at,
                messages: turn,
            };
            at += turn.messages.len();
            match turn.messages.first().and_then(role) {
                Some("user") => self.user(&turn)?,
                Some("assistant") if at == messages.len() => {
                    return Err(place.item(at.saturating_sub(1)).refused(
                        "The provider of this model does not continue a begun answer; end with a message of the user.",
                    ));
                }
                Some("assistant") => self.assistant(&turn)?,
                Some("system") => self.system_turn(&turn)?,
                Some(_) => {
                    let place = place.item(turn.at);
                    return Err(place
                        .field("role")
                        .refused("The role is user, assistant or system."));
                }
                None => return Err(place.item(turn.at).field("role").required()),
            }
        }
        Ok(())
    }

    fn begin(&mut self, json: &str) {
        if std::mem::replace(&mut self.begun, true) {
            self.out.push(b',');
        }
        put(self.out, json);
    }

    /// Writes the instructions of the request; nothing if they are empty.
    pub(super) fn system(&mut self, content: &Content<'_>) -> Result<(), Untranslatable> {
        let start = self.out.len();
        self.begin("{\"role\":\"system\",\"content\":");
        let text = self.out.len();
        put_text_only(&Place::Body.field("system"), content, self.left_out, self.out)?;
        if self.out.len() == text + "\"\"".len() {
            self.out.truncate(start);
            self.begun = false;
            return Ok(());
        }
        self.out.push(b'}');
        Ok(())
    }

    fn system_turn(&mut self, turn: &Turn<'_, '_, '_>) -> Result<(), Untranslatable> {
        for (at, message) in turn.messages.iter().enumerate() {
            let place = turn.place.item(turn.at + at);
            let place = place.field("content");
            let content = message.content.as_ref().ok_or_else(|| place.required())?;
            self.begin("{\"role\":\"system\",\"content\":");
            put_text_only(&place, content, self.left_out, self.out)?;
            self.out.push(b'}');
        }
        Ok(())
    }

    /// The results of tools, which have to follow their calls, and then what the user says.
    fn user(&mut self, turn: &Turn<'_, '_, '_>) -> Result<(), Untranslatable> {
        let mut said = 0;
        let mut is_text = false;
        turn.each(|place, piece| {
            match piece {
                Piece::Block(block) if is(block, "tool_result") => return self.tool_result(place, block),
                Piece::Block(block) => is_text = is(block, "text"),
                Piece::Text(_) => is_text = true,
            }
            said += 1;
            Ok(())
        })?;
        if said == 0 {
            return Ok(());
        }
        self.begin("{\"role\":\"user\",\"content\":");
        if said == 1 && is_text {
            self.only_text(turn)?;
        } else {
            self.out.push(b'[');
            let mut parts = Parts::new(self.left_out, self.out);
            turn.each(|place, piece| match piece {
                Piece::Block(block) if is(block, "tool_result") => Ok(()),
                Piece::Block(block) => parts.block(place, block),
                Piece::Text(text) => {
                    parts.text(text);
                    Ok(())
                }
            })?;
            self.out.push(b']');
        }
        self.out.push(b'}');
        Ok(())
    }

    /// Writes the one text that stands in a turn besides results of tools.
    fn only_text(&mut self, turn: &Turn<'_, '_, '_>) -> Result<(), Untranslatable> {
        turn.each(|place, piece| {
            match piece {
                Piece::Text(text) => write_string(self.out, text),
                Piece::Block(block) if is(block, "tool_result") => {}
                Piece::Block(block) => write_string(self.out, text_of(place, block, self.left_out)?),
            }
            Ok(())
        })
    }

    fn tool_result(&mut self, place: &Place<'_>, block: &Block<'_>) -> Result<(), Untranslatable> {
        let read = ["type", "tool_use_id", "content", "is_error"];
        self.left_out
            .others(place, block.given(), &read, block.unknown.as_deref())?;
        let id = block.tool_use_id.as_ref();
        let id = id.ok_or_else(|| place.field("tool_use_id").required())?;
        self.begin("{\"role\":\"tool\",\"tool_call_id\":");
        write_string(self.out, &id.0);
        put(self.out, ",\"content\":");
        let start = self.out.len();
        match &block.content {
            Some(content) => {
                let place = place.field("content");
                put_text_only(&place, &content_within(&place, content)?, self.left_out, self.out)?;
            }
            None => put(self.out, "\"\""),
        }
        if block.is_error == Some(true) {
            // The quote that begins the text makes room for the space behind the word.
            let text = self.out.split_off(start);
            put(self.out, ERROR);
            self.out.push(b' ');
            self.out.extend_from_slice(text.get(1..).unwrap_or_default());
        }
        self.out.push(b'}');
        Ok(())
    }

    /// What the model said, and the calls that it made. Thinking is bound to the provider that signed it.
    fn assistant(&mut self, turn: &Turn<'_, '_, '_>) -> Result<(), Untranslatable> {
        let start = self.out.len();
        let begun = self.begun;
        self.begin("{\"role\":\"assistant\",\"content\":");
        let mut joined = Joined::default();
        let mut calls = 0;
        turn.each(|place, piece| {
            match piece {
                Piece::Text(text) => joined.push(text, self.out),
                Piece::Block(block) => match block.kind.as_ref().map(|kind| &*kind.0) {
                    Some("text") => joined.push(text_of(place, block, self.left_out)?, self.out),
                    Some("thinking" | "redacted_thinking") => self.left_out.note("thinking"),
                    Some("tool_use") => calls += 1,
                    _ => return Err(block_refused(place, block)),
                },
            }
            Ok(())
        })?;
        if !joined.begun() {
            if calls == 0 {
                self.out.truncate(start);
                self.begun = begun;
                return Ok(());
            }
            put(self.out, "null");
        }
        if calls > 0 {
            self.calls(turn)?;
        }
        self.out.push(b'}');
        Ok(())
    }

    fn calls(&mut self, turn: &Turn<'_, '_, '_>) -> Result<(), Untranslatable> {
        let mut before = ",\"tool_calls\":[";
        turn.each(|place, piece| match piece {
            Piece::Block(block) if is(block, "tool_use") => {
                put(self.out, std::mem::replace(&mut before, ","));
                self.call(place, block)
            }
            _ => Ok(()),
        })?;
        self.out.push(b']');
        Ok(())
    }

    fn call(&mut self, place: &Place<'_>, block: &Block<'_>) -> Result<(), Untranslatable> {
        let read = ["type", "id", "name", "input", "caller"];
        self.left_out
            .others(place, block.given(), &read, block.unknown.as_deref())?;
        if let Some(caller) = &block.caller
            && caller.kind.as_ref().is_none_or(|kind| kind.0 != "direct")
        {
            self.left_out.preference(&place.field("caller"), "caller")?;
        }
        let required = |name| move || place.field(name).required();
        let id = block.id.as_ref().ok_or_else(required("id"))?;
        let name = block.name.as_ref().ok_or_else(required("name"))?;
        let input = block.input.as_ref().ok_or_else(required("input"))?;
        put(self.out, "{\"id\":");
        write_string(self.out, &id.0);
        put(self.out, ",\"type\":\"function\",\"function\":{\"name\":");
        write_string(self.out, &name.0);
        put(self.out, ",\"arguments\":");
        write_string(self.out, input.0);
        put(self.out, "}}");
        Ok(())
    }
}

/// Messages of one role in a row; the first is the `at`th of the request.
struct Turn<'t, 'm, 'a> {
    place: &'t Place<'t>,
    at: usize,
    messages: &'m [Message<'a>],
}

impl<'m, 'a> Turn<'_, 'm, 'a> {
    /// Visits all parts of its contents.
    fn each(
        &self,
        mut visit: impl FnMut(&Place<'_>, Piece<'m, 'a>) -> Result<(), Untranslatable>,
    ) -> Result<(), Untranslatable> {
        for (at, message) in self.messages.iter().enumerate() {
            let place = self.place.item(self.at + at);
            let place = place.field("content");
            let content = message.content.as_ref().ok_or_else(|| place.required())?;
            for (at, piece) in content.pieces().enumerate() {
                visit(&place.item(at), piece)?;
            }
        }
        Ok(())
    }
}

fn role<'m>(message: &'m Message<'_>) -> Option<&'m str> {
    message.role.as_ref().map(|role| &*role.0)
}

fn is(block: &Block<'_>, kind: &str) -> bool {
    block.kind.as_ref().is_some_and(|name| name.0 == kind)
}
