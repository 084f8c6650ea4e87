//! Storage of payloads for tenants that require it.
//!
//! The request's body is copied once when it is admitted, and the response as it is relayed. The copies go through a bounded
//! queue to a separate thread, which seals them and writes them beside the log. The end of the response waits for that,
//! because the completion record states what is stored; nothing else waits. If nothing is stored, an exchange costs one
//! comparison, and each piece of its response another.
//!
//! An exchange that cannot be stored is not admitted, as far as that is known then: while the writer has failed, the volume
//! is nearly full, or the copies use all of their memory. Later failures are stated in the completion record. A denied
//! request has no completion: its record states whether its body was submitted, and the refusal waits until it is stored.

mod command;
mod exchange_bodies;
mod queue;
mod state;
mod thread;

use std::path::Path;
use std::sync::Arc;

use proofgate_base::bounded_copy::{MIN_GROWTH, TenantSharedPool};
use proofgate_config::PayloadsConfig;
use proofgate_payloads::PayloadWriter;
use proofgate_wal::{Storage, UnsyncedFiles};
use tokio::sync::mpsc::channel;

pub use exchange_bodies::{AdmittedBody, DeniedBody, ExchangeBodies};
pub use queue::PayloadQueue;
pub use thread::PayloadThread;

use crate::metrics::PayloadMetrics;
use state::State;

#[cfg(test)]
mod tests;

/// Creates the data-plane thread's queue, and the thread that writes beside the logs in `shard_dir`.
pub fn create_payload_queue(
    config: PayloadsConfig,
    storage: &Arc<dyn Storage>,
    (shard_dir, ledger, shard): (&Path, &str, u32),
    unsynced: Arc<UnsyncedFiles>,
    metrics: &PayloadMetrics,
) -> (PayloadQueue, PayloadThread) {
    // Each body reserves at least one growth step until it is stored, so every possible body has a slot, and the limit of
    // one tenant applies to the queue as to the memory. One more slot is for a space check.
    let (queue, orders) = channel(config.budget_bytes / MIN_GROWTH + 1);
    let state = Arc::new(State::default());
    let room = TenantSharedPool::new(config.budget_bytes);
    let writer = PayloadWriter::new(Arc::clone(storage), shard_dir, (ledger, shard), unsynced);
    let thread = PayloadThread {
        writer,
        storage: Arc::clone(storage),
        shard_dir: shard_dir.to_owned(),
        min_free_bytes: config.budget_bytes as u64,
        commands: orders,
        state: Arc::clone(&state),
        metrics: metrics.clone(),
    };
    (PayloadQueue::new(queue, room, state, metrics.clone()), thread)
}
