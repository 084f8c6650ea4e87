//! The queue behind which receipts are put together, and what is asked there.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use proofgate_base::priority;
use proofgate_base::rejection::Rejection;
use proofgate_evidence::ShredKeys;
use proofgate_upstream::google_path::percent_decoded;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use super::turns::Turns;

/// Receipts that are put together at a time in one worker, and those that may wait.
const THREADS: usize = 2;
const WAITING: usize = 64;
/// Those of one tenant, so that it leaves places to all others.
const OF_ONE_TENANT: usize = 16;

/// For how long a checkpoint is waited for that covers an exchange.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// The pause until it is looked for again.
const PAUSE: Duration = Duration::from_millis(250);

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
const QUERY: Rejection = Rejection::new(
    400,
    "invalid_query",
    "since must be the size of a checkpoint (at least 1), and needs origin, the log of that checkpoint.",
);

/// What a request for a receipt says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedReceipt {
    /// Of the exchange.
    pub id: Box<str>,
    pub query: Option<Box<str>>,
}

/// A checkpoint that the client holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) origin: String,
    pub(super) size: u64,
}

impl Held {
    /// Reads `since` and `origin` out of a query; what else stands there is ignored, as in every query.
    pub(super) fn read(query: Option<&str>) -> Result<Option<Self>, Rejection> {
        let (mut since, mut origin) = (None, None);
        for parameter in query.unwrap_or_default().split('&') {
            let slot = match parameter.split_once('=') {
                Some(("since", value)) => (&mut since, value),
                Some(("origin", value)) => (&mut origin, value),
                _ => continue,
            };
            if slot.0.replace(slot.1).is_some() {
                return Err(QUERY);
            }
        }
        let (since, origin) = match (since, origin) {
            (None, None) => return Ok(None),
            (Some(since), Some(origin)) => (since, origin),
            _ => return Err(QUERY),
        };
        let is_decimal = since.bytes().all(|digit| digit.is_ascii_digit()) && !since.starts_with('0');
        let size = since.parse().ok().filter(|_| is_decimal).ok_or(QUERY)?;
        let origin = String::from_utf8(percent_decoded(origin)).map_err(|_| QUERY)?;
        Ok(Some(Held { origin, size }))
    }
}

/// A receipt that is looked for.
pub(super) struct Question {
    pub(super) id: Box<str>,
    /// Whose exchange it must be.
    pub(super) tenant: Arc<str>,
    /// Whether it goes on, at this worker.
    pub(super) open: bool,
    pub(super) held: Option<Held>,
    /// What salts may need.
    pub(super) shred_keys: Option<Arc<ShredKeys>>,
}

/// What was found.
pub(super) enum Found {
    /// The receipt, JSON.
    Receipt(Vec<u8>),
    /// No such exchange of this tenant.
    Nothing,
    /// No checkpoint covers all that there is of it.
    NotCovered,
    /// The volume cannot be read, or is damaged there.
    Unreadable,
}

/// Where receipts are asked for.
pub struct ReceiptDesk {
    questions: Arc<Turns<Asked>>,
    places: Arc<Places>,
}

/// A question in the queue, and where its answer goes.
type Asked = (Arc<Placed>, oneshot::Sender<Found>);

/// How many questions of each tenant are there; of none, no entry.
type Places = Mutex<HashMap<Arc<str>, usize>>;

/// A question that has one of its tenant's places, for as long as anybody has it: a client that goes away does not get its
/// place back before the question has left the queue.
struct Placed {
    question: Question,
    places: Arc<Places>,
}

impl Placed {
    /// `None` when the tenant has as many as it may.
    fn new(question: Question, places: &Arc<Places>) -> Option<Self> {
        let mut counts = places.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(Arc::clone(&question.tenant)).or_default();
        if *count == OF_ONE_TENANT {
            return None;
        }
        *count += 1;
        Some(Placed {
            question,
            places: Arc::clone(places),
        })
    }
}

impl Drop for Placed {
    fn drop(&mut self) {
        let mut counts = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.question.tenant) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.question.tenant);
            }
        }
    }
}

impl ReceiptDesk {
    /// Starts threads of which nobody awaits the end: they end when nobody can ask them any more.
    pub(super) fn start(look_up: impl Fn(&Question) -> Found + Send + Sync + 'static) -> Self {
        let questions = Arc::new(Turns::new(WAITING));
        let look_up = Arc::new(look_up);
        let started = (0..THREADS).filter(|_| {
            let (questions, look_up) = (Arc::clone(&questions), Arc::clone(&look_up));
            let thread = thread::Builder::new().name("receipts".into());
            thread.spawn(move || answer_all(&questions, &*look_up)).is_ok()
        });
        if started.count() == 0 {
            // Every question is refused, because nobody would answer.
            questions.close();
        }
        ReceiptDesk {
            questions,
            places: Arc::default(),
        }
    }

    pub(super) async fn ask(&self, question: Question) -> Result<Vec<u8>, Rejection> {
        let question = Arc::new(Placed::new(question, &self.places).ok_or(BUSY)?);
        let give_up = Instant::now() + LONGEST_WAIT;
        loop {
            let (answer, answered) = oneshot::channel();
            let asked = (Arc::clone(&question), answer);
            self.questions
                .add(&question.question.tenant, asked)
                .map_err(|_| BUSY)?;
            match answered.await.unwrap_or(Found::Unreadable) {
                Found::Receipt(receipt) => return Ok(receipt),
                Found::Nothing => return Err(UNKNOWN),
                Found::Unreadable => return Err(UNREADABLE),
                Found::NotCovered if Instant::now() >= give_up => return Err(Rejection::receipt_pending()),
                Found::NotCovered => sleep(PAUSE).await,
            }
        }
    }
}

impl Drop for ReceiptDesk {
    fn drop(&mut self) {
        self.questions.close();
    }
}

fn answer_all(questions: &Turns<Asked>, look_up: &(dyn Fn(&Question) -> Found + Send + Sync)) {
    priority::yield_to_traffic();
    while let Some((tenant, (question, answer))) = questions.take() {
        let found = match answer.is_closed() {
            true => None,
            false => Some(catch_unwind(AssertUnwindSafe(|| look_up(&question.question)))),
        };
        // Its place is free, and its tenant's next turn can come, before it is answered.
        drop(question);
        questions.answered(tenant);
        if let Some(found) = found {
            let _ = answer.send(found.unwrap_or(Found::Unreadable));
        }
    }
}

#[cfg(test)]
#[path = "desk_tests.rs"]
mod tests;
