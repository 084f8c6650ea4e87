use crate::MultipartError;

/// Maximum length of a boundary, in bytes (RFC 2046 section 5.1.1).
const MAX_BOUNDARY_BYTES: usize = 70;
/// The characters that a boundary may have besides letters and digits. RFC 2046 also allows a comma
/// and a space, but lists of header fields and lines are split at them.
const ALLOWED_PUNCTUATION: &[u8] = b"'()+_-./:=?";

/// The boundary between the parts of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boundary(String);

impl Boundary {
    /// Parses the value of a `Content-Type`, which must be `multipart/form-data` with a boundary and no other
    /// parameter.
    ///
    /// # Errors
    /// [`MultipartError::InvalidContentType`] or [`MultipartError::InvalidBoundary`].
    pub fn from_content_type(content_type: &[u8]) -> Result<Self, MultipartError> {
        let value = std::str::from_utf8(content_type).map_err(|_| MultipartError::InvalidContentType)?;
        let (kind, parameter) = value.split_once(';').ok_or(MultipartError::InvalidContentType)?;
        if !kind
            .trim_end_matches([' ', '\t'])
            .eq_ignore_ascii_case("multipart/form-data")
        {
            return Err(MultipartError::InvalidContentType);
        }
        let (name, value) = parameter
            .trim_matches([' ', '\t'])
            .split_once('=')
            .ok_or(MultipartError::InvalidContentType)?;
        if !name.eq_ignore_ascii_case("boundary") {
            return Err(MultipartError::InvalidContentType);
        }
        let quoted = value.strip_prefix('"').map(|rest| rest.strip_suffix('"'));
        let boundary = match quoted {
            Some(quoted) => quoted.ok_or(MultipartError::InvalidBoundary)?,
            // Readers disagree about the end of a value that is not a token.
            None if value.bytes().all(is_token_byte) => value,
            None => return Err(MultipartError::InvalidBoundary),
        };
        let taken = |byte: u8| byte.is_ascii_alphanumeric() || ALLOWED_PUNCTUATION.contains(&byte);
        match (1..=MAX_BOUNDARY_BYTES).contains(&boundary.len()) && boundary.bytes().all(taken) {
            true => Ok(Boundary(boundary.to_owned())),
            false => Err(MultipartError::InvalidBoundary),
        }
    }

    /// Returns the boundary.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the value of a `Content-Type` with this boundary.
    #[must_use]
    pub fn content_type(&self) -> String {
        let quote = if self.0.bytes().all(is_token_byte) {
            ""
        } else {
            "\""
        };
        format!("multipart/form-data; boundary={quote}{}{quote}", self.0)
    }
}

/// Whether a byte is allowed in a token (RFC 2045 section 5.1).
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"()<>@,;:\\\"/[]?=".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::Boundary;
    use crate::MultipartError;

    #[test]
    fn a_boundary_is_read_bare_and_quoted_and_named_again_as_it_has_to_be() {
        for (value, boundary, again) in [
            (
                "multipart/form-data; boundary=b",
                "b",
                "multipart/form-data; boundary=b",
            ),
            (
                "Multipart/Form-Data ;Boundary=\"--a_b\"",
                "--a_b",
                "multipart/form-data; boundary=--a_b",
            ),
            (
                "multipart/form-data;\tboundary=\"a:b=?\"",
                "a:b=?",
                "multipart/form-data; boundary=\"a:b=?\"",
            ),
        ] {
            let read = Boundary::from_content_type(value.as_bytes()).unwrap();
            assert_eq!((read.as_str(), &*read.content_type()), (boundary, again));
        }
        assert!(
            Boundary::from_content_type(
                format!("multipart/form-data; boundary={}", "b".repeat(70)).as_bytes()
            )
            .is_ok()
        );
    }

    #[test]
    fn what_readers_would_cut_differently_is_refused() {
        use MultipartError as E;
        let long = format!("multipart/form-data; boundary={}", "b".repeat(71));
        for (value, error) in [
            ("multipart/form-data", E::InvalidContentType),
            ("multipart/form-data;", E::InvalidContentType),
            ("multipart/mixed; boundary=b", E::InvalidContentType),
            ("application/json", E::InvalidContentType),
            (
                "multipart/form-data; charset=utf-8; boundary=b",
                E::InvalidContentType,
            ),
            ("multipart/form-data; boundary =b", E::InvalidContentType),
            ("multipart/form-data; boundary=b; boundary=c", E::InvalidBoundary),
            (
                "multipart/form-data; boundary=b; charset=utf-8",
                E::InvalidBoundary,
            ),
            ("multipart/form-data; boundary=", E::InvalidBoundary),
            ("multipart/form-data; boundary=\"\"", E::InvalidBoundary),
            ("multipart/form-data; boundary=\"b", E::InvalidBoundary),
            ("multipart/form-data; boundary=\"b\\\"\"", E::InvalidBoundary),
            ("multipart/form-data; boundary=\"b c\"", E::InvalidBoundary),
            ("multipart/form-data; boundary=\"b \"", E::InvalidBoundary),
            (
                "multipart/form-data; boundary=b,multipart/form-data",
                E::InvalidBoundary,
            ),
            ("multipart/form-data; boundary=a:b", E::InvalidBoundary),
            ("multipart/form-data; boundary=\u{e9}", E::InvalidBoundary),
            (&long, E::InvalidBoundary),
        ] {
            assert_eq!(
                Boundary::from_content_type(value.as_bytes()),
                Err(error),
                "{value}"
            );
        }
        assert_eq!(
            Boundary::from_content_type(b"multipart/form-data; boundary=\xff"),
            Err(E::InvalidContentType)
        );
    }
}
