//! The evaluator's side of a policy's queue.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use proofgate_providers::StringKind;
use tokio::sync::mpsc::Receiver;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::oneshot;

use super::policy_copy_memory::CopyPermit;
use super::request_texts::RequestTexts;
use super::verdict::Verdict;

/// A request that waits for a policy's verdict. If it is dropped without a verdict, the policy
/// counts as dead.
pub struct PolicyItem {
    pub(super) request: PolicyRequest,
    pub(super) verdict: oneshot::Sender<Verdict>,
}

/// The part of a request that a policy sees.
pub struct PolicyRequest {
    pub tenant: Arc<str>,
    pub model: Box<str>,
    pub endpoint: &'static str,
    pub texts: RequestTexts,
    /// Reserves the memory of the copy.
    pub _permit: CopyPermit,
}

impl PolicyItem {
    /// The tenant that sent the request.
    pub fn tenant(&self) -> &str {
        &self.request.tenant
    }

    /// The requested model.
    pub fn model(&self) -> &str {
        &self.request.model
    }

    /// The endpoint, such as `/v1/chat/completions`.
    pub fn endpoint(&self) -> &'static str {
        self.request.endpoint
    }

    /// Returns the request's strings, keys and long numbers in the order of the body. Each comes with its kind
    /// (`key`, `number` or `text`), and with whether it is in a message with instructions for the model.
    pub fn texts(&self) -> impl ExactSizeIterator<Item = (&str, &'static str, bool)> {
        let name = |kind| match kind {
            StringKind::Text => "text",
            StringKind::Key => "key",
            StringKind::Number | StringKind::ApiNumber => "number",
        };
        let texts = self.request.texts.texts();
        texts.map(move |(text, kind, is_instructions)| (text, name(kind), is_instructions))
    }

    /// Whether the request still waits for the verdict.
    pub fn is_awaited(&self) -> bool {
        !self.verdict.is_closed()
    }

    /// Sends the verdict; returns `false` if the request no longer waits for it.
    pub fn respond(self, verdict: Verdict) -> bool {
        self.verdict.send(verdict).is_ok()
    }
}

/// The evaluator's end of a policy's queue. Dropping it marks the policy as dead.
pub struct PolicyQueue(Mutex<Receiver<PolicyItem>>);

struct Unparker(Thread);

impl Wake for Unparker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl PolicyQueue {
    pub(super) fn new(receiver: Receiver<PolicyItem>) -> Self {
        PolicyQueue(Mutex::new(receiver))
    }

    /// Waits at most `patience` for requests and takes up to `most` requests from the queue. The
    /// result excludes requests that no longer wait for a verdict. Returns `None` when no more
    /// requests can arrive because the policy is no longer in service.
    pub fn take_batch(&self, most: usize, patience: Duration) -> Option<Vec<PolicyItem>> {
        // Contended only by the evaluator's own threads: the sending side takes no lock.
        let mut queue = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut batch = Vec::new();
        let Some(first) = receive(&mut queue, patience)? else {
            return Some(batch);
        };
        batch.push(first);
        while batch.len() < most.max(1) {
            match queue.try_recv() {
                Ok(item) => batch.push(item),
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
            }
        }
        batch.retain(PolicyItem::is_awaited);
        Some(batch)
    }
}

/// Receives the next item; `Some(None)` on a timeout, `None` when the queue is closed.
fn receive(queue: &mut Receiver<PolicyItem>, patience: Duration) -> Option<Option<PolicyItem>> {
    let waker = Waker::from(Arc::new(Unparker(thread::current())));
    let mut context = Context::from_waker(&waker);
    let begun = Instant::now();
    loop {
        if let Poll::Ready(item) = queue.poll_recv(&mut context) {
            return item.map(Some);
        }
        let left = patience.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return Some(None);
        }
        thread::park_timeout(left);
    }
}
