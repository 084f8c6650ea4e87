//! Paths of Google's API. They name the model and say whether the response is streamed.

use proofgate_base::rejection::Rejection;
use proofgate_providers::Dialect;

/// The parameters of a call that are in its path instead of its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathParams {
    pub model: String,
    /// Whether the response is a stream of events; `None` if the body says so and names the model.
    pub stream: Option<bool>,
    pub form: BodyForm,
}

/// The form of a body: how it differs from its dialect in the API that the client uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BodyForm {
    /// The form of the dialect itself.
    #[default]
    Native,
    /// Anthropic Messages in the form of Amazon Bedrock's InvokeModel.
    Invoke,
    /// Anthropic Messages in the form of Vertex AI's rawPredict.
    RawPredict,
}

impl BodyForm {
    /// Returns the path that clients call, in the form that records use.
    pub fn path(self, dialect: Dialect) -> &'static str {
        match (self, dialect) {
            (BodyForm::Native, _) => dialect.path(),
            (BodyForm::Invoke, _) => "/model/{model}/invoke",
            (BodyForm::RawPredict, Dialect::CountTokens) => {
                "/v1/projects/{project}/locations/{location}/publishers/anthropic/models/count-tokens:rawPredict"
            }
            (BodyForm::RawPredict, _) => {
                "/v1/projects/{project}/locations/{location}/publishers/anthropic/models/{model}:rawPredict"
            }
        }
    }
}

/// The reason why a path or its query is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathError {
    /// The query contains a key.
    KeyInQuery,
    /// The query is not supported.
    UnsupportedQuery,
    /// A stream is requested as one JSON array.
    JsonArrayStream,
    /// The path has no valid model name where one is required.
    InvalidModel,
}

/// A path of Google's API.
#[derive(Debug, PartialEq, Eq)]
pub enum GooglePath {
    Call(Dialect, PathParams),
    Models,
    /// A model by name, or an unsupported method of a model.
    Model(String),
}

/// The API version in older clients and most documentation. Only Google's API is served under it.
const BETA: &str = "/v1beta/";
/// The API version in google-genai from release 3 on. The paths of other dialects have the same
/// prefix.
const STABLE: &str = "/v1/";

/// Whether only Google clients request this path.
pub fn is_google_only(path: &str) -> bool {
    path.starts_with(BETA)
}

/// Parses a path and its query; `None` if it is not a served path of Google's API.
///
/// The model name is percent-decoded once.
pub fn parse(path: &str, query: Option<&str>) -> Result<Option<GooglePath>, PathError> {
    let is_beta = is_google_only(path);
    let version = if is_beta { BETA } else { STABLE };
    let Some(rest) = path
        .strip_prefix(version)
        .and_then(|rest| rest.strip_prefix("models"))
    else {
        return Ok(None);
    };
    let call = rest.strip_prefix('/').and_then(|rest| rest.rsplit_once(':'));
    let call = call.and_then(|(name, method)| Some((name, method_of(method)?)));
    if let Some((name, (dialect, stream))) = call {
        let events = query.unwrap_or_default() == "alt=sse";
        match (stream, query) {
            (true, _) if events => {}
            (false, None) => {}
            (true, None) => return Err(PathError::JsonArrayStream),
            (_, query) => {
                return Err(check_query(query, &[])
                    .err()
                    .unwrap_or(PathError::UnsupportedQuery));
            }
        }
        let model = model_name(name).ok_or(PathError::InvalidModel)?;
        return Ok(Some(GooglePath::Call(
            dialect,
            PathParams {
                model,
                stream: Some(stream),
                form: BodyForm::default(),
            },
        )));
    }
    if !is_beta {
        // Other paths under this version belong to OpenAI's API.
        let has_key = check_query(query, &[]) == Err(PathError::KeyInQuery);
        return if has_key {
            Err(PathError::KeyInQuery)
        } else {
            Ok(None)
        };
    }
    // All models are in one page, whatever its size.
    check_query(query, &["pageSize"])?;
    match rest.strip_prefix('/') {
        None if rest.is_empty() => Ok(Some(GooglePath::Models)),
        None => Ok(None),
        Some(name) => model_name(name)
            .map(|name| Some(GooglePath::Model(name)))
            .ok_or(PathError::InvalidModel),
    }
}

fn method_of(name: &str) -> Option<(Dialect, bool)> {
    match name {
        "generateContent" => Some((Dialect::Gemini, false)),
        "streamGenerateContent" => Some((Dialect::Gemini, true)),
        "countTokens" => Some((Dialect::GeminiTokens, false)),
        "embedContent" => Some((Dialect::GeminiEmbedding, false)),
        "batchEmbedContents" => Some((Dialect::GeminiEmbeddings, false)),
        _ => None,
    }
}

/// Checks that a query has only the parameters in `known`.
fn check_query(query: Option<&str>, known: &[&str]) -> Result<(), PathError> {
    let mut parameters = query
        .unwrap_or_default()
        .split('&')
        .filter(|text| !text.is_empty());
    let mut names = parameters
        .clone()
        .map(|text| text.split_once('=').map_or(text, |(name, _)| name));
    if names.any(|name| matches!(name, "key" | "access_token" | "oauth_token")) {
        return Err(PathError::KeyInQuery);
    }
    let is_known = |text: &str| {
        text.split_once('=')
            .is_some_and(|(name, _)| known.contains(&name))
    };
    match parameters.all(is_known) {
        true => Ok(()),
        false => Err(PathError::UnsupportedQuery),
    }
}

/// Parses a model name from a path; `None` for invalid names such as `..`.
pub(crate) fn model_name(escaped: &str) -> Option<String> {
    let name = String::from_utf8(percent_decode(escaped)).ok()?;
    let is_segment = |segment: &str| !matches!(segment, "" | "." | "..");
    let is_name = name.split('/').all(is_segment) && !name.contains(char::is_control);
    is_name.then_some(name)
}

/// Percent-decodes a model name. Names contain slashes and colons, which clients write with or
/// without escapes. An invalid escape is left unchanged.
pub fn percent_decode(name: &str) -> Vec<u8> {
    let bytes = name.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let escape = bytes.get(at + 1..at + 3).filter(|_| byte == b'%');
        let value = escape
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        decoded.push(value.unwrap_or(byte));
        at += if value.is_some() { 3 } else { 1 };
    }
    decoded
}

impl From<PathError> for Rejection {
    fn from(error: PathError) -> Self {
        match error {
            PathError::KeyInQuery => Rejection::new(
                400,
                "key_in_query",
                "A key in the URL ends up in the logs of proxies. Send it in x-goog-api-key, and replace this key.",
            ),
            PathError::UnsupportedQuery => Rejection::new(
                400,
                "unserved_query",
                "This query is not served. Only streamGenerateContent accepts ?alt=sse, and only the list of models \
                 accepts pageSize.",
            ),
            PathError::JsonArrayStream => Rejection::new(
                400,
                "unserved_query",
                "Streams are served only as server-sent events. Add ?alt=sse to the URL.",
            ),
            PathError::InvalidModel => {
                Rejection::new(400, "invalid_path", "The path has no valid model name.")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proofgate_providers::Dialect;

    use super::{BodyForm, GooglePath, PathError, PathParams, parse, percent_decode};

    fn call(dialect: Dialect, model: &str, stream: bool) -> Result<Option<GooglePath>, PathError> {
        let (model, stream) = (model.to_owned(), Some(stream));
        let form = BodyForm::default();
        Ok(Some(GooglePath::Call(
            dialect,
            PathParams { model, stream, form },
        )))
    }

    #[test]
    fn the_path_names_the_method_and_the_model_under_either_version() {
        for version in ["v1", "v1beta"] {
            let path = |end: &str| format!("/{version}/models/{end}");
            assert_eq!(
                parse(&path("gemini-3:generateContent"), None),
                call(Dialect::Gemini, "gemini-3", false)
            );
            assert_eq!(
                parse(&path("gemini-3:streamGenerateContent"), Some("alt=sse")),
                call(Dialect::Gemini, "gemini-3", true)
            );
            assert_eq!(
                parse(&path("gemini-3:countTokens"), None),
                call(Dialect::GeminiTokens, "gemini-3", false)
            );
            assert_eq!(
                parse(&path("g:embedContent"), None),
                call(Dialect::GeminiEmbedding, "g", false)
            );
            assert_eq!(
                parse(&path("g:batchEmbedContents"), None),
                call(Dialect::GeminiEmbeddings, "g", false)
            );
        }
        assert_eq!(
            parse("/v1beta/models", Some("pageSize=100")),
            Ok(Some(GooglePath::Models))
        );
        assert_eq!(
            parse("/v1beta/models/gemini-3", None),
            Ok(Some(GooglePath::Model("gemini-3".into())))
        );
    }

    #[test]
    fn a_name_is_decoded_once() {
        for (written, model) in [
            ("org%2Fname%3A1", "org/name:1"),
            ("org/name:1", "org/name:1"),
            ("a%252Fb", "a%2Fb"),
            ("m%C3%A9", "mé"),
        ] {
            let path = format!("/v1beta/models/{written}:generateContent");
            assert_eq!(parse(&path, None), call(Dialect::Gemini, model, false));
        }
    }

    #[test]
    fn what_is_no_name_of_a_model_is_refused() {
        for name in [
            "", "..", ".", "a/../b", "%2e%2e", "a/%2E%2e", "a//b", "/a", "a/", "a%0Ab", "%FF", "%7f",
        ] {
            for path in [
                format!("/v1/models/{name}:generateContent"),
                format!("/v1beta/models/{name}:countTokens"),
                format!("/v1beta/models/{name}"),
            ] {
                assert_eq!(parse(&path, None), Err(PathError::InvalidModel), "{path}");
            }
        }
    }

    #[test]
    fn a_key_in_the_query_is_refused_wherever_it_stands() {
        for query in [
            "key=k",
            "alt=sse&key=k",
            "key",
            "pageSize=1&key=",
            "access_token=t",
        ] {
            for path in [
                "/v1/models",
                "/v1/models/m",
                "/v1beta/models",
                "/v1beta/models/m",
                "/v1beta/models/m:generateContent",
                "/v1/models/m:streamGenerateContent",
            ] {
                assert_eq!(
                    parse(path, Some(query)),
                    Err(PathError::KeyInQuery),
                    "{path}?{query}"
                );
            }
        }
    }

    #[test]
    fn no_other_query_is_served_than_clients_send() {
        let stream = "/v1beta/models/m:streamGenerateContent";
        assert_eq!(parse(stream, None), Err(PathError::JsonArrayStream));
        for query in [
            "alt=json",
            "alt=sse&alt=json",
            "alt=SSE",
            "ALT=sse",
            "",
            "%6bey=k",
            "alt=sse&",
        ] {
            assert_eq!(
                parse(stream, Some(query)),
                Err(PathError::UnsupportedQuery),
                "{query}"
            );
        }
        for path in ["/v1beta/models/m:generateContent", "/v1/models/m:countTokens"] {
            for query in ["alt=sse", "alt=json", "", "pageSize=1"] {
                assert_eq!(
                    parse(path, Some(query)),
                    Err(PathError::UnsupportedQuery),
                    "{path}?{query}"
                );
            }
        }
        assert_eq!(
            parse("/v1beta/models", Some("pageToken=t")),
            Err(PathError::UnsupportedQuery)
        );
    }

    #[test]
    fn what_else_there_is_is_no_path_of_googles() {
        for path in [
            "/v1/models",
            "/v1/models/m",
            "/v1/models/m:predict",
            "/v1/chat/completions",
            "/v1beta/files",
            "/v1beta/modelsm",
            "/v1beta/tunedModels/m:generateContent",
            "/v2/models/m:generateContent",
            "/v1beta/models:generateContent",
        ] {
            assert_eq!(parse(path, None), Ok(None), "{path}");
        }
    }

    #[test]
    fn escapes_are_decoded_and_the_rest_stands_for_itself() {
        assert_eq!(percent_decode("a%2Fb%3a1"), b"a/b:1");
        assert_eq!(percent_decode("100%"), b"100%");
        assert_eq!(percent_decode("%+1%zz"), b"%+1%zz");
    }
}
