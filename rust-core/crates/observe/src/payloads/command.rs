//! Commands of the data-plane thread to the payload thread.

use proofgate_base::bounded_copy::BoundedCopy;
use proofgate_evidence::payloads::PayloadField;
use proofgate_ledger::record::PayloadOutcome;
use proofgate_payloads::PayloadKey;
use proofgate_wal::Ulid;
use tokio::sync::oneshot;

/// The identity of a body, and the key that seals it.
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
    /// Sender to which the outcome is reported.
    pub(super) outcome_sender: oneshot::Sender<PayloadOutcome>,
}

/// A command to the payload thread.
pub(super) enum PayloadCommand {
    Store(Body),
    /// Checks the free space of the volume.
    CheckSpace,
}
