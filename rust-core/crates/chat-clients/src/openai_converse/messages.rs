use std::borrow::Cow;

use crate::openai_converse::cache_points::{ttl, write_cache_point};
use crate::openai_converse::files::DocumentNames;
use crate::openai_converse::reasoning;
use crate::openai_converse::tools::tool_name;
use proofgate_chat_request::{
    Called, Chat, Losses, Message, Piece, Place, Role, Said, Side, Turns, call_id, document_extension,
};
use proofgate_chat_request::{Image, Media};
use proofgate_dialect::Untranslatable;
use proofgate_dialect::json::write_all;
use proofgate_dialect::json_text::JsonText;

/// What is kept while the messages of a request are written.
struct Conversation<'o> {
    turns: Turns<'o>,
    names: DocumentNames,
    /// Whether what the user says in the turn at hand has documents, and whether it has text.
    has_documents: bool,
    has_text: bool,
}

/// Writes `messages`; what system and developer messages say goes to `system` as blocks, a comma behind each.
pub(super) fn write(
    chat: &Chat<'_>,
    is_claude: bool,
    losses: &mut Losses,
    system: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<(), Untranslatable> {
    write_all(out, &[r#""messages":["#]);
    let mut conversation = Conversation {
        turns: Turns::new("assistant", "content", out),
        names: DocumentNames::default(),
        has_documents: false,
        has_text: false,
    };
    for (at, message) in chat.messages.iter().flatten().enumerate() {
        let place = Place::message(at);
        let role = message.role(place, losses)?;
        let pieces = chat.pieces(message, place, losses)?;
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
    conversation.turns.end()?;
    out.push(b']');
    Ok(())
}

fn write_system(
    message: &Message<'_>,
    pieces: &[Piece<'_>],
    out: &mut Vec<u8>,
) -> Result<(), Untranslatable> {
    for piece in pieces {
        write_text(piece.text()?, out);
        out.push(b',');
        if let Some(ttl) = piece_ttl(piece) {
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
    fn write_user(&mut self, message: &Message<'_>, pieces: &[Piece<'_>]) -> Result<(), Untranslatable> {
        for piece in pieces {
            self.has_text |= matches!(piece.said, Said::Text(_));
            self.has_documents |= matches!(piece.said, Said::File(_));
            let names = &mut self.names;
            self.turns
                .say(Side::User, |out| write_piece(piece, Role::User, names, out))?;
            if let Some(ttl) = piece_ttl(piece) {
                self.cache(Side::User, ttl)?;
            }
        }
        match message.cache_control {
            Some(_) if !pieces.is_empty() => self.cache(Side::User, ttl(message.cache_control)),
            _ => Ok(()),
        }
    }

    /// Gives the user's documents a text, if they have none: Converse demands one beside them (Amazon Bedrock's API reference,
    /// Message: content).
    fn introduce_documents(&mut self) -> Result<(), Untranslatable> {
        let is_alone = self.has_documents && !self.has_text;
        (self.has_documents, self.has_text) = (false, false);
        if !is_alone || self.turns.side() != Some(Side::User) {
            return Ok(());
        }
        self.turns.say(Side::User, |out| {
            write_all(out, &[r#"{"text":"."}"#]);
            Ok(())
        })
    }

    fn write_assistant(
        &mut self,
        message: &Message<'_>,
        pieces: &[Piece<'_>],
        place: Place,
        signed: bool,
        losses: &mut Losses,
    ) -> Result<(), Untranslatable> {
        let calls = message.calls(place, losses)?;
        self.introduce_documents()?;
        let turns = &mut self.turns;
        let has_thoughts = message.bring_back(place, signed, losses, turns, reasoning::write_detail)?;
        for piece in pieces {
            self.say_text(piece.text()?)?;
            if let Some(ttl) = piece_ttl(piece) {
                self.cache(Side::Model, ttl)?;
            }
        }
        let refusal = message.declined();
        if let Some(refusal) = refusal {
            self.say_text(refusal)?;
        }
        for call in &calls {
            self.turns.say(Side::Model, |out| write_call(call, out))?;
        }
        let says = has_thoughts || !pieces.is_empty() || refusal.is_some() || !calls.is_empty();
        match message.cache_control {
            Some(_) if says => self.cache(Side::Model, ttl(message.cache_control)),
            _ => Ok(()),
        }
    }

    fn say_text(&mut self, text: JsonText<'_>) -> Result<(), Untranslatable> {
        self.turns.say(Side::Model, |out| {
            write_text(text, out);
            Ok(())
        })
    }

    /// Writes a result; a mark for the cache has no place within it and stands behind it.
    fn write_result(
        &mut self,
        message: &Message<'_>,
        pieces: &[Piece<'_>],
        place: Place,
    ) -> Result<(), Untranslatable> {
        let id = message.answered(place)?;
        let names = &mut self.names;
        self.turns.answer(|out| {
            let head = [
                r#"{"toolResult":{"toolUseId":""#,
                &tool_use_id(id),
                r#"","content":["#,
            ];
            write_all(out, &head);
            let mut before = "";
            for piece in pieces {
                write_all(out, &[std::mem::replace(&mut before, ",")]);
                write_piece(piece, Role::Tool, names, out)?;
            }
            write_all(out, &["]}}"]);
            Ok(())
        })?;
        let of_message = message.cache_control.map(|control| ttl(Some(control)));
        let ttl = pieces.iter().rev().find_map(piece_ttl).or(of_message);
        match ttl {
            Some(ttl) => self.turns.answer(|out| {
                write_cache_point(ttl, out);
                Ok(())
            }),
            None => Ok(()),
        }
    }

    fn cache(&mut self, side: Side, ttl: &str) -> Result<(), Untranslatable> {
        self.turns.say(side, |out| {
            write_cache_point(ttl, out);
            Ok(())
        })
    }
}

fn write_call(call: &Called<'_, '_>, out: &mut Vec<u8>) -> Result<(), Untranslatable> {
    let name = tool_name(call.name, || call.field("function.name"))?;
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

/// A tool call's id as Converse allows it (`[a-zA-Z0-9_.:-]{1,64}`).
fn tool_use_id(id: &str) -> Cow<'_, str> {
    let is_allowed = |char: char| char.is_ascii_alphanumeric() || "_.:-".contains(char);
    call_id(id, is_allowed, 64)
}

fn write_piece(
    piece: &Piece<'_>,
    role: Role,
    names: &mut DocumentNames,
    out: &mut Vec<u8>,
) -> Result<(), Untranslatable> {
    match &piece.said {
        Said::Text(text) => write_text(*text, out),
        Said::Image(image) => write_image(image, piece.place, out)?,
        Said::File(file) => {
            let media = file.media(piece.place)?;
            let name = file.name();
            let format = document_extension(media.document_type(&name));
            let (Media::Data { data, .. }, Some(format)) = (&media, format) else {
                let message = "Converse accepts documents only inside the request, as PDF, CSV, DOC, DOCX, XLS, XLSX, \
                               HTML, TXT or MD: the data: URL or the filename must state the format.";
                return Err(Untranslatable::new(piece.place.field("file.file_data"), message));
            };
            write_media("document", format, Some(&names.name(&name)), data, out);
        }
        Said::Audio(audio, format) if role == Role::User => {
            if let Media::Data { data, .. } = audio.media(piece.place)? {
                write_media("audio", format, None, &data, out);
            }
        }
        Said::Audio(..) => return Err(piece.not_here()),
    }
    Ok(())
}

fn write_image(image: &Image<'_>, place: Place, out: &mut Vec<u8>) -> Result<(), Untranslatable> {
    let refused = |message: &'static str| Untranslatable::new(place.field("image_url.url"), message);
    let media = image.media(place)?;
    let Media::Data { data, .. } = &media else {
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

/// The [`ttl`] of a cache that ends behind a part.
fn piece_ttl(piece: &Piece<'_>) -> Option<&'static str> {
    (piece.cache.is_some() || piece.breakpoint.is_some()).then(|| ttl(piece.cache))
}
