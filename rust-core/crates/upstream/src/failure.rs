//! Why an exchange that was admitted did not come to its end.

use std::time::Duration;

use proofgate_base::answer::{Answer, Fields};
use proofgate_base::descriptors::Shortage;
use proofgate_base::rejection::{LONGEST_WAIT, Rejection};
use proofgate_config::Reason;
use proofgate_ledger::record::{Outcome, SendOutcome};
use tokio::time::Instant;

use crate::upstream::Verdict;

/// What a client that left before its answer began is recorded with; nobody receives it.
pub const CLIENT_CLOSED_REQUEST: u16 = 499;

/// How long a provider is left alone that turns requests away and does not say for how long.
const SHORT_PAUSE: Duration = Duration::from_secs(1);

/// Why an answer was aborted.
pub enum Aborted {
    Upstream(Failure),
    Client,
    /// The policy denies it.
    Policy(Rejection),
}

/// Why a request did not reach its upstream, or no answer came back.
#[derive(Debug, Clone, Copy)]
pub enum Failure {
    /// No connection to the upstream came about, or it took not a byte.
    Unconnected,
    /// The gateway has nothing to connect with.
    Short(Shortage),
    /// The upstream broke the connection, or spoke something else than HTTP.
    Unreachable,
    /// The upstream did not connect or answer in time.
    TimedOut(Timeout),
    /// The upstream ended a stream before its good end.
    Unfinished,
    /// The upstream's answer is not what its dialect says, so it cannot be put into the client's.
    Untranslatable,
    /// The upstream said in a stream that it failed; the client has been told in its words.
    Reported,
    /// The upstream does not accept the gateway's key.
    Unauthorized,
    /// The upstream turned the request away, and so it is to be sent elsewhere.
    Declined {
        status: u16,
        reason: Reason,
        /// Seconds that it wants to be left alone.
        retry_after: Option<u32>,
    },
    /// The provider has no `/responses`.
    NoResponses,
    /// The worker stops and may not wait any longer.
    Drained,
}

/// Which time ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timeout {
    /// For a connection, TLS included.
    Connect,
    /// For the head of the answer, from the begin of the attempt.
    FirstByte,
    /// Between the bytes of the answer.
    Idle,
    /// Of the exchange.
    Answer,
}

impl Timeout {
    /// Its code, and what the client is told.
    fn told(self) -> (&'static str, &'static str) {
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
            Timeout::Answer => (
                "upstream_answer_timeout",
                "The model provider's answer exceeded the time limit for answers.",
            ),
        }
    }
}

impl Failure {
    /// Whether it may send a request on of which this had been sent.
    pub fn reason(self, sent: SendOutcome) -> Option<Reason> {
        match (self, sent) {
            // Another provider has another address, and ports of its own.
            (Failure::Short(Shortage::Ports), _) => Some(Reason::Unreachable),
            (Failure::Unconnected, _) | (Failure::Unreachable | Failure::TimedOut(_), SendOutcome::No) => {
                Some(Reason::Unreachable)
            }
            (Failure::TimedOut(_), _) => Some(Reason::Timeout),
            (Failure::Unreachable, _) => Some(Reason::ServerError),
            (Failure::Unauthorized, _) => Some(Reason::Unauthorized),
            (Failure::Declined { reason, .. }, _) => Some(reason),
            _ => None,
        }
    }

    /// That `timeout` ran out, or before it the time of the exchange, which ends at `until`.
    pub fn timed_out(timeout: Timeout, until: Option<Instant>) -> Failure {
        let is_over = until.is_some_and(|until| until <= Instant::now());
        Failure::TimedOut(if is_over { Timeout::Answer } else { timeout })
    }

    /// What it says of the health of the provider and its model.
    pub fn verdict(self, sent: SendOutcome) -> Verdict {
        match (self, self.reason(sent)) {
            // It was not asked.
            (Failure::Short(_), _) => Verdict::Nothing,
            (
                Failure::Declined {
                    retry_after: Some(pause),
                    ..
                },
                _,
            ) => Verdict::Busy(Duration::from_secs(pause.into())),
            (_, Some(Reason::RateLimited)) => Verdict::Busy(SHORT_PAUSE),
            (Failure::Declined { status: 500, .. }, _) => Verdict::Nothing,
            (_, Some(Reason::Unreachable)) => Verdict::Unreachable,
            (_, Some(Reason::Overloaded | Reason::Timeout | Reason::ServerError)) => Verdict::Failed,
            _ => Verdict::Nothing,
        }
    }

    pub fn outcome(self) -> Outcome {
        match self {
            Failure::Unconnected
            | Failure::Unreachable
            | Failure::Unfinished
            | Failure::Untranslatable
            | Failure::Reported
            | Failure::Unauthorized
            | Failure::NoResponses
            | Failure::Declined { .. } => Outcome::UpstreamError,
            Failure::Short(_) => Outcome::InternalError,
            Failure::TimedOut(_) => Outcome::UpstreamTimeout,
            Failure::Drained => Outcome::Drained,
        }
    }

    pub fn answer(self) -> Answer<'static> {
        let (status, code, message) = match self {
            Failure::Unconnected | Failure::Unreachable => (
                502,
                "upstream_unreachable",
                "The model provider could not be reached or broke the connection.",
            ),
            Failure::Short(Shortage::Descriptors) => (
                503,
                "descriptors_exhausted",
                "The gateway has reached its limit of open connections, so nothing was sent. Try again later.",
            ),
            Failure::Short(Shortage::Ports) => (
                503,
                "ports_exhausted",
                "The gateway has no local port left for a connection to this model's provider, so nothing was sent. \
                 Try again later.",
            ),
            Failure::Unfinished => (
                502,
                "upstream_stream_unfinished",
                "The model provider ended the stream before the answer was complete.",
            ),
            Failure::Untranslatable => (
                502,
                "upstream_answer_malformed",
                "The model provider's answer does not match its API, so it cannot be translated.",
            ),
            Failure::Reported => (
                502,
                "upstream_stream_failed",
                "The model provider reported a failure in the stream.",
            ),
            Failure::TimedOut(timeout) => {
                let (code, message) = timeout.told();
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
            Failure::NoResponses => (
                400,
                "provider_without_responses",
                "The provider of this model has no /responses endpoint. Ask the gateway administrator to set \
                 responses: Translated for the provider, which sends such requests as chat completions.",
            ),
            Failure::Drained => (503, "draining", "The gateway is shutting down. Try again."),
        };
        Answer {
            status,
            code,
            message,
            param: None,
            fields: Fields {
                should_retry: match self {
                    Failure::Unauthorized => Some(false),
                    Failure::Declined { retry_after, .. } if retry_after > Some(LONGEST_WAIT) => Some(false),
                    _ => None,
                },
                retry_after: match self {
                    Failure::Declined { retry_after, .. } => retry_after,
                    _ if status == 503 => Some(1),
                    _ => None,
                },
                ..Fields::NONE
            },
        }
    }
}
