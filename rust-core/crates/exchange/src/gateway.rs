use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use proofgate_auth::{AuthError, Authenticator, Identity, KeyFields, Shards};
use proofgate_base::approvals::Approvals;
use proofgate_base::clock::{Clock, ClockStep};
use proofgate_base::memory::Budget;
use proofgate_base::random::Random;
use proofgate_base::rejection::Rejection;
use proofgate_base::request_id::RequestId;
use proofgate_base::spare::Spare;
use proofgate_base::workspace::Workspaces;
use proofgate_external_policies::HookRoom;
use proofgate_inspect::KnownRuns;
use proofgate_json::Workspace;
use proofgate_ledger::record::ConfigDigests;
use proofgate_limits::Limiter;
use proofgate_observe::analysis::Tap;
use proofgate_observe::metrics::{Metrics, Traffic};
use proofgate_observe::payloads::PayloadDesk;
use proofgate_observe::recorder::Recorder;
use proofgate_observe::rejected_request::RejectedRequest;
use proofgate_observe::telemetry::Outlet;
use proofgate_providers::BodyText;
use proofgate_stages::Profiler;
use proofgate_upstream::catalog::{Blueprint, Catalog};

use crate::receipts::ReceiptDesk;
use crate::waiting::Queues;

/// What every connection of the data-plane thread shares.
pub struct Gateway {
    catalog: RefCell<Rc<Catalog>>,
    /// Tenants that are not in the catalog.
    shards: RefCell<Shards>,
    pub recorder: Rc<Recorder>,
    pub metrics: Metrics,
    /// Where exchanges are told that somebody wants to know of.
    pub outlet: Outlet,
    /// Where answers are analysed, if they are.
    pub tap: Option<Tap>,
    /// Where bodies are stored, if they are.
    pub payloads: Option<PayloadDesk>,
    /// Who has which part of the traffic.
    pub traffic: Traffic,
    pub profiler: Arc<Profiler>,
    pub clock: Clock,
    pub limiter: RefCell<Limiter>,
    /// Requests that wait for what others have reserved.
    pub queues: Rc<Queues>,
    /// Where the evidence on the volume is asked for.
    pub receipts: ReceiptDesk,
    /// Taken for as long as a request is read and judged, and put back.
    pub reading: Cell<Reading>,
    /// What reading answers needs and every one can use again.
    pub(crate) answer_reading: RefCell<proofgate_inspect::Reading>,
    /// The memory that bodies and answers may take.
    pub budget: Rc<Budget>,
    pub(crate) workspaces: Workspaces,
    /// What was found in messages that were scanned.
    pub known_runs: RefCell<KnownRuns>,
    /// By what guarded tools may be called.
    pub approvals: Approvals,
    /// What requests that wait for policies take of it.
    pub hook_room: HookRoom,
    /// For pieces of answers on their way.
    pub spare: Spare,
    /// Where a request for an upstream is put together.
    pub(crate) outgoing: Cell<Vec<u8>>,
    /// Where what an upstream sends is read to.
    pub(crate) incoming: Cell<Vec<u8>>,
    /// Whether limits have changed since somebody looked.
    limits_changed: Cell<bool>,
    pub random: Random,
}

/// Bytes that each buffer of the thread keeps from one request or answer to the next.
pub(crate) const KEPT: usize = 1024 * 1024;

/// Buffers for the request that is being read, kept from one to the next.
#[derive(Default)]
pub struct Reading {
    /// Its text.
    pub text: BodyText,
    /// What reading JSON needs.
    pub workspace: Workspace,
}

impl Reading {
    /// Gives back what only reading a large request needs, and judging it does not.
    pub(crate) fn end_reading(&mut self) {
        if self.workspace.capacity() > KEPT {
            self.workspace.give_back(KEPT);
        }
    }

    /// Gives back what the text of a long document does not need: of one that is a picture, nearly all of its memory. What
    /// the next document can use stays, since the system gives new memory slowly.
    pub(crate) fn fit_text(&mut self) {
        if self.text.capacity() > KEPT.min(self.text.size().saturating_mul(2)) {
            self.text.shrink();
        }
    }

    /// Leaves the buffers to the next request, without what only a large one needs.
    pub(crate) fn give_back_to(mut self, gateway: &Gateway) {
        if self.text.capacity() > KEPT {
            self.text.give_back(KEPT);
        }
        // One that never read would take the place of one that has its memory.
        if self.text.capacity() > 0 {
            gateway.reading.set(self);
        }
    }
}

/// What is in force from some request on, as one change.
pub struct Change {
    /// Another configuration, if it is another one.
    pub blueprint: Option<Blueprint>,
    /// The tenants that are not in it. Those that stay are the ones in service.
    pub shards: Shards,
    /// Of both.
    pub digests: ConfigDigests,
}

/// Boxed as all that only long bodies wait in: the others need no room for it.
pub(crate) async fn make_ready(text: &mut BodyText, bytes: usize) {
    let pieces = async {
        for (number, ()) in text.make_ready(bytes).enumerate() {
            if number % 4 == 3 {
                tokio::task::yield_now().await;
            }
        }
    };
    Box::pin(pieces).await;
}

/// Where threads that may be slow take over.
pub struct SlowPaths {
    /// Telemetry.
    pub outlet: Outlet,
    /// Proofs for tenants.
    pub receipts: ReceiptDesk,
    /// Analysis of answers.
    pub tap: Option<Tap>,
    /// Storage of bodies.
    pub payloads: Option<PayloadDesk>,
}

impl Gateway {
    pub fn new(
        catalog: Catalog,
        shards: Shards,
        limiter: Limiter,
        recorder: Rc<Recorder>,
        metrics: Metrics,
        profiler: Arc<Profiler>,
        slow_paths: SlowPaths,
    ) -> Self {
        let SlowPaths {
            outlet,
            receipts,
            tap,
            payloads,
        } = slow_paths;
        let budget = Rc::new(Budget::new(
            catalog.terms.memory_for_bodies(),
            metrics.buffered_bytes.clone(),
        ));
        let queues = Rc::new(Queues::new(metrics.waiting.clone()));
        let known_runs = KnownRuns::new(catalog.terms.memory_for_known());
        Gateway {
            traffic: metrics.traffic(catalog.terms.label_sets),
            catalog: RefCell::new(Rc::new(catalog)),
            shards: RefCell::new(shards),
            recorder,
            metrics,
            outlet,
            tap,
            payloads,
            profiler,
            clock: Clock::new(),
            limiter: RefCell::new(limiter),
            queues,
            receipts,
            reading: Cell::default(),
            answer_reading: RefCell::default(),
            workspaces: Workspaces::new(&budget),
            known_runs: RefCell::new(known_runs),
            approvals: Approvals::new(),
            hook_room: HookRoom::new(&budget),
            budget,
            spare: Spare::default(),
            outgoing: Cell::default(),
            incoming: Cell::default(),
            limits_changed: Cell::new(false),
            random: Random::new(),
        }
    }

    /// The configuration in service now. A request takes it once and keeps it to its end.
    pub fn catalog(&self) -> Rc<Catalog> {
        Rc::clone(&self.catalog.borrow())
    }

    /// Who sends a request; see [`Authenticator::authenticate`].
    pub fn authenticate(
        &self,
        authenticator: &Authenticator,
        keys: &KeyFields<'_>,
        now_unix_seconds: u64,
    ) -> Result<Identity, AuthError> {
        authenticator.authenticate(&self.shards.borrow(), keys, now_unix_seconds)
    }

    /// Takes a change into service: requests from now on follow it, those under way do not. Returns the shards that were
    /// in service, for another thread to free.
    pub fn apply(&self, change: Change) -> Shards {
        self.recorder.set_config(change.digests);
        let shards = self.shards.replace(change.shards);
        match change.blueprint {
            Some(blueprint) => {
                let before = self.catalog();
                self.replace_catalog(Catalog::new(blueprint, Some(&before), &before.sockets));
            }
            None => self.limit_changed_shards(&shards),
        }
        self.forget_traffic();
        shards
    }

    fn replace_catalog(&self, catalog: Catalog) {
        let limits = catalog.terms.limits_of_all(&self.shards.borrow());
        self.limiter.borrow_mut().set_limits(&limits);
        self.budget.set_most(catalog.terms.memory_for_bodies());
        self.forget_known_runs(&catalog);
        *self.catalog.borrow_mut() = Rc::new(catalog);
        self.limits_changed.set(true);
    }

    /// What other rules have found is of no use, and takes room.
    fn forget_known_runs(&self, next: &Catalog) {
        let (before, most) = (self.catalog(), next.terms.memory_for_known());
        let mut known = self.known_runs.borrow_mut();
        if !Arc::ptr_eq(&before.terms.engine, &next.terms.engine) || known.most() != most {
            known.forget(most);
            self.metrics.known_runs.show_memory(&known);
        }
    }

    /// Of tenants and models that there are no more, nothing is counted by itself.
    fn forget_traffic(&self) {
        let (catalog, limiter) = (self.catalog(), self.limiter.borrow());
        self.traffic.reconfigure(
            catalog.terms.label_sets,
            |tenant| limiter.find(tenant).is_some(),
            |model, provider| catalog.has_model(model, provider),
        );
    }

    /// Only tenants of shards that were replaced are looked at.
    fn limit_changed_shards(&self, before: &Shards) {
        let (catalog, shards) = (self.catalog(), self.shards.borrow());
        let mut limiter = self.limiter.borrow_mut();
        for (old, new) in before.iter().zip(&*shards) {
            if Arc::ptr_eq(old, new) {
                continue;
            }
            // One that is in another shard than before is still there.
            for gone in old.tenants().iter().filter(|tenant| !shards.has(&tenant.name)) {
                limiter.remove_tenant(&gone.name);
            }
            for tenant in new.tenants() {
                match catalog.terms.limits_of(tenant) {
                    Some(limits) => {
                        let is_new = limiter.find(&tenant.name).is_none();
                        let counted = limiter.subjects();
                        limiter.set_tenant(&limits);
                        let begins = is_new || limiter.subjects() > counted;
                        self.limits_changed.set(self.limits_changed.get() || begins);
                    }
                    None => limiter.remove_tenant(&tenant.name),
                }
            }
        }
    }

    /// What a step of the system's clock comes to: it is told, counted and recorded, and limits go back with the clock where it
    /// had been wrong.
    pub fn follow_step(&self, step: ClockStep) {
        eprintln!("proofgate: {step}");
        self.metrics.clock_stepped(step.is_back());
        self.recorder.mark_step(step);
        let mut limiter = self.limiter.borrow_mut();
        if step.turns_back {
            limiter.turn_back(step.to);
        } else if !step.is_back() {
            limiter.leap(step.from, step.to);
        }
    }

    /// Whether limits have changed since the last call.
    pub fn take_limits_changed(&self) -> bool {
        self.limits_changed.take()
    }

    /// A fresh id for an exchange or a refusal at `now`, unix microseconds.
    pub fn request_id(&self, now: u64) -> RequestId {
        self.random.draw(|random| RequestId::new(now, random))
    }

    /// Records a refusal and waits until that is written; returns the id that the answer carries.
    ///
    /// An answer that says no is given even when the ledger cannot take its record: the refusal is then counted, and
    /// the count is recorded as soon as there is room.
    pub async fn reject(&self, rejection: &Rejection, mut refused: RejectedRequest<'_>) -> RequestId {
        let now = self.clock.counted(Instant::now());
        let id = self.request_id(now);
        self.metrics.rejected(rejection.status);
        if let Some(tenant) = refused.tenant {
            let series = refused.series.take();
            let series = series.unwrap_or_else(|| self.traffic.series(tenant, None));
            series.rejected(refused.outcome);
        }
        if let Some(observed) = refused.observed.take() {
            observed.refused(&self.outlet, id, now, refused.bytes, rejection, refused.outcome);
        }
        if let Some(seq) = self.recorder.reject(now, id.as_str(), rejection, refused) {
            let _ = self.recorder.written(seq).await;
        }
        id
    }
}

#[cfg(test)]
mod tests {
    use super::{KEPT, Reading};

    #[test]
    fn a_text_keeps_the_memory_that_the_next_one_can_use_and_no_more() {
        let mut reading = Reading::default();
        reading.text.make_ready(500_000).for_each(drop);
        reading.text.plain(&"x".repeat(400_000));
        reading.fit_text();
        assert!(reading.text.capacity() >= 500_000);
        reading.text.plain("of a picture, this is all that is left");
        reading.fit_text();
        assert!(reading.text.capacity() < 16 << 10);
        reading.text.plain(&"x".repeat(KEPT + 1));
        reading.text.make_ready(2 * KEPT).for_each(drop);
        reading.text.plain(&"x".repeat(KEPT + 1));
        reading.fit_text();
        assert!(reading.text.capacity() < KEPT + (16 << 10));
    }
}
