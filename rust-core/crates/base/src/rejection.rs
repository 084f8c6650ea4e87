//! Rejected requests: the response to the client, and the code for the record.

use std::borrow::Cow;
use std::time::Duration;

use proofgate_auth::AuthError;
use proofgate_dialect::UntranslatableRequest;
use proofgate_limits::LimitExceeded;
use proofgate_multipart::MultipartError;
use proofgate_policy::{EvaluationError, Scope};
use proofgate_providers::{BadRequest, Dialect, Family, InvalidBatch, MessageLocation, ParsedRequest};
use proofgate_wire::ProtocolError;

use crate::approvals::{self, Approval};
use crate::error_response::{ErrorHeaders, ErrorResponse};

/// A rejection of a request before its admission: the client's message and the record's code.
#[derive(Debug, Clone)]
pub struct Rejection {
    pub status: u16,
    pub code: &'static str,
    message: Cow<'static, str>,
    param: Option<Cow<'static, str>>,
    headers: ErrorHeaders,
}

impl Rejection {
    /// The gateway has no endpoint with this path.
    pub const UNKNOWN_ENDPOINT: Rejection = Rejection::new(
        404,
        "unknown_endpoint",
        "There is no endpoint at this path. The POST endpoints are /v1/chat/completions, /v1/completions, \
         /v1/responses, /v1/responses/input_tokens, /v1/embeddings, /v1/moderations, /v1/audio/speech, \
         /v1/audio/transcriptions, /v1/audio/translations, /v1/images/generations, /v1/images/edits, \
         /v1/images/variations, /v1/messages, /v1/messages/count_tokens and /v1beta/models/{model}:generateContent, \
         :streamGenerateContent, :countTokens, :embedContent and :batchEmbedContents. Claude models also have POST \
         /model/{model}/invoke and :rawPredict. The GET endpoints are /v1/models, /v1beta/models, /v1/usage and \
         /v1/receipts/{id}. OpenAI's /v1/files and /v1/batches are served, too.",
    );
    /// No provider stores files and batches for the tenant.
    pub const OBJECTS_NOT_CONFIGURED: Rejection = Rejection::new(
        403,
        "objects_not_configured",
        "No provider stores files and batches for this tenant. Ask the gateway administrator to set objectsOf to this \
         tenant at a provider with a separate key: everyone who uses a key sees all its files and batches.",
    );
    /// The usage of a batch cannot be counted.
    pub const BATCHES_NOT_LIMITED: Rejection = Rejection::new(
        403,
        "batches_not_limited",
        "This tenant's limits count tokens or money, but the gateway cannot count what a batch uses. Send the \
         requests one by one.",
    );
    /// Rules must inspect responses, but the contents of files are not inspected.
    pub const CONTENT_NOT_INSPECTED: Rejection = Rejection::new(
        403,
        "content_not_inspected",
        "This tenant's rules must read the answers of models, but the gateway does not read the contents of files. \
         Send the requests one by one.",
    );
    /// The request has a body where none is allowed.
    pub const UNEXPECTED_BODY: Rejection = Rejection::new(
        400,
        "unexpected_body",
        "This request must not have a body. Send the request without a body.",
    );
    /// The body has a content coding (RFC 9110 section 15.5.16).
    pub const UNSUPPORTED_CONTENT_CODING: Rejection = Rejection {
        status: 415,
        code: "content_coding_not_supported",
        message: Cow::Borrowed(
            "The body of this request is compressed (Content-Encoding), which is not supported here. Send it \
             uncompressed.",
        ),
        param: None,
        headers: ErrorHeaders::NONE,
    };
    /// A line of a batch's input is longer than a request may be.
    pub const BATCH_LINE_TOO_LONG: Rejection = Rejection {
        status: 413,
        code: "batch_line_too_large",
        message: Cow::Borrowed("The line exceeds the size limit of a request (limits.bodyBytes)."),
        param: Some(Cow::Borrowed("file")),
        headers: ErrorHeaders::NONE,
    };
    /// A line of a batch is for a model of another provider.
    pub const BATCH_MODEL_OTHER_PROVIDER: Rejection = Rejection {
        status: 400,
        code: "batch_model_elsewhere",
        message: Cow::Borrowed(
            "The provider that stores this tenant's files does not serve the model of this line. Use another model.",
        ),
        param: Some(Cow::Borrowed("model")),
        headers: ErrorHeaders::NONE,
    };
    /// A line of a batch uses a model name that its provider does not know.
    pub const BATCH_MODEL_RENAMED: Rejection = Rejection {
        status: 400,
        code: "batch_model_renamed",
        message: Cow::Borrowed(
            "The model of this line has a different name at the provider, and the gateway does not change batches. \
             Use a model that has the same name at the provider.",
        ),
        param: Some(Cow::Borrowed("model")),
        headers: ErrorHeaders::NONE,
    };
    /// There is no memory for the request's body.
    pub const OVERLOADED: Rejection = Rejection::new(
        503,
        "overloaded",
        "The gateway has reached its memory limit for bodies. Try again later.",
    );
    /// Rules inspect the response, and there is no memory to hold it.
    pub const RESPONSE_OVERLOADED: Rejection = Rejection::new(
        503,
        "overloaded",
        "The gateway has no memory left to hold the answer until its rules have checked it. Try again later.",
    );
    /// The request did not arrive in time.
    pub const SLOW_REQUEST: Rejection =
        Rejection::new(408, "request_timeout", "The request did not arrive in time.");
    /// The connection was routed for another tenant.
    pub const MISDIRECTED: Rejection = Rejection::new(
        421,
        "misdirected_request",
        "This connection was routed for another tenant. Send the request again on a new connection.",
    );
    /// The provider's key or certificate is missing or unusable.
    pub const NO_PROVIDER_KEY: Rejection = Rejection::new(
        503,
        "provider_key_missing",
        "The gateway has no usable key or certificate for this model's provider, so nothing was sent. Ask the gateway \
         administrator.",
    );
    /// The provider's concurrency limit is reached.
    pub const PROVIDER_BUSY: Rejection = Rejection::new(
        503,
        "provider_busy",
        "The concurrency limit of this model's provider is reached. Try again later.",
    );
    /// A budget counts the cost of the model, but it has no price.
    pub const PRICE_UNKNOWN: Rejection = Rejection {
        status: 503,
        code: "price_unknown",
        message: Cow::Borrowed(
            "This request counts against a budget, but the gateway has no price for the requested model, so nothing was \
             sent. Ask the gateway administrator.",
        ),
        param: Some(Cow::Borrowed("model")),
        headers: ErrorHeaders {
            should_retry: Some(false),
            ..ErrorHeaders::NONE
        },
    };
    /// A budget counts the cost of the request, but its tier has no price.
    pub const TIER_NOT_PRICED: Rejection = Rejection {
        status: 400,
        code: "service_tier_not_priced",
        message: Cow::Borrowed(
            "This request counts against a budget, but the gateway has no price for the tier that its service_tier, \
             speed or inference_geo selects, so nothing was sent. Remove that field, or ask the gateway administrator \
             to set a price (prices[].tiers).",
        ),
        param: Some(Cow::Borrowed("service_tier")),
        headers: ErrorHeaders::NONE,
    };
    /// The ledger has no space for the records of the request.
    pub const LEDGER_FULL: Rejection = Rejection::new(
        503,
        "ledger_full",
        "The ledger has no space to record this request, so it was not forwarded. Try again later.",
    );
    /// The tenant requires stored bodies, and they could not be stored.
    pub const PAYLOADS_UNAVAILABLE: Rejection = Rejection::new(
        503,
        "payloads_unavailable",
        "The gateway cannot store the contents of this tenant's requests, so nothing was sent. Try again later.",
    );
    /// The tenant has no shred key.
    pub const NO_SHRED_KEY: Rejection = Rejection::new(
        503,
        "shred_key_missing",
        "The gateway has no shred key for this tenant, so nothing was sent. Ask the gateway administrator.",
    );
    /// The ledger cannot record the request.
    pub const LEDGER_STOPPED: Rejection = Rejection::new(
        503,
        "ledger_stopped",
        "The ledger cannot record this request, so it was not forwarded. Try again later.",
    );
    /// The model does not exist, or the tenant may not use it; the response is the same.
    pub const UNKNOWN_MODEL: Rejection = Rejection {
        status: 404,
        code: "model_not_found",
        message: Cow::Borrowed("The model does not exist or you do not have access to it."),
        param: Some(Cow::Borrowed("model")),
        headers: ErrorHeaders::NONE,
    };

    /// The model's provider does not support the client's dialect.
    pub fn unsupported_dialect(family: Family) -> Rejection {
        let message = match family {
            Family::OpenAi => {
                "The provider of this model supports OpenAI's API. Use OpenAI's endpoints or POST /v1/messages."
            }
            Family::Anthropic => {
                "The provider of this model supports Anthropic's API. Use Anthropic's endpoints, POST /v1/chat/completions \
                 or POST /v1/responses."
            }
            Family::Google => {
                "The provider of this model supports Google's API. Use Google's endpoints, POST /v1/chat/completions, POST \
                 /v1/responses or POST /v1/messages."
            }
            Family::Amazon => {
                "The provider of this model supports Amazon Bedrock's API. Use POST /v1/chat/completions, POST \
                 /v1/responses or POST /v1/messages."
            }
        };
        Rejection::unsupported(message)
    }

    /// The model's provider does not support the client's dialect, because its models have the APIs
    /// of their publishers.
    pub fn unsupported_by_publisher_api() -> Rejection {
        Rejection::unsupported(
            "The provider of this model is Vertex AI. Use POST /v1/chat/completions or POST /v1/responses. Claude \
             models also have Anthropic's endpoints; all other models also have Google's generateContent and countTokens, \
             and POST /v1/messages.",
        )
    }

    fn unsupported(message: &'static str) -> Rejection {
        Rejection {
            param: Some(Cow::Borrowed("model")),
            ..Rejection::new(400, "endpoint_not_supported_by_model", message)
        }
    }

    /// The prompt is given as token IDs, but rules must inspect its text.
    pub fn token_ids_not_inspected(field: &'static str) -> Rejection {
        Rejection {
            param: Some(Cow::Borrowed(field)),
            ..Rejection::new(
                400,
                "token_ids_not_readable",
                "This tenant's rules must read what is sent, but they cannot read token ids. Send the text.",
            )
        }
    }

    /// The provider would run all tools of the request, but none of these kinds is allowed.
    pub fn hosted_tools_not_allowed(kinds: &str) -> Rejection {
        Rejection {
            message: Cow::Owned(format!(
                "The provider runs these tools itself, and this tenant may not use them: {kinds}. The gateway \
                 administrator can allow them with hostedTools.allow of the tenant's plan."
            )),
            param: Some(Cow::Borrowed("tools")),
            ..Rejection::new(403, "hosted_tool_not_allowed", "")
        }
    }

    /// A budget counts the cost of the request, but a call of this tool has no price.
    pub fn tool_not_priced(kind: &str, model: &str) -> Rejection {
        Rejection {
            message: Cow::Owned(format!(
                "This request counts against a budget, but the gateway has no price for a call of {kind}, which the \
                 provider of {model} runs itself, so nothing was sent. Remove the tool, or ask the gateway \
                 administrator to set a price (prices[].tools)."
            )),
            param: Some(Cow::Borrowed("tools")),
            ..Rejection::new(400, "hosted_tool_not_priced", "")
        }
    }

    /// No checkpoint covers the exchange yet: the tenant may retry immediately.
    pub fn receipt_pending() -> Rejection {
        Rejection {
            headers: ErrorHeaders {
                retry_after: Some(1),
                ..ErrorHeaders::NONE
            },
            ..Rejection::new(
                409,
                "receipt_pending",
                "No checkpoint covers this exchange yet. Try again in one second.",
            )
        }
    }

    /// The provider's rate limit is reached.
    pub fn provider_rate_limited(wait: Duration) -> Rejection {
        let seconds = wait.as_millis().div_ceil(1000);
        let wait = u32::try_from(seconds).unwrap_or(u32::MAX).max(1);
        Rejection {
            headers: ErrorHeaders {
                retry_after: Some(wait),
                should_retry: (wait > MAX_RETRY_AFTER).then_some(false),
                ..ErrorHeaders::NONE
            },
            ..Rejection::new(
                503,
                "provider_busy",
                "The rate limit for this model's provider is reached. Try again later.",
            )
        }
    }

    /// Returns the seconds after which the client may retry, if known.
    pub fn retry_after(&self) -> Option<u32> {
        self.headers.retry_after
    }

    /// The fields of the form together are longer than rules can inspect.
    pub const FORM_FIELDS_TOO_LARGE: Rejection = Rejection::new(
        400,
        "form_fields_too_large",
        "The form's fields, excluding files, exceed 1 MiB in total.",
    );
    /// A field of the form is not UTF-8.
    pub const FORM_NOT_TEXT: Rejection = Rejection::new(
        400,
        "invalid_form",
        "A field of the form is not UTF-8. Send binary data as a file, with a filename.",
    );
    /// A file is longer than the memory in which it may wait for the model field that follows it.
    pub const MODEL_AFTER_FILE: Rejection = Rejection {
        status: 400,
        code: "model_behind_file",
        message: Cow::Borrowed(
            "The form's model comes after a file that is larger than the gateway can hold. Put model before the file.",
        ),
        param: Some(Cow::Borrowed("model")),
        headers: ErrorHeaders::NONE,
    };
    /// Rules inspect responses, but not streams of this endpoint.
    pub const STREAM_NOT_INSPECTED: Rejection = Rejection {
        status: 400,
        code: "stream_not_inspected",
        message: Cow::Borrowed(
            "This tenant's rules must read the answer, but they cannot read streams of this endpoint. Send the \
             request without stream.",
        ),
        param: Some(Cow::Borrowed("stream")),
        headers: ErrorHeaders::NONE,
    };
    /// A part of a form would have to be redacted.
    pub const FORM_NOT_REDACTED: Rejection = Rejection::new(
        403,
        "policy_redaction_impossible",
        "A rule redacts content in a field of this form, but the gateway does not change forms, so the request was \
         denied. Remove that content.",
    );

    /// The request cannot be parsed after the rules changed it, although its tools must be changed.
    pub const TOOLS_NOT_REDACTED: Rejection = Rejection::new(
        403,
        "policy_redaction_impossible",
        "After redaction the gateway cannot parse this request to change its tools, so it was denied. Send it without \
         tools that the provider runs.",
    );

    /// The form is malformed, or different parsers would read it differently.
    pub fn invalid_form(message: String) -> Rejection {
        Rejection {
            message: Cow::Owned(message),
            ..Rejection::new(400, "invalid_form", "")
        }
    }

    /// Returns the same rejection for a line of a file.
    pub fn at_line(self, number: u64) -> Rejection {
        Rejection {
            message: Cow::Owned(format!("Line {number} of the file: {}", self.message)),
            ..self
        }
    }

    /// A form field is invalid.
    pub fn invalid_form_field(field: &'static str, wrong: &str) -> Rejection {
        Rejection {
            message: Cow::Owned(format!("The form's field {field} {wrong}")),
            param: Some(Cow::Borrowed(field)),
            ..Rejection::new(400, "invalid_form", "")
        }
    }

    /// A rule denies the request because of a message, or denies a response.
    pub fn blocked(rule: &str, reason: &str, message: Option<(MessageLocation, Scope)>) -> Rejection {
        let named = message.filter(|(place, _)| !place.field.is_empty());
        let Some((place, scope)) = named else {
            return Rejection {
                message: Cow::Owned(format!("Denied by the policy rule {rule}: {reason}")),
                ..Rejection::new(403, "policy_blocked", "")
            };
        };
        let label = scope.label();
        let said = format!(
            "Denied by the policy rule {rule} in {place} ({label}): {reason} Remove this message to continue."
        );
        Rejection {
            message: Cow::Owned(said),
            param: Some(Cow::Owned(place.to_string())),
            ..Rejection::new(403, "policy_blocked", "")
        }
    }

    /// A response calls a guarded tool, and the request contains a flagged tool text. `approval`
    /// allows the call; `None` if no approval can be issued.
    pub fn guarded_call(
        tool: &str,
        (place, scope): (MessageLocation, Scope),
        approval: Option<&Approval>,
    ) -> Rejection {
        let label = scope.label();
        let said = format!(
            "The model calls {tool}, and this answer is not delivered: {place} ({label}) reads like instructions to \
             the model, and may be a prompt injection. Remove this message to continue"
        );
        let (code, said) = match approval {
            None => (
                "guarded_tool_refused",
                format!("{said}, or contact the gateway administrator (guardedTools of the tenant's plan)."),
            ),
            Some(approval) => (
                "approval_required",
                format!(
                    "{said}. Or review that text and approve calls of {tool} after that text: send this header with this \
                     request and, for 24 hours, with later requests: {}: {approval}",
                    approvals::APPROVE_HEADER
                ),
            ),
        };
        Rejection {
            message: Cow::Owned(said),
            param: (!place.field.is_empty()).then(|| Cow::Owned(place.to_string())),
            ..Rejection::new(403, code, "")
        }
    }

    /// A request contains a flagged tool text and tools, but its response is not inspected.
    pub fn guarded_call_not_inspected((place, scope): (MessageLocation, Scope)) -> Rejection {
        let label = scope.label();
        Rejection {
            message: Cow::Owned(format!(
                "{place} ({label}) reads like instructions to the model, and the gateway cannot refuse calls of \
                 guarded tools in the answer of a batch. Remove this message or the tools."
            )),
            ..Rejection::new(403, "guarded_tool_refused", "")
        }
    }

    /// An external policy returned no verdict, and is configured to deny requests in that case.
    pub fn policy_unavailable(policy: &str) -> Rejection {
        Rejection {
            message: Cow::Owned(format!(
                "The policy {policy} could not be evaluated for this request, so it was denied."
            )),
            ..Rejection::new(403, "policy_unavailable", "")
        }
    }

    /// An external policy denies the request.
    pub fn denied_by_policy(policy: &str, reason: &str) -> Rejection {
        Rejection {
            message: Cow::Owned(format!("Denied by the policy {policy}: {reason}")),
            ..Rejection::new(403, "policy_blocked", "")
        }
    }

    /// Rules must inspect the response but cannot parse it.
    pub fn unreadable_response(code: &'static str, message: String) -> Rejection {
        Rejection {
            message: Cow::Owned(message),
            ..Rejection::new(502, code, "")
        }
    }

    /// The codes of denials by a rule, an external policy or the check of guarded tools. A failed
    /// policy that denies is included.
    pub const DENIAL_CODES: [&str; 8] = [
        "policy_blocked",
        "policy_redaction_impossible",
        "policy_unavailable",
        EvaluationError::BudgetExceeded.code(),
        EvaluationError::Panicked.code(),
        EvaluationError::Internal("").code(),
        "guarded_tool_refused",
        "approval_required",
    ];

    /// Whether a rule, an external policy or the check of guarded tools denied the request.
    pub fn is_denial(&self) -> bool {
        Self::DENIAL_CODES.contains(&self.code)
    }

    /// The path does not support the method.
    pub fn method_not_allowed(allow: &'static str) -> Rejection {
        Rejection {
            message: Cow::Owned(format!("This path supports only {allow}.")),
            headers: ErrorHeaders {
                allow: Some(allow),
                ..ErrorHeaders::NONE
            },
            ..Rejection::new(405, "method_not_allowed", "")
        }
    }

    /// Creates a rejection with a formatted message.
    pub fn with_message(status: u16, code: &'static str, message: String) -> Self {
        Rejection {
            message: Cow::Owned(message),
            ..Rejection::new(status, code, "")
        }
    }

    pub const fn new(status: u16, code: &'static str, message: &'static str) -> Self {
        Rejection {
            status,
            code,
            message: Cow::Borrowed(message),
            param: None,
            headers: ErrorHeaders {
                retry_after: if status == 503 { Some(1) } else { None },
                should_retry: if status == 421 { Some(true) } else { None },
                ..ErrorHeaders::NONE
            },
        }
    }

    pub fn to_response(&self) -> ErrorResponse<'_> {
        ErrorResponse {
            status: self.status,
            code: self.code,
            message: &self.message,
            param: self.param.as_deref(),
            headers: self.headers,
        }
    }
}

impl From<ProtocolError> for Rejection {
    fn from(refusal: ProtocolError) -> Self {
        Rejection {
            message: Cow::Owned(refusal.to_string()),
            ..Rejection::new(refusal.status(), refusal.code(), "")
        }
    }
}

impl From<AuthError> for Rejection {
    fn from(denial: AuthError) -> Self {
        Rejection {
            message: Cow::Owned(denial.to_string()),
            headers: ErrorHeaders {
                www_authenticate: Some(denial.www_authenticate()),
                ..ErrorHeaders::NONE
            },
            ..Rejection::new(denial.status(), denial.code(), "")
        }
    }
}

impl From<MultipartError> for Rejection {
    fn from(error: MultipartError) -> Self {
        Rejection::invalid_form(error.to_string())
    }
}

impl From<BadRequest> for Rejection {
    fn from(bad: BadRequest) -> Self {
        Rejection {
            message: Cow::Owned(bad.to_string()),
            param: bad.param().map(Cow::Borrowed),
            ..Rejection::new(400, bad.code(), "")
        }
    }
}

impl From<InvalidBatch> for Rejection {
    fn from(bad: InvalidBatch) -> Self {
        Rejection {
            message: Cow::Owned(bad.to_string()),
            param: bad.param().map(Cow::Borrowed),
            ..Rejection::new(400, bad.code(), "")
        }
    }
}

impl From<UntranslatableRequest> for Rejection {
    fn from(unsaid: UntranslatableRequest) -> Self {
        // Clients show the message, but few clients show the separate field.
        let message = match &*unsaid.param {
            "" => unsaid.message,
            param => Cow::Owned(format!("{param}: {}", unsaid.message)),
        };
        Rejection {
            message,
            param: Some(unsaid.param),
            ..Rejection::new(400, "not_translatable", "")
        }
    }
}

impl From<EvaluationError> for Rejection {
    fn from(fault: EvaluationError) -> Self {
        Rejection::new(
            403,
            fault.code(),
            "The policy could not be evaluated for this request, so it was denied.",
        )
    }
}

/// Maximum delay in seconds after which clients should retry automatically.
pub const MAX_RETRY_AFTER: u32 = 60;

/// Returns the request field that limits the tokens of the response; `None` if the dialect has
/// none.
fn max_tokens_field(dialect: Dialect) -> Option<&'static str> {
    match dialect {
        Dialect::Chat => Some("max_completion_tokens"),
        Dialect::Completions | Dialect::Messages => Some("max_tokens"),
        Dialect::Responses => Some("max_output_tokens"),
        Dialect::Gemini => Some("generationConfig.maxOutputTokens"),
        _ => None,
    }
}

impl Rejection {
    /// Rejects a request that would exceed a limit. `answer`: the tokens to reserve for its
    /// response. `tools`: the tool calls to reserve, and the field that limits them; `None` if no
    /// tool calls are reserved.
    pub fn over_limit(
        exceeded: LimitExceeded,
        call: &ParsedRequest<'_>,
        answer: u64,
        tools: Option<(u64, Option<&'static str>)>,
    ) -> Self {
        let mut rejection = Rejection::from(exceeded);
        if let Some((calls, field)) = tools.filter(|_| exceeded.is_permanent()) {
            let field = field.map(|field| format!("{field} and "));
            rejection.message = Cow::Owned(format!(
                "{}. The hosted tools of this request may be called {calls} times, and each call reserves a whole \
                 prompt, because the model reads the prompt again: to reserve less, lower \
                 {}hostedTools.tokensPerCall of the tenant's plan",
                rejection.message,
                field.unwrap_or_default()
            ));
        }
        let counts_tokens = exceeded.limit.counts_usage();
        let Some(field) = max_tokens_field(call.dialect).filter(|_| counts_tokens && answer > 0) else {
            return rejection;
        };
        if !exceeded.is_permanent() {
            return rejection;
        }
        let advice = match call.max_tokens {
            Some(_) => "and a lower value reserves less",
            None => "but the request does not set this field",
        };
        Rejection {
            message: Cow::Owned(format!(
                "{}. {answer} tokens would be reserved for the answer: {field} limits them, {advice}.",
                rejection.message
            )),
            param: Some(Cow::Borrowed(field)),
            ..rejection
        }
    }
}

impl From<LimitExceeded> for Rejection {
    fn from(exceeded: LimitExceeded) -> Self {
        let wait = exceeded
            .retry_after_seconds()
            .map(|seconds| u32::try_from(seconds).unwrap_or(u32::MAX));
        Rejection {
            message: Cow::Owned(exceeded.to_string()),
            headers: ErrorHeaders {
                retry_after: wait,
                // Some clients sleep for the whole `retry-after` (anthropic-sdk-python).
                should_retry: Some(!exceeded.is_permanent() && wait <= Some(MAX_RETRY_AFTER)),
                ..ErrorHeaders::NONE
            },
            ..Rejection::new(429, exceeded.code(), "")
        }
    }
}
