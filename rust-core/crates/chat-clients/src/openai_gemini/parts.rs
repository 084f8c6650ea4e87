use proofgate_chat_request::{ContentPart, DroppedFields, MediaSource, PartContent, media_type_of};
use proofgate_dialect::UntranslatableRequest;
use proofgate_dialect::json::{write_all, write_string};
use proofgate_dialect::json_text::JsonText;

/// Hosts where the provider stores files of the gateway's key, for all tenants.
const PROVIDER_FILE_HOSTS: [&str; 2] = ["generativelanguage.googleapis.com", "aiplatform.googleapis.com"];

/// Appends a part of a user message.
pub(super) fn write_content_part(
    piece: &ContentPart<'_>,
    losses: &mut DroppedFields,
    out: &mut Vec<u8>,
) -> Result<(), UntranslatableRequest> {
    let place = piece.path;
    match &piece.content {
        PartContent::Text(text) => {
            write_text(text.raw(), out);
            Ok(())
        }
        PartContent::Image(image) => {
            let media = image.media(place)?;
            let refused = |message| UntranslatableRequest::new(place.field_path("image_url.url"), message);
            write_media(&media, media.image_type(), "image/jpeg", out).map_err(refused)
        }
        PartContent::File(file) => {
            let media = file.media(place)?;
            let refused = |message| UntranslatableRequest::new(place.field_path("file.file_data"), message);
            let name = file.name();
            write_media(&media, media.document_type(&name), "application/pdf", out).map_err(refused)?;
            match file.filename.map(JsonText::raw) {
                Some(name) => losses.drop_listed("messages[].content[].file.filename", name, || {
                    place.field_path("file.filename")
                }),
                None => Ok(()),
            }
        }
        PartContent::Audio(audio, format) => {
            let media_type = ["audio/", format].concat();
            let refused = |message| UntranslatableRequest::new(place.field_path("input_audio.data"), message);
            write_media(&audio.media(place)?, &media_type, "", out).map_err(refused)
        }
    }
}

/// Appends inline data, or a URL that the provider fetches. Vertex AI requires a media type for each URL; it is `otherwise`
/// if the URL does not show one.
fn write_media(
    media: &MediaSource<'_>,
    media_type: &str,
    otherwise: &str,
    out: &mut Vec<u8>,
) -> Result<(), &'static str> {
    write_separator(out);
    match media {
        MediaSource::Data { .. } if media_type.is_empty() => return Err("its media type is required"),
        MediaSource::Data { data, .. } => {
            write_all(out, &[r#"{"inlineData":{"mimeType":"#]);
            write_string(out, media_type);
            write_all(out, &[r#","data":""#, data, r#""}}"#]);
        }
        MediaSource::Url(url) if is_provider_file(url) => {
            return Err("files stored at the provider cannot be read");
        }
        MediaSource::Url(url) => {
            let media_type = media_type_of(url).unwrap_or(otherwise);
            write_all(
                out,
                &[r#"{"fileData":{"mimeType":""#, media_type, r#"","fileUri":"#],
            );
            write_string(out, url);
            write_all(out, &["}}"]);
        }
    }
    Ok(())
}

/// Returns whether a URL is one where the provider stores files.
fn is_provider_file(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    let name = host.split(':').next().unwrap_or_default();
    PROVIDER_FILE_HOSTS.iter().any(|kept| ends_with(name, kept))
}

fn ends_with(name: &str, suffix: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let begin = name.len().checked_sub(suffix.len());
    begin
        .and_then(|begin| name.get(begin..))
        .is_some_and(|end| end.eq_ignore_ascii_case(suffix))
}

/// Appends a text part; `literal` is a JSON string.
pub(super) fn write_text(literal: &str, out: &mut Vec<u8>) {
    write_separator(out);
    write_all(out, &[r#"{"text":"#, literal, "}"]);
}

/// Appends the comma before another element, unless it is the first.
pub(super) fn write_separator(out: &mut Vec<u8>) {
    if !out.is_empty() {
        out.push(b',');
    }
}
