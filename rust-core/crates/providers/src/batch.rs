//! Reads batch requests and the lines of their input files.

use proofgate_json::{Event, Reader, Workspace, equals_ignore_case};

use crate::bad_request::BadRequest;
use crate::dialect::{Dialect, Family};
use crate::storage_operation::is_object_id;

/// The reason why a batch request, or a line of its input, is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidBatch {
    /// The body is not the expected JSON, or repeats a key.
    #[error(transparent)]
    Body(#[from] BadRequest),
    /// A field is missing or invalid.
    #[error("\"{0}\" must be {1}.")]
    Field(&'static str, &'static str),
    /// A line has an unknown field.
    #[error(
        "A line of a batch may only have \"custom_id\", \"method\", \"url\" and \"body\". Remove the other fields."
    )]
    UnknownEndpoint,
    /// A carriage return within a line. Some readers, such as Python's text files, end the line at
    /// it; the rest could then be a request that no rule has checked.
    #[error(
        "The line contains a carriage return, which some readers treat as the end of a line. End lines with a line feed only."
    )]
    CarriageReturn,
}

impl InvalidBatch {
    /// Returns the stable machine code.
    pub fn code(&self) -> &'static str {
        match self {
            InvalidBatch::Body(bad) => bad.code(),
            InvalidBatch::Field(..) => "invalid_value",
            InvalidBatch::UnknownEndpoint => "unserved_field",
            InvalidBatch::CarriageReturn => "ambiguous_line",
        }
    }

    /// Returns the name of the invalid field, if the error is about one.
    pub fn param(&self) -> Option<&'static str> {
        match self {
            InvalidBatch::Body(bad) => bad.param(),
            InvalidBatch::Field(name, _) => Some(name),
            InvalidBatch::UnknownEndpoint | InvalidBatch::CarriageReturn => None,
        }
    }
}

impl From<proofgate_json::JsonError> for InvalidBatch {
    fn from(error: proofgate_json::JsonError) -> Self {
        InvalidBatch::Body(BadRequest::from(error))
    }
}

const ENDPOINT_DESCRIPTION: &str = "the path of an OpenAI endpoint that accepts JSON and that this gateway serves, such as \
                        /v1/chat/completions";

/// The endpoint of a batch: one of OpenAI's endpoints that take JSON.
fn endpoint(path: &str) -> Option<Dialect> {
    Dialect::from_path(path).filter(|dialect| dialect.family() == Family::OpenAi && !dialect.has_form())
}

/// Returns the member with one of these names. A name that differs from one of them only in case is refused, because
/// parsers that ignore case would accept it.
fn member(name: &str, names: &[&'static str]) -> Result<Option<&'static str>, InvalidBatch> {
    match names.iter().find(|known| **known == name) {
        Some(known) => Ok(Some(known)),
        None => match names.iter().find(|known| equals_ignore_case(name, known)) {
            Some(known) => Err(BadRequest::AmbiguousName(known).into()),
            None => Ok(None),
        },
    }
}

/// Returns the endpoint of a batch request (`POST /v1/batches`).
///
/// # Errors
/// [`InvalidBatch`] when it is not a JSON object, or names no file or no supported endpoint.
pub fn batch_endpoint(body: &[u8], workspace: &mut Workspace) -> Result<Dialect, InvalidBatch> {
    let mut reader = Reader::new(body, workspace)?;
    if reader.read_event()? != Event::ObjectStart {
        return Err(BadRequest::NotAnObject.into());
    }
    let (mut found, mut has_input) = (None, false);
    let (mut name, mut value) = (String::new(), String::new());
    while let Event::Key(key) = reader.read_event()? {
        let known = member(key.decode(&mut name), &["endpoint", "input_file_id"])?;
        let event = reader.read_event()?;
        match (known, event) {
            (Some("endpoint"), Event::String(path)) => found = endpoint(path.decode(&mut value)),
            (Some("input_file_id"), Event::String(id)) => has_input = is_object_id(id.decode(&mut value)),
            _ => reader.skip(event)?,
        }
    }
    reader.finish()?;
    if !has_input {
        let what = "the id of a file: 1 to 128 letters, digits, - and _";
        return Err(InvalidBatch::Field("input_file_id", what));
    }
    found.ok_or(InvalidBatch::Field("endpoint", ENDPOINT_DESCRIPTION))
}

/// Returns the endpoint of a line of a batch's input.
///
/// # Errors
/// [`InvalidBatch`] when it is not a JSON object with exactly `custom_id`, `method` (`POST`), `url` (a supported
/// endpoint) and `body` (an object), or contains a carriage return other than at its end.
pub fn line_endpoint(line: &[u8], workspace: &mut Workspace) -> Result<Dialect, InvalidBatch> {
    let text = line.strip_suffix(b"\r").unwrap_or(line);
    if memchr::memchr(b'\r', text).is_some() {
        return Err(InvalidBatch::CarriageReturn);
    }
    let mut reader = Reader::new(line, workspace)?;
    if reader.read_event()? != Event::ObjectStart {
        return Err(BadRequest::NotAnObject.into());
    }
    let (mut found, mut has_id, mut posts, mut has_body) = (None, false, false, false);
    let (mut name, mut value) = (String::new(), String::new());
    while let Event::Key(key) = reader.read_event()? {
        let known = member(key.decode(&mut name), &["custom_id", "method", "url", "body"])?;
        let event = reader.read_event()?;
        match (known, event) {
            (Some("custom_id"), Event::String(_)) => has_id = true,
            (Some("method"), Event::String(method)) => posts = method.decode(&mut value) == "POST",
            (Some("url"), Event::String(path)) => found = endpoint(path.decode(&mut value)),
            (Some("body"), Event::ObjectStart) => {
                has_body = true;
                reader.skip(event)?;
            }
            (Some(_), _) => reader.skip(event)?,
            (None, _) => return Err(InvalidBatch::UnknownEndpoint),
        }
    }
    reader.finish()?;
    match (has_id, posts, found, has_body) {
        (false, ..) => Err(InvalidBatch::Field("custom_id", "a string")),
        (_, false, ..) => Err(InvalidBatch::Field("method", "\"POST\"")),
        (_, _, None, _) => Err(InvalidBatch::Field("url", ENDPOINT_DESCRIPTION)),
        (.., false) => Err(InvalidBatch::Field("body", "an object")),
        (.., Some(dialect), true) => Ok(dialect),
    }
}
