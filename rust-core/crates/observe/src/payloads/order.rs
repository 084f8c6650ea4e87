//! What the data-plane thread has the writing thread do.

use proofgate_base::bounded_copy::BoundedCopy;
use proofgate_evidence::payloads::PayloadField;
use proofgate_ledger::record::PayloadOutcome;
use proofgate_payloads::PayloadKey;
use proofgate_wal::Ulid;
use tokio::sync::oneshot;

/// Which body it is, and what it is sealed with.
pub(super) struct BodyContext {
    pub(super) incarnation: Ulid,
    pub(super) seq: u64,
    pub(super) field: PayloadField,
    pub(super) key: PayloadKey,
}

/// A body that is to be stored.
pub(super) struct Body {
    pub(super) context: BodyContext,
    pub(super) copy: BoundedCopy,
    /// Where the outcome is reported.
    pub(super) done: oneshot::Sender<PayloadOutcome>,
}

/// What the thread is to do.
pub(super) enum PayloadCommand {
    Store(Body),
    /// Look how much space the volume has.
    CheckSpace,
}
