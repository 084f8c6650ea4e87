//! What a path and a method ask for.

use proofgate_auth::Endpoint;
use proofgate_wire::{Method, RequestHead};

/// The endpoint that is forwarded.
pub(crate) const CHAT_COMPLETIONS: &str = "/v1/chat/completions";
const MODELS: &str = "/v1/models";

/// What a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    /// A chat completion.
    ChatCompletions,
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
        let allow = match path {
            CHAT_COMPLETIONS => POST,
            MODELS => GET,
            _ if model.is_some() => GET,
            _ => return Route::Unknown,
        };
        match (head.method, model) {
            (Method::Options, _) => Route::Options(allow),
            (Method::Post, _) if allow == POST => Route::ChatCompletions,
            (Method::Get | Method::Head, None) if allow == GET => Route::Models,
            (Method::Get | Method::Head, Some(name)) => Route::Model(percent_decoded(name)),
            _ => Route::WrongMethod(allow),
        }
    }

    /// The endpoint that a tenant must be allowed to use.
    pub(crate) fn endpoint(&self) -> Option<Endpoint> {
        match self {
            Route::ChatCompletions => Some(Endpoint::ChatCompletions),
            Route::Models | Route::Model(_) => Some(Endpoint::Models),
            Route::Options(_) | Route::WrongMethod(_) | Route::Unknown => None,
        }
    }

    /// The name by which records know it.
    pub(crate) fn path(&self) -> Option<&'static str> {
        match self {
            Route::ChatCompletions => Some(CHAT_COMPLETIONS),
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
