//! Storage of payloads for tenants that require it.
//!
//! The request's body is copied at admission, and the response while it is relayed. The copies go
//! through a bounded queue to a separate thread, which seals them and writes them beside the log.
//! Only the end of the response waits for this, because the completion record states the outcome.
//! If a tenant's bodies are not stored, this costs one comparison per exchange and one per piece of
//! a response.
//!
//! An exchange is not admitted if it is already known that its bodies cannot be stored: the writer
//! has failed, the volume is nearly full, or the copies use all of their memory. The completion
//! record states later failures. A denied request has no completion. Its record states whether its
//! body was submitted, and the refusal is sent after the body is stored.

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
    // Each body reserves at least one growth step until it is stored. Every possible body therefore
    // has a slot, and a tenant's memory limit also limits its slots in the queue. One more slot is
    // for a space check.
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
