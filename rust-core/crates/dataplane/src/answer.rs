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
    /// Fields that go with this answer.
    pub fields: Fields,
}

/// Header fields of an answer of our own, besides those that every answer has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields {
    /// `www-authenticate` (RFC 9110 section 11.6.1).
    pub www_authenticate: Option<&'static str>,
    /// `allow` (RFC 9110 section 10.2.1).
    pub allow: Option<&'static str>,
    /// `retry-after`, in seconds (RFC 9110 section 10.2.3).
    pub retry_after: Option<u64>,
    /// `x-should-retry`: the official clients obey it.
    pub should_retry: Option<bool>,
}

impl Fields {
    pub(crate) const NONE: Fields = Fields {
        www_authenticate: None,
        allow: None,
        retry_after: None,
        should_retry: None,
    };
}

/// How an answer is written.
#[derive(Clone, Copy)]
pub(crate) struct AnswerOptions<'m> {
    /// Whether the connection ends with it.
    pub close: bool,
    /// Whether the client asked for the head alone.
    pub head_only: bool,
    /// More header fields, as whole lines.
    pub extra: &'m [u8],
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
    pub(crate) fn write(&self, request_id: &str, options: AnswerOptions<'_>, out: &mut Vec<u8>) {
        let retry_after = self.fields.retry_after.map(|seconds| seconds.to_string());
        let should_retry = self
            .fields
            .should_retry
            .map(|yes| if yes { "true" } else { "false" });
        let fields = [
            ("www-authenticate", self.fields.www_authenticate),
            ("allow", self.fields.allow),
            ("retry-after", retry_after.as_deref()),
            ("x-should-retry", should_retry),
        ];
        let fields = fields.iter().filter_map(|(name, value)| Some((*name, (*value)?)));
        write_response(
            self.status,
            "application/json",
            &self.json(),
            request_id,
            fields,
            options,
            out,
        );
    }
}

/// Writes a whole response of our own.
pub(crate) fn write_response<'f>(
    status: u16,
    content_type: &str,
    body: &[u8],
    request_id: &str,
    fields: impl IntoIterator<Item = (&'f str, &'f str)>,
    options: AnswerOptions<'_>,
    out: &mut Vec<u8>,
) {
    let start = out.len();
    let head = || {
        encode::write_status_line(out, status)?;
        if !body.is_empty() {
            encode::write_header(out, "content-type", content_type.as_bytes())?;
        }
        if status != 204 {
            encode::write_content_length(out, body.len() as u64);
        }
        encode::write_header(out, "x-request-id", request_id.as_bytes())?;
        for (name, value) in fields {
            encode::write_header(out, name, value.as_bytes())?;
        }
        if options.close {
            encode::write_header(out, "connection", b"close")?;
        }
        out.extend_from_slice(options.extra);
        out.extend_from_slice(encode::CRLF);
        Ok::<(), proofgate_wire::ProtocolError>(())
    };
    match head() {
        Ok(()) if !options.head_only => out.extend_from_slice(body),
        Ok(()) => {}
        // Every part is ours and well-formed; were one not, the client would get the connection's end instead.
        Err(_) => out.truncate(start),
    }
}
