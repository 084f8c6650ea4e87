//! The receipt service: its queries, its queue and its threads.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use proofgate_base::priority;
use proofgate_base::rejection::Rejection;
use proofgate_evidence::ShredKeys;
use proofgate_upstream::google_path::percent_decode;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use super::fair_queue::FairQueue;

/// Number of receipts that one worker assembles at a time. [`MAX_WAITING`] is the maximum number of
/// waiting queries.
const THREADS: usize = 2;
const MAX_WAITING: usize = 64;
/// Maximum number of queries of one tenant. It leaves slots for other tenants.
const MAX_PER_TENANT: usize = 16;

/// Maximum wait for a checkpoint that covers an exchange.
const MAX_CHECKPOINT_WAIT: Duration = Duration::from_secs(5);
/// Interval between two checks for such a checkpoint.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

const UNKNOWN: Rejection = Rejection::new(
    404,
    "unknown_receipt",
    "There is no exchange with this id, or it is not yours. Use the id from the x-request-id header of the answer.",
);
const BUSY: Rejection = Rejection::new(
    503,
    "receipts_busy",
    "Too many receipts are being built. Try again later.",
);
const UNREADABLE: Rejection = Rejection::new(
    503,
    "receipt_unavailable",
    "The ledger could not be read for this receipt. Try again later, and report it to the gateway administrator.",
);
const INVALID_QUERY: Rejection = Rejection::new(
    400,
    "invalid_query",
    "since must be the size of a checkpoint, at least 1. With since, origin must name the log of that checkpoint.",
);

/// A request for a receipt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiptRequest {
    /// Id of the exchange.
    pub id: Box<str>,
    pub query: Option<Box<str>>,
}

/// A checkpoint that the client already has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClientCheckpoint {
    /// The origin of the checkpoint's log.
    pub(super) origin: String,
    /// The number of records that the checkpoint covers.
    pub(super) size: u64,
}

impl ClientCheckpoint {
    /// Parses the query parameters `since` and `origin`; other parameters are ignored.
    pub(super) fn from_query(query: Option<&str>) -> Result<Option<Self>, Rejection> {
        let (mut since, mut origin) = (None, None);
        for parameter in query.unwrap_or_default().split('&') {
            let slot = match parameter.split_once('=') {
                Some(("since", value)) => (&mut since, value),
                Some(("origin", value)) => (&mut origin, value),
                _ => continue,
            };
            if slot.0.replace(slot.1).is_some() {
                return Err(INVALID_QUERY);
            }
        }
        let (since, origin) = match (since, origin) {
            (None, None) => return Ok(None),
            (Some(since), Some(origin)) => (since, origin),
            _ => return Err(INVALID_QUERY),
        };
        let is_decimal = since.bytes().all(|digit| digit.is_ascii_digit()) && !since.starts_with('0');
        let size = since.parse().ok().filter(|_| is_decimal).ok_or(INVALID_QUERY)?;
        let origin = String::from_utf8(percent_decode(origin)).map_err(|_| INVALID_QUERY)?;
        Ok(Some(ClientCheckpoint { origin, size }))
    }
}

/// A query for a receipt.
pub(super) struct ReceiptQuery {
    pub(super) id: Box<str>,
    /// The tenant to which the exchange must belong.
    pub(super) tenant: Arc<str>,
    /// Whether the exchange is still open at this worker.
    pub(super) is_open: bool,
    pub(super) client_checkpoint: Option<ClientCheckpoint>,
    /// The shred keys of tenants, from which salts may be derived; `None` if salts are stored
    /// whole.
    pub(super) shred_keys: Option<Arc<ShredKeys>>,
}

/// The result of a query.
pub(super) enum ReceiptLookup {
    /// The receipt, in JSON.
    Receipt(Vec<u8>),
    /// The tenant has no such exchange.
    NotFound,
    /// No checkpoint covers all records of the exchange.
    NotCovered,
    /// The volume cannot be read, or the data is damaged.
    Unreadable,
}

/// The service that accepts receipt queries.
pub struct ReceiptService {
    queue: Arc<FairQueue<PendingQuery>>,
    tenant_slots: Arc<TenantSlots>,
}

/// A queued query, and the channel for its result.
type PendingQuery = (Arc<SlottedQuery>, oneshot::Sender<ReceiptLookup>);

/// The number of queries of each tenant that has any.
type TenantSlots = Mutex<HashMap<Arc<str>, usize>>;

/// A query that occupies one of its tenant's slots until it is dropped. If its client disconnects,
/// the slot stays occupied until the query has left the queue.
struct SlottedQuery {
    query: ReceiptQuery,
    tenant_slots: Arc<TenantSlots>,
}

impl SlottedQuery {
    /// Takes a slot for a query; `None` if the tenant has none left.
    fn new(question: ReceiptQuery, places: &Arc<TenantSlots>) -> Option<Self> {
        let mut counts = places.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(Arc::clone(&question.tenant)).or_default();
        if *count == MAX_PER_TENANT {
            return None;
        }
        *count += 1;
        Some(SlottedQuery {
            query: question,
            tenant_slots: Arc::clone(places),
        })
    }
}

impl Drop for SlottedQuery {
    fn drop(&mut self) {
        let mut counts = self.tenant_slots.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.query.tenant) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.query.tenant);
            }
        }
    }
}

impl ReceiptService {
    /// Starts detached threads, which end when the service is dropped.
    pub(super) fn start(look_up: impl Fn(&ReceiptQuery) -> ReceiptLookup + Send + Sync + 'static) -> Self {
        let questions = Arc::new(FairQueue::new(MAX_WAITING));
        let look_up = Arc::new(look_up);
        let started = (0..THREADS).filter(|_| {
            let (questions, look_up) = (Arc::clone(&questions), Arc::clone(&look_up));
            let thread = thread::Builder::new().name("receipts".into());
            thread.spawn(move || run_worker(&questions, &*look_up)).is_ok()
        });
        if started.count() == 0 {
            // Rejects every query, because no thread would process it.
            questions.close();
        }
        ReceiptService {
            queue: questions,
            tenant_slots: Arc::default(),
        }
    }

    pub(super) async fn request(&self, question: ReceiptQuery) -> Result<Vec<u8>, Rejection> {
        let question = Arc::new(SlottedQuery::new(question, &self.tenant_slots).ok_or(BUSY)?);
        let give_up = Instant::now() + MAX_CHECKPOINT_WAIT;
        loop {
            let (answer, answered) = oneshot::channel();
            let asked = (Arc::clone(&question), answer);
            self.queue.push(&question.query.tenant, asked).map_err(|_| BUSY)?;
            match answered.await.unwrap_or(ReceiptLookup::Unreadable) {
                ReceiptLookup::Receipt(receipt) => return Ok(receipt),
                ReceiptLookup::NotFound => return Err(UNKNOWN),
                ReceiptLookup::Unreadable => return Err(UNREADABLE),
                ReceiptLookup::NotCovered if Instant::now() >= give_up => {
                    return Err(Rejection::receipt_pending());
                }
                ReceiptLookup::NotCovered => sleep(POLL_INTERVAL).await,
            }
        }
    }
}

impl Drop for ReceiptService {
    fn drop(&mut self) {
        self.queue.close();
    }
}

fn run_worker(
    questions: &FairQueue<PendingQuery>,
    look_up: &(dyn Fn(&ReceiptQuery) -> ReceiptLookup + Send + Sync),
) {
    priority::lower_priority();
    while let Some((tenant, (question, answer))) = questions.pop() {
        let found = match answer.is_closed() {
            true => None,
            false => Some(catch_unwind(AssertUnwindSafe(|| look_up(&question.query)))),
        };
        // Frees the slot and the tenant's turn before sending the result.
        drop(question);
        questions.finish(tenant);
        if let Some(found) = found {
            let _ = answer.send(found.unwrap_or(ReceiptLookup::Unreadable));
        }
    }
}

#[cfg(test)]
#[path = "receipt_service_tests.rs"]
mod tests;
