//! Answers that the gateway gives by itself, in the error shape that the client reads.

use std::borrow::Cow;

use proofgate_providers::{Dialect, Family};
use proofgate_wire::encode;
use serde::Serialize;

/// One answer of our own.
#[derive(Debug, Clone, Copy)]
pub struct ErrorResponse<'a> {
    pub status: u16,
    pub code: &'static str,
    pub message: &'a str,
    /// Which request field is wrong, when one is.
    pub param: Option<&'a str>,
    /// Fields that go with this answer.
    pub headers: ErrorHeaders,
}

/// Header fields of an answer of our own, besides those that every answer has.
#[derive(Debug, Clone, Copy)]
pub struct ErrorHeaders {
    /// `www-authenticate` (RFC 9110 section 11.6.1).
    pub www_authenticate: Option<&'static str>,
    /// `allow` (RFC 9110 section 10.2.1).
    pub allow: Option<&'static str>,
    /// `retry-after`, in seconds (RFC 9110 section 10.2.3).
    pub retry_after: Option<u32>,
    /// `x-should-retry`: the official clients obey it.
    pub should_retry: Option<bool>,
}

/// The field in which Amazon's APIs name an error.
pub(crate) const AMAZON_ERROR_HEADER: &str = "x-amzn-errortype";

/// How Amazon Bedrock names an error of this status. Source: botocore 1.44.8, operation `InvokeModel`.
pub(crate) fn amazon_error_type(status: u16) -> &'static str {
    match status {
        401 | 403 => "AccessDeniedException",
        404 => "ResourceNotFoundException",
        408 | 504 => "ModelTimeoutException",
        429 => "ThrottlingException",
        503 | 529 => "ServiceUnavailableException",
        500.. => "InternalServerException",
        _ => "ValidationException",
    }
}

impl ErrorHeaders {
    pub const NONE: ErrorHeaders = ErrorHeaders {
        www_authenticate: None,
        allow: None,
        retry_after: None,
        should_retry: None,
    };
}

/// How an answer is written.
#[derive(Clone, Copy)]
pub struct ResponseOptions<'m> {
    /// Whether the connection ends with it.
    pub close: bool,
    /// Whether the client asked for the head alone.
    pub head_only: bool,
    /// More header fields, as whole lines.
    pub extra: &'m [u8],
    /// In whose shape an error is said.
    pub family: Family,
}

#[derive(Serialize)]
struct OpenAiBody<'a> {
    error: ErrorBody<'a>,
}

/// An error event of a response: the official clients disagree on where they look (openai-python, openai-node).
#[derive(Serialize)]
struct ResponsesErrorEvent<'a> {
    r#type: &'static str,
    sequence_number: u64,
    code: &'a str,
    message: &'a str,
    param: Option<&'a str>,
    error: ErrorBody<'a>,
}

#[derive(Serialize)]
struct AnthropicBody<'a> {
    r#type: &'static str,
    error: AnthropicError<'a>,
}

#[derive(Serialize)]
struct AnthropicError<'a> {
    r#type: &'static str,
    message: &'a str,
    /// Ours: the stable code.
    code: &'a str,
}

/// An error as Amazon Bedrock says it, and within it as the model's own API does: clients of the one read the other's words.
#[derive(Serialize)]
struct AmazonBody<'a> {
    message: &'a str,
    #[serde(flatten)]
    own: AnthropicBody<'a>,
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    message: &'a str,
    r#type: &'static str,
    param: Option<&'a str>,
    code: &'a str,
}

/// An error as Google's APIs say it (google.rpc.Status, in its JSON form over HTTP).
#[derive(Serialize)]
struct GoogleBody<'a> {
    error: GoogleError<'a>,
}

#[derive(Serialize)]
struct GoogleError<'a> {
    code: u16,
    message: &'a str,
    status: &'static str,
    details: Vec<GoogleDetail<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "@type")]
enum GoogleDetail<'a> {
    /// The stable code, in capitals as its standard has it.
    #[serde(rename = "type.googleapis.com/google.rpc.ErrorInfo")]
    ErrorInfo { reason: String, domain: &'static str },
    #[serde(
        rename = "type.googleapis.com/google.rpc.BadRequest",
        rename_all = "camelCase"
    )]
    BadRequest {
        field_violations: [FieldViolation<'a>; 1],
    },
    #[serde(rename = "type.googleapis.com/google.rpc.RetryInfo", rename_all = "camelCase")]
    RetryInfo { retry_delay: String },
}

#[derive(Serialize)]
struct FieldViolation<'a> {
    field: &'a str,
    description: &'a str,
}

impl ErrorResponse<'_> {
    /// The same for an exchange of which a provider may have run the request, or not: what may have been paid for, no client
    /// is to send again by itself.
    pub fn for_exchange(mut self, may_have_run: bool) -> Self {
        if may_have_run {
            self.headers.should_retry = Some(false);
        }
        self
    }

    fn kind(&self) -> &'static str {
        match self.status {
            429 => "rate_limit_error",
            500.. => "api_error",
            _ => "invalid_request_error",
        }
    }

    /// The same in Anthropic's words (Anthropic, "Errors").
    fn anthropic_kind(&self) -> &'static str {
        match self.status {
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            503 => "overloaded_error",
            504 => "timeout_error",
            500.. => "api_error",
            _ => "invalid_request_error",
        }
    }

    /// The same in Google's words (google.rpc.Code).
    fn google_status(&self) -> &'static str {
        match self.status {
            401 => "UNAUTHENTICATED",
            403 => "PERMISSION_DENIED",
            404 => "NOT_FOUND",
            405 => "UNIMPLEMENTED",
            408 | 504 => "DEADLINE_EXCEEDED",
            429 => "RESOURCE_EXHAUSTED",
            421 | 502 | 503 => "UNAVAILABLE",
            500.. => "INTERNAL",
            _ => "INVALID_ARGUMENT",
        }
    }

    fn google_error(&self) -> GoogleError<'_> {
        let mut details = vec![GoogleDetail::ErrorInfo {
            reason: self.code.to_ascii_uppercase(),
            domain: "proofgate.dev",
        }];
        details.extend(self.param.map(|field| GoogleDetail::BadRequest {
            field_violations: [FieldViolation {
                field,
                description: self.message,
            }],
        }));
        // Who should not try again by itself is told no time.
        let wait = self
            .headers
            .retry_after
            .filter(|_| self.headers.should_retry != Some(false));
        details.extend(wait.map(|seconds| GoogleDetail::RetryInfo {
            retry_delay: format!("{seconds}s"),
        }));
        GoogleError {
            code: self.status,
            message: self.message,
            status: self.google_status(),
            details,
        }
    }

    fn error(&self) -> ErrorBody<'_> {
        ErrorBody {
            message: self.message,
            r#type: self.kind(),
            param: self.param,
            code: self.code,
        }
    }

    /// The message, with the field that it is about: Anthropic's errors have no other place for it.
    fn message_with_param(&self) -> Cow<'_, str> {
        match self.param {
            Some(param) if !param.is_empty() && !self.message.contains(param) => {
                Cow::Owned(format!("{param}: {}", self.message))
            }
            _ => Cow::Borrowed(self.message),
        }
    }

    /// The JSON document alone.
    pub fn to_json(&self, family: Family) -> Vec<u8> {
        let message = self.message_with_param();
        let anthropic = || AnthropicBody {
            r#type: "error",
            error: AnthropicError {
                r#type: self.anthropic_kind(),
                message: &message,
                code: self.code,
            },
        };
        let json = match family {
            Family::OpenAi => serde_json::to_vec(&OpenAiBody { error: self.error() }),
            Family::Google => serde_json::to_vec(&GoogleBody {
                error: self.google_error(),
            }),
            Family::Anthropic => serde_json::to_vec(&anthropic()),
            Family::Amazon => serde_json::to_vec(&AmazonBody {
                message: &message,
                own: anthropic(),
            }),
        };
        // Strings and options always serialise.
        json.unwrap_or_default()
    }

    /// The event by which a stream says that it failed. `number`: of the event, where events are numbered.
    pub fn to_event(&self, dialect: Dialect, number: u64) -> Vec<u8> {
        let (name, json) = match dialect {
            Dialect::Responses => {
                let event = ResponsesErrorEvent {
                    r#type: "error",
                    sequence_number: number,
                    code: self.code,
                    message: self.message,
                    param: self.param,
                    error: self.error(),
                };
                (
                    &b"event: error\n"[..],
                    serde_json::to_vec(&event).unwrap_or_default(),
                )
            }
            Dialect::Messages => (&b"event: error\n"[..], self.to_json(Family::Anthropic)),
            _ => (&b""[..], self.to_json(dialect.family())),
        };
        [name, b"data: ", &json, b"\n\n"].concat()
    }

    /// Writes the whole response.
    pub fn write(&self, request_id: &str, options: ResponseOptions<'_>, out: &mut Vec<u8>) {
        let retry_after = self.headers.retry_after.map(|seconds| seconds.to_string());
        let should_retry = self
            .headers
            .should_retry
            .map(|yes| if yes { "true" } else { "false" });
        let fields = [
            ("www-authenticate", self.headers.www_authenticate),
            ("allow", self.headers.allow),
            // RFC 9110 sections 15.5.16 and 15.5.22.
            ("accept-encoding", (self.status == 415).then_some("identity")),
            ("upgrade", (self.status == 426).then_some("HTTP/1.1")),
            ("retry-after", retry_after.as_deref()),
            ("x-should-retry", should_retry),
            (
                AMAZON_ERROR_HEADER,
                (options.family == Family::Amazon).then(|| amazon_error_type(self.status)),
            ),
        ];
        let fields = fields.iter().filter_map(|(name, value)| Some((*name, (*value)?)));
        write_response(
            self.status,
            "application/json",
            &self.to_json(options.family),
            request_id,
            fields,
            options,
            out,
        );
    }
}

/// Writes a whole response of our own.
pub fn write_response<'f>(
    status: u16,
    content_type: &str,
    body: &[u8],
    request_id: &str,
    fields: impl IntoIterator<Item = (&'f str, &'f str)>,
    options: ResponseOptions<'_>,
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
