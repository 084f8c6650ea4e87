//! The outcome of an attempt, which determines the next step.

use proofgate_base::rejection::Rejection;
use proofgate_base::response_head::ClientResponseHead;
use proofgate_ledger::record::Outcome;
use proofgate_upstream::attempt::ResponseStarted;
use proofgate_upstream::failure::Failure;

/// The outcome of an attempt.
pub enum UpstreamOutcome {
    /// The response has started.
    Started {
        begun: ResponseStarted<ClientResponseHead>,
        /// Whether the gateway requested usage and the client did not.
        keeps_usage: bool,
    },
    Failed(Failure),
    /// The client disconnected.
    ClientDisconnected,
    /// The rest of the request is rejected.
    Refused(Rejection, Outcome),
}
