use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use proofgate_json::Workspace;
use proofgate_ledger::record::PolicyNote;
use proofgate_limits::Limiter;
use proofgate_policy::Scratch;
use proofgate_providers::BodyText;
use proofgate_stages::Profiler;
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::catalog::Catalog;
use crate::clock::Clock;
use crate::draft::Drafts;
use crate::metrics::Metrics;
use crate::recorder::Recorder;
use crate::rejection::Rejection;
use crate::request_id::RequestId;
use crate::spare::Spare;

/// What every connection of the data-plane thread shares.
pub(crate) struct Gateway {
    catalog: RefCell<Rc<Catalog>>,
    pub(crate) recorder: Rc<Recorder>,
    pub(crate) metrics: Metrics,
    pub(crate) profiler: Arc<Profiler>,
    pub(crate) clock: Clock,
    pub(crate) limiter: RefCell<Limiter>,
    pub(crate) reading: RefCell<Reading>,
    /// What a scan needs and every scan can use again.
    pub(crate) scratch: RefCell<Scratch>,
    /// What reading answers needs and every one can use again.
    pub(crate) answer_reading: RefCell<proofgate_inspect::Reading>,
    /// Whether connections begin with a PROXY header.
    pub(crate) proxy_protocol: bool,
    pub(crate) drafts: Drafts,
    /// For pieces of answers on their way.
    pub(crate) spare: Spare,
    /// Where a request for an upstream is put together.
    pub(crate) outgoing: Cell<Vec<u8>>,
    /// Where what an upstream sends is read to.
    pub(crate) incoming: Cell<Vec<u8>>,
    /// Whether limits have changed since somebody looked.
    limits_changed: Cell<bool>,
    /// Bytes of request bodies in memory.
    buffered: Cell<u64>,
    random: RefCell<StdRng>,
}

/// Buffers for the request that is being read, kept from one to the next.
#[derive(Default)]
pub(crate) struct Reading {
    /// Its text.
    pub(crate) text: BodyText,
    /// What reading JSON needs.
    pub(crate) workspace: Workspace,
}

/// What is known of a request that is refused.
#[derive(Default)]
pub(crate) struct Refused<'r> {
    pub(crate) tenant: Option<&'r str>,
    /// The key, when the request had passed the limits and counts there.
    pub(crate) counted: Option<String>,
    pub(crate) endpoint: Option<&'r str>,
    /// Bytes of it that were read.
    pub(crate) bytes: usize,
    pub(crate) policy: Option<PolicyNote<'r>>,
}

impl Gateway {
    pub(crate) fn new(
        catalog: Catalog,
        limiter: Limiter,
        recorder: Rc<Recorder>,
        metrics: Metrics,
        profiler: Arc<Profiler>,
        proxy_protocol: bool,
    ) -> Self {
        Gateway {
            catalog: RefCell::new(Rc::new(catalog)),
            recorder,
            metrics,
            profiler,
            clock: Clock::new(),
            limiter: RefCell::new(limiter),
            reading: RefCell::default(),
            scratch: RefCell::default(),
            answer_reading: RefCell::default(),
            proxy_protocol,
            drafts: Drafts::default(),
            spare: Spare::default(),
            outgoing: Cell::default(),
            incoming: Cell::default(),
            limits_changed: Cell::new(false),
            buffered: Cell::new(0),
            random: RefCell::new(StdRng::from_os_rng()),
        }
    }

    /// The configuration in service now. A request takes it once and keeps it to its end.
    pub(crate) fn catalog(&self) -> Rc<Catalog> {
        Rc::clone(&self.catalog.borrow())
    }

    /// Takes another configuration into service: requests from now on follow it, those under way do not.
    pub(crate) fn replace_catalog(&self, catalog: Catalog) {
        self.recorder.set_config(&catalog.terms.digest);
        *self.catalog.borrow_mut() = Rc::new(catalog);
        self.limits_changed.set(true);
    }

    /// Whether limits have changed since the last call.
    pub(crate) fn take_limits_changed(&self) -> bool {
        self.limits_changed.take()
    }

    /// A fresh id for an exchange or a refusal at `now`, unix microseconds.
    pub(crate) fn request_id(&self, now: u64) -> RequestId {
        RequestId::new(now, &mut *self.random.borrow_mut())
    }

    /// Records a refusal and waits until that is written; returns the id that the answer carries.
    ///
    /// An answer that says no is given even when the ledger cannot take its record: the refusal is then counted, and
    /// the count is recorded as soon as there is room.
    pub(crate) async fn reject(&self, rejection: &Rejection, refused: Refused<'_>) -> RequestId {
        let now = self.clock.unix_micros(Instant::now());
        let id = self.request_id(now);
        self.metrics.rejected(rejection.status);
        if let Some(seq) = self.recorder.reject(now, id.as_str(), rejection, refused) {
            let _ = self.recorder.written(seq).await;
        }
        id
    }

    /// Makes room in memory for `bytes` of a request body; `None` when other bodies take it all.
    pub(crate) fn buffer(self: &Rc<Self>, bytes: u64, most: u64) -> Option<Buffered> {
        let total = self.buffered.get().checked_add(bytes)?;
        if total > most {
            return None;
        }
        self.buffered.set(total);
        Some(Buffered {
            gateway: Rc::clone(self),
            bytes,
        })
    }
}

/// Room in memory for a request body; given back when it is dropped.
pub(crate) struct Buffered {
    gateway: Rc<Gateway>,
    bytes: u64,
}

impl Drop for Buffered {
    fn drop(&mut self) {
        let left = self.gateway.buffered.get().saturating_sub(self.bytes);
        self.gateway.buffered.set(left);
    }
}
