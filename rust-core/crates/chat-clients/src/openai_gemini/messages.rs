use std::collections::HashMap;

use crate::openai_gemini::parts::{next, write_piece, write_text};
use proofgate_chat_request::{Called, Chat, Losses, Message, Place, Role, Said, Side, Turns};
use proofgate_dialect::Untranslatable;
use proofgate_dialect::json::{write_all, write_string};
use proofgate_dialect::json_text::JsonText;
use proofgate_dialect::object::object;
use proofgate_dialect::reasoning_details::read_gemini;

/// What Google documents for calls that have no signature, because another model made them or a client lost it
/// (ai.google.dev, Thought signatures, FAQ).
const NO_SIGNATURE: &str = r#""skip_thought_signature_validator""#;

object! {
    /// What Google's endpoint for OpenAI's clients gives them to send back.
    ExtraContent { google: Vendor<'b>, vertex: Vendor<'b> }
}

object! {
    Vendor { thought_signature: JsonText<'b> }
}

/// The messages of a request as Gemini takes them: instructions apart, and turns that alternate.
pub(super) struct Conversation<'c, 'b, 'o> {
    chat: &'c Chat<'b>,
    turns: Turns<'o>,
    /// The parts of `systemInstruction`, joined by commas.
    instructions: Vec<u8>,
    /// Names of the functions that were called by the ids of the calls: Gemini wants the name again with the result.
    called: HashMap<&'c str, &'c str>,
    /// Whether the model refuses calls without a signature.
    needs_signatures: bool,
}

impl<'c, 'b> Conversation<'c, 'b, '_> {
    /// Writes the turns, joined by commas; returns the parts of the instructions.
    pub(super) fn write(
        chat: &'c Chat<'b>,
        needs_signatures: bool,
        losses: &mut Losses,
        out: &mut Vec<u8>,
    ) -> Result<Vec<u8>, Untranslatable> {
        let mut conversation = Conversation {
            chat,
            turns: Turns::new("model", "parts", out),
            instructions: Vec::new(),
            called: HashMap::new(),
            needs_signatures,
        };
        for (at, message) in chat.messages.iter().flatten().enumerate() {
            conversation.message(message, Place::message(at), losses)?;
        }
        conversation.turns.end()?;
        Ok(conversation.instructions)
    }

    fn message(
        &mut self,
        message: &'c Message<'b>,
        place: Place,
        losses: &mut Losses,
    ) -> Result<(), Untranslatable> {
        match message.role(place, losses)? {
            Role::System => {
                for piece in self.chat.pieces(message, place, losses)? {
                    write_text(piece.text()?.raw(), &mut self.instructions);
                }
                Ok(())
            }
            Role::User => {
                let mut said = Vec::new();
                for piece in self.chat.pieces(message, place, losses)? {
                    write_piece(&piece, losses, &mut said)?;
                }
                self.add_parts(Side::User, &said)
            }
            Role::Assistant => self.assistant(message, place, losses),
            Role::Tool => self.result(message, place, losses),
        }
    }

    /// Adds parts to the turn of a side; a message without parts begins none.
    fn add_parts(&mut self, side: Side, parts: &[u8]) -> Result<(), Untranslatable> {
        if parts.is_empty() {
            return Ok(());
        }
        self.turns.say(side, |out| {
            out.extend_from_slice(parts);
            Ok(())
        })
    }

    fn assistant(
        &mut self,
        message: &'c Message<'b>,
        place: Place,
        losses: &mut Losses,
    ) -> Result<(), Untranslatable> {
        let mut said = Vec::new();
        message.lose_thoughts(place, losses)?;
        let details = read_gemini(message.reasoning_details);
        if details.lost {
            message.lose_details(place, losses)?;
        }
        let thought = message.reasoning_content.and_then(JsonText::of);
        let thought = thought.filter(|thought| !thought.is_blank()).map(JsonText::inner);
        let thought = [thought.unwrap_or_default(), &details.thoughts.concat()].concat();
        if !thought.is_empty() {
            write_text(&["\"", &thought, "\""].concat(), &mut said);
            add_member(&mut said, "thought", "true");
        }
        let before = said.len();
        for piece in self.chat.pieces(message, place, losses)? {
            write_text(piece.text()?.raw(), &mut said);
        }
        if let Some(refusal) = message.declined() {
            write_text(refusal.raw(), &mut said);
        }
        if let Some(images) = message.images {
            for piece in self.chat.pieces_of(images, place, losses)? {
                write_piece(&piece, losses, &mut said)?;
            }
        }
        if let Some(signature) = self.signature(message.extra_content, losses) {
            // Gemini itself sends a signature that has no text to stand on with an empty one.
            if said.len() == before {
                write_text("\"\"", &mut said);
            }
            add_member(&mut said, "thoughtSignature", signature.raw());
        }
        for (at, call) in message.calls(place, losses)?.iter().enumerate() {
            let signature = details.signatures.iter().find(|(id, _)| *id == &**call.id);
            let signature = signature.map(|(_, signature)| ["\"", signature, "\""].concat());
            self.call(call, signature.as_deref(), at == 0, losses, &mut said)?;
        }
        self.add_parts(Side::Model, &said)
    }

    fn call(
        &mut self,
        call: &Called<'c, 'b>,
        signed: Option<&str>,
        is_first: bool,
        losses: &mut Losses,
        out: &mut Vec<u8>,
    ) -> Result<(), Untranslatable> {
        next(out);
        write_all(out, &[r#"{"functionCall":{"id":"#]);
        write_string(out, call.id);
        write_all(out, &[r#","name":"#]);
        write_string(out, call.name);
        write_all(out, &[r#","args":"#, call.arguments()?.trim(), "}}"]);
        let signature = self.signature(call.extra, losses).map(JsonText::raw).or(signed);
        // Of parallel calls the first alone is signed.
        let stand_in = (is_first && self.needs_signatures).then_some(NO_SIGNATURE);
        if let Some(signature) = signature.or(stand_in) {
            add_member(out, "thoughtSignature", signature);
        }
        self.called.insert(call.id, call.name);
        Ok(())
    }

    fn result(
        &mut self,
        message: &'c Message<'b>,
        place: Place,
        losses: &mut Losses,
    ) -> Result<(), Untranslatable> {
        let id = message.answered(place)?;
        // A conversation that was cut may lack the call.
        let own = || message.name.and_then(JsonText::of)?.decoded();
        let name = match self.called.get(id) {
            Some(name) => (*name).into(),
            None => own().ok_or_else(|| {
                let message = "it has no name, and no earlier tool call has this id";
                Untranslatable::new(place.field("tool_call_id"), message)
            })?,
        };
        let (mut output, mut media) = (Vec::new(), Vec::new());
        let pieces = self.chat.pieces(message, place, losses)?;
        for piece in &pieces {
            match piece.said {
                Said::Text(text) => write_all(&mut output, &[text.inner()]),
                // A function's response has no place for them in models before Gemini 3.
                _ => write_piece(piece, losses, &mut media)?,
            }
        }
        self.turns.answer(|out| {
            write_all(out, &[r#"{"functionResponse":{"id":"#]);
            write_string(out, id);
            write_all(out, &[r#","name":"#]);
            write_string(out, &name);
            write_all(out, &[r#","response":{"output":""#]);
            out.extend_from_slice(&output);
            write_all(out, &[r#""}}}"#]);
            Ok(())
        })?;
        self.add_parts(Side::User, &media)
    }

    /// The signature in an `extra_content`.
    fn signature(
        &self,
        extra: Option<&'b serde_json::value::RawValue>,
        losses: &mut Losses,
    ) -> Option<JsonText<'b>> {
        let extra = extra?.get();
        let Ok(read) = self.chat.parse::<ExtraContent<'b>>(extra) else {
            losses.note("messages[].extra_content", extra);
            return None;
        };
        losses.unknown(read.unknown.as_ref());
        let vendor = read.google.or(read.vertex)?;
        losses.unknown(vendor.unknown.as_ref());
        vendor.thought_signature
    }
}

/// Adds a member to the object that `out` ends with.
fn add_member(out: &mut Vec<u8>, name: &str, json: &str) {
    if out.pop().is_some() {
        write_all(out, &[",\"", name, "\":", json, "}"]);
    }
}
