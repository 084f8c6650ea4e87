//! An exchange between its two records.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use proofgate_auth::Tenant;
use proofgate_ledger::commitment::{BodyDigest, Salted, salt_id};
use proofgate_ledger::record::{Admission, Completion, ConfigId, Outcome, PolicyNote, Usage};
use proofgate_limits::{CredentialId, Grant};
use proofgate_providers::Call;
use proofgate_stages::{Span, Stage};

use crate::catalog::{Catalog, ModelRoute};
use crate::clock::micros;
use crate::gateway::Gateway;
use crate::hooks::Masks;
use crate::metrics::Series;
use crate::open_table::Entry;
use crate::recorder::{Room, Unavailable};
use crate::request_id::RequestId;

/// An exchange whose admission is in the ledger and whose completion is not.
///
/// However it ends — by [`OpenExchange::end`], or by being dropped when its task panics — it leaves a completion and
/// gives back what it holds of its tenant's limits.
pub(crate) struct OpenExchange {
    gateway: Rc<Gateway>,
    pub(crate) catalog: Rc<Catalog>,
    pub(crate) tenant: Tenant,
    room: Option<Room>,
    grant: Option<Grant>,
    pub(crate) id: RequestId,
    /// Position of the admission record.
    pub(crate) admission: u64,
    /// Where it stands among the open ones.
    listed: usize,
    salted: Salted,
    /// Of the response body so far.
    pub(crate) response: BodyDigest,
    /// Bytes of the response body so far.
    pub(crate) bytes: u64,
    pub(crate) upstream_status: Option<u16>,
    pub(crate) executed: Executed,
    /// What the policy saw in the response.
    pub(crate) policy: Option<PolicyNote<'static>>,
    /// What is put back in the response where masks stand for it.
    pub(crate) masks: Option<Box<Masks>>,
    pub(crate) span: Span,
    /// Where it counts.
    series: Arc<Series>,
    started: Instant,
    started_at: u64,
    config: ConfigId,
}

/// Whether the upstream can have acted on a request of which it has said nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Executed {
    /// Not all of it has left: of a body with a length, no upstream may act on a part (RFC 9112 section 8).
    No,
    /// All of it has left.
    Maybe,
}

/// Holds what was granted until the exchange is open; dropped before that, it counts as a request that used nothing.
pub(crate) struct Granted<'g> {
    gateway: &'g Gateway,
    grant: Option<Grant>,
    /// Whether the request counts among those of its tenant all the same.
    pub(crate) counts: bool,
}

impl<'g> Granted<'g> {
    pub(crate) fn new(gateway: &'g Gateway, grant: Grant) -> Self {
        Granted {
            gateway,
            grant: Some(grant),
            counts: true,
        }
    }
}

impl Drop for Granted<'_> {
    fn drop(&mut self) {
        if let Some(grant) = self.grant.take() {
            self.gateway.limiter.borrow_mut().refund(grant, self.counts);
        }
    }
}

/// What is known when an exchange is admitted.
pub(crate) struct Admitted<'a> {
    pub(crate) gateway: &'a Rc<Gateway>,
    pub(crate) catalog: &'a Rc<Catalog>,
    pub(crate) tenant: &'a Tenant,
    pub(crate) key: CredentialId,
    pub(crate) body: &'a [u8],
    pub(crate) digest: BodyDigest,
    pub(crate) call: &'a Call<'a>,
    pub(crate) route: &'a ModelRoute,
    pub(crate) series: Arc<Series>,
    pub(crate) policy: Option<PolicyNote<'a>>,
    /// The configuration in force when it began.
    pub(crate) config: ConfigId,
    pub(crate) started: Instant,
}

impl OpenExchange {
    /// Records the admission. The record is not written yet: that takes until the end of this turn of the event loop.
    ///
    /// # Errors
    /// [`Unavailable`] when the ledger cannot take both records of the exchange; what was granted is given back then.
    pub(crate) fn admit(
        admitted: Admitted<'_>,
        mut granted: Granted<'_>,
        span: Span,
    ) -> Result<Box<Self>, Unavailable> {
        let gateway = admitted.gateway;
        let recorder = &gateway.recorder;
        let grant = granted.grant.as_ref().ok_or(Unavailable::Stopped)?;
        let mut room = recorder.reserve()?;
        let salt = recorder.next_salt()?;
        let started_at = grant.at();
        let id = gateway.request_id(started_at);
        let salted = Salted::new(&salt);
        let request = salted.commit("request", admitted.digest);
        let salt = salt_id(&salt);
        let key = admitted.key.hex();
        let config = admitted.config;
        let admission = |seq| Admission {
            seq,
            ts: started_at,
            id: id.as_str().into(),
            tenant: (&*admitted.tenant.name).into(),
            key: key.as_str().into(),
            model: admitted.call.model.as_ref().into(),
            provider: admitted.route.upstream.name.as_str().into(),
            upstream_model: admitted.route.upstream_model.as_str().into(),
            endpoint: admitted.call.dialect.path().into(),
            stream: admitted.call.stream,
            bytes: admitted.body.len() as u64,
            request,
            salt: Some(salt),
            reserved: grant.reserved(),
            policy: admitted.policy.clone(),
            config,
        };
        let admission = recorder.append(&mut room, |seq, out| admission(seq).encode_into(out));
        let admission = admission?;
        let listed = recorder.open().insert(Entry {
            position: admission,
            admitted_at: started_at,
            id,
            tenant: Arc::clone(&admitted.tenant.name),
            key: admitted.key,
            reserved: grant.reserved(),
        });
        gateway.metrics.in_flight.inc();
        gateway.metrics.request_bytes.inc_by(admitted.body.len() as u64);
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
            response: BodyDigest::new(),
            bytes: 0,
            upstream_status: None,
            executed: Executed::No,
            policy: None,
            masks: None,
            span,
            series: admitted.series,
            started: admitted.started,
            started_at,
            config,
        });
        if let Some(grant) = &mut open.grant {
            gateway.limiter.borrow_mut().recorded(grant);
        }
        Ok(open)
    }

    /// Adds bytes of the upstream's answer to the response as the client gets it.
    pub(crate) fn relay(&mut self, bytes: &[u8]) {
        if self.bytes == 0 && !bytes.is_empty() {
            self.series.began(micros(self.started.elapsed()));
        }
        self.respond(bytes);
    }

    /// Adds bytes to the response as the client gets it.
    pub(crate) fn respond(&mut self, bytes: &[u8]) {
        self.response.update(bytes);
        self.bytes += bytes.len() as u64;
    }

    /// Appends the completion and returns its number; `None` when the ledger has stopped.
    pub(crate) fn end(&mut self, outcome: Outcome, status: u16, usage: Option<Usage>) -> Option<u64> {
        let mut room = self.room.take()?;
        let duration_us = micros(self.started.elapsed());
        let ts = self.started_at.saturating_add(duration_us);
        let charged = self.settle(usage, ts);
        let response = self.salted.commit("response", std::mem::take(&mut self.response));
        let policy = self.policy.take();
        let recorder = &self.gateway.recorder;
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
            upstream_status: self.upstream_status,
            outcome,
            bytes: self.bytes,
            response,
            usage,
            charged,
            duration_us,
            policy: policy.clone(),
            config: self.config,
        };
        let appended = recorder.append(&mut room, |seq, out| completion(seq).encode_into(out));
        recorder.open().remove(self.listed);
        self.gateway.metrics.in_flight.dec();
        self.gateway.metrics.response_bytes.inc_by(self.bytes);
        self.gateway.metrics.ended(outcome);
        self.series.ended(outcome, usage, duration_us);
        appended.ok()
    }

    /// Gives back what is held of the tenant's limits; returns the tokens charged, `None` when the reservation stands
    /// because nobody knows what was used.
    fn settle(&mut self, usage: Option<Usage>, now: u64) -> Option<u64> {
        let grant = self.grant.take()?;
        let counted = grant.reserved().is_some();
        let mut limiter = self.gateway.limiter.borrow_mut();
        let unused = match self.upstream_status {
            Some(status) => status >= 400,
            None => self.executed == Executed::No,
        };
        let used = match usage {
            Some(usage) => Some(usage.prompt_tokens.saturating_add(usage.completion_tokens)),
            None => unused.then_some(0),
        };
        match used {
            Some(used) => limiter.settle(grant, used, now),
            None => limiter.keep(grant),
        }
        used.filter(|_| counted)
    }

    /// Waits until record `seq` is written and notes how long that took.
    pub(crate) async fn written(&mut self, seq: Option<u64>, stage: Stage) -> bool {
        let written = self.gateway.recorder.written_or_stopped(seq).await.is_ok();
        self.span.lap_now(stage);
        written
    }

    /// The last byte has been handed to the kernel.
    pub(crate) fn sent(mut self: Box<Self>) {
        self.span.lap_now(Stage::ClientWrite);
    }
}

impl Drop for OpenExchange {
    fn drop(&mut self) {
        self.end(Outcome::InternalError, 500, None);
        std::mem::take(&mut self.span).finish_now(&self.gateway.profiler);
    }
}

#[cfg(test)]
#[path = "open_exchange_tests.rs"]
mod tests;
