//! Paths of OpenAI's files and batches, which are objects that a provider stores.
//!
//! The upstream path is built from the parsed parts, so an ID or a query that could have another
//! meaning at the provider is refused.

use proofgate_base::rejection::Rejection;
use proofgate_providers::{StorageOperation, is_object_id};
use proofgate_wire::Method;

/// A request for files or batches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredObjectRequest {
    pub operation: StorageOperation,
    /// The ID of the object; empty if the operation has none.
    id: Box<str>,
    /// The query with its question mark; empty if there is no query.
    query: Box<str>,
}

/// The result of parsing a path.
#[derive(Debug, PartialEq, Eq)]
pub enum StoredPath {
    Call(Box<StoredObjectRequest>),
    Options(&'static str),
    WrongMethod(&'static str),
    Refused(StoredPathError),
}

/// The reason why an ID, or the query of a path, is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoredPathError {
    /// The ID is not valid.
    InvalidId,
    /// A parameter that is not supported.
    UnknownParameter(Box<str>),
    /// A parameter with an invalid value: its name, and a description of valid values.
    InvalidValue(&'static str, &'static str),
}

impl StoredObjectRequest {
    /// Returns the end of the upstream path, with the query.
    pub fn path_suffix(&self) -> String {
        let mut end = self.operation.path_suffix(&self.id);
        end.push_str(&self.query);
        end
    }

    /// Returns the method and the path with the object's ID, in the form that records use.
    pub fn record_name(&self) -> String {
        self.operation.name().replace("{id}", &self.id)
    }
}

/// Parses a path, its query and the method; `None` if the path is not one of files or batches.
pub fn parse(path: &str, query: Option<&str>, method: Method) -> Option<StoredPath> {
    let path = path
        .strip_prefix("/openai")
        .unwrap_or(path)
        .strip_prefix("/v1/")?;
    let mut segments = path.split('/');
    let is_of_batches = match segments.next()? {
        "files" => false,
        "batches" => true,
        _ => return None,
    };
    let (id, action) = (segments.next(), segments.next());
    if segments.next().is_some() {
        return None;
    }
    let (allow, stored) = match (is_of_batches, id, action) {
        (false, None, _) => (
            "GET, POST, OPTIONS",
            match method {
                Method::Get => Some(StorageOperation::FileList),
                Method::Post => Some(StorageOperation::FileUpload),
                _ => None,
            },
        ),
        (false, Some(_), None) => (
            "GET, DELETE, OPTIONS",
            match method {
                Method::Get => Some(StorageOperation::FileRetrieval),
                Method::Delete => Some(StorageOperation::FileDeletion),
                _ => None,
            },
        ),
        (false, Some(_), Some("content")) => (
            "GET, OPTIONS",
            (method == Method::Get).then_some(StorageOperation::FileContent),
        ),
        (true, None, _) => (
            "GET, POST, OPTIONS",
            match method {
                Method::Get => Some(StorageOperation::BatchList),
                Method::Post => Some(StorageOperation::BatchCreation),
                _ => None,
            },
        ),
        (true, Some(_), None) => (
            "GET, OPTIONS",
            (method == Method::Get).then_some(StorageOperation::BatchRetrieval),
        ),
        (true, Some(_), Some("cancel")) => (
            "POST, OPTIONS",
            (method == Method::Post).then_some(StorageOperation::BatchCancellation),
        ),
        _ => return None,
    };
    let id = id.unwrap_or_default();
    let has_id = stored.is_some_and(|stored| stored.path_suffix("x").starts_with('/'));
    Some(match stored {
        None if method == Method::Options => StoredPath::Options(allow),
        None => StoredPath::WrongMethod(allow),
        Some(_) if has_id && !is_object_id(id) => StoredPath::Refused(StoredPathError::InvalidId),
        Some(stored) => match check_query(stored, query.unwrap_or_default()) {
            Err(error) => StoredPath::Refused(error),
            Ok(()) => StoredPath::Call(Box::new(StoredObjectRequest {
                operation: stored,
                id: id.into(),
                query: match query {
                    None | Some("") => "".into(),
                    Some(query) => format!("?{query}").into(),
                },
            })),
        },
    })
}

/// The supported query parameters, and descriptions of their valid values.
const PARAMETERS: [(&str, &str); 4] = [
    ("after", "an id: 1 to 128 letters, digits, - and _"),
    ("limit", "a number from 1 to 10000"),
    ("order", "asc or desc"),
    ("purpose", "1 to 64 lowercase letters, - and _"),
];

/// Checks a query: each parameter may occur only once, and no part may need decoding.
fn check_query(stored: StorageOperation, query: &str) -> Result<(), StoredPathError> {
    let mut seen = [false; PARAMETERS.len()];
    let served = match stored {
        StorageOperation::FileList => &PARAMETERS[..],
        StorageOperation::BatchList => &PARAMETERS[..2],
        _ => &[],
    };
    if query.is_empty() {
        return Ok(());
    }
    for parameter in query.split('&') {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let place = served.iter().position(|(known, _)| *known == name);
        let Some((place, (name, must))) = place.and_then(|place| Some((place, served.get(place)?))) else {
            let shown: String = name.chars().take(64).collect();
            return Err(StoredPathError::UnknownParameter(shown.into()));
        };
        let fits = match *name {
            "after" => is_object_id(value),
            "limit" => is_limit(value),
            "order" => matches!(value, "asc" | "desc"),
            _ => is_purpose(value),
        };
        let is_first = seen
            .get_mut(place)
            .is_some_and(|seen| !std::mem::replace(seen, true));
        if !fits || !is_first {
            return Err(StoredPathError::InvalidValue(name, must));
        }
    }
    Ok(())
}

fn is_limit(value: &str) -> bool {
    let digits = value.bytes().all(|byte| byte.is_ascii_digit()) && !value.starts_with('0');
    digits && value.parse().is_ok_and(|limit| (1..=10_000_u32).contains(&limit))
}

/// Whether a text can be the purpose of a file.
pub fn is_purpose(value: &str) -> bool {
    let is_of_words = |byte: u8| byte.is_ascii_lowercase() || matches!(byte, b'-' | b'_');
    (1..=64).contains(&value.len()) && value.bytes().all(is_of_words)
}

impl From<&StoredPathError> for Rejection {
    fn from(error: &StoredPathError) -> Self {
        let (code, message) = match error {
            StoredPathError::InvalidId => (
                "invalid_path",
                "The id in the path is not valid: it must have 1 to 128 letters, digits, - and _.".into(),
            ),
            StoredPathError::UnknownParameter(name) => (
                "unserved_query",
                format!("The parameter {name:?} is not served at this path. Remove it."),
            ),
            StoredPathError::InvalidValue(name, must) => (
                "unserved_query",
                format!("The parameter {name} may appear only once, and must be {must}."),
            ),
        };
        Rejection::with_message(400, code, message)
    }
}

#[cfg(test)]
mod tests {
    use proofgate_providers::StorageOperation;
    use proofgate_wire::Method;

    use super::{StoredPath, StoredPathError, parse};

    fn upstream(target: &str, method: Method) -> Option<(StorageOperation, String)> {
        let (path, query) = target
            .split_once('?')
            .map_or((target, None), |(path, query)| (path, Some(query)));
        match parse(path, query, method) {
            Some(StoredPath::Call(call)) => {
                let path = call.operation.upstream_path();
                Some((call.operation, format!("{path}{}", call.path_suffix())))
            }
            _ => None,
        }
    }

    #[test]
    fn every_path_goes_upstream_as_it_was_read() {
        for (method, target, stored) in [
            (Method::Post, "/files", StorageOperation::FileUpload),
            (
                Method::Get,
                "/files?limit=10000&after=file-1&order=asc&purpose=batch",
                StorageOperation::FileList,
            ),
            (Method::Get, "/files/file-a_B9", StorageOperation::FileRetrieval),
            (Method::Delete, "/files/file-1", StorageOperation::FileDeletion),
            (
                Method::Get,
                "/files/file-1/content",
                StorageOperation::FileContent,
            ),
            (Method::Post, "/batches", StorageOperation::BatchCreation),
            (
                Method::Get,
                "/batches?after=batch_1&limit=2",
                StorageOperation::BatchList,
            ),
            (Method::Get, "/batches/batch_1", StorageOperation::BatchRetrieval),
            (
                Method::Post,
                "/batches/batch_1/cancel",
                StorageOperation::BatchCancellation,
            ),
        ] {
            for base in ["/v1", "/openai/v1"] {
                let found = upstream(&format!("{base}{target}"), method);
                assert_eq!(found, Some((stored, target.to_owned())), "{target}");
            }
        }
    }

    #[test]
    fn what_could_be_another_path_upstream_is_no_id() {
        let long = "x".repeat(129);
        for id in [
            "", ".", "..", "a.b", "a%2Fb", "%2e%2e", "a:b", "a;b", "a b", "é", &long,
        ] {
            for path in [format!("/v1/files/{id}"), format!("/v1/files/{id}/content")] {
                let refused = Some(StoredPath::Refused(StoredPathError::InvalidId));
                assert_eq!(parse(&path, None, Method::Get), refused, "{path}");
            }
        }
        for path in [
            "/v1/filesystem",
            "/v1/files/a/b",
            "/v1/files/a/content/",
            "/v1/files/a/content/b",
            "/v1/batches/a/content",
            "/v1/files//content/x",
            "/v2/files",
            "/openai/files",
            "/v1//files",
        ] {
            assert_eq!(parse(path, None, Method::Get), None, "{path}");
        }
    }

    #[test]
    fn a_query_has_what_is_served_there_once_and_nothing_else() {
        for (path, query) in [
            ("/v1/files", "limit=0"),
            ("/v1/files", "limit=010"),
            ("/v1/files", "limit=10001"),
            ("/v1/files", "limit="),
            ("/v1/files", "limit=1&limit=2"),
            ("/v1/files", "order=up"),
            ("/v1/files", "after=a%2f"),
            ("/v1/files", "purpose=a.b"),
            ("/v1/files", "Limit=1"),
            ("/v1/files", "project=other"),
            ("/v1/files", "limit=1&"),
            ("/v1/batches", "purpose=batch"),
            ("/v1/files/file-1", "limit=1"),
            ("/v1/files/file-1/content", "limit=1"),
        ] {
            let found = parse(path, Some(query), Method::Get);
            assert!(
                matches!(found, Some(StoredPath::Refused(_))),
                "{path}?{query}: {found:?}"
            );
        }
        assert_eq!(
            parse("/v1/files", Some("a%0d=1"), Method::Get),
            Some(StoredPath::Refused(StoredPathError::UnknownParameter(
                "a%0d".into()
            )))
        );
    }

    #[test]
    fn each_path_knows_its_methods_alone() {
        for (path, method, allow) in [
            ("/v1/files", Method::Delete, "GET, POST, OPTIONS"),
            ("/v1/files/a", Method::Post, "GET, DELETE, OPTIONS"),
            ("/v1/files/a/content", Method::Delete, "GET, OPTIONS"),
            ("/v1/batches/a", Method::Delete, "GET, OPTIONS"),
            ("/v1/batches/a/cancel", Method::Get, "POST, OPTIONS"),
            ("/v1/batches", Method::Head, "GET, POST, OPTIONS"),
        ] {
            assert_eq!(
                parse(path, None, method),
                Some(StoredPath::WrongMethod(allow)),
                "{path}"
            );
            assert_eq!(
                parse(path, None, Method::Options),
                Some(StoredPath::Options(allow)),
                "{path}"
            );
        }
    }
}
