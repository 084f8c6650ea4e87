//! Why an exchange that was admitted did not come to its end.

use proofgate_ledger::record::Outcome;

use crate::answer::{Answer, Fields};
use crate::rejection::Rejection;

/// What a client that left before its answer began is recorded with; nobody receives it.
pub(crate) const CLIENT_CLOSED_REQUEST: u16 = 499;

/// Why an answer was aborted.
pub(crate) enum Aborted {
    Upstream(Failure),
    Client,
    /// The policy denies it.
    Policy(Rejection),
}

/// Why a request did not reach its upstream, or no answer came back.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Failure {
    /// The upstream refused the connection, broke it, or spoke something else than HTTP.
    Unreachable,
    /// The upstream did not connect or answer in time.
    TimedOut,
    /// The upstream ended a stream before its good end.
    Unfinished,
    /// The upstream's answer is not what its dialect says, so it cannot be put into the client's.
    Untranslatable,
    /// The upstream said in a stream that it failed; the client has been told in its words.
    Reported,
    /// The upstream does not accept the gateway's key.
    Unauthorized,
    /// The worker stops and may not wait any longer.
    Drained,
}

impl Failure {
    pub(crate) fn outcome(self) -> Outcome {
        match self {
            Failure::Unreachable
            | Failure::Unfinished
            | Failure::Untranslatable
            | Failure::Reported
            | Failure::Unauthorized => Outcome::UpstreamError,
            Failure::TimedOut => Outcome::UpstreamTimeout,
            Failure::Drained => Outcome::Drained,
        }
    }

    pub(crate) fn answer(self) -> Answer<'static> {
        let (status, code, message) = match self {
            Failure::Unreachable => (
                502,
                "upstream_unreachable",
                "The model provider could not be reached or broke the connection.",
            ),
            Failure::Unfinished => (
                502,
                "upstream_stream_unfinished",
                "The model provider ended the stream before the answer was whole.",
            ),
            Failure::Untranslatable => (
                502,
                "upstream_answer_malformed",
                "The model provider's answer is not what its API says, so it cannot be translated.",
            ),
            Failure::Reported => (
                502,
                "upstream_stream_failed",
                "The model provider said in the stream that it failed.",
            ),
            Failure::TimedOut => (
                504,
                "upstream_timeout",
                "The model provider did not answer in time.",
            ),
            Failure::Unauthorized => (
                502,
                "upstream_auth_failed",
                "The model provider does not accept the gateway's key for this request. Your own key is not concerned.",
            ),
            Failure::Drained => (503, "draining", "The gateway is shutting down. Try again."),
        };
        Answer {
            status,
            code,
            message,
            param: None,
            fields: Fields {
                should_retry: matches!(self, Failure::Unauthorized).then_some(false),
                retry_after: if status == 503 { Some(1) } else { None },
                ..Fields::NONE
            },
        }
    }
}
