//! The content of a message or a tool result, in parts.

use crate::responses_openai::tools::{unquoted, write_json};
use proofgate_dialect::UntranslatableRequest;
use proofgate_dialect::droppable_fields::OTHER_FIELDS;
use proofgate_dialect::field::{DroppedFields, Field};
use proofgate_dialect::json::write_string;

/// A part of a chat message.
pub(super) enum Part<'b> {
    /// Text, JSON-escaped and without quotes.
    Text(&'b str),
    /// Generated text.
    OwnedText(String),
    Refusal(&'b str),
    /// A part in the form of chat completions: an image, a file or audio.
    Media(Vec<u8>),
}

impl Part<'_> {
    /// Returns its text, JSON-escaped and without quotes.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Part::Text(text) | Part::Refusal(text) => Some(text),
            Part::OwnedText(text) => Some(text),
            Part::Media(_) => None,
        }
    }
}

/// The members of a part.
#[derive(Default)]
struct Members<'b, 'p> {
    kind: Option<Field<'b, 'p>>,
    text: Option<Field<'b, 'p>>,
    refusal: Option<Field<'b, 'p>>,
    image_url: Option<Field<'b, 'p>>,
    file_url: Option<Field<'b, 'p>>,
    file_data: Option<Field<'b, 'p>>,
    filename: Option<Field<'b, 'p>>,
    audio: Option<Field<'b, 'p>>,
    detail: Option<Field<'b, 'p>>,
}

/// Returns a required member.
pub(super) fn required_member<'m, 'b, 'p>(
    object: &Field<'_, '_>,
    member: Option<&'m Field<'b, 'p>>,
    why: &'static str,
) -> Result<&'m Field<'b, 'p>, UntranslatableRequest> {
    member.ok_or_else(|| object.error(why))
}

/// Reads a string, or an array of parts.
pub(super) fn read<'b>(
    field: &Field<'b, '_>,
    losses: &mut DroppedFields,
) -> Result<Vec<Part<'b>>, UntranslatableRequest> {
    if field.is_string() {
        return Ok(vec![Part::Text(unquoted(field.json()))]);
    }
    let elements = field.elements();
    let elements = elements.map_err(|_| field.error("It must be a string or an array of parts."))?;
    let mut parts = Vec::with_capacity(elements.len());
    for (index, part) in elements.into_iter().enumerate() {
        parts.extend(read_part(&field.element(index, part), losses)?);
    }
    Ok(parts)
}

fn read_part<'b>(
    part: &Field<'b, '_>,
    losses: &mut DroppedFields,
) -> Result<Option<Part<'b>>, UntranslatableRequest> {
    let listed = part.members()?;
    let mut members = Members::default();
    for (name, value) in &listed {
        let member = part.member(name, value);
        match &**name {
            "type" => members.kind = Some(member),
            "text" => members.text = Some(member),
            "refusal" => members.refusal = Some(member),
            "image_url" => members.image_url = Some(member),
            "file_url" => members.file_url = Some(member),
            "file_data" => members.file_data = Some(member),
            "filename" => members.filename = Some(member),
            "input_audio" => members.audio = Some(member),
            "detail" => members.detail = Some(member),
            "file_id" => {
                return Err(
                    member.error("The provider cannot read files stored at OpenAI: send the file's data.")
                );
            }
            "prompt_cache_breakpoint" => {
                losses.drop_listed("input[].content[].prompt_cache_breakpoint", &member)?;
            }
            // Only in the model's own messages: its sources, and its confidence.
            "annotations" | "logprobs" => {}
            _ => losses.record_field(OTHER_FIELDS, &member),
        }
    }
    let kind = members.kind.as_ref().map(Field::text).transpose()?;
    match kind.as_deref() {
        Some("input_text" | "output_text" | "text" | "summary_text" | "reasoning_text") => {
            let text = required_member(part, members.text.as_ref(), "It must have text.")?;
            text.literal().map(|text| Some(Part::Text(unquoted(text))))
        }
        Some("refusal") => {
            let text = required_member(part, members.refusal.as_ref(), "It must have a refusal.")?;
            text.literal().map(|text| Some(Part::Refusal(unquoted(text))))
        }
        Some("input_image") => {
            let url = required_member(part, members.image_url.as_ref(), "It must have an image_url.")?;
            read_image(url, members.detail.as_ref(), losses).map(Some)
        }
        Some("input_file") => read_file(part, &members, losses).map(Some),
        Some("input_audio") => {
            let audio = required_member(part, members.audio.as_ref(), "It must have input_audio.")?;
            let json = [r#"{"type":"input_audio","input_audio":"#, audio.json(), "}"].concat();
            Ok(Some(Part::Media(json.into_bytes())))
        }
        _ => losses.drop_listed("input[].content[].type", part).map(|()| None),
    }
}

fn read_image<'b>(
    url: &Field<'b, '_>,
    detail: Option<&Field<'b, '_>>,
    losses: &mut DroppedFields,
) -> Result<Part<'b>, UntranslatableRequest> {
    let mut out = Vec::new();
    write_json(&mut out, r#"{"type":"image_url","image_url":{"url":"#);
    write_json(&mut out, url.literal()?);
    if let Some(detail) = detail {
        match &*detail.text()? {
            "auto" => {}
            said @ ("low" | "high") => {
                write_json(&mut out, r#","detail":"#);
                write_string(&mut out, said);
            }
            // The highest level that chat completions have.
            _ => {
                losses.record_field("input[].content[].detail", detail);
                write_json(&mut out, r#","detail":"high""#);
            }
        }
    }
    write_json(&mut out, "}}");
    Ok(Part::Media(out))
}

/// Reads a file. A URL is written in place of the data, where providers that fetch URLs expect it.
fn read_file<'b>(
    part: &Field<'b, '_>,
    members: &Members<'b, '_>,
    losses: &mut DroppedFields,
) -> Result<Part<'b>, UntranslatableRequest> {
    let data = members.file_data.as_ref().or(members.file_url.as_ref());
    let data = data.ok_or_else(|| part.error("It must have file_data or a file_url."))?;
    if let Some(detail) = &members.detail {
        losses.drop_listed("input[].content[].detail", detail)?;
    }
    let mut out = Vec::new();
    write_json(&mut out, r#"{"type":"file","file":{"#);
    if let Some(filename) = &members.filename {
        write_json(&mut out, r#""filename":"#);
        write_json(&mut out, filename.literal()?);
        out.push(b',');
    }
    write_json(&mut out, r#""file_data":"#);
    write_json(&mut out, data.literal()?);
    write_json(&mut out, "}}");
    Ok(Part::Media(out))
}

/// Appends content: a string if it is one text, otherwise an array of parts.
pub(super) fn write(parts: &[Part<'_>], out: &mut Vec<u8>) {
    match parts {
        [] => write_json(out, "\"\""),
        [Part::Media(json)] => {
            out.push(b'[');
            out.extend_from_slice(json);
            out.push(b']');
        }
        [_] => write_texts(parts, out),
        parts => {
            let mut before = "[";
            for part in parts {
                write_json(out, std::mem::replace(&mut before, ","));
                write_part(part, out);
            }
            out.push(b']');
        }
    }
}

fn write_part(part: &Part<'_>, out: &mut Vec<u8>) {
    match part {
        Part::Media(json) => out.extend_from_slice(json),
        part => {
            for piece in [
                r#"{"type":"text","text":""#,
                part.text().unwrap_or_default(),
                r#""}"#,
            ] {
                write_json(out, piece);
            }
        }
    }
}

/// Appends the texts as one string, separated by line breaks.
pub(super) fn write_texts(parts: &[Part<'_>], out: &mut Vec<u8>) {
    let mut before = "\"";
    for text in parts.iter().filter_map(Part::text) {
        write_json(out, std::mem::replace(&mut before, "\\n"));
        write_json(out, text);
    }
    write_json(out, if before == "\"" { "\"\"" } else { "\"" });
}
