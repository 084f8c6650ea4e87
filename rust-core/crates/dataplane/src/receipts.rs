//! Receipts: with its own key a tenant gets the signed proofs of its own exchanges.
//!
//! They are read from the volume, which may be slow and may be large. So that happens on threads of their own, behind a
//! queue that refuses when it is full, and the data-plane thread only waits for an answer. Tenants take turns, and one that
//! asks for much keeps one of the threads at most. What no checkpoint covers yet is asked for again after a pause, in which
//! nobody is kept.

mod bundle;
mod turns;

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use proofgate_auth::{AuthError, Identity};
use proofgate_evidence::ShredKeys;
use proofgate_ledger::VerifyingKey;
use proofgate_limits::Demand;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use crate::admission::credential;
use crate::catalog::Catalog;
use crate::gateway::Gateway;
use crate::google_path::percent_decoded;
use crate::open_exchange::Granted;
use crate::priority;
use crate::rejection::Rejection;
use turns::Turns;

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
    "There is no exchange with this id, or it is not yours. The id is what x-request-id said in its answer.",
);
const BUSY: Rejection = Rejection::new(
    503,
    "receipts_busy",
    "As many receipts as may be are being put together. Try again later.",
);
const UNREADABLE: Rejection = Rejection::new(
    503,
    "receipt_unavailable",
    "The ledger could not be read for this receipt. Try again later, and tell whoever runs the gateway.",
);
const QUERY: Rejection = Rejection::new(
    400,
    "invalid_query",
    "since is a number of records from 1 on, and origin, which goes with it, the log that it was signed for.",
);

/// What a request for a receipt says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AskedReceipt {
    /// Of the exchange.
    pub(crate) id: Box<str>,
    pub(crate) query: Option<Box<str>>,
}

/// A checkpoint that the client holds.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Held {
    origin: String,
    size: u64,
}

impl Held {
    /// Reads `since` and `origin` out of a query; what else stands there is ignored, as in every query.
    fn read(query: Option<&str>) -> Result<Option<Self>, Rejection> {
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
struct Question {
    id: Box<str>,
    /// Whose exchange it must be.
    tenant: Arc<str>,
    /// Whether it goes on, at this worker.
    open: bool,
    held: Option<Held>,
    /// What salts may need.
    shred_keys: Option<Arc<ShredKeys>>,
}

/// What was found.
enum Found {
    /// The receipt, JSON.
    Receipt(Vec<u8>),
    /// No such exchange of this tenant.
    Nothing,
    /// No checkpoint covers all that there is of it.
    NotCovered,
    /// The volume cannot be read, or is damaged there.
    Unreadable,
}

/// Answers a request for a receipt. It counts as a request, and as nothing else; `extra` gets what is left of the limits.
///
/// # Errors
/// What the client is told instead.
pub(crate) async fn answer(
    gateway: &Gateway,
    catalog: &Catalog,
    identity: &Identity,
    asked: &AskedReceipt,
    now: std::time::Instant,
    extra: &mut Vec<u8>,
) -> Result<Vec<u8>, Rejection> {
    let held = Held::read(asked.query.as_deref())?;
    let tenant = &identity.tenant;
    let (key, now) = (credential(identity), gateway.clock.unix_micros(now));
    let nothing = Demand {
        cost: Some(0),
        ..Demand::default()
    };
    let grant = {
        let mut limiter = gateway.limiter.borrow_mut();
        let counter = limiter
            .find(&tenant.name)
            .ok_or_else(|| Rejection::from(AuthError::UnknownKey))?;
        let grant = limiter.admit(counter, key, nothing, now);
        if !catalog.terms.plan(tenant).quotas.is_unlimited() {
            limiter.standing(counter, key, now).write(extra);
        }
        grant
    };
    let grant = grant.map_err(|exceeded| {
        gateway.metrics.limited();
        Rejection::from(exceeded)
    })?;
    // However it ends, it has been a request.
    let _granted = Granted::new(gateway, &tenant.name, grant);
    let question = Question {
        id: asked.id.clone(),
        tenant: Arc::clone(&tenant.name),
        open: gateway.recorder.open().holds(&asked.id),
        held,
        shred_keys: catalog.terms.shred_keys.clone(),
    };
    gateway.receipts.ask(question).await
}

/// Where receipts are asked for.
pub(crate) struct ReceiptDesk {
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
    /// One for the ledger in `directory`, all shards of it.
    pub(crate) fn of_volume(directory: &Path, key: VerifyingKey) -> Self {
        let directory = directory.to_owned();
        Self::start(move |question| bundle::look_up(&directory, &key, question))
    }

    /// Starts threads of which nobody awaits the end: they end when nobody can ask them any more.
    fn start(look_up: impl Fn(&Question) -> Found + Send + Sync + 'static) -> Self {
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

    async fn ask(&self, question: Question) -> Result<Vec<u8>, Rejection> {
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
#[path = "receipts_tests.rs"]
mod tests;
