//! The turns of a conversation.

use super::body::{Block, Content, Message, Piece, is};
use super::content::{Joined, Parts, only_text_of, put_text_only, text_of};
use super::json::{inside_quotes, put};
use super::left_out::Place;
use super::refused_blocks::block_refused;
use super::turns::Turns;
use super::{results, sealed};
use proofgate_dialect::Untranslatable;
use proofgate_dialect::json::write_string;

/// What the line begins with by which Claude Code says who sends a request. It differs from session to session, and before
/// everything else it would keep other providers from reading a prompt out of their caches (code.claude.com, LLM gateways).
const ATTRIBUTION: &str = "x-anthropic-billing-header:";

impl Turns<'_> {
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
                        "The provider of this model cannot continue a partial answer. End with a user message.",
                    ));
                }
                Some("assistant") => self.assistant(&turn)?,
                Some("system") => self.system_turn(&turn)?,
                Some(_) => {
                    let place = place.item(turn.at);
                    return Err(place
                        .field("role")
                        .refused("The role must be user, assistant or system."));
                }
                None => return Err(place.item(turn.at).field("role").required()),
            }
        }
        Ok(())
    }

    /// Writes the instructions of the request, but for the line that says who sends it; nothing if they are empty.
    pub(super) fn system(&mut self, content: &Content<'_>) -> Result<(), Untranslatable> {
        let start = self.out.len();
        self.begin("{\"role\":\"system\",\"content\":");
        let place = &Place::Body.field("system");
        let mut joined = Joined::default();
        for (at, piece) in content.pieces().enumerate() {
            let text = match piece {
                Piece::Text(text) => text,
                Piece::Block(block) => only_text_of(&place.item(at), block, self.left_out)?,
            };
            let said = without_attribution(text);
            if said.len() < text.len() {
                self.left_out.note("system[].x-anthropic-billing-header");
            }
            if !said.is_empty() {
                joined.push(said, self.out);
            }
        }
        if !joined.begun() {
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

    /// The results of tools, which have to follow their calls, and then what the user says. Only the user can show a picture or
    /// a document: those of the results stand there, before all else.
    fn user(&mut self, turn: &Turn<'_, '_, '_>) -> Result<(), Untranslatable> {
        let mut said = 0;
        let mut is_text = false;
        turn.each(|place, piece| {
            match piece {
                Piece::Block(block) if is(block, "tool_result") => {
                    if results::write(place, block, self)? {
                        said += 1;
                        is_text = false;
                    }
                    return Ok(());
                }
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
            let mut parts = Parts::new(self.way, self.left_out, self.out);
            turn.each(|place, piece| match piece {
                Piece::Block(block) if is(block, "tool_result") => results::show(place, block, &mut parts),
                _ => Ok(()),
            })?;
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

    /// What the model said, and the calls that it made. Thinking that another provider signed is bound to that one; without a
    /// signature it is what a provider of chat completions thought, and some of them refuse a turn that lacks it.
    fn assistant(&mut self, turn: &Turn<'_, '_, '_>) -> Result<(), Untranslatable> {
        let start = self.out.len();
        let begun = self.begun;
        self.begin("{\"role\":\"assistant\",\"content\":");
        let mut joined = Joined::default();
        let mut thoughts: Vec<&str> = Vec::new();
        let mut details = Details::default();
        let mut calls = 0;
        turn.each(|place, piece| {
            match piece {
                Piece::Text(text) => joined.push(text, self.out),
                Piece::Block(block) => match block.kind.as_ref().map(|kind| &*kind.0) {
                    Some("text") => joined.push(text_of(place, block, self.left_out)?, self.out),
                    Some("thinking") if self.reveals(block, &mut details) => {}
                    Some("thinking") if self.keeps_thoughts && !is_signed(block) => {
                        thoughts.extend(inside_quotes(block.thinking));
                    }
                    Some("thinking" | "redacted_thinking") => self.left_out.note("thinking"),
                    Some("tool_use") => calls += 1,
                    _ => return Err(block_refused(place, block)),
                },
            }
            Ok(())
        })?;
        if !joined.begun() {
            if calls == 0 {
                if !thoughts.is_empty() || details.count > 0 {
                    self.left_out.note("thinking");
                }
                self.out.truncate(start);
                self.begun = begun;
                return Ok(());
            }
            put(self.out, "null");
        }
        if !thoughts.is_empty() {
            put(self.out, ",\"reasoning_content\":\"");
            thoughts.iter().for_each(|thought| put(self.out, thought));
            self.out.push(b'"');
        }
        if details.count > 0 {
            put(self.out, ",\"reasoning_details\":[");
            self.out.append(&mut details.json);
            self.out.push(b']');
        }
        if calls > 0 {
            self.calls(turn)?;
        }
        self.out.push(b'}');
        Ok(())
    }

    /// Takes reasoning that came encrypted out of the signature of a block, where Responses get it again; whether it did.
    fn reveals(&self, block: &Block<'_>, details: &mut Details) -> bool {
        let Details { json, count } = details;
        let signature = inside_quotes(block.signature).filter(|_| self.way.goes_on());
        signature.is_some_and(|signature| {
            sealed::put_details(signature, inside_quotes(block.thinking), count, json)
        })
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

/// Elements of `reasoning_details`.
#[derive(Default)]
struct Details {
    json: Vec<u8>,
    count: u64,
}

/// Whether another provider has signed a block of thinking; a signature of ours carries what came with it.
fn is_signed(block: &Block<'_>) -> bool {
    inside_quotes(block.signature).is_some_and(|signature| !sealed::is_ours(signature))
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

/// A text without the line that says who sends it.
fn without_attribution(text: &str) -> &str {
    match text.starts_with(ATTRIBUTION) {
        true => text.split_once('\n').map_or("", |(_, rest)| rest.trim_start()),
        false => text,
    }
}
