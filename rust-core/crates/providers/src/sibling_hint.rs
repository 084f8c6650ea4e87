//! Detects from sibling fields whether a string in an attachment field is text.

/// Whether a media type (RFC 6838) is a textual one. Case is ignored.
pub(crate) fn is_textual(media_type: &str) -> bool {
    #[rustfmt::skip]
    const MEDIA_TYPE_WORDS: [&str; 15] = [
        "text", "json", "xml", "yaml", "csv", "script", "html", "markdown", "rtf", "toml", "sql", "graphql", "message/", "python", "x-sh",
    ];
    let lower = media_type.to_ascii_lowercase();
    MEDIA_TYPE_WORDS.iter().any(|word| lower.contains(word))
        && !["openxml", "opendocument"]
            .iter()
            .any(|zipped| lower.contains(zipped))
}

/// The type that the siblings of a string in an attachment field declare for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SiblingHint {
    /// The string is not text, or nothing is declared.
    Data,
    /// The string decodes to text.
    EncodedText,
    /// The string is plain text.
    Text,
}

impl SiblingHint {
    /// Returns the hint of the field `name` with the value `word`.
    pub(crate) fn from_field(name: &str, word: &str) -> Self {
        match name {
            "type" if word == "text" => SiblingHint::Text,
            "media_type" | "mimeType" | "mime_type" if is_textual(word) => SiblingHint::EncodedText,
            "filename" if is_text_file_name(word) => SiblingHint::EncodedText,
            _ => SiblingHint::Data,
        }
    }

    /// Returns the name of the field if it gives a hint.
    pub(crate) fn hint_field_name(name: &str) -> Option<&'static str> {
        const FIELDS: [&str; 5] = ["type", "media_type", "mimeType", "mime_type", "filename"];
        FIELDS.into_iter().find(|field| *field == name)
    }

    /// Returns the hint of the members after a string; `rest` begins directly after the string.
    ///
    /// If the first few members give no hint, the string counts as text: an attachment has few
    /// siblings. The members are not validated here, but when the reader reaches them.
    pub(crate) fn from_following_members(rest: &str) -> Self {
        const MAX_MEMBERS: usize = 8;
        let mut rest = rest.as_bytes();
        rest = &rest[..rest.len().min(MAX_FOLLOWING_BYTES)];
        let mut found = SiblingHint::Data;
        for _ in 0..MAX_MEMBERS {
            rest = rest.trim_ascii_start();
            if rest.first() == Some(&b'}') {
                return found;
            }
            match member(&mut rest) {
                Some(said) => found = found.max(said),
                None => break,
            }
        }
        SiblingHint::Text
    }
}

/// Maximum number of bytes inspected after a string.
const MAX_FOLLOWING_BYTES: usize = 4096;

/// Returns the hint of the member at the start of `rest`; `None` if it cannot be determined.
fn member(rest: &mut &[u8]) -> Option<SiblingHint> {
    let name = string(skip_past_byte(rest, b',')?, rest)?;
    let value = skip_past_byte(rest, b':')?;
    if name.contains('\\') {
        return None;
    }
    if value.first() != Some(&b'"') {
        let length = value.iter().position(|byte| matches!(byte, b',' | b'}'))?;
        *rest = &value[length..];
        let is_scalar = !value[..length]
            .iter()
            .any(|byte| matches!(byte, b'"' | b'{' | b'['));
        return is_scalar.then_some(SiblingHint::Data);
    }
    let word = string(value, rest)?;
    // The extension of a file name can be read whether it is escaped or not.
    let is_told = name == "filename" || SiblingHint::hint_field_name(&name).is_none() || !word.contains('\\');
    is_told.then(|| SiblingHint::from_field(&name, &word))
}

/// Skips the byte `before` and the white space after it, and returns the rest.
fn skip_past_byte(rest: &[u8], before: u8) -> Option<&[u8]> {
    let rest = rest.trim_ascii_start().strip_prefix(&[before])?;
    Some(rest.trim_ascii_start())
}

/// Returns the string at the start of `text`, with only escaped slashes decoded. `rest` is set to
/// the text after it.
fn string<'t>(text: &'t [u8], rest: &mut &'t [u8]) -> Option<String> {
    let begin = text.strip_prefix(b"\"")?;
    let mut end = 0;
    loop {
        match begin.get(end)? {
            b'"' => break,
            b'\\' => end += 2,
            _ => end += 1,
        }
    }
    *rest = &begin[end + 1..];
    Some(std::str::from_utf8(&begin[..end]).ok()?.replace("\\/", "/"))
}

/// Whether a file with this name contains text: it has an extension that is not of a well-known binary type.
fn is_text_file_name(name: &str) -> bool {
    #[rustfmt::skip]
    const NON_TEXT_EXTENSIONS: [&str; 46] = [
        "pdf", "doc", "docx", "xls", "xlsx", "xlsm", "xlsb", "ppt", "pptx", "odt", "ods", "odp", "epub",
        "png", "jpg", "jpeg", "gif", "webp", "bmp", "tif", "tiff", "heic", "heif", "avif", "ico",
        "mp3", "mpga", "wav", "ogg", "oga", "opus", "flac", "m4a", "aac", "aiff", "mp4", "mov", "webm", "mkv", "avi", "mpeg",
        "zip", "gz", "tar", "7z", "bin",
    ];
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    extension.is_some_and(|extension| {
        !NON_TEXT_EXTENSIONS
            .iter()
            .any(|other| extension.eq_ignore_ascii_case(other))
    })
}

#[cfg(test)]
mod tests {
    use super::SiblingHint;

    #[test]
    fn what_stands_behind_a_string_says_what_it_is() {
        for (rest, expected) in [
            ("}", SiblingHint::Data),
            (
                r#" , "media_type" : "image/png","type":"base64" } ,"x":"y""#,
                SiblingHint::Data,
            ),
            (r#","mimeType":"image\/png"}"#, SiblingHint::Data),
            (
                r#","displayName":"\u00dcber \"x\".txt","mimeType":"application/pdf"}"#,
                SiblingHint::Data,
            ),
            (
                r#","media_type":"image/png","type":"base64","x":null,"y":1.5 }"#,
                SiblingHint::Data,
            ),
            (r#","filename":"\u00dcber.pdf"}"#, SiblingHint::Data),
            (r#","filename":"a.pdf.\u0074xt"}"#, SiblingHint::EncodedText),
            (r#","filename":"notes.txt"}"#, SiblingHint::EncodedText),
            (r#","mimeType":"text\/plain"}"#, SiblingHint::EncodedText),
            (
                r#","media_type":"text/plain","type":"base64"}"#,
                SiblingHint::EncodedText,
            ),
            (r#","media_type":"text/plain","type":"text"}"#, SiblingHint::Text),
            // Not a word, or more words than are inspected.
            ("", SiblingHint::Text),
            (r#","a":[1,2],"type":"base64"}"#, SiblingHint::Text),
            (r#","a":1"#, SiblingHint::Text),
            (r#","a":"\"#, SiblingHint::Text),
            (r#","a":{"type":"base64"}}"#, SiblingHint::Text),
            (r#","type":"\u0074ext"}"#, SiblingHint::Text),
            (r#","t\u0079pe":"text"}"#, SiblingHint::Text),
        ] {
            assert_eq!(SiblingHint::from_following_members(rest), expected, "{rest}");
        }
        let many = format!("{}}}", r#","a":"b""#.repeat(9));
        assert_eq!(SiblingHint::from_following_members(&many), SiblingHint::Text);
        assert_eq!(
            SiblingHint::from_following_members(&format!(r#","a":"{}"}}"#, "é".repeat(3000))),
            SiblingHint::Text
        );
    }
}
