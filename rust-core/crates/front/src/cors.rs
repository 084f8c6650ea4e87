//! The web pages that may call the gateway from a browser (Fetch Standard, CORS protocol).

use proofgate_config::Cors;
use proofgate_wire::{Headers, Method, RequestHead, encode};

/// Returns the origin of the web page that sends a request, if it is allowed (Fetch Standard, CORS protocol).
fn allowed_origin<'h>(cors: Option<&Cors>, headers: &Headers<'h>) -> Option<&'h [u8]> {
    let origin = headers.get("origin")?;
    let cors = cors?;
    let allowed = cors
        .allowed_origins
        .iter()
        .any(|allowed| allowed == "*" || allowed.as_bytes() == origin);
    allowed.then_some(origin)
}

const EXPOSED_HEADERS: &[u8] =
    b"x-request-id, retry-after, ratelimit, ratelimit-policy, x-ratelimit-limit-requests, \
x-ratelimit-remaining-requests, x-ratelimit-reset-requests, x-ratelimit-limit-tokens, \
x-ratelimit-remaining-tokens, x-ratelimit-reset-tokens, x-should-retry";

/// Writes the header lines that let the page read the response; nothing for other clients.
pub(crate) fn write_fields(cors: Option<&Cors>, headers: &Headers<'_>, out: &mut Vec<u8>) {
    if let Some(origin) = allowed_origin(cors, headers) {
        let start = out.len();
        let written = encode::write_header(out, "access-control-allow-origin", origin)
            .and_then(|()| encode::write_header(out, "access-control-expose-headers", EXPOSED_HEADERS))
            .and_then(|()| encode::write_header(out, "vary", b"Origin"));
        if written.is_err() {
            out.truncate(start);
        }
    }
}

/// Whether a request is a CORS preflight; browsers send it without credentials.
pub(crate) fn is_preflight(head: &RequestHead<'_>, cors: Option<&Cors>) -> bool {
    head.method == Method::Options
        && head.headers.get("access-control-request-method").is_some()
        && allowed_origin(cors, &head.headers).is_some()
}

/// Returns the header fields of the response to a preflight request.
pub(crate) fn preflight_fields(max_age: &str) -> [(&'static str, &str); 3] {
    [
        ("access-control-allow-methods", "GET, HEAD, POST, DELETE"),
        (
            "access-control-allow-headers",
            "authorization, anthropic-beta, anthropic-dangerous-direct-browser-access, anthropic-version, \
             anthropic-workspace-id, api-key, content-type, idempotency-key, openai-beta, openai-organization, \
             openai-project, session-id, thread-id, traceparent, tracestate, x-api-key, x-app, \
             x-claude-code-agent-id, x-claude-code-parent-agent-id, x-claude-code-session-id, \
             x-client-request-id, x-codex-parent-thread-id, x-goog-api-client, x-goog-api-key, \
             x-proofgate-approve, x-server-timeout, \
             x-session-id, x-stainless-arch, x-stainless-async, x-stainless-custom-poll-interval, \
             x-stainless-helper, x-stainless-helper-method, x-stainless-lang, x-stainless-os, \
             x-stainless-package-version, x-stainless-poll-helper, x-stainless-raw-response, \
             x-stainless-read-timeout, x-stainless-retry-count, x-stainless-runtime, \
             x-stainless-runtime-version, x-stainless-timeout",
        ),
        ("access-control-max-age", max_age),
    ]
}
