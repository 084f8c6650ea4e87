use serde::Deserialize;
use serde_json::value::RawValue;

use crate::chat_error::{Message, write_error};
use crate::openai_converse::text::inner;

/// What Converse says of a failure, and how it names its kind where no header does.
#[derive(Deserialize)]
struct Said<'b> {
    #[serde(borrow, alias = "Message")]
    message: Option<&'b RawValue>,
    #[serde(borrow, rename = "__type")]
    kind: Option<&'b RawValue>,
}

/// What OpenAI's API says of a failure.
struct Failure {
    kind: &'static str,
    code: Option<&'static str>,
    /// What is said if the provider says nothing that may be passed on.
    message: &'static str,
    /// Whether the provider's own message is for the client: those on credentials name accounts and roles, and quote the signed
    /// request with its session token.
    is_for_the_client: bool,
}

/// Appends OpenAI's error body for one of Converse.
///
/// `kind` is the value of `x-amzn-errortype`, if the answer has one. The status is the provider's, and also tells what it is if
/// neither the header nor the body does.
pub fn error(status: u16, kind: Option<&str>, body: &[u8], out: &mut Vec<u8>) {
    let said = read(body);
    let named = said.as_ref().and_then(|said| inner(said.kind?));
    let failure = failure(kind.or(named).unwrap_or_default(), status);
    write(out, &failure, said.and_then(|said| said.message));
}

/// Appends OpenAI's error object for an exception within a stream, of its `:exception-type` and its payload.
pub(super) fn write_exception(out: &mut Vec<u8>, name: &str, data: &[u8]) {
    write(out, &failure(name, 500), read(data).and_then(|said| said.message));
}

/// Appends OpenAI's error object for output of the model that the provider could not read.
pub(super) fn write_malformed(out: &mut Vec<u8>) {
    write(out, &failure("ModelErrorException", 500), None);
}

fn read(body: &[u8]) -> Option<Said<'_>> {
    serde_json::from_slice(body).ok()
}

/// Names may stand behind a namespace and before an address: `com.amazon.coral#ThrottlingException:http://…`. Source of the
/// names: botocore 1.44.5, errors of the operation Converse; of those on credentials: "Common errors" of AWS APIs.
fn failure(kind: &str, status: u16) -> Failure {
    let kind = kind.split(':').next().unwrap_or_default();
    let kind = kind.rsplit('#').next().unwrap_or_default();
    let kind = kind
        .strip_suffix("Exception")
        .unwrap_or(kind)
        .to_ascii_lowercase();
    let invalid = |code, message| Failure {
        kind: "invalid_request_error",
        code,
        message,
        is_for_the_client: true,
    };
    let api = |code, message| Failure {
        kind: "api_error",
        ..invalid(code, message)
    };
    match (kind.as_str(), status) {
        ("validation", _) => invalid(None, "The provider refused the request as invalid."),
        ("resourcenotfound", _) => invalid(Some("model_not_found"), "The provider does not know the model."),
        ("throttling" | "toomanyrequests", _) => limited(
            Some("rate_limit_exceeded"),
            "The provider's rate limit is exceeded.",
        ),
        ("modelnotready", _) => limited(Some("model_not_ready"), "The provider's model is not ready."),
        ("servicequotaexceeded", _) => limited(
            Some("insufficient_quota"),
            "The quota at the provider is exceeded.",
        ),
        ("modeltimeout", _) => api(Some("model_timeout"), "The provider's model took too long."),
        ("modelerror" | "modelstreamerror", _) => {
            api(Some("model_error"), "The provider's model failed to answer.")
        }
        ("internalserver", _) => api(None, "The provider failed."),
        ("serviceunavailable", _) => api(Some("server_is_overloaded"), "The provider is unavailable."),
        (_, 401 | 403) => Failure {
            is_for_the_client: false,
            ..api(
                Some("provider_denied_access"),
                "The provider denied access to the gateway.",
            )
        },
        (_, 404) => invalid(Some("model_not_found"), "The provider does not know the model."),
        (_, 429) => limited(
            Some("rate_limit_exceeded"),
            "The provider's rate limit is exceeded.",
        ),
        (_, 503) => api(Some("server_is_overloaded"), "The provider is unavailable."),
        (_, 400 | 405..=407 | 409..=423) => invalid(None, "The provider refused the request."),
        _ => api(None, "The provider failed."),
    }
}

fn limited(code: Option<&'static str>, message: &'static str) -> Failure {
    Failure {
        kind: "rate_limit_error",
        code,
        message,
        is_for_the_client: true,
    }
}

fn write(out: &mut Vec<u8>, failure: &Failure, message: Option<&RawValue>) {
    let said = message
        .filter(|message| failure.is_for_the_client && inner(message).is_some_and(|text| !text.is_empty()));
    let message = said.map_or(Message::Text(failure.message), |said| Message::Json(said.get()));
    write_error(out, message, failure.kind, failure.code);
}
