use std::borrow::Cow;

use crate::openai_converse::cache_points::{ttl, write_cache_point};
use crate::openai_converse::files::DocumentNames;
use crate::openai_converse::reasoning;
use crate::openai_converse::tools::tool_name;
use proofgate_chat_request::{
    ChatRequest, ContentPart, DroppedFields, Message, MessagePath, PartContent, Role, Speaker,
    ToolInvocation, TurnWriter, document_extension, sanitize_call_id,
};
use proofgate_chat_request::{Image, MediaSource};
use proofgate_dialect::UntranslatableRequest;
use proofgate_dialect::json::write_all;
use proofgate_dialect::json_text::JsonText;

/// The state while the messages of a request are written.
struct Conversation<'o> {
    turns: TurnWriter<'o>,
    names: DocumentNames,
    /// Whether the current user turn has documents, and whether it has text.
    has_documents: bool,
    has_text: bool,
}

/// Writes `messages`. System and developer messages are written to `system` as blocks, each followed by a comma.
pub(super) fn write(
    chat: &ChatRequest<'_>,
    is_claude: bool,
    losses: &mut DroppedFields,
    system: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<(), UntranslatableRequest> {
    write_all(out, &[r#""messages":["#]);
    let mut conversation = Conversation {
        turns: TurnWriter::new("assistant", "content", out),
        names: DocumentNames::default(),
        has_documents: false,
        has_text: false,
    };
    for (at, message) in chat.messages.iter().flatten().enumerate() {
        let place = MessagePath::message(at);
        let role = message.read_role(place, losses)?;
        let pieces = chat.message_parts(message, place, losses)?;
        match role {
            Role::System => write_system(message, &pieces, system)?,
            Role::User => conversation.write_user(message, &pieces)?,
            Role::Assistant => {
                conversation.write_assistant(message, &pieces, place, is_claude, losses)?;
            }
            Role::Tool => conversation.write_result(message, &pieces, place)?,
        }
    }
    conversation.introduce_documents()?;
    conversation.turns.finish()?;
    out.push(b']');
    Ok(())
}

fn write_system(
    message: &Message<'_>,
    pieces: &[ContentPart<'_>],
    out: &mut Vec<u8>,
) -> Result<(), UntranslatableRequest> {
    for piece in pieces {
        write_text(piece.text()?, out);
        out.push(b',');
        if let Some(ttl) = part_ttl(piece) {
            write_cache_point(ttl, out);
            out.push(b',');
        }
    }
    if message.cache_control.is_some() && !pieces.is_empty() {
        write_cache_point(ttl(message.cache_control), out);
        out.push(b',');
    }
    Ok(())
}

impl Conversation<'_> {
    fn write_user(
        &mut self,
        message: &Message<'_>,
        pieces: &[ContentPart<'_>],
    ) -> Result<(), UntranslatableRequest> {
        for piece in pieces {
            self.has_text |= matches!(piece.content, PartContent::Text(_));
            self.has_documents |= matches!(piece.content, PartContent::File(_));
            let names = &mut self.names;
            self.turns.write_block(Speaker::User, |out| {
                write_content_part(piece, Role::User, names, out)
            })?;
            if let Some(ttl) = part_ttl(piece) {
                self.add_cache_point(Speaker::User, ttl)?;
            }
        }
        match message.cache_control {
            Some(_) if !pieces.is_empty() => self.add_cache_point(Speaker::User, ttl(message.cache_control)),
            _ => Ok(()),
        }
    }

    /// Adds a text to a user turn that has documents but no text, because Converse requires one
    /// (Amazon Bedrock's API reference, Message: content).
    fn introduce_documents(&mut self) -> Result<(), UntranslatableRequest> {
        let is_alone = self.has_documents && !self.has_text;
        (self.has_documents, self.has_text) = (false, false);
        if !is_alone || self.turns.speaker() != Some(Speaker::User) {
            return Ok(());
        }
        self.turns.write_block(Speaker::User, |out| {
            write_all(out, &[r#"{"text":"."}"#]);
            Ok(())
        })
    }

    fn write_assistant(
        &mut self,
        message: &Message<'_>,
        pieces: &[ContentPart<'_>],
        place: MessagePath,
        signed: bool,
        losses: &mut DroppedFields,
    ) -> Result<(), UntranslatableRequest> {
        let calls = message.calls(place, losses)?;
        self.introduce_documents()?;
        let turns = &mut self.turns;
        let has_thoughts =
            message.write_reasoning_details(place, signed, losses, turns, reasoning::write_detail)?;
        for piece in pieces {
            self.write_assistant_text(piece.text()?)?;
            if let Some(ttl) = part_ttl(piece) {
                self.add_cache_point(Speaker::Model, ttl)?;
            }
        }
        let refusal = message.refusal_text();
        if let Some(refusal) = refusal {
            self.write_assistant_text(refusal)?;
        }
        for call in &calls {
            self.turns
                .write_block(Speaker::Model, |out| write_call(call, out))?;
        }
        let says = has_thoughts || !pieces.is_empty() || refusal.is_some() || !calls.is_empty();
        match message.cache_control {
            Some(_) if says => self.add_cache_point(Speaker::Model, ttl(message.cache_control)),
            _ => Ok(()),
        }
    }

    fn write_assistant_text(&mut self, text: JsonText<'_>) -> Result<(), UntranslatableRequest> {
        self.turns.write_block(Speaker::Model, |out| {
            write_text(text, out);
            Ok(())
        })
    }

    /// Writes a tool result. A cache mark within it is moved after it, because it is not allowed inside.
    fn write_result(
        &mut self,
        message: &Message<'_>,
        pieces: &[ContentPart<'_>],
        place: MessagePath,
    ) -> Result<(), UntranslatableRequest> {
        let id = message.answered_call_id(place)?;
        let names = &mut self.names;
        self.turns.write_tool_result(|out| {
            let head = [
                r#"{"toolResult":{"toolUseId":""#,
                &tool_use_id(id),
                r#"","content":["#,
            ];
            write_all(out, &head);
            let mut before = "";
            for piece in pieces {
                write_all(out, &[std::mem::replace(&mut before, ",")]);
                write_content_part(piece, Role::Tool, names, out)?;
            }
            write_all(out, &["]}}"]);
            Ok(())
        })?;
        let of_message = message.cache_control.map(|control| ttl(Some(control)));
        let ttl = pieces.iter().rev().find_map(part_ttl).or(of_message);
        match ttl {
            Some(ttl) => self.turns.write_tool_result(|out| {
                write_cache_point(ttl, out);
                Ok(())
            }),
            None => Ok(()),
        }
    }

    fn add_cache_point(&mut self, side: Speaker, ttl: &str) -> Result<(), UntranslatableRequest> {
        self.turns.write_block(side, |out| {
            write_cache_point(ttl, out);
            Ok(())
        })
    }
}

fn write_call(call: &ToolInvocation<'_, '_>, out: &mut Vec<u8>) -> Result<(), UntranslatableRequest> {
    let name = tool_name(call.name, || call.field_path("function.name"))?;
    write_all(
        out,
        &[
            r#"{"toolUse":{"toolUseId":""#,
            &tool_use_id(call.id),
            r#"","name":""#,
            name,
            r#"","input":"#,
            call.arguments()?.trim(),
            "}}",
        ],
    );
    Ok(())
}

/// Returns a tool call's id in the form that Converse allows (`[a-zA-Z0-9_.:-]{1,64}`).
fn tool_use_id(id: &str) -> Cow<'_, str> {
    let is_allowed = |char: char| char.is_ascii_alphanumeric() || "_.:-".contains(char);
    sanitize_call_id(id, is_allowed, 64)
}

fn write_content_part(
    piece: &ContentPart<'_>,
    role: Role,
    names: &mut DocumentNames,
    out: &mut Vec<u8>,
) -> Result<(), UntranslatableRequest> {
    match &piece.content {
        PartContent::Text(text) => write_text(*text, out),
        PartContent::Image(image) => write_image(image, piece.path, out)?,
        PartContent::File(file) => {
            let media = file.media(piece.path)?;
            let name = file.name();
            let format = document_extension(media.document_type(&name));
            let (MediaSource::Data { data, .. }, Some(format)) = (&media, format) else {
                let message = "Converse accepts documents only inside the request, as PDF, CSV, DOC, DOCX, XLS, XLSX, \
                               HTML, TXT or MD: the data: URL or the filename must state the format.";
                return Err(UntranslatableRequest::new(
                    piece.path.field_path("file.file_data"),
                    message,
                ));
            };
            write_media("document", format, Some(&names.unique_name(&name)), data, out);
        }
        PartContent::Audio(audio, format) if role == Role::User => {
            if let MediaSource::Data { data, .. } = audio.media(piece.path)? {
                write_media("audio", format, None, &data, out);
            }
        }
        PartContent::Audio(..) => return Err(piece.misplaced_error()),
    }
    Ok(())
}

fn write_image(
    image: &Image<'_>,
    place: MessagePath,
    out: &mut Vec<u8>,
) -> Result<(), UntranslatableRequest> {
    let refused =
        |message: &'static str| UntranslatableRequest::new(place.field_path("image_url.url"), message);
    let media = image.media(place)?;
    let MediaSource::Data { data, .. } = &media else {
        return Err(refused(
            "Converse accepts images only inside the request: send a data: URL in base64.",
        ));
    };
    let format = media
        .image_format()
        .ok_or_else(|| refused("Converse accepts images in PNG, JPEG, GIF and WebP."))?;
    write_media("image", format, None, data, out);
    Ok(())
}

fn write_media(kind: &str, format: &str, name: Option<&str>, data: &str, out: &mut Vec<u8>) {
    write_all(out, &["{\"", kind, r#"":{"format":""#, format]);
    if let Some(name) = name {
        write_all(out, &[r#"","name":""#, name]);
    }
    write_all(out, &[r#"","source":{"bytes":""#, data, r#""}}}"#]);
}

fn write_text(text: JsonText<'_>, out: &mut Vec<u8>) {
    write_all(out, &[r#"{"text":"#, text.raw(), "}"]);
}

/// Returns the [`ttl`] of a cache point after a part.
fn part_ttl(piece: &ContentPart<'_>) -> Option<&'static str> {
    (piece.cache.is_some() || piece.breakpoint.is_some()).then(|| ttl(piece.cache))
}
