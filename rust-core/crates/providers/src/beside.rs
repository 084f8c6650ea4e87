//! What stands beside a string where an attachment is taken, and says whether it is one.

/// Whether a media type (RFC 6838) is one of texts, in whatever case.
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

/// What stands beside a string where an attachment is taken says of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SiblingHint {
    /// That it is no text, or nothing.
    Data,
    /// That it decodes to one.
    EncodedText,
    /// That it is one as it stands.
    Text,
}

impl SiblingHint {
    /// What the field `name` says with the value `word`.
    pub(crate) fn from_field(name: &str, word: &str) -> Self {
        match name {
            "type" if word == "text" => SiblingHint::Text,
            "media_type" | "mimeType" | "mime_type" if is_textual(word) => SiblingHint::EncodedText,
            "filename" if is_text_file_name(word) => SiblingHint::EncodedText,
            _ => SiblingHint::Data,
        }
    }

    /// The field `name`, if it says what stands beside it.
    pub(crate) fn hint_field_name(name: &str) -> Option<&'static str> {
        const FIELDS: [&str; 5] = ["type", "media_type", "mimeType", "mime_type", "filename"];
        FIELDS.into_iter().find(|field| *field == name)
    }

    /// What the members behind a string say, of which `rest` begins right behind it.
    ///
    /// Where a few members do not tell, the string is a text: beside an attachment stand no others. Nothing is checked, the
    /// reader does that when it comes there.
    pub(crate) fn from_following(rest: &str) -> Self {
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

/// So many bytes behind a string are looked at.
const MAX_FOLLOWING_BYTES: usize = 4096;

/// What the member says with which `rest` goes on; `None` where that is not to be told.
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
    // The end of a file's name tells, escaped or not.
    let is_told = name == "filename" || SiblingHint::hint_field_name(&name).is_none() || !word.contains('\\');
    is_told.then(|| SiblingHint::from_field(&name, &word))
}

/// What stands behind the byte `before`, and behind white space.
fn skip_past_byte(rest: &[u8], before: u8) -> Option<&[u8]> {
    let rest = rest.trim_ascii_start().strip_prefix(&[before])?;
    Some(rest.trim_ascii_start())
}

/// The string with which `text` begins, as it stands there but for escaped slashes; `rest` is what stands behind it.
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

/// Whether a file of this name holds a text: it has an extension, and that of no well-known other kind.
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
            // What is no word, or one of too many.
            ("", SiblingHint::Text),
            (r#","a":[1,2],"type":"base64"}"#, SiblingHint::Text),
            (r#","a":1"#, SiblingHint::Text),
            (r#","a":"\"#, SiblingHint::Text),
            (r#","a":{"type":"base64"}}"#, SiblingHint::Text),
            (r#","type":"\u0074ext"}"#, SiblingHint::Text),
            (r#","t\u0079pe":"text"}"#, SiblingHint::Text),
        ] {
            assert_eq!(SiblingHint::from_following(rest), expected, "{rest}");
        }
        let many = format!("{}}}", r#","a":"b""#.repeat(9));
        assert_eq!(SiblingHint::from_following(&many), SiblingHint::Text);
        assert_eq!(
            SiblingHint::from_following(&format!(r#","a":"{}"}}"#, "é".repeat(3000))),
            SiblingHint::Text
        );
    }
}
