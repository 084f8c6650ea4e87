use crate::MultipartError;

/// Maximum length of a part's name, in bytes.
const MAX_NAME_BYTES: usize = 128;

/// The parsed headers of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The field's name.
    pub name: String,
    /// The file name, if the part is a file.
    pub file_name: Option<String>,
}

impl Part {
    /// Parses headers: lines including their line ends, without the empty line. Also returns the `Content-Length`:
    /// some clients send it against RFC 7578 section 4.8, and some readers may rely on it.
    pub(crate) fn parse(head: &[u8]) -> Result<(Self, Option<u64>), MultipartError> {
        let (mut disposition, mut kind, mut length, mut encoding) = (None, None, None, None);
        for line in head.split_inclusive(|byte| *byte == b'\n') {
            let line = line
                .strip_suffix(b"\r\n")
                .ok_or(MultipartError::InvalidHeadLine)?;
            let line = std::str::from_utf8(line).map_err(|_| MultipartError::InvalidHeadLine)?;
            // This includes a line that begins with white space, which would continue the previous
            // line (RFC 5322 section 2.2.3).
            let (name, value) = line.split_once(':').ok_or(MultipartError::InvalidHeadLine)?;
            let is_field = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
            if name.is_empty() || !name.bytes().all(is_field) || value.chars().any(char::is_control) {
                return Err(MultipartError::InvalidHeadLine);
            }
            let place = match () {
                () if name.eq_ignore_ascii_case("content-disposition") => &mut disposition,
                () if name.eq_ignore_ascii_case("content-type") => &mut kind,
                () if name.eq_ignore_ascii_case("content-length") => &mut length,
                () if name.eq_ignore_ascii_case("content-transfer-encoding") => &mut encoding,
                () => return Err(MultipartError::UnexpectedHeadField),
            };
            if place.replace(value.trim_matches(' ')).is_some() {
                return Err(MultipartError::UnexpectedHeadField);
            }
        }
        let part = Self::from_disposition(disposition.ok_or(MultipartError::InvalidDisposition)?)?;
        if kind.is_some_and(|kind| !is_accepted_type(kind, part.file_name.is_some())) {
            return Err(MultipartError::InvalidPartType);
        }
        let as_it_is = |encoding: &str| {
            ["binary", "8bit", "7bit"]
                .iter()
                .any(|name| encoding.eq_ignore_ascii_case(name))
        };
        if !encoding.is_none_or(as_it_is) {
            return Err(MultipartError::UnexpectedHeadField);
        }
        let number = |text: &str| {
            let digits = text.bytes().all(|byte| byte.is_ascii_digit());
            digits
                .then(|| text.parse().ok())
                .flatten()
                .ok_or(MultipartError::InvalidPartLength)
        };
        Ok((part, length.map(number).transpose()?))
    }

    fn from_disposition(value: &str) -> Result<Self, MultipartError> {
        let (kind, rest) = value.split_once(';').ok_or(MultipartError::InvalidDisposition)?;
        if !kind.trim_end_matches(' ').eq_ignore_ascii_case("form-data") {
            return Err(MultipartError::InvalidDisposition);
        }
        let (name, rest) = parse_quoted(rest, "name")?;
        let plain = |byte: u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'\\' | b'%');
        if name.is_empty() || name.len() > MAX_NAME_BYTES || !name.bytes().all(plain) {
            return Err(MultipartError::InvalidName);
        }
        // Such a part would set the charset of other parts (RFC 7578 section 4.6).
        if name.eq_ignore_ascii_case("_charset_") {
            return Err(MultipartError::InvalidName);
        }
        let file_name = match rest.strip_prefix(';') {
            None if rest.is_empty() => None,
            None => return Err(MultipartError::InvalidDisposition),
            Some(rest) => {
                let (file_name, rest) = parse_quoted(rest, "filename")?;
                // With an empty file name, some readers see a file and others a field.
                if file_name.is_empty() || file_name.contains('\\') {
                    return Err(MultipartError::InvalidFileName);
                }
                if !rest.is_empty() {
                    return Err(MultipartError::InvalidDisposition);
                }
                Some(file_name.to_owned())
            }
        };
        Ok(Part {
            name: name.to_owned(),
            file_name,
        })
    }
}

/// Parses ` name="value"`; returns the value and the rest. Escapes are not supported: only some readers accept a
/// backslash.
fn parse_quoted<'v>(text: &'v str, name: &str) -> Result<(&'v str, &'v str), MultipartError> {
    let (found, rest) = text
        .trim_start_matches(' ')
        .split_once("=\"")
        .ok_or(MultipartError::InvalidDisposition)?;
    if !found.eq_ignore_ascii_case(name) {
        return Err(MultipartError::InvalidDisposition);
    }
    let (value, rest) = rest.split_once('"').ok_or(MultipartError::InvalidDisposition)?;
    Ok((value, rest.trim_start_matches(' ')))
}

/// Whether a part may have this content type. Some readers distinguish files from fields by it, so a field must have
/// a text type.
fn is_accepted_type(kind: &str, is_file: bool) -> bool {
    let (kind, parameters) = match kind.split_once(';') {
        Some((kind, parameters)) => (kind, parameters.trim_matches(' ')),
        None => (kind, ""),
    };
    let kind = kind.trim_end_matches(' ').to_ascii_lowercase();
    let token = |part: &str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte))
    };
    if !kind
        .split_once('/')
        .is_some_and(|(one, two)| token(one) && token(two))
    {
        return false;
    }
    if is_file {
        return !kind.starts_with("multipart/") && !kind.starts_with("message/") && parameters.is_ascii();
    }
    let charset = parameters.to_ascii_lowercase();
    let is_utf8 = matches!(
        &*charset,
        "" | "charset=utf-8" | "charset=\"utf-8\"" | "charset=us-ascii"
    );
    matches!(&*kind, "text/plain" | "application/json") && is_utf8
}
