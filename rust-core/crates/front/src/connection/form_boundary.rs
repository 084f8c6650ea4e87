//! The boundary between the parts of a form.

use proofgate_multipart::{Boundary, MultipartError};
use proofgate_wire::Headers;

/// Parses the boundary of a form from its `content-type` field.
pub(super) fn parse_boundary(headers: &Headers<'_>) -> Result<Boundary, MultipartError> {
    let mut types = headers
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    match (types.next(), types.next()) {
        (Some((_, value)), None) => Boundary::from_content_type(value),
        _ => Err(MultipartError::InvalidContentType),
    }
}
