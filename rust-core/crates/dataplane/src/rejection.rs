use std::borrow::Cow;

use proofgate_auth::Denial;
use proofgate_providers::BadRequest;
use proofgate_wire::Refusal;

use crate::answer::Answer;
use crate::recorder::Unavailable;

/// Why a request is turned away before it is admitted: what the client is told and what the record says.
#[derive(Debug, Clone)]
pub(crate) struct Rejection {
    pub(crate) status: u16,
    pub(crate) code: &'static str,
    message: Cow<'static, str>,
    param: Option<&'static str>,
}

impl Rejection {
    pub(crate) const UNKNOWN_ENDPOINT: Rejection = Rejection::new(
        404,
        "unknown_endpoint",
        "There is nothing at this path. Use POST /v1/chat/completions.",
    );
    pub(crate) const METHOD_NOT_ALLOWED: Rejection =
        Rejection::new(405, "method_not_allowed", "Use POST on this path.");
    pub(crate) const SLOW_REQUEST: Rejection =
        Rejection::new(408, "request_timeout", "The request did not arrive in time.");
    pub(crate) const MISDIRECTED: Rejection = Rejection::new(
        421,
        "misdirected_request",
        "This connection was routed for another tenant. Send the request again on a new connection.",
    );
    pub(crate) const LEDGER_FULL: Rejection = Rejection::new(
        503,
        "ledger_full",
        "The ledger has no room to record this request, so it was not forwarded. Try again later.",
    );
    pub(crate) const LEDGER_STOPPED: Rejection = Rejection::new(
        503,
        "ledger_stopped",
        "The ledger cannot record this request, so it was not forwarded. Try again later.",
    );
    /// The same for a model that does not exist and for one that is not this tenant's.
    pub(crate) const UNKNOWN_MODEL: Rejection = Rejection {
        status: 404,
        code: "model_not_found",
        message: Cow::Borrowed("The model does not exist or you do not have access to it."),
        param: Some("model"),
    };

    const fn new(status: u16, code: &'static str, message: &'static str) -> Self {
        Rejection {
            status,
            code,
            message: Cow::Borrowed(message),
            param: None,
        }
    }

    pub(crate) fn answer(&self) -> Answer<'_> {
        Answer {
            status: self.status,
            code: self.code,
            message: &self.message,
            param: self.param,
        }
    }
}

impl From<Unavailable> for Rejection {
    fn from(unavailable: Unavailable) -> Self {
        match unavailable {
            Unavailable::Full => Rejection::LEDGER_FULL,
            Unavailable::Stopped => Rejection::LEDGER_STOPPED,
        }
    }
}

impl From<Refusal> for Rejection {
    fn from(refusal: Refusal) -> Self {
        Rejection {
            status: refusal.status(),
            code: refusal.code(),
            message: Cow::Owned(refusal.to_string()),
            param: None,
        }
    }
}

impl From<Denial> for Rejection {
    fn from(denial: Denial) -> Self {
        Rejection {
            status: denial.status(),
            code: denial.code(),
            message: Cow::Owned(denial.to_string()),
            param: None,
        }
    }
}

impl From<BadRequest> for Rejection {
    fn from(bad: BadRequest) -> Self {
        Rejection {
            status: 400,
            code: bad.code(),
            message: Cow::Owned(bad.to_string()),
            param: None,
        }
    }
}
