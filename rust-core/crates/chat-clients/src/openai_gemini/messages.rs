use std::collections::HashMap;

use crate::openai_gemini::parts::{write_content_part, write_separator, write_text};
use proofgate_chat_request::{
    ChatRequest, DroppedFields, Message, MessagePath, PartContent, Role, Speaker, ToolInvocation, TurnWriter,
};
use proofgate_dialect::UntranslatableRequest;
use proofgate_dialect::json::{write_all, write_string};
use proofgate_dialect::json_text::JsonText;
use proofgate_dialect::object::object;
use proofgate_dialect::reasoning_details::read_gemini;

/// The value that Google documents for calls without a signature, because another model made them or a client lost it
/// (ai.google.dev, Thought signatures, FAQ).
const NO_SIGNATURE: &str = r#""skip_thought_signature_validator""#;

object! {
    /// The extra content that Google's endpoint for OpenAI's clients returns, for clients to send back.
    ExtraContent { google: Vendor<'b>, vertex: Vendor<'b> }
}

object! {
    Vendor { thought_signature: JsonText<'b> }
}

/// The messages of a request in Gemini's form: separate instructions, and alternating turns.
pub(super) struct Conversation<'c, 'b, 'o> {
    chat: &'c ChatRequest<'b>,
    turns: TurnWriter<'o>,
    /// The parts of `systemInstruction`, joined by commas.
    instructions: Vec<u8>,
    /// Names of the called functions by the ids of the calls: Gemini requires the name again with the result.
    function_names: HashMap<&'c str, &'c str>,
    /// Whether the model refuses calls without a signature.
    needs_signatures: bool,
}

impl<'c, 'b> Conversation<'c, 'b, '_> {
    /// Writes the turns, joined by commas; returns the parts of the instructions.
    pub(super) fn write(
        chat: &'c ChatRequest<'b>,
        needs_signatures: bool,
        losses: &mut DroppedFields,
        out: &mut Vec<u8>,
    ) -> Result<Vec<u8>, UntranslatableRequest> {
        let mut conversation = Conversation {
            chat,
            turns: TurnWriter::new("model", "parts", out),
            instructions: Vec::new(),
            function_names: HashMap::new(),
            needs_signatures,
        };
        for (at, message) in chat.messages.iter().flatten().enumerate() {
            conversation.add_message(message, MessagePath::message(at), losses)?;
        }
        conversation.turns.finish()?;
        Ok(conversation.instructions)
    }

    fn add_message(
        &mut self,
        message: &'c Message<'b>,
        place: MessagePath,
        losses: &mut DroppedFields,
    ) -> Result<(), UntranslatableRequest> {
        match message.read_role(place, losses)? {
            Role::System => {
                for piece in self.chat.message_parts(message, place, losses)? {
                    write_text(piece.text()?.raw(), &mut self.instructions);
                }
                Ok(())
            }
            Role::User => {
                let mut said = Vec::new();
                for piece in self.chat.message_parts(message, place, losses)? {
                    write_content_part(&piece, losses, &mut said)?;
                }
                self.add_parts(Speaker::User, &said)
            }
            Role::Assistant => self.add_assistant(message, place, losses),
            Role::Tool => self.add_result(message, place, losses),
        }
    }

    /// Adds parts to the turn of a side; a message without parts starts no turn.
    fn add_parts(&mut self, side: Speaker, parts: &[u8]) -> Result<(), UntranslatableRequest> {
        if parts.is_empty() {
            return Ok(());
        }
        self.turns.write_block(side, |out| {
            out.extend_from_slice(parts);
            Ok(())
        })
    }

    fn add_assistant(
        &mut self,
        message: &'c Message<'b>,
        place: MessagePath,
        losses: &mut DroppedFields,
    ) -> Result<(), UntranslatableRequest> {
        let mut said = Vec::new();
        message.drop_reasoning_text(place, losses)?;
        let details = read_gemini(message.reasoning_details);
        if details.has_dropped {
            message.drop_reasoning_details(place, losses)?;
        }
        let thought = message.reasoning_content.and_then(JsonText::from_raw);
        let thought = thought.filter(|thought| !thought.is_blank()).map(JsonText::inner);
        let thought = [thought.unwrap_or_default(), &details.thoughts.concat()].concat();
        if !thought.is_empty() {
            write_text(&["\"", &thought, "\""].concat(), &mut said);
            add_member(&mut said, "thought", "true");
        }
        let before = said.len();
        for piece in self.chat.message_parts(message, place, losses)? {
            write_text(piece.text()?.raw(), &mut said);
        }
        if let Some(refusal) = message.refusal_text() {
            write_text(refusal.raw(), &mut said);
        }
        if let Some(images) = message.images {
            for piece in self.chat.parts_from_value(images, place, losses)? {
                write_content_part(&piece, losses, &mut said)?;
            }
        }
        if let Some(signature) = self.parse_signature(message.extra_content, losses) {
            // Gemini itself sends a signature without text together with an empty text.
            if said.len() == before {
                write_text("\"\"", &mut said);
            }
            add_member(&mut said, "thoughtSignature", signature.raw());
        }
        for (at, call) in message.calls(place, losses)?.iter().enumerate() {
            let signature = details.signatures.iter().find(|(id, _)| *id == &**call.id);
            let signature = signature.map(|(_, signature)| ["\"", signature, "\""].concat());
            self.add_call(call, signature.as_deref(), at == 0, losses, &mut said)?;
        }
        self.add_parts(Speaker::Model, &said)
    }

    fn add_call(
        &mut self,
        call: &ToolInvocation<'c, 'b>,
        signed: Option<&str>,
        is_first: bool,
        losses: &mut DroppedFields,
        out: &mut Vec<u8>,
    ) -> Result<(), UntranslatableRequest> {
        write_separator(out);
        write_all(out, &[r#"{"functionCall":{"id":"#]);
        write_string(out, call.id);
        write_all(out, &[r#","name":"#]);
        write_string(out, call.name);
        write_all(out, &[r#","args":"#, call.arguments()?.trim(), "}}"]);
        let signature = self
            .parse_signature(call.extra_content, losses)
            .map(JsonText::raw)
            .or(signed);
        // Only the first of parallel calls is signed.
        let stand_in = (is_first && self.needs_signatures).then_some(NO_SIGNATURE);
        if let Some(signature) = signature.or(stand_in) {
            add_member(out, "thoughtSignature", signature);
        }
        self.function_names.insert(call.id, call.name);
        Ok(())
    }

    fn add_result(
        &mut self,
        message: &'c Message<'b>,
        place: MessagePath,
        losses: &mut DroppedFields,
    ) -> Result<(), UntranslatableRequest> {
        let id = message.answered_call_id(place)?;
        // A truncated conversation may lack the call.
        let own = || message.name.and_then(JsonText::from_raw)?.decode();
        let name = match self.function_names.get(id) {
            Some(name) => (*name).into(),
            None => own().ok_or_else(|| {
                let message = "it has no name, and no earlier tool call has this id";
                UntranslatableRequest::new(place.field_path("tool_call_id"), message)
            })?,
        };
        let (mut output, mut media) = (Vec::new(), Vec::new());
        let pieces = self.chat.message_parts(message, place, losses)?;
        for piece in &pieces {
            match piece.content {
                PartContent::Text(text) => write_all(&mut output, &[text.inner()]),
                // Models before Gemini 3 do not support them in a function response.
                _ => write_content_part(piece, losses, &mut media)?,
            }
        }
        self.turns.write_tool_result(|out| {
            write_all(out, &[r#"{"functionResponse":{"id":"#]);
            write_string(out, id);
            write_all(out, &[r#","name":"#]);
            write_string(out, &name);
            write_all(out, &[r#","response":{"output":""#]);
            out.extend_from_slice(&output);
            write_all(out, &[r#""}}}"#]);
            Ok(())
        })?;
        self.add_parts(Speaker::User, &media)
    }

    /// Returns the signature in an `extra_content`.
    fn parse_signature(
        &self,
        extra: Option<&'b serde_json::value::RawValue>,
        losses: &mut DroppedFields,
    ) -> Option<JsonText<'b>> {
        let extra = extra?.get();
        let Ok(read) = self.chat.parse::<ExtraContent<'b>>(extra) else {
            losses.record_field("messages[].extra_content", extra);
            return None;
        };
        losses.drop_unknown(read.unknown.as_ref());
        let vendor = read.google.or(read.vertex)?;
        losses.drop_unknown(vendor.unknown.as_ref());
        vendor.thought_signature
    }
}

/// Adds a member to the object that `out` ends with.
fn add_member(out: &mut Vec<u8>, name: &str, json: &str) {
    if out.pop().is_some() {
        write_all(out, &[",\"", name, "\":", json, "}"]);
    }
}
