//! The turns of a conversation.

use super::block_errors::misplaced_block_error;
use super::body::{Block, Content, ContentPart, Message, has_type};
use super::content::{JoinedTextWriter, PartWriter, block_text, required_block_text, write_text_only};
use super::dropped_fields::JsonPath;
use super::json::{unquoted, write_json};
use super::message_writer::MessageWriter;
use super::{encrypted_reasoning, tool_results};
use proofgate_dialect::UntranslatableRequest;
use proofgate_dialect::json::write_string;

/// The prefix of the line by which Claude Code identifies the sender of a request. It differs between sessions, and at the
/// start of the prompt it would prevent cache hits at other providers (code.claude.com, LLM gateways).
const ATTRIBUTION_PREFIX: &str = "x-anthropic-billing-header:";

impl MessageWriter<'_> {
    /// Writes all messages of a request: consecutive messages of one role are one turn.
    pub(super) fn write_conversation(
        &mut self,
        messages: &[Message<'_>],
    ) -> Result<(), UntranslatableRequest> {
        let place = &JsonPath::Body.field("messages");
        let mut at = 0;
        for turn in messages.chunk_by(|one, next| role(one) == role(next)) {
            for (message, at) in turn.iter().zip(at..) {
                self.dropped_fields
                    .drop_unknown(&place.element(at), message.unknown.as_deref())?;
            }
            let turn = Turn {
                place,
                first_index: at,
                messages: turn,
            };
            at += turn.messages.len();
            match turn.messages.first().and_then(role) {
                Some("user") => self.write_user_turn(&turn)?,
                Some("assistant") if at == messages.len() => {
                    return Err(place.element(at.saturating_sub(1)).error(
                        "The provider of this model cannot continue a partial answer. End with a user message.",
                    ));
                }
                Some("assistant") => self.write_assistant_turn(&turn)?,
                Some("system") => self.write_system_turn(&turn)?,
                Some(_) => {
                    let place = place.element(turn.first_index);
                    return Err(place
                        .field("role")
                        .error("The role must be user, assistant or system."));
                }
                None => return Err(place.element(turn.first_index).field("role").missing_error()),
            }
        }
        Ok(())
    }

    /// Writes the instructions of the request without the line that identifies the sender; nothing if they are empty.
    pub(super) fn write_system(&mut self, content: &Content<'_>) -> Result<(), UntranslatableRequest> {
        let start = self.out.len();
        self.start_message("{\"role\":\"system\",\"content\":");
        let place = &JsonPath::Body.field("system");
        let mut joined = JoinedTextWriter::default();
        for (at, piece) in content.parts().enumerate() {
            let text = match piece {
                ContentPart::Text(text) => text,
                ContentPart::Block(block) => {
                    required_block_text(&place.element(at), block, self.dropped_fields)?
                }
            };
            let said = without_attribution(text);
            if said.len() < text.len() {
                self.dropped_fields
                    .record_field("system[].x-anthropic-billing-header");
            }
            if !said.is_empty() {
                joined.push(said, self.out);
            }
        }
        if !joined.has_text() {
            self.out.truncate(start);
            self.has_messages = false;
            return Ok(());
        }
        self.out.push(b'}');
        Ok(())
    }

    fn write_system_turn(&mut self, turn: &Turn<'_, '_, '_>) -> Result<(), UntranslatableRequest> {
        for (at, message) in turn.messages.iter().enumerate() {
            let place = turn.place.element(turn.first_index + at);
            let place = place.field("content");
            let content = message.content.as_ref().ok_or_else(|| place.missing_error())?;
            self.start_message("{\"role\":\"system\",\"content\":");
            write_text_only(&place, content, self.dropped_fields, self.out)?;
            self.out.push(b'}');
        }
        Ok(())
    }

    /// Writes the tool results, which must follow their calls, and then the user's content. Only a
    /// user message can contain an image or a document, so the user's content begins with those of
    /// the results.
    fn write_user_turn(&mut self, turn: &Turn<'_, '_, '_>) -> Result<(), UntranslatableRequest> {
        let mut said = 0;
        let mut is_text = false;
        turn.for_each_part(|place, piece| {
            match piece {
                ContentPart::Block(block) if has_type(block, "tool_result") => {
                    if tool_results::write(place, block, self)? {
                        said += 1;
                        is_text = false;
                    }
                    return Ok(());
                }
                ContentPart::Block(block) => is_text = has_type(block, "text"),
                ContentPart::Text(_) => is_text = true,
            }
            said += 1;
            Ok(())
        })?;
        if said == 0 {
            return Ok(());
        }
        self.start_message("{\"role\":\"user\",\"content\":");
        if said == 1 && is_text {
            self.write_only_text(turn)?;
        } else {
            self.out.push(b'[');
            let mut parts = PartWriter::new(self.destination, self.dropped_fields, self.out);
            turn.for_each_part(|place, piece| match piece {
                ContentPart::Block(block) if has_type(block, "tool_result") => {
                    tool_results::write_media(place, block, &mut parts)
                }
                _ => Ok(()),
            })?;
            turn.for_each_part(|place, piece| match piece {
                ContentPart::Block(block) if has_type(block, "tool_result") => Ok(()),
                ContentPart::Block(block) => parts.write_block(place, block),
                ContentPart::Text(text) => {
                    parts.write_text(text);
                    Ok(())
                }
            })?;
            self.out.push(b']');
        }
        self.out.push(b'}');
        Ok(())
    }

    /// Writes the only text of a turn, without its tool results.
    fn write_only_text(&mut self, turn: &Turn<'_, '_, '_>) -> Result<(), UntranslatableRequest> {
        turn.for_each_part(|place, piece| {
            match piece {
                ContentPart::Text(text) => write_string(self.out, text),
                ContentPart::Block(block) if has_type(block, "tool_result") => {}
                ContentPart::Block(block) => {
                    write_string(self.out, block_text(place, block, self.dropped_fields)?)
                }
            }
            Ok(())
        })
    }

    /// Writes the model's text and calls. Thinking that another provider signed is bound to that
    /// provider. Thinking without a signature came from a provider of chat completions, and some of
    /// these providers refuse a turn without it.
    fn write_assistant_turn(&mut self, turn: &Turn<'_, '_, '_>) -> Result<(), UntranslatableRequest> {
        let start = self.out.len();
        let begun = self.has_messages;
        self.start_message("{\"role\":\"assistant\",\"content\":");
        let mut joined = JoinedTextWriter::default();
        let mut thoughts: Vec<&str> = Vec::new();
        let mut details = DetailList::default();
        let mut calls = 0;
        turn.for_each_part(|place, piece| {
            match piece {
                ContentPart::Text(text) => joined.push(text, self.out),
                ContentPart::Block(block) => match block.kind.as_ref().map(|kind| &*kind.0) {
                    Some("text") => joined.push(block_text(place, block, self.dropped_fields)?, self.out),
                    Some("thinking") if self.extract_encrypted_details(block, &mut details) => {}
                    Some("thinking") if self.accepts_reasoning && !has_foreign_signature(block) => {
                        thoughts.extend(unquoted(block.thinking));
                    }
                    Some("thinking" | "redacted_thinking") => self.dropped_fields.record_field("thinking"),
                    Some("tool_use") => calls += 1,
                    _ => return Err(misplaced_block_error(place, block)),
                },
            }
            Ok(())
        })?;
        if !joined.has_text() {
            if calls == 0 {
                if !thoughts.is_empty() || details.count > 0 {
                    self.dropped_fields.record_field("thinking");
                }
                self.out.truncate(start);
                self.has_messages = begun;
                return Ok(());
            }
            write_json(self.out, "null");
        }
        if !thoughts.is_empty() {
            write_json(self.out, ",\"reasoning_content\":\"");
            thoughts.iter().for_each(|thought| write_json(self.out, thought));
            self.out.push(b'"');
        }
        if details.count > 0 {
            write_json(self.out, ",\"reasoning_details\":[");
            self.out.append(&mut details.json);
            self.out.push(b']');
        }
        if calls > 0 {
            self.write_calls(turn)?;
        }
        self.out.push(b'}');
        Ok(())
    }

    /// Extracts encrypted reasoning from the signature of a block, to send it back to Responses; returns whether there was
    /// any.
    fn extract_encrypted_details(&self, block: &Block<'_>, details: &mut DetailList) -> bool {
        let DetailList { json, count } = details;
        let signature = unquoted(block.signature).filter(|_| self.destination.is_intermediate());
        signature.is_some_and(|signature| {
            encrypted_reasoning::write_details(signature, unquoted(block.thinking), count, json)
        })
    }

    fn write_calls(&mut self, turn: &Turn<'_, '_, '_>) -> Result<(), UntranslatableRequest> {
        let mut before = ",\"tool_calls\":[";
        turn.for_each_part(|place, piece| match piece {
            ContentPart::Block(block) if has_type(block, "tool_use") => {
                write_json(self.out, std::mem::replace(&mut before, ","));
                self.write_call(place, block)
            }
            _ => Ok(()),
        })?;
        self.out.push(b']');
        Ok(())
    }

    fn write_call(&mut self, place: &JsonPath<'_>, block: &Block<'_>) -> Result<(), UntranslatableRequest> {
        let read = ["type", "id", "name", "input", "caller"];
        self.dropped_fields.drop_unread_fields(
            place,
            block.present_fields(),
            &read,
            block.unknown.as_deref(),
        )?;
        if let Some(caller) = &block.caller
            && caller.kind.as_ref().is_none_or(|kind| kind.0 != "direct")
        {
            self.dropped_fields
                .drop_preference(&place.field("caller"), "caller")?;
        }
        let required = |name| move || place.field(name).missing_error();
        let id = block.id.as_ref().ok_or_else(required("id"))?;
        let name = block.name.as_ref().ok_or_else(required("name"))?;
        let input = block.input.as_ref().ok_or_else(required("input"))?;
        write_json(self.out, "{\"id\":");
        write_string(self.out, &id.0);
        write_json(self.out, ",\"type\":\"function\",\"function\":{\"name\":");
        write_string(self.out, &name.0);
        write_json(self.out, ",\"arguments\":");
        write_string(self.out, input.0);
        write_json(self.out, "}}");
        Ok(())
    }
}

/// Elements of `reasoning_details`.
#[derive(Default)]
struct DetailList {
    json: Vec<u8>,
    count: u64,
}

/// Returns whether another provider has signed a block of thinking. A signature of the gateway carries `reasoning_details`.
fn has_foreign_signature(block: &Block<'_>) -> bool {
    unquoted(block.signature).is_some_and(|signature| !encrypted_reasoning::is_gateway_signature(signature))
}

/// Consecutive messages of one role; the first has the index `at` in the request.
struct Turn<'t, 'm, 'a> {
    place: &'t JsonPath<'t>,
    first_index: usize,
    messages: &'m [Message<'a>],
}

impl<'m, 'a> Turn<'_, 'm, 'a> {
    /// Visits all parts of its content.
    fn for_each_part(
        &self,
        mut visit: impl FnMut(&JsonPath<'_>, ContentPart<'m, 'a>) -> Result<(), UntranslatableRequest>,
    ) -> Result<(), UntranslatableRequest> {
        for (at, message) in self.messages.iter().enumerate() {
            let place = self.place.element(self.first_index + at);
            let place = place.field("content");
            let content = message.content.as_ref().ok_or_else(|| place.missing_error())?;
            for (at, piece) in content.parts().enumerate() {
                visit(&place.element(at), piece)?;
            }
        }
        Ok(())
    }
}

fn role<'m>(message: &'m Message<'_>) -> Option<&'m str> {
    message.role.as_ref().map(|role| &*role.0)
}

/// Returns a text without the line that identifies the sender.
fn without_attribution(text: &str) -> &str {
    match text.starts_with(ATTRIBUTION_PREFIX) {
        true => text.split_once('\n').map_or("", |(_, rest)| rest.trim_start()),
        false => text,
    }
}
