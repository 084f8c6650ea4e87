//! Answers that the gateway gives by itself, in the error shape that OpenAI's clients read.

use proofgate_wire::encode;
use serde::Serialize;

/// One answer of our own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answer<'a> {
    pub status: u16,
    pub code: &'a str,
    pub message: &'a str,
    /// Which request field is wrong, when one is.
    pub param: Option<&'a str>,
}

#[derive(Serialize)]
struct Body<'a> {
    error: ErrorBody<'a>,
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    message: &'a str,
    r#type: &'static str,
    param: Option<&'a str>,
    code: &'a str,
}

impl Answer<'_> {
    fn kind(&self) -> &'static str {
        match self.status {
            429 => "rate_limit_error",
            500.. => "api_error",
            _ => "invalid_request_error",
        }
    }

    /// The JSON document alone.
    pub(crate) fn json(&self) -> Vec<u8> {
        let error = ErrorBody {
            message: self.message,
            r#type: self.kind(),
            param: self.param,
            code: self.code,
        };
        // Strings and options always serialise.
        serde_json::to_vec(&Body { error }).unwrap_or_default()
    }

    /// Writes the whole response.
    pub(crate) fn write(&self, request_id: &str, close: bool, out: &mut Vec<u8>) {
        let body = self.json();
        let extra: &[(&str, &[u8])] = match self.status {
            401 => &[("www-authenticate", b"Bearer")],
            405 => &[("allow", b"POST")],
            // Not executed: the official clients try again when told to.
            421 => &[("x-should-retry", b"true")],
            503 => &[("retry-after", b"1")],
            _ => &[],
        };
        let length = body.len().to_string();
        let common: [(&str, &[u8]); 3] = [
            ("content-type", b"application/json"),
            ("content-length", length.as_bytes()),
            ("x-request-id", request_id.as_bytes()),
        ];
        let close: &[(&str, &[u8])] = if close { &[("connection", b"close")] } else { &[] };
        let fields = common.iter().chain(extra).chain(close).copied();
        // Every part is ours and well-formed; were one not, the client would get the connection's end instead.
        if encode::write_response_head(out, self.status, fields).is_ok() {
            out.extend_from_slice(&body);
        }
    }
}
