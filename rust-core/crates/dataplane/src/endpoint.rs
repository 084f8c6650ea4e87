//! What a path and a method ask for, and the answers that need no upstream.

use proofgate_auth::{Endpoint, Tenant};
use proofgate_wire::{Headers, Method, RequestHead, encode};
use serde::Serialize;

use crate::catalog::Catalog;
use crate::config::Cors;
use crate::rejection::Rejection;

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

#[derive(Serialize)]
struct ModelList<'m> {
    object: &'static str,
    data: Vec<ModelCard<'m>>,
}

#[derive(Serialize)]
struct ModelCard<'m> {
    id: &'m str,
    object: &'static str,
    created: u64,
    owned_by: &'m str,
}

fn card<'m>((id, owned_by): (&'m str, &'m str)) -> ModelCard<'m> {
    ModelCard {
        id,
        object: "model",
        created: 0,
        owned_by,
    }
}

/// The list of the models that a tenant may use, as OpenAI's `GET /v1/models` answers.
pub(crate) fn models(catalog: &Catalog, tenant: &Tenant) -> Vec<u8> {
    let list = ModelList {
        object: "list",
        data: catalog.models_of(tenant).into_iter().map(card).collect(),
    };
    // Strings and numbers always serialise.
    serde_json::to_vec(&list).unwrap_or_default()
}

/// One model, if the tenant may use it.
pub(crate) fn model(catalog: &Catalog, tenant: &Tenant, name: &str) -> Result<Vec<u8>, Rejection> {
    let found = catalog.models_of(tenant).into_iter().find(|(id, _)| *id == name);
    let found = found.ok_or(Rejection::UNKNOWN_MODEL)?;
    Ok(serde_json::to_vec(&card(found)).unwrap_or_default())
}

/// The origin of the web page that sends a request, if pages of it may (Fetch Standard, CORS protocol).
fn allowed_origin<'h>(cors: Option<&Cors>, headers: &Headers<'h>) -> Option<&'h [u8]> {
    let origin = headers.get("origin")?;
    let cors = cors?;
    let allowed = cors
        .allowed_origins
        .iter()
        .any(|allowed| allowed == "*" || allowed.as_bytes() == origin);
    allowed.then_some(origin)
}

const EXPOSED: &[u8] =
    b"x-request-id, retry-after, ratelimit, ratelimit-policy, x-ratelimit-limit-requests, \
x-ratelimit-remaining-requests, x-ratelimit-reset-requests, x-ratelimit-limit-tokens, \
x-ratelimit-remaining-tokens, x-ratelimit-reset-tokens";

/// Writes the header lines that let the page read the answer; nothing for other clients.
pub(crate) fn write_cors(cors: Option<&Cors>, headers: &Headers<'_>, out: &mut Vec<u8>) {
    if let Some(origin) = allowed_origin(cors, headers) {
        let start = out.len();
        let written = encode::write_header(out, "access-control-allow-origin", origin)
            .and_then(|()| encode::write_header(out, "access-control-expose-headers", EXPOSED))
            .and_then(|()| encode::write_header(out, "vary", b"Origin"));
        if written.is_err() {
            out.truncate(start);
        }
    }
}

/// Whether a request asks, on behalf of a page, what the page may send; browsers send it without credentials.
pub(crate) fn is_preflight(head: &RequestHead<'_>, cors: Option<&Cors>) -> bool {
    head.method == Method::Options
        && head.headers.get("access-control-request-method").is_some()
        && allowed_origin(cors, &head.headers).is_some()
}

/// The fields of the answer to a preflight request.
pub(crate) fn preflight_fields(max_age: &str) -> [(&'static str, &str); 3] {
    [
        ("access-control-allow-methods", "GET, HEAD, POST"),
        (
            "access-control-allow-headers",
            "authorization, content-type, x-stainless-arch, x-stainless-lang, x-stainless-os, \
             x-stainless-package-version, x-stainless-retry-count, x-stainless-runtime, \
             x-stainless-runtime-version, x-stainless-timeout",
        ),
        ("access-control-max-age", max_age),
    ]
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
