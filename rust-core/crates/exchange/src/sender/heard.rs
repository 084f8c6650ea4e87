//! The outcome of an attempt, on which depends what happens next.

use proofgate_base::rejection::Rejection;
use proofgate_base::response_head::ClientResponseHead;
use proofgate_ledger::record::Outcome;
use proofgate_upstream::attempt::ResponseStarted;
use proofgate_upstream::failure::Failure;

/// What came of an attempt.
pub enum UpstreamOutcome {
    /// The answer has started.
    Started {
        begun: ResponseStarted<ClientResponseHead>,
        /// Whether the gateway asked for usage and the client did not.
        keeps_usage: bool,
    },
    Failed(Failure),
    /// The client did not wait for it.
    ClientGone,
    /// What was still coming of the request is not taken.
    Refused(Rejection, Outcome),
}
