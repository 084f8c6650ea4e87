//! Payloads that tenants want stored.
//!
//! Where a tenant does, the request's body is copied once when it is admitted, and the answer as it is relayed. The copies
//! go through a bounded queue to a thread of its own, which seals and writes them beside the log; the end of the answer waits
//! until that is done, because the completion says what is stored. Nobody else waits for it. Where nothing is stored, an
//! exchange pays for one comparison, and each piece of its answer for another.
//!
//! What cannot be stored is not admitted, as far as that is known then: while the writer has failed, the volume is nearly
//! full, or the copies take all memory that they may. What is found out later stands in the completion. A denied request has
//! no completion: its record says whether its body is handed over, and the refusal waits until that is stored.

mod desk;
mod keeping;
mod order;
mod state;
mod thread;

use std::path::Path;
use std::sync::Arc;

use proofgate_base::bounded_copy::{MIN_GROWTH, TenantSharedPool};
use proofgate_config::PayloadsConfig;
use proofgate_payloads::PayloadWriter;
use proofgate_wal::{Storage, UnsyncedFiles};
use tokio::sync::mpsc::channel;

pub use desk::PayloadQueue;
pub use keeping::{AdmittedBody, DeniedBody, ExchangeBodies};
pub use thread::PayloadThread;

use crate::metrics::PayloadMetrics;
use state::State;

#[cfg(test)]
mod tests;

/// The data-plane thread's end, and the thread that writes beside the logs in `shard_dir`.
pub fn create_payload_queue(
    config: PayloadsConfig,
    storage: &Arc<dyn Storage>,
    (shard_dir, ledger, shard): (&Path, &str, u32),
    unsynced: Arc<UnsyncedFiles>,
    metrics: &PayloadMetrics,
) -> (PayloadQueue, PayloadThread) {
    // Each body takes a step of the room or more until it is stored, so all there can be have a place, and one tenant's
    // leave as much of the queue to others as of the memory. One more is for a look.
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
