//! An exchange between its two records.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use proofgate_auth::Tenant;
use proofgate_base::clock::micros;
use proofgate_base::open_table::Entry;
use proofgate_base::request_id::RequestId;
use proofgate_ledger::commitment::{BodyDigest, Salted, salt_id};
use proofgate_ledger::record::{
    Admission, Attempt, Coming, Completion, ConfigId, Outcome, PolicyNote, Received, SendOutcome, Usage,
};
use proofgate_limits::{ActualUsage, CredentialId, Grant};
use proofgate_observe::analysis::{AnswerCopy, Of};
use proofgate_observe::attribution::Attribution;
use proofgate_observe::metrics::{Series, Took};
use proofgate_observe::payloads::{Asked, Keeping};
use proofgate_observe::recorder::{RecordPermit, Unavailable};
use proofgate_observe::telemetry::{self, Observed};
use proofgate_payloads::PayloadKey;
use proofgate_providers::{Call, Dialect};
use proofgate_stages::{Span, Stage};
use proofgate_upstream::attempt::Reached;
use proofgate_upstream::catalog::Catalog;
use proofgate_upstream::delivery::Executed;
use proofgate_upstream::pricing::{AskedFor, Bounds, Offer};
use proofgate_upstream::routes::Target;
use proofgate_upstream::upstream::InFlightPermit;

use crate::gateway::Gateway;
use crate::guarded_tools::Guard;
use crate::hooks::Masks;
use crate::judged::MOST_NAMED;
use crate::settlement::{Account, Charge, LastAttempt, Reserved};

/// An exchange whose admission is in the ledger and whose completion is not.
///
/// However it ends — by [`OpenExchange::end`], or by being dropped when its task panics — it leaves a completion and
/// gives back what it holds of its tenant's limits.
pub struct OpenExchange {
    gateway: Rc<Gateway>,
    pub catalog: Rc<Catalog>,
    pub tenant: Tenant,
    room: Option<RecordPermit>,
    grant: Option<Grant>,
    pub id: RequestId,
    /// Position of the admission record.
    pub admission: u64,
    /// Where it stands among the open ones.
    listed: usize,
    salted: Salted,
    /// What has arrived of a body that was still coming when it was admitted.
    arriving: Option<Arriving>,
    /// Of the response body so far.
    pub response: BodyDigest,
    /// Bytes of the response body so far.
    pub bytes: u64,
    /// Events that an answer of tokens has had, known once all of it has come that will.
    pub events: u64,
    /// How far the attempt under way has come.
    pub reached: Reached,
    /// Its place among those under way at the provider, while an attempt is.
    pub(crate) attending: Option<InFlightPermit>,
    /// Attempts so far.
    attempts: u32,
    /// What it is charged, at the price that held when it was admitted.
    account: Account,
    /// Whether money is reserved again for an attempt after the one that failed.
    has_reserved_again: bool,
    /// What the policy saw in the response.
    pub policy: Option<PolicyNote<'static>>,
    /// What is put back in the response where masks stand for it.
    pub(crate) masks: Option<Box<Masks>>,
    /// What looks in the response for calls of guarded tools, where something does.
    pub(crate) guard: Option<Box<Guard>>,
    /// What it failed by: the machine code of what its client is told.
    pub error: Option<&'static str>,
    /// What is told of it, where somebody wants to know.
    pub observed: Option<Box<Observed>>,
    /// What is stored of it, where its tenant wants that.
    keeping: Option<Box<Keeping>>,
    /// A copy of its answer, where that is analysed, and the model that was asked for.
    copy: Option<(Box<AnswerCopy>, Arc<str>)>,
    pub span: Span,
    stream: bool,
    /// What its client speaks.
    dialect: Dialect,
    request_bytes: u64,
    /// Where it counts.
    series: Arc<Series>,
    started: Instant,
    started_at: u64,
    config: ConfigId,
}

/// A request's body as far as it has come.
struct Arriving {
    digest: BodyDigest,
    bytes: u64,
    whole: bool,
}

/// Holds what was granted until the exchange is open; dropped before that, it counts as a request that used nothing.
pub(crate) struct Granted<'g> {
    gateway: &'g Gateway,
    tenant: &'g str,
    grant: Option<Grant>,
    /// Whether the request counts among those of its tenant all the same.
    pub(crate) counts: bool,
}

impl<'g> Granted<'g> {
    pub fn new(gateway: &'g Gateway, tenant: &'g str, grant: Grant) -> Self {
        Granted {
            gateway,
            tenant,
            grant: Some(grant),
            counts: true,
        }
    }

    /// The plan whose limits its tenant's namespace shares.
    pub(crate) fn shared_plan(&self) -> Option<Arc<str>> {
        self.grant.as_ref()?.shared_plan().cloned()
    }
}

impl Drop for Granted<'_> {
    fn drop(&mut self) {
        if let Some(grant) = self.grant.take() {
            let is_shared = grant.shared_plan().is_some();
            self.gateway
                .limits
                .limiter
                .borrow_mut()
                .refund(grant, self.counts);
            self.gateway.limits.queues.settled(self.tenant, is_shared);
        }
    }
}

/// Begins to store an exchange that is to be admitted.
fn keep(admitted: &Admitted<'_>, most: usize) -> Result<Box<Keeping>, Unavailable> {
    let desk = admitted.gateway.observers.payloads.as_ref();
    let asked = match admitted.coming {
        Some(_) => Asked::Coming,
        None => Asked::Whole(admitted.body),
    };
    let desk = desk.ok_or(Unavailable::Payloads)?;
    Keeping::begin(desk, &admitted.tenant.name, most, asked)
}

/// The names of dropped fields that a record has room for.
fn named(dropped: &[&'static str]) -> Vec<Cow<'static, str>> {
    let named = dropped.iter().take(MOST_NAMED);
    named.map(|name| Cow::Borrowed(*name)).collect()
}

/// How many more there are.
fn unnamed(dropped: &[&'static str]) -> u32 {
    u32::try_from(dropped.len().saturating_sub(MOST_NAMED)).unwrap_or(u32::MAX)
}

/// What is known when an exchange is admitted.
pub(crate) struct Admitted<'a> {
    pub gateway: &'a Rc<Gateway>,
    pub catalog: &'a Rc<Catalog>,
    pub tenant: &'a Tenant,
    pub key: CredentialId,
    /// What the configuration calls the key.
    pub key_name: Option<&'a str>,
    /// Whom it is for, as its client says.
    pub attribution: &'a Attribution,
    /// The address of its client, where records have it.
    pub client_address: Option<String>,
    pub body: &'a [u8],
    pub digest: BodyDigest,
    /// Whether more of the body is still coming.
    pub coming: Option<Coming>,
    pub call: &'a Call<'a>,
    /// What is asked for; of files and batches with the id of the object.
    pub endpoint: Cow<'a, str>,
    /// The model's name in the configuration; empty for files and batches.
    pub model: &'a Arc<str>,
    pub target: &'a Target,
    /// What the model is called there.
    pub upstream_model: &'a str,
    /// Tokens that its answers may have.
    pub(crate) answer_tokens: u64,
    /// What bounds the tokens that it pays for.
    pub bounds: Bounds,
    /// What it asks for that has a price of its own.
    pub asked: AskedFor,
    /// Fields that its translation left out.
    pub dropped: &'a [&'static str],
    pub series: Arc<Series>,
    pub policy: Option<PolicyNote<'a>>,
    /// The configuration in force when it began.
    pub config: ConfigId,
    pub started: Instant,
}

impl OpenExchange {
    /// Records the admission. The record is not written yet: that takes until the end of this turn of the event loop.
    ///
    /// # Errors
    /// [`Unavailable`] when the ledger cannot take both records of the exchange, or its tenant lacks a key; what was granted is given back then.
    pub(crate) fn admit(
        admitted: Admitted<'_>,
        mut granted: Granted<'_>,
        span: Span,
    ) -> Result<Box<Self>, Unavailable> {
        let gateway = admitted.gateway;
        let recorder = &gateway.observers.recorder;
        let grant = granted.grant.as_ref().ok_or(Unavailable::Stopped)?;
        let mut room = recorder.reserve()?;
        let shred_key = admitted.catalog.terms.shred_key(&admitted.tenant.name)?;
        let stored_payloads = match admitted.catalog.terms.plan(admitted.tenant).payload_bytes {
            Some(most) => Some(keep(&admitted, most)?),
            None => None,
        };
        let stored = recorder.next_salt()?;
        let salt = shred_key.map_or(stored, |key| key.salt(&stored));
        let started_at = grant.at();
        let id = gateway.request_id(started_at);
        let salted = Salted::new(&salt);
        let arriving = admitted.coming.map(|_| Arriving {
            digest: admitted.digest.clone(),
            bytes: admitted.body.len() as u64,
            whole: false,
        });
        let request = salted.commit("request", admitted.digest);
        let payload_key = match &stored_payloads {
            Some(_) => shred_key.map(|key| PayloadKey::new(key, &salt)),
            None => None,
        };
        let salt = salt_id(&salt);
        let key = admitted.key.hex();
        let config = admitted.config;
        let tenant = &admitted.tenant.name;
        let shredder = shred_key.map(|key| &**key);
        let names_user = admitted.catalog.terms.personal_data.end_user;
        let admission = |seq, tenant_seq| Admission {
            seq,
            ts: started_at,
            id: id.as_str().into(),
            tenant: (&**tenant).into(),
            tenant_seq,
            key: key.as_str().into(),
            key_name: admitted.key_name.map(Into::into),
            model: admitted.call.model.as_ref().into(),
            provider: admitted.target.upstream.name.as_str().into(),
            upstream_model: admitted.upstream_model.into(),
            endpoint: admitted.endpoint.as_ref().into(),
            stream: admitted.call.stream,
            coming: admitted.coming,
            bytes: admitted.body.len() as u64,
            request,
            salt: Some(salt),
            shred_key: shred_key.map(|key| key.id()),
            reserved: grant.reserved(),
            reserved_nanodollars: grant.reserved_cost(),
            shared_plan: grant.shared_plan().map(|plan| (&**plan).into()),
            policy: admitted.policy.clone(),
            dropped: named(admitted.dropped),
            dropped_unnamed: unnamed(admitted.dropped),
            attribution: admitted.attribution.recorded(tenant, shredder, names_user),
            client_address: admitted.client_address.as_deref().map(Into::into),
            config,
        };
        let admission = recorder.append_numbered(&mut room, tenant, |seq, tenant_seq, out| {
            admission(seq, tenant_seq).encode_into(out)
        })?;
        let listed = recorder.open().insert(Entry {
            position: admission,
            admitted_at: started_at,
            id,
            tenant: Arc::clone(&admitted.tenant.name),
            key: admitted.key,
            reserved: grant.reserved(),
            reserved_nanodollars: grant.reserved_cost(),
            shared_plan: grant.shared_plan().cloned(),
            model: Arc::clone(admitted.model),
        });
        gateway.observers.metrics.in_flight.inc();
        gateway
            .observers
            .metrics
            .request_bytes
            .inc_by(admitted.body.len() as u64);
        let reserved = Reserved {
            tokens: grant.reserved(),
            cost: grant.reserved_cost(),
            answer_tokens: admitted.answer_tokens,
            bounds: admitted.bounds,
            asked: admitted.asked.clone(),
        };
        // From here on the exchange itself sees to its end, whatever happens.
        let mut open = Box::new(OpenExchange {
            gateway: Rc::clone(gateway),
            catalog: Rc::clone(admitted.catalog),
            tenant: admitted.tenant.clone(),
            room: Some(room),
            grant: granted.grant.take(),
            id,
            admission,
            listed,
            salted,
            arriving,
            response: BodyDigest::new(),
            bytes: 0,
            events: 0,
            reached: Reached::default(),
            attending: None,
            attempts: 1,
            account: Account::new(
                reserved,
                Offer {
                    price: admitted.target.price(admitted.upstream_model, started_at),
                    gets_tools: admitted.asked.tools.is_none()
                        || admitted.target.gets_hosted_tools(admitted.call.dialect),
                },
            ),
            has_reserved_again: false,
            policy: None,
            masks: None,
            guard: None,
            error: None,
            observed: None,
            keeping: stored_payloads,
            copy: None,
            span,
            stream: admitted.call.stream,
            dialect: admitted.call.dialect,
            request_bytes: admitted.body.len() as u64,
            series: admitted.series,
            started: admitted.started,
            started_at,
            config,
        });
        if let Some(grant) = &mut open.grant {
            gateway.limits.limiter.borrow_mut().recorded(grant);
        }
        if let (Some(keeping), Some(desk), Some(key)) =
            (&mut open.keeping, &gateway.observers.payloads, payload_key)
        {
            keeping.admitted(desk, recorder.locate(admission), key);
        }
        Ok(open)
    }

    /// The time, in unix microseconds.
    pub fn now(&self) -> u64 {
        self.started_at.saturating_add(micros(self.started.elapsed()))
    }

    /// Attempts so far.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Records that the request is sent once more, to `target`, without the fields that are `dropped`, because the attempt before came to `failure`. The record is not
    /// written yet.
    ///
    /// # Errors
    /// [`Unavailable`] when the ledger cannot take it: then the request may not be sent.
    pub(crate) fn turn_to(
        &mut self,
        target: &Target,
        upstream_model: &str,
        dropped: &[&'static str],
        series: Arc<Series>,
        failure: &str,
    ) -> Result<u64, Unavailable> {
        let recorder = &self.gateway.observers.recorder;
        let mut room = recorder.reserve_one()?;
        let (incarnation, admission) = recorder.locate(self.admission);
        let elsewhere = (!recorder.is_current(self.admission)).then(|| incarnation.to_string());
        let attempts = self.attempts.saturating_add(1);
        let attempt = |seq| Attempt {
            seq,
            ts: self.now(),
            id: self.id.as_str().into(),
            admission,
            incarnation: elsewhere.as_deref().map(Into::into),
            attempt: attempts,
            provider: target.upstream.name.as_str().into(),
            upstream_model: upstream_model.into(),
            failure: failure.into(),
            failed_status: self.reached.status,
            failed_sent: self.reached.sent(),
            dropped: named(dropped),
            dropped_unnamed: unnamed(dropped),
            config: self.config,
        };
        let appended = recorder.append(&mut room, |seq, out| attempt(seq).encode_into(out))?;
        let is_paid = self.reached.sent() == SendOutcome::Maybe;
        let offer = Offer {
            price: target.price(upstream_model, self.started_at),
            gets_tools: !self.account.has_tools() || target.gets_hosted_tools(self.dialect),
        };
        self.account.turn(offer, is_paid);
        self.has_reserved_again = false;
        if let Some(observed) = &mut self.observed {
            observed.turns_to(&target.upstream.name, upstream_model);
        }
        self.attempts = attempts;
        self.reached = Reached::default();
        self.series = series;
        Ok(appended)
    }

    /// More of the request's body has arrived.
    pub fn receive(&mut self, bytes: &[u8]) {
        if let Some(arriving) = &mut self.arriving {
            arriving.digest.update(bytes);
            arriving.bytes += bytes.len() as u64;
            self.gateway
                .observers
                .metrics
                .request_bytes
                .inc_by(bytes.len() as u64);
        }
    }

    /// All of it has.
    pub(crate) fn received_whole(&mut self) {
        if let Some(arriving) = &mut self.arriving {
            arriving.whole = true;
        }
    }

    /// Adds bytes of the upstream's answer to the response as the client gets it.
    pub fn relay(&mut self, bytes: &[u8]) {
        self.relay_as(bytes, bytes);
    }

    /// The same of what goes to the client in another form than that in which it is analysed: `said` is sent as `bytes`.
    pub(crate) fn relay_as(&mut self, said: &[u8], bytes: &[u8]) {
        if self.bytes == 0 && !bytes.is_empty() {
            let waited = micros(self.started.elapsed());
            self.series.began(Took {
                stream: self.stream,
                microseconds: waited,
            });
            if let Some(observed) = &mut self.observed {
                observed.answers(waited);
            }
        }
        self.respond_as(said, bytes);
    }

    /// Adds bytes to the response as the client gets it.
    pub fn respond(&mut self, bytes: &[u8]) {
        self.respond_as(bytes, bytes);
    }

    fn respond_as(&mut self, said: &[u8], bytes: &[u8]) {
        self.response.update(bytes);
        self.bytes += bytes.len() as u64;
        if let Some((copy, _)) = &mut self.copy {
            copy.take(said);
        }
        if let Some(keeping) = &mut self.keeping {
            keeping.respond(bytes);
        }
    }

    /// Waits until what is to be stored is, or it is known why not: its answer is complete. Call it before its end.
    pub async fn store(&mut self) {
        if let (Some(keeping), Some(desk)) = (&mut self.keeping, &self.gateway.observers.payloads) {
            let place = self.gateway.observers.recorder.locate(self.admission);
            // Boxed: only these exchanges need the room.
            Box::pin(keeping.settle(desk, place)).await;
        }
    }

    /// Begins a copy of its answer, if that is to be analysed.
    pub(crate) fn begin_copy(&mut self, dialect: Dialect) {
        if let Some(tap) = &self.gateway.observers.tap
            && let Some(model) = self.gateway.observers.recorder.open().model(self.listed)
        {
            let copy = tap.begin(&self.gateway.random, &self.tenant.name, &model, dialect);
            self.copy = copy.map(|copy| (copy, model));
        }
    }

    /// Hands the copy over to be analysed: its client has the whole answer. Waits for nothing.
    pub(crate) fn analyse(&mut self, events: bool, usage: Option<Usage>) {
        if let Some(tap) = &self.gateway.observers.tap
            && let Some((copy, model)) = self.copy.take()
        {
            let tokens = usage.filter(|usage| !usage.partial);
            let of = Of {
                id: self.id,
                admission: self.admission,
                tenant: Arc::clone(&self.tenant.name),
                model,
            };
            tap.hand_over(*copy, events, tokens.map(|usage| usage.completion_tokens), of);
        }
    }

    /// Appends the completion and returns its number; `None` when the ledger has stopped.
    pub fn end(&mut self, outcome: Outcome, status: u16, usage: Option<Usage>) -> Option<u64> {
        let mut room = self.room.take()?;
        let duration_us = micros(self.started.elapsed());
        let ts = self.started_at.saturating_add(duration_us);
        let (charged, cost) = self.settle(usage, ts);
        let response = self.salted.commit("response", std::mem::take(&mut self.response));
        let received = self.arriving.take().map(|arriving| Received {
            bytes: arriving.bytes,
            request: self.salted.commit("received", arriving.digest),
            whole: arriving.whole,
        });
        let payloads = match (self.keeping.take(), &self.gateway.observers.payloads) {
            (Some(keeping), Some(desk)) => Some(keeping.stated(desk)),
            _ => None,
        };
        let policy = self.policy.take();
        let recorder = &self.gateway.observers.recorder;
        // The log may have changed since.
        let (incarnation, admission) = recorder.locate(self.admission);
        let elsewhere = (!recorder.is_current(self.admission)).then(|| incarnation.to_string());
        let completion = |seq| Completion {
            seq,
            ts,
            id: self.id.as_str().into(),
            admission,
            incarnation: elsewhere.as_deref().map(Into::into),
            status,
            upstream_status: self.reached.status,
            attempts: self.attempts,
            outcome,
            received,
            bytes: self.bytes,
            response,
            payloads,
            usage,
            charged,
            cost_nanodollars: cost,
            duration_us,
            policy: policy.clone(),
            config: self.config,
        };
        let appended = recorder.append(&mut room, |seq, out| completion(seq).encode_into(out));
        recorder.open().remove(self.listed);
        self.gateway.observers.metrics.in_flight.dec();
        self.gateway.observers.metrics.response_bytes.inc_by(self.bytes);
        self.gateway.observers.metrics.ended(outcome);
        let took = Took {
            stream: self.stream,
            microseconds: duration_us,
        };
        self.series.ended(outcome, usage, cost, took);
        if let Some(observed) = self.observed.take() {
            let ended = telemetry::Ended {
                outcome,
                status,
                error: self.error,
                attempts: self.attempts,
                duration_us,
                response_bytes: self.bytes,
                usage,
                cost_nanodollars: cost,
            };
            observed.ended(&self.gateway.observers.outlet, self.id, self.request_bytes, ended);
        }
        appended.ok()
    }

    /// The attempt under way came to nothing that would be relayed: its provider has one request less.
    pub fn leave(&mut self) {
        self.leave_with(None);
    }

    /// Its provider has one request less, and that used so many tokens, where they are known.
    fn leave_with(&mut self, used: Option<u64>) {
        let unused = self.is_unused().then_some(0);
        if let Some(attending) = self.attending.take() {
            attending.settle(self.reached.sent(), used.or(unused));
        }
    }

    /// Whether the attempt under way used nothing, as far as its provider has said nothing else.
    fn is_unused(&self) -> bool {
        match self.reached.status {
            Some(status) => status >= 400,
            None => self.reached.executed == Executed::No,
        }
    }

    /// Whether a provider may have answered it, and is paid for that.
    pub(crate) fn may_have_run(&self) -> bool {
        self.account.has_unsettled() || !self.is_unused()
    }

    /// Reserves money for one more attempt, where the one that failed may have been answered and paid for; says whether the
    /// request may be sent once more.
    pub(crate) fn reserve_again(&mut self) -> bool {
        let (Some(grant), Some(cost)) = (&mut self.grant, self.account.reserved_cost()) else {
            return true;
        };
        if self.has_reserved_again || self.reached.sent() != SendOutcome::Maybe {
            return true;
        }
        let now = self.started_at.saturating_add(micros(self.started.elapsed()));
        let fits = self
            .gateway
            .limits
            .limiter
            .borrow_mut()
            .reserve_again(grant, cost, now);
        self.has_reserved_again = fits;
        fits
    }

    /// Whether its request asks for a cache that keeps what is written for longer than five minutes.
    pub(crate) fn is_kept_longer(&self) -> bool {
        self.account.is_kept_longer()
    }

    /// Whether its request offers tools that a provider runs itself.
    pub(crate) fn offers_tools(&self) -> bool {
        self.account.offers_tools()
    }

    /// Gives back what is held of the tenant's limits. Returns the tokens charged, `None` when the reservation stands
    /// because nobody knows what was used, and the cost in nanodollars, where it is known.
    fn settle(&mut self, usage: Option<Usage>, now: u64) -> (Option<u64>, Option<u64>) {
        let charge = self.account.charge(&LastAttempt {
            usage,
            is_unused: self.is_unused(),
            events: self.events,
        });
        let Charge {
            last,
            tokens: used,
            cost,
        } = charge;
        self.leave_with(last);
        let Some(grant) = self.grant.take() else {
            return (None, cost);
        };
        let counted = grant.reserved().is_some();
        let is_shared = grant.shared_plan().is_some();
        let mut limiter = self.gateway.limits.limiter.borrow_mut();
        match used {
            Some(tokens) => {
                let cost = cost.unwrap_or(0);
                limiter.settle(grant, ActualUsage { tokens, cost }, now);
            }
            None => limiter.keep(grant),
        }
        drop(limiter);
        self.gateway.limits.queues.settled(&self.tenant.name, is_shared);
        (used.filter(|_| counted), cost)
    }

    /// Waits until record `seq` is written and notes how long that took.
    pub async fn written(&mut self, seq: Option<u64>, stage: Stage) -> bool {
        let written = self
            .gateway
            .observers
            .recorder
            .written_or_stopped(seq)
            .await
            .is_ok();
        self.span.lap_now(stage);
        written
    }

    /// The last byte has been handed to the kernel.
    pub fn sent(mut self: Box<Self>) {
        self.span.lap_now(Stage::ClientWrite);
    }
}

impl Drop for OpenExchange {
    fn drop(&mut self) {
        self.end(Outcome::InternalError, 500, None);
        std::mem::take(&mut self.span).finish_now(&self.gateway.observers.profiler);
    }
}

#[cfg(test)]
#[path = "open_exchange_tests.rs"]
mod tests;
