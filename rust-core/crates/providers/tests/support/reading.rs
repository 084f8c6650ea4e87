//! Reads a request with the text that rules scan.

use proofgate_json::Workspace;
use proofgate_providers::{BadRequest, BodyText, Dialect, ParsedRequest};

pub fn read(dialect: Dialect, body: &str) -> Result<(ParsedRequest<'_>, String), BadRequest> {
    let mut text = BodyText::new();
    let call = ParsedRequest::read(dialect, body.as_bytes(), &mut Workspace::new(), &mut text)?;
    Ok((call, text.text().to_owned()))
}
