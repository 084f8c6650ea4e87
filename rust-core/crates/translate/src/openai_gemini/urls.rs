//! Where media of a request are: in the request itself, or at an address that the provider fetches.

use std::borrow::Cow;

use crate::Untranslatable;
use crate::field::Field;
use crate::openai_gemini::parts::Part;

/// Media types by the extension of a path, for Vertex AI demands one of each address.
const MEDIA_TYPES: [(&str, &str); 11] = [
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("webp", "image/webp"),
    ("gif", "image/gif"),
    ("heic", "image/heic"),
    ("heif", "image/heif"),
    ("pdf", "application/pdf"),
    ("mp4", "video/mp4"),
    ("mp3", "audio/mp3"),
    ("wav", "audio/wav"),
];

/// Where the provider keeps files of the gateway's key, of whichever tenant.
const KEPT: [&str; 2] = ["generativelanguage.googleapis.com", "aiplatform.googleapis.com"];

/// Reads a `data:` URL or an address on the web. `otherwise` is the media type of an address that does not show its own.
pub(super) fn read<'b>(field: &Field<'b, '_>, otherwise: &'static str) -> Result<Part<'b>, Untranslatable> {
    let url = field.text()?;
    match rest_of(&url) {
        None => read_data(field, url),
        Some(rest) => {
            let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
            let host = host.rsplit('@').next().unwrap_or_default();
            let name = host.split(':').next().unwrap_or_default();
            if KEPT.iter().any(|kept| ends_with(name, kept)) {
                return Err(field.refuse("A file that the provider keeps is not within reach."));
            }
            let media_type = media_type(rest).unwrap_or(otherwise);
            Ok(Part::Link { media_type, url })
        }
    }
}

/// What stands behind the scheme of an address on the web.
fn rest_of(url: &str) -> Option<&str> {
    let (scheme, rest) = url.split_once("://")?;
    let is_web = scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http");
    is_web.then_some(rest)
}

fn ends_with(name: &str, suffix: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let begin = name.len().checked_sub(suffix.len());
    begin
        .and_then(|begin| name.get(begin..))
        .is_some_and(|end| end.eq_ignore_ascii_case(suffix))
}

fn media_type(rest: &str) -> Option<&'static str> {
    let (_, path) = rest.split(['?', '#']).next()?.split_once('/')?;
    let (_, extension) = path.rsplit_once('.')?;
    let known = MEDIA_TYPES
        .iter()
        .find(|(known, _)| extension.eq_ignore_ascii_case(known));
    known.map(|(_, media_type)| *media_type)
}

/// Reads `data:{media type};base64,{data}` (RFC 2397). Other parameters of the media type are left out: what they could
/// say, base64 data of an image or a document says itself.
fn read_data<'b>(field: &Field<'b, '_>, url: Cow<'b, str>) -> Result<Part<'b>, Untranslatable> {
    let is_data = url
        .get(..5)
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:"));
    if !is_data {
        return Err(field.refuse("It must be at an http or https address, or a data: URL with base64 data."));
    }
    let read = |url: &str| -> Option<(std::ops::Range<usize>, usize)> {
        let comma = url.find(',')?;
        let head = url.get(5..comma)?.strip_suffix(";base64")?;
        let media_type = head.find(';').unwrap_or(head.len());
        (media_type > 0).then_some((5..5 + media_type, comma + 1))
    };
    let (media_type, data) = read(&url)
        .ok_or_else(|| field.refuse("It must be data:, a media type, ;base64, a comma and the data."))?;
    Ok(match url {
        Cow::Borrowed(url) => Part::Media {
            media_type: Cow::Borrowed(url.get(media_type).unwrap_or_default()),
            data: Cow::Borrowed(url.get(data..).unwrap_or_default()),
        },
        Cow::Owned(mut url) => {
            let data = url.split_off(data);
            Part::Media {
                media_type: Cow::Owned(url.get(media_type).unwrap_or_default().to_owned()),
                data: Cow::Owned(data),
            }
        }
    })
}
