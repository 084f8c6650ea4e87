//! What a path and a method ask for.

use proofgate_auth::Endpoint;
use proofgate_providers::{Dialect, Family};
use proofgate_wire::{Method, RequestHead};

const MODELS: &str = "/v1/models";

/// What a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    /// Something that a provider answers.
    Call(Dialect),
    /// The models that the tenant may use.
    Models,
    /// One of them, by name.
    Model(String),
    /// Which methods the path knows.
    Options(&'static str),
    /// The path knows only these methods.
    WrongMethod(&'static str),
    /// Nothing here has this path.
    Unknown,
}

const POST: &str = "POST, OPTIONS";
const GET: &str = "GET, HEAD, OPTIONS";

impl Route {
    pub(crate) fn of(head: &RequestHead<'_>) -> Self {
        let path = head.target.split('?').next().unwrap_or_default();
        let model = path
            .strip_prefix(MODELS)
            .and_then(|rest| rest.strip_prefix('/'))
            .filter(|name| !name.is_empty());
        if let Some(dialect) = Dialect::at(path) {
            return match head.method {
                Method::Post => Route::Call(dialect),
                Method::Options => Route::Options(POST),
                _ => Route::WrongMethod(POST),
            };
        }
        match (head.method, model) {
            _ if model.is_none() && path != MODELS => Route::Unknown,
            (Method::Options, _) => Route::Options(GET),
            (Method::Get | Method::Head, None) => Route::Models,
            (Method::Get | Method::Head, Some(name)) => Route::Model(percent_decoded(name)),
            _ => Route::WrongMethod(GET),
        }
    }

    /// The endpoint that a tenant must be allowed to use.
    pub(crate) fn endpoint(&self) -> Option<Endpoint> {
        match self {
            Route::Call(dialect) => Some(match dialect {
                Dialect::Chat => Endpoint::ChatCompletions,
                Dialect::Completions => Endpoint::Completions,
                Dialect::Responses => Endpoint::Responses,
                Dialect::Embeddings => Endpoint::Embeddings,
                Dialect::Moderations => Endpoint::Moderations,
                Dialect::Messages | Dialect::CountTokens => Endpoint::Messages,
                Dialect::Gemini | Dialect::Converse | Dialect::Invoke => return None,
            }),
            Route::Models | Route::Model(_) => Some(Endpoint::Models),
            Route::Options(_) | Route::WrongMethod(_) | Route::Unknown => None,
        }
    }

    /// In whose shape its errors are said. `GET /v1/models` is known in both families: who names a version of Anthropic's API
    /// means that one.
    pub(crate) fn family(&self, head: &RequestHead<'_>) -> Family {
        match self {
            Route::Call(dialect) => dialect.family(),
            Route::Models | Route::Model(_) if head.headers.get("anthropic-version").is_some() => {
                Family::Anthropic
            }
            _ => Family::OpenAi,
        }
    }

    /// The name by which records know it.
    pub(crate) fn path(&self) -> Option<&'static str> {
        match self {
            Route::Call(dialect) => Some(dialect.path()),
            Route::Models | Route::Model(_) => Some(MODELS),
            Route::Options(_) | Route::WrongMethod(_) | Route::Unknown => None,
        }
    }
}

/// Names of models hold slashes and colons, which clients write either way. What is no escape stands for itself.
fn percent_decoded(name: &str) -> String {
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
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::percent_decoded;

    #[test]
    fn escapes_in_a_model_name_are_decoded_and_the_rest_stands_for_itself() {
        assert_eq!(percent_decoded("a%2Fb%3a1"), "a/b:1");
        assert_eq!(percent_decoded("100%"), "100%");
        assert_eq!(percent_decoded("%+1%zz"), "%+1%zz");
    }
}
