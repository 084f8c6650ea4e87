use proofgate_dialect::UntranslatableRequest;
use proofgate_dialect::dropped::printable_name;

/// What is wrong with a request that cannot be read: where, as a path of its fields. Nothing of its text is quoted.
///
/// `part` is a slice of `body` in which the error's line and column count.
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

/// One step into a document.
enum PathStep {
    /// An object and where the key of its member at hand stands, quotes excluded.
    Object { key: std::ops::Range<usize> },
    /// An array and the element at hand.
    Array { element: usize },
}

/// The path of the value that stands at `offset` of a JSON document, or ends there.
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
