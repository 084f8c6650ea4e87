//! Images, documents and recordings, inline in the request or at a URL.

use std::borrow::Cow;

use proofgate_dialect::json_text::JsonText;

/// The location of media data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MediaSource<'b> {
    /// Inline: the media type, which may be empty, and the data in base64, which needs no escaping in a JSON string.
    Data {
        media_type: Cow<'b, str>,
        data: Cow<'b, str>,
    },
    /// At an http or https URL.
    Url(Cow<'b, str>),
}

/// Document types: the extension and the media type.
const DOCUMENTS: [(&str, &str); 9] = [
    ("pdf", "application/pdf"),
    ("csv", "text/csv"),
    ("doc", "application/msword"),
    (
        "docx",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ),
    ("xls", "application/vnd.ms-excel"),
    (
        "xlsx",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ),
    ("html", "text/html"),
    ("txt", "text/plain"),
    ("md", "text/markdown"),
];

/// Other media types.
const MEDIA: [(&str, &str); 10] = [
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("webp", "image/webp"),
    ("gif", "image/gif"),
    ("heic", "image/heic"),
    ("heif", "image/heif"),
    ("mp4", "video/mp4"),
    ("mp3", "audio/mp3"),
    ("wav", "audio/wav"),
];

/// Prefixes of base64 data, with the media types that they identify.
const BASE64_SIGNATURES: [(&str, &str); 5] = [
    ("iVBORw0KGgo", "image/png"),
    ("/9j/", "image/jpeg"),
    ("R0lGOD", "image/gif"),
    ("UklGR", "image/webp"),
    ("JVBERi0", "application/pdf"),
];

impl<'b> MediaSource<'b> {
    /// Parses a `data:` URL with base64 (RFC 2397) or a web URL; `None` for anything else.
    pub fn read(text: JsonText<'b>) -> Option<Self> {
        let url = text.decode()?;
        if is_web(&url) {
            return Some(MediaSource::Url(url));
        }
        let scheme = url.get(..5)?;
        if !scheme.eq_ignore_ascii_case("data:") {
            return None;
        }
        let comma = url.find(',')?;
        // Other parameters of the media type add nothing to the data.
        let head = url.get(5..comma)?.strip_suffix(";base64")?;
        let media_type = 5..5 + head.find(';').unwrap_or(head.len());
        is_base64(url.get(comma + 1..)?).then_some(())?;
        Some(MediaSource::Data {
            media_type: subrange(&url, media_type),
            data: subrange(&url, comma + 1..url.len()),
        })
    }

    /// Parses base64 data without a prefix.
    pub fn read_base64(text: JsonText<'b>) -> Option<Self> {
        let data = text.decode().filter(|data| is_base64(data))?;
        Some(MediaSource::Data {
            media_type: Cow::Borrowed(""),
            data,
        })
    }

    /// Returns the media type of an image, by its first bytes: clients often declare a wrong one, which providers
    /// refuse.
    pub fn image_type(&self) -> &str {
        let MediaSource::Data { media_type, data } = self else {
            return "";
        };
        let known = sniff_media_type(data).filter(|known| known.starts_with("image/"));
        known.unwrap_or(match &**media_type {
            "image/jpg" => "image/jpeg",
            stated => stated,
        })
    }

    /// Returns the format of an image that Claude models support, as written in its media type.
    pub fn image_format(&self) -> Option<&str> {
        let format = self.image_type().strip_prefix("image/")?;
        matches!(format, "png" | "jpeg" | "gif" | "webp").then_some(format)
    }

    /// Returns the media type of a document, from its declaration, its first bytes, or its file name.
    pub fn document_type(&self, file_name: &str) -> &str {
        let MediaSource::Data { media_type, data } = self else {
            return "";
        };
        if !matches!(&**media_type, "" | "application/octet-stream") {
            return media_type;
        }
        let extension = file_name.rsplit_once('.').map_or("", |(_, extension)| extension);
        let by_name = || find_by_extension(&DOCUMENTS, extension);
        sniff_media_type(data).or_else(by_name).unwrap_or(media_type)
    }
}

/// Returns the extension for a document's media type.
pub fn document_extension(media_type: &str) -> Option<&'static str> {
    let mut known = DOCUMENTS.iter();
    known
        .find(|(_, known)| media_type.eq_ignore_ascii_case(known))
        .map(|(extension, _)| *extension)
}

/// Returns the media type of the content of a URL, by the extension of its path.
pub fn media_type_of(address: &str) -> Option<&'static str> {
    let (_, rest) = address.split_once("://")?;
    let (_, path) = rest.split(['?', '#']).next()?.split_once('/')?;
    let (_, extension) = path.rsplit_once('.')?;
    find_by_extension(&MEDIA, extension).or_else(|| find_by_extension(&DOCUMENTS, extension))
}

fn find_by_extension(kinds: &[(&str, &'static str)], extension: &str) -> Option<&'static str> {
    let mut kinds = kinds.iter();
    kinds
        .find(|(known, _)| extension.eq_ignore_ascii_case(known))
        .map(|(_, media_type)| *media_type)
}

fn sniff_media_type(base64: &str) -> Option<&'static str> {
    let mut known = BASE64_SIGNATURES.iter();
    known
        .find(|(begin, _)| base64.starts_with(begin))
        .map(|(_, media_type)| *media_type)
}

fn is_web(url: &str) -> bool {
    let scheme = url.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http"))
}

/// Whether a text is base64 of at least one byte (RFC 4648, sections 4 and 5).
fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    !digits.is_empty()
        && text.len() - digits.len() <= 2
        && digits
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() | matches!(byte, b'+' | b'/' | b'-' | b'_'))
}

fn subrange<'b>(text: &Cow<'b, str>, range: std::ops::Range<usize>) -> Cow<'b, str> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.get(range).unwrap_or_default()),
        Cow::Owned(text) => Cow::Owned(text.get(range).unwrap_or_default().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::MediaSource;
    use proofgate_dialect::json_text::JsonText;

    fn read(url: &str) -> Option<MediaSource<'static>> {
        let json = serde_json::value::RawValue::from_string(format!("\"{url}\"")).unwrap();
        MediaSource::read(JsonText::from_raw(Box::leak(json)).unwrap())
    }

    #[test]
    fn data_and_addresses_are_told_apart_and_all_else_is_neither() {
        for url in ["data:image/png;base64,AA==", "DATA:image\\/png;a=b;base64,AA=="] {
            let data = MediaSource::Data {
                media_type: Cow::Borrowed("image/png"),
                data: Cow::Borrowed("AA=="),
            };
            assert_eq!(read(url), Some(data), "{url}");
        }
        assert_eq!(read("HTTPS://a/b"), Some(MediaSource::Url("HTTPS://a/b".into())));
        for neither in [
            "",
            "data:image/png,AA==",
            "data:image/png;base64,",
            "data:image/png;base64,a b",
            "data:image/png;base64,A===",
            "gs://a/b",
            "file:///etc/passwd",
            "AA==",
        ] {
            assert_eq!(read(neither), None, "{neither}");
        }
    }

    #[test]
    fn an_image_is_what_it_begins_with() {
        let of = |url: &str| read(url).unwrap().image_type().to_owned();
        assert_eq!(of("data:image/jpeg;base64,iVBORw0KGgoA"), "image/png");
        assert_eq!(of("data:image/jpg;base64,AA"), "image/jpeg");
        assert_eq!(of("data:image/heic;base64,AA"), "image/heic");
    }

    #[test]
    fn a_document_is_what_is_stated_or_what_its_name_says() {
        let of = |url: &str, name: &str| read(url).unwrap().document_type(name).to_owned();
        assert_eq!(of("data:text/csv;base64,AA", "a.pdf"), "text/csv");
        assert_eq!(of("data:;base64,AA", "a.MD"), "text/markdown");
        assert_eq!(
            of("data:application/octet-stream;base64,JVBERi0x", ""),
            "application/pdf"
        );
        assert_eq!(of("data:;base64,AA", "a"), "");
    }
}
