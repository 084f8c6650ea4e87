use proofgate_dialect::UntranslatableRequest;
use proofgate_dialect::dropped_field_log::printable_name;

/// Describes why a request cannot be parsed, and names the position as a field path. The
/// description quotes nothing of the request.
///
/// `part` is a slice of `body`; the error's line and column are relative to it.
pub fn parse_error(body: &str, part: &str, error: &serde_json::Error) -> UntranslatableRequest {
    if !error.is_data() {
        return UntranslatableRequest::new("", "the body is not JSON");
    }
    let start = (part.as_ptr() as usize).saturating_sub(body.as_ptr() as usize);
    let lines = part.split_inclusive('\n').take(error.line().saturating_sub(1));
    let line = lines.map(str::len).sum::<usize>();
    let path = path_before(body, start + line + error.column());
    let message = if path.is_empty() {
        "the body is not an object that the API accepts, or a field is repeated".to_owned()
    } else {
        format!("{path} has a type that the API does not accept there, or a field in it is repeated")
    };
    UntranslatableRequest::new(path, message)
}

/// One step of a path into a document.
enum PathStep {
    /// An object, and the range of the current member's key, without quotes.
    Object { key: std::ops::Range<usize> },
    /// An array, and the index of the current element.
    Array { element: usize },
}

/// Returns the path of the value at `offset` of a JSON document, or of the value that ends there.
fn path_before(body: &str, offset: usize) -> String {
    let mut inside: Vec<PathStep> = Vec::new();
    let mut bytes = body.bytes().enumerate().take(offset);
    let mut string = 0..0;
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'"' => {
                let mut escaped = false;
                let end = bytes.find(|&(_, byte)| {
                    let ends = byte == b'"' && !escaped;
                    escaped = byte == b'\\' && !escaped;
                    ends
                });
                string = at + 1..end.map_or(offset, |(end, _)| end);
            }
            b':' => {
                if let Some(PathStep::Object { key }) = inside.last_mut() {
                    *key = string.clone();
                }
            }
            b'{' if at + 1 < offset => inside.push(PathStep::Object { key: 0..0 }),
            b'[' if at + 1 < offset => inside.push(PathStep::Array { element: 0 }),
            b'}' | b']' if at + 1 < offset => drop(inside.pop()),
            b',' => {
                if let Some(PathStep::Array { element }) = inside.last_mut() {
                    *element += 1;
                }
            }
            _ => {}
        }
    }
    let mut path = String::new();
    for step in inside {
        match step {
            PathStep::Object { key } => {
                let key = body.get(key).unwrap_or_default();
                if !path.is_empty() && !key.is_empty() {
                    path.push('.');
                }
                path.push_str(printable_name(key));
            }
            PathStep::Array { element } => path.push_str(&format!("[{element}]")),
        }
    }
    path
}
