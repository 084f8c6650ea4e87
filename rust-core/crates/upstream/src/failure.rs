//! The reasons why an admitted exchange did not complete.

use std::time::Duration;

use proofgate_base::descriptors::ResourceShortage;
use proofgate_base::error_response::{ErrorHeaders, ErrorResponse};
use proofgate_base::rejection::{MAX_RETRY_AFTER, Rejection};
use proofgate_config::FallbackReason;
use proofgate_ledger::record::{Outcome, SendOutcome};
use tokio::time::Instant;

use crate::upstream::Verdict;

/// The recorded status of an exchange whose client disconnected before the response started; it is
/// never sent.
pub const CLIENT_CLOSED_REQUEST: u16 = 499;

/// The pause of a provider that rejects requests without a `Retry-After`.
const DEFAULT_BACKOFF: Duration = Duration::from_secs(1);

/// The reason why a response was aborted.
pub enum AbortReason {
    Upstream(Failure),
    Client,
    /// The policy denies the response.
    Policy(Rejection),
}

/// The reason why a request did not reach its upstream, or why its response is missing or unusable.
#[derive(Debug, Clone, Copy)]
pub enum Failure {
    /// No connection to the upstream could be made, or the connection accepted no byte.
    ConnectFailed,
    /// The gateway lacks a resource that a connection needs.
    OutOfResources(ResourceShortage),
    /// The upstream broke the connection, or did not speak HTTP.
    Unreachable,
    /// The upstream did not connect or respond in time.
    TimedOut(Timeout),
    /// The upstream ended a stream before it was complete.
    TruncatedStream,
    /// The upstream's response does not follow its dialect, so it cannot be translated into the
    /// client's dialect.
    Untranslatable,
    /// The upstream reported a failure within a stream; the client received it in the upstream's words.
    ReportedInStream,
    /// The upstream does not accept the gateway's key.
    Unauthorized,
    /// The upstream rejected the request in a way that allows a fallback.
    Declined {
        status: u16,
        reason: FallbackReason,
        /// Seconds for which the upstream asks not to be called; `None` if it does not ask.
        retry_after: Option<u32>,
    },
    /// The provider has no `/responses` endpoint.
    ResponsesUnsupported,
    /// The worker is shutting down, and its time to finish requests is over.
    Draining,
}

/// The timeout that expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timeout {
    /// The timeout of connecting, including the TLS handshake.
    Connect,
    /// The timeout from the start of the attempt to the response head.
    FirstByte,
    /// The timeout between two reads of the response.
    Idle,
    /// The timeout of the whole exchange.
    Exchange,
}

impl Timeout {
    /// Returns the error code of the timeout, and the message for the client.
    fn code_and_message(self) -> (&'static str, &'static str) {
        match self {
            Timeout::Connect => (
                "upstream_connect_timeout",
                "The connection to the model provider timed out.",
            ),
            Timeout::FirstByte => (
                "upstream_first_byte_timeout",
                "The model provider did not start its answer in time.",
            ),
            Timeout::Idle => (
                "upstream_idle_timeout",
                "The model provider sent nothing for too long in the middle of its answer.",
            ),
            Timeout::Exchange => (
                "upstream_answer_timeout",
                "The model provider's answer exceeded the time limit for answers.",
            ),
        }
    }
}

impl Failure {
    /// Returns the fallback reason; `None` if the request may not go to another provider. `sent`:
    /// whether the request was sent.
    pub fn fallback_reason(self, sent: SendOutcome) -> Option<FallbackReason> {
        match (self, sent) {
            // Another provider has another address, to which other local ports may be free.
            (Failure::OutOfResources(ResourceShortage::Ports), _) => Some(FallbackReason::Unreachable),
            (Failure::ConnectFailed, _) | (Failure::Unreachable | Failure::TimedOut(_), SendOutcome::No) => {
                Some(FallbackReason::Unreachable)
            }
            (Failure::TimedOut(_), _) => Some(FallbackReason::Timeout),
            (Failure::Unreachable, _) => Some(FallbackReason::ServerError),
            (Failure::Unauthorized, _) => Some(FallbackReason::Unauthorized),
            (Failure::Declined { reason, .. }, _) => Some(reason),
            _ => None,
        }
    }

    /// Returns the failure for `timeout`, or for the exchange timeout if the exchange ends at `until` first.
    pub fn timed_out(timeout: Timeout, until: Option<Instant>) -> Failure {
        let is_over = until.is_some_and(|until| until <= Instant::now());
        Failure::TimedOut(if is_over { Timeout::Exchange } else { timeout })
    }

    /// Returns the meaning of the failure for the health of the provider and its model.
    pub fn verdict(self, sent: SendOutcome) -> Verdict {
        match (self, self.fallback_reason(sent)) {
            // The provider was not contacted.
            (Failure::OutOfResources(_), _) => Verdict::Inconclusive,
            (
                Failure::Declined {
                    retry_after: Some(pause),
                    ..
                },
                _,
            ) => Verdict::Busy(Duration::from_secs(pause.into())),
            (_, Some(FallbackReason::RateLimited)) => Verdict::Busy(DEFAULT_BACKOFF),
            (Failure::Declined { status: 500, .. }, _) => Verdict::Inconclusive,
            (_, Some(FallbackReason::Unreachable)) => Verdict::Unreachable,
            (_, Some(FallbackReason::Overloaded | FallbackReason::Timeout | FallbackReason::ServerError)) => {
                Verdict::Failed
            }
            _ => Verdict::Inconclusive,
        }
    }

    /// Returns the outcome of the exchange in records.
    pub fn outcome(self) -> Outcome {
        match self {
            Failure::ConnectFailed
            | Failure::Unreachable
            | Failure::TruncatedStream
            | Failure::Untranslatable
            | Failure::ReportedInStream
            | Failure::Unauthorized
            | Failure::ResponsesUnsupported
            | Failure::Declined { .. } => Outcome::UpstreamError,
            Failure::OutOfResources(_) => Outcome::InternalError,
            Failure::TimedOut(_) => Outcome::UpstreamTimeout,
            Failure::Draining => Outcome::Drained,
        }
    }

    /// Returns the error response for the client.
    pub fn response(self) -> ErrorResponse<'static> {
        let (status, code, message) = match self {
            Failure::ConnectFailed | Failure::Unreachable => (
                502,
                "upstream_unreachable",
                "The model provider could not be reached or broke the connection.",
            ),
            Failure::OutOfResources(ResourceShortage::Descriptors) => (
                503,
                "descriptors_exhausted",
                "The gateway has reached its limit of open connections, so nothing was sent. Try again later.",
            ),
            Failure::OutOfResources(ResourceShortage::Ports) => (
                503,
                "ports_exhausted",
                "The gateway has no local port left for a connection to this model's provider, so nothing was sent. \
                 Try again later.",
            ),
            Failure::TruncatedStream => (
                502,
                "upstream_stream_unfinished",
                "The model provider ended the stream before the answer was complete.",
            ),
            Failure::Untranslatable => (
                502,
                "upstream_answer_malformed",
                "The model provider's answer does not match its API, so it cannot be translated.",
            ),
            Failure::ReportedInStream => (
                502,
                "upstream_stream_failed",
                "The model provider reported a failure in the stream.",
            ),
            Failure::TimedOut(timeout) => {
                let (code, message) = timeout.code_and_message();
                (504, code, message)
            }
            Failure::Unauthorized => (
                502,
                "upstream_auth_failed",
                "The model provider does not accept the gateway's key for this request. Your own key is not the cause.",
            ),
            Failure::Declined { status, .. } => (
                status,
                "upstream_declined",
                "The model's provider refused the request, and no other provider could serve it.",
            ),
            Failure::ResponsesUnsupported => (
                400,
                "provider_without_responses",
                "The provider of this model has no /responses endpoint. Ask the gateway administrator to set \
                 responses: Translated for the provider, which sends such requests as chat completions.",
            ),
            Failure::Draining => (503, "draining", "The gateway is shutting down. Try again."),
        };
        ErrorResponse {
            status,
            code,
            message,
            param: None,
            headers: ErrorHeaders {
                should_retry: match self {
                    Failure::Unauthorized => Some(false),
                    Failure::Declined { retry_after, .. } if retry_after > Some(MAX_RETRY_AFTER) => {
                        Some(false)
                    }
                    _ => None,
                },
                retry_after: match self {
                    Failure::Declined { retry_after, .. } => retry_after,
                    _ if status == 503 => Some(1),
                    _ => None,
                },
                ..ErrorHeaders::NONE
            },
        }
    }
}
