//! An exchange between its admission record and its completion record.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use proofgate_auth::Tenant;
use proofgate_base::clock::micros;
use proofgate_base::open_exchange_table::OpenExchangeEntry;
use proofgate_base::request_id::RequestId;
use proofgate_ledger::commitment::{BodyHasher, SaltedCommitter, salt_id};
use proofgate_ledger::record::{
    Admission, Attempt, Completion, ConfigId, Outcome, PendingBody, PolicyNote, ReceivedBody, SendOutcome,
    Usage,
};
use proofgate_limits::{ActualUsage, CredentialId, Grant};
use proofgate_observe::analysis::{AnalysisContext, ResponseCopy};
use proofgate_observe::attribution::Attribution;
use proofgate_observe::metrics::{Series, Timing};
use proofgate_observe::payloads::{AdmittedBody, ExchangeBodies};
use proofgate_observe::recorder::{LedgerUnavailable, RecordPermit};
use proofgate_observe::telemetry::{self, ObservedExchange};
use proofgate_payloads::PayloadKey;
use proofgate_providers::{Dialect, ParsedRequest};
use proofgate_stages::{Span, Stage};
use proofgate_upstream::attempt::AttemptProgress;
use proofgate_upstream::catalog::Catalog;
use proofgate_upstream::delivery::ExecutionState;
use proofgate_upstream::pricing::{PricedFeatures, ProviderPrice, TokenBounds};
use proofgate_upstream::routes::Target;
use proofgate_upstream::upstream::InFlightPermit;

use crate::gateway::Gateway;
use crate::guarded_tools::ToolGuard;
use crate::hooks::Masks;
use crate::policy_decision::MAX_NAMED;
use crate::settlement::{Account, Charge, ExchangeReservation, LastAttempt};

/// An exchange whose admission is in the ledger and whose completion is not.
///
/// An open exchange always appends a completion and releases its reservation of the tenant's
/// limits, even if it is dropped because its task panicked, without [`OpenExchange::finish`].
pub struct OpenExchange {
    gateway: Rc<Gateway>,
    pub catalog: Rc<Catalog>,
    pub tenant: Tenant,
    record_permit: Option<RecordPermit>,
    grant: Option<Grant>,
    pub id: RequestId,
    /// Position of the admission record.
    pub admission: u64,
    /// Index in the list of open exchanges.
    open_index: usize,
    salted: SaltedCommitter,
    /// The part of the body that has arrived; `None` if the body was complete at admission.
    arriving_body: Option<ArrivingBody>,
    /// Digest of the response body so far.
    pub response_digest: BodyHasher,
    /// Number of response body bytes so far.
    pub response_bytes: u64,
    /// Number of events in a token response; set when the response has ended.
    pub event_count: u64,
    /// Progress of the current attempt.
    pub attempt_progress: AttemptProgress,
    /// The in-flight permit at the provider; `None` between attempts.
    pub(crate) in_flight: Option<InFlightPermit>,
    /// Number of attempts so far.
    attempts: u32,
    /// The account that computes the charge, at the price at admission.
    account: Account,
    /// Whether money is reserved for an attempt after the failed one.
    has_retry_reservation: bool,
    /// The policy's findings in the response.
    pub policy: Option<PolicyNote<'static>>,
    /// The originals that replace their masks in the response.
    pub(crate) masks: Option<Box<Masks>>,
    /// The guard that looks for calls of guarded tools in the response; `None` if the request is
    /// not guarded.
    pub(crate) guard: Option<Box<ToolGuard>>,
    /// The machine-readable code of the error that is reported to the client; `None` without an
    /// error.
    pub error: Option<&'static str>,
    /// Telemetry of the exchange, if it is observed.
    pub observed_exchange: Option<Box<ObservedExchange>>,
    /// The bodies to store, if the tenant's plan stores them.
    stored_payloads: Option<Box<ExchangeBodies>>,
    /// A copy of the response for analysis, with the requested model; `None` if responses are not
    /// analysed.
    response_copy: Option<(Box<ResponseCopy>, Arc<str>)>,
    pub span: Span,
    stream: bool,
    /// The client's dialect.
    dialect: Dialect,
    request_bytes: u64,
    /// The metric series that count the exchange.
    series: Arc<Series>,
    started: Instant,
    started_at: u64,
    config: ConfigId,
}

/// A request body that is still arriving.
struct ArrivingBody {
    digest: BodyHasher,
    bytes: u64,
    is_complete: bool,
}

/// A grant that is held until the exchange is open, and is refunded if this guard is dropped
/// earlier.
pub(crate) struct PendingGrant<'g> {
    gateway: &'g Gateway,
    tenant: &'g str,
    grant: Option<Grant>,
    /// Whether a refunded request still counts as a request of its tenant.
    pub(crate) counts_request: bool,
}

impl<'g> PendingGrant<'g> {
    pub fn new(gateway: &'g Gateway, tenant: &'g str, grant: Grant) -> Self {
        PendingGrant {
            gateway,
            tenant,
            grant: Some(grant),
            counts_request: true,
        }
    }

    /// Returns the plan whose limits the tenant's namespace shares; `None` if no limits are shared.
    pub(crate) fn shared_plan(&self) -> Option<Arc<str>> {
        self.grant.as_ref()?.shared_plan().cloned()
    }
}

impl Drop for PendingGrant<'_> {
    fn drop(&mut self) {
        if let Some(grant) = self.grant.take() {
            let is_shared = grant.shared_plan().is_some();
            self.gateway
                .limits
                .limiter
                .borrow_mut()
                .refund(grant, self.counts_request);
            self.gateway.limits.queues.notify_released(self.tenant, is_shared);
        }
    }
}

/// Starts storing the bodies of an exchange that is being admitted.
fn start_storing(
    admitted: &AdmissionParams<'_>,
    most: usize,
) -> Result<Box<ExchangeBodies>, LedgerUnavailable> {
    let desk = admitted.gateway.observers.payloads.as_ref();
    let asked = match admitted.pending_body {
        Some(_) => AdmittedBody::Partial,
        None => AdmittedBody::Complete(admitted.body),
    };
    let desk = desk.ok_or(LedgerUnavailable::Payloads)?;
    ExchangeBodies::start(desk, &admitted.tenant.name, most, asked)
}

/// Returns the names of dropped fields that fit in a record.
fn dropped_field_names(dropped: &[&'static str]) -> Vec<Cow<'static, str>> {
    let named = dropped.iter().take(MAX_NAMED);
    named.map(|name| Cow::Borrowed(*name)).collect()
}

/// Returns the number of dropped fields that do not fit in a record.
fn unnamed_count(dropped: &[&'static str]) -> u32 {
    u32::try_from(dropped.len().saturating_sub(MAX_NAMED)).unwrap_or(u32::MAX)
}

/// The parameters of an admission record.
pub(crate) struct AdmissionParams<'a> {
    pub gateway: &'a Rc<Gateway>,
    pub catalog: &'a Rc<Catalog>,
    pub tenant: &'a Tenant,
    pub key: CredentialId,
    /// The configured name of the API key.
    pub key_name: Option<&'a str>,
    /// The session, end user and agent of the request, as the client states them.
    pub attribution: &'a Attribution,
    /// Address of the client, if records include it.
    pub client_address: Option<String>,
    pub body: &'a [u8],
    pub digest: BodyHasher,
    /// The state of the rest of the body; `None` if the body is complete.
    pub pending_body: Option<PendingBody>,
    pub call: &'a ParsedRequest<'a>,
    /// The endpoint; for files and batches, with the object's id.
    pub endpoint: Cow<'a, str>,
    /// Configured name of the model; empty for files and batches.
    pub model: &'a Arc<str>,
    pub target: &'a Target,
    /// The name of the model at the provider.
    pub upstream_model: &'a str,
    /// Maximum tokens of all responses to the request.
    pub(crate) response_tokens: u64,
    /// Maximum numbers of billed tokens.
    pub bounds: TokenBounds,
    /// Requested features that have their own price.
    pub priced_features: PricedFeatures,
    /// Fields that the translation dropped.
    pub dropped_fields: &'a [&'static str],
    pub series: Arc<Series>,
    pub policy: Option<PolicyNote<'a>>,
    /// The configuration that was active when the exchange started.
    pub config: ConfigId,
    pub started: Instant,
}

impl OpenExchange {
    /// Appends the admission record. It is written at the end of the current event loop turn.
    ///
    /// # Errors
    /// [`LedgerUnavailable`] if the ledger has no capacity for both records of the exchange, or the
    /// tenant's shred key is missing. The grant is then released.
    pub(crate) fn admit(
        admitted: AdmissionParams<'_>,
        mut granted: PendingGrant<'_>,
        span: Span,
    ) -> Result<Box<Self>, LedgerUnavailable> {
        let gateway = admitted.gateway;
        let recorder = &gateway.observers.recorder;
        let grant = granted.grant.as_ref().ok_or(LedgerUnavailable::Stopped)?;
        let mut room = recorder.reserve()?;
        let shred_key = admitted.catalog.settings.shred_key(&admitted.tenant.name)?;
        let stored_payloads = match admitted.catalog.settings.plan(admitted.tenant).max_payload_bytes {
            Some(most) => Some(start_storing(&admitted, most)?),
            None => None,
        };
        let stored = recorder.next_salt()?;
        let salt = shred_key.map_or(stored, |key| key.derive_salt(&stored));
        let started_at = grant.admitted_at();
        let id = gateway.request_id(started_at);
        let salted = SaltedCommitter::new(&salt);
        let arriving = admitted.pending_body.map(|_| ArrivingBody {
            digest: admitted.digest.clone(),
            bytes: admitted.body.len() as u64,
            is_complete: false,
        });
        let request = salted.commit("request", admitted.digest);
        let payload_key = match &stored_payloads {
            Some(_) => shred_key.map(|key| PayloadKey::new(key, &salt)),
            None => None,
        };
        let salt = salt_id(&salt);
        let key = admitted.key.to_hex();
        let config = admitted.config;
        let tenant = &admitted.tenant.name;
        let shredder = shred_key.map(|key| &**key);
        let names_user = admitted.catalog.settings.personal_data.end_user;
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
            coming: admitted.pending_body,
            bytes: admitted.body.len() as u64,
            request,
            salt: Some(salt),
            shred_key: shred_key.map(|key| key.id()),
            reserved: grant.reserved(),
            reserved_nanodollars: grant.reserved_cost(),
            shared_plan: grant.shared_plan().map(|plan| (&**plan).into()),
            policy: admitted.policy.clone(),
            dropped: dropped_field_names(admitted.dropped_fields),
            dropped_unnamed: unnamed_count(admitted.dropped_fields),
            attribution: admitted.attribution.record_for(tenant, shredder, names_user),
            client_address: admitted.client_address.as_deref().map(Into::into),
            config,
        };
        let admission = recorder.append_numbered(&mut room, tenant, |seq, tenant_seq, out| {
            admission(seq, tenant_seq).encode_into(out)
        })?;
        let listed = recorder.open_exchanges().insert(OpenExchangeEntry {
            position: admission,
            admitted_at: started_at,
            id,
            tenant: Arc::clone(&admitted.tenant.name),
            credential: admitted.key,
            reserved_tokens: grant.reserved(),
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
        let reserved = ExchangeReservation {
            tokens: grant.reserved(),
            cost: grant.reserved_cost(),
            response_tokens: admitted.response_tokens,
            bounds: admitted.bounds,
            priced_features: admitted.priced_features.clone(),
        };
        // From here on, dropping the exchange ends it.
        let mut open = Box::new(OpenExchange {
            gateway: Rc::clone(gateway),
            catalog: Rc::clone(admitted.catalog),
            tenant: admitted.tenant.clone(),
            record_permit: Some(room),
            grant: granted.grant.take(),
            id,
            admission,
            open_index: listed,
            salted,
            arriving_body: arriving,
            response_digest: BodyHasher::new(),
            response_bytes: 0,
            event_count: 0,
            attempt_progress: AttemptProgress::default(),
            in_flight: None,
            attempts: 1,
            account: Account::new(
                reserved,
                ProviderPrice {
                    price: admitted.target.price(admitted.upstream_model, started_at),
                    receives_tools: admitted.priced_features.tools.is_none()
                        || admitted.target.receives_hosted_tools(admitted.call.dialect),
                },
            ),
            has_retry_reservation: false,
            policy: None,
            masks: None,
            guard: None,
            error: None,
            observed_exchange: None,
            stored_payloads,
            response_copy: None,
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
            gateway.limits.limiter.borrow_mut().mark_recorded(grant);
        }
        if let (Some(keeping), Some(desk), Some(key)) = (
            &mut open.stored_payloads,
            &gateway.observers.payloads,
            payload_key,
        ) {
            keeping.submit_request(desk, recorder.locate(admission), key);
        }
        Ok(open)
    }

    /// Returns the current time, in Unix microseconds.
    pub fn now(&self) -> u64 {
        self.started_at.saturating_add(micros(self.started.elapsed()))
    }

    /// Returns the number of attempts so far.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Appends the record of another attempt, at `target`, after the previous attempt ended with
    /// `failure`. `dropped` are the fields that this attempt does not send. The record is not
    /// written yet on return.
    ///
    /// # Errors
    /// [`LedgerUnavailable`] if the ledger has no capacity for the record. The request must not be
    /// sent then.
    pub(crate) fn start_attempt(
        &mut self,
        target: &Target,
        upstream_model: &str,
        dropped: &[&'static str],
        series: Arc<Series>,
        failure: &str,
    ) -> Result<u64, LedgerUnavailable> {
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
            failed_status: self.attempt_progress.status,
            failed_sent: self.attempt_progress.send_outcome(),
            dropped: dropped_field_names(dropped),
            dropped_unnamed: unnamed_count(dropped),
            config: self.config,
        };
        let appended = recorder.append(&mut room, |seq, out| attempt(seq).encode_into(out))?;
        let is_paid = self.attempt_progress.send_outcome() == SendOutcome::Maybe;
        let offer = ProviderPrice {
            price: target.price(upstream_model, self.started_at),
            receives_tools: !self.account.requests_hosted_tools()
                || target.receives_hosted_tools(self.dialect),
        };
        self.account.start_attempt(offer, is_paid);
        self.has_retry_reservation = false;
        if let Some(observed) = &mut self.observed_exchange {
            observed.set_provider(&target.upstream.name, upstream_model);
        }
        self.attempts = attempts;
        self.attempt_progress = AttemptProgress::default();
        self.series = series;
        Ok(appended)
    }

    /// Adds bytes of the request body that have arrived.
    pub fn receive(&mut self, bytes: &[u8]) {
        if let Some(arriving) = &mut self.arriving_body {
            arriving.digest.update(bytes);
            arriving.bytes += bytes.len() as u64;
            self.gateway
                .observers
                .metrics
                .request_bytes
                .inc_by(bytes.len() as u64);
        }
    }

    /// Marks the request body as completely received.
    pub(crate) fn finish_receiving(&mut self) {
        if let Some(arriving) = &mut self.arriving_body {
            arriving.is_complete = true;
        }
    }

    /// Adds upstream bytes to the response as the client receives it.
    pub fn relay(&mut self, bytes: &[u8]) {
        self.relay_translated(bytes, bytes);
    }

    /// Like [`OpenExchange::relay`], for a response whose analysed form differs: `said` is
    /// analysed, and `bytes` are sent.
    pub(crate) fn relay_translated(&mut self, said: &[u8], bytes: &[u8]) {
        if self.response_bytes == 0 && !bytes.is_empty() {
            let waited = micros(self.started.elapsed());
            self.series.record_first_byte(Timing {
                is_stream: self.stream,
                microseconds: waited,
            });
            if let Some(observed) = &mut self.observed_exchange {
                observed.mark_first_byte(waited);
            }
        }
        self.respond_as(said, bytes);
    }

    /// Adds bytes to the response as the client receives it.
    pub fn respond(&mut self, bytes: &[u8]) {
        self.respond_as(bytes, bytes);
    }

    fn respond_as(&mut self, said: &[u8], bytes: &[u8]) {
        self.response_digest.update(bytes);
        self.response_bytes += bytes.len() as u64;
        if let Some((copy, _)) = &mut self.response_copy {
            copy.append(said);
        }
        if let Some(keeping) = &mut self.stored_payloads {
            keeping.append_response(bytes);
        }
    }

    /// Waits until the bodies are stored or storing has failed. It must be called after the
    /// response is complete and before the exchange ends.
    pub async fn wait_until_stored(&mut self) {
        if let (Some(keeping), Some(desk)) = (&mut self.stored_payloads, &self.gateway.observers.payloads) {
            let place = self.gateway.observers.recorder.locate(self.admission);
            // Boxed, because only exchanges with stored bodies need the memory.
            Box::pin(keeping.finish(desk, place)).await;
        }
    }

    /// Starts a copy of the response, if responses are analysed.
    pub(crate) fn start_copy(&mut self, dialect: Dialect) {
        if let Some(tap) = &self.gateway.observers.tap
            && let Some(model) = self
                .gateway
                .observers
                .recorder
                .open_exchanges()
                .model(self.open_index)
        {
            let copy = tap.start_copy(&self.gateway.random, &self.tenant.name, &model, dialect);
            self.response_copy = copy.map(|copy| (copy, model));
        }
    }

    /// Submits the copy for analysis after the client has the complete response. Does not wait.
    pub(crate) fn analyse(&mut self, events: bool, usage: Option<Usage>) {
        if let Some(tap) = &self.gateway.observers.tap
            && let Some((copy, model)) = self.response_copy.take()
        {
            let tokens = usage.filter(|usage| !usage.partial);
            let of = AnalysisContext {
                id: self.id,
                admission_position: self.admission,
                tenant: Arc::clone(&self.tenant.name),
                model,
            };
            tap.submit(*copy, events, tokens.map(|usage| usage.completion_tokens), of);
        }
    }

    /// Appends the completion record and returns its position; `None` if the ledger has stopped.
    pub fn finish(&mut self, outcome: Outcome, status: u16, usage: Option<Usage>) -> Option<u64> {
        let mut room = self.record_permit.take()?;
        let duration_us = micros(self.started.elapsed());
        let ts = self.started_at.saturating_add(duration_us);
        let (charged, cost) = self.settle(usage, ts);
        let response = self
            .salted
            .commit("response", std::mem::take(&mut self.response_digest));
        let received = self.arriving_body.take().map(|arriving| ReceivedBody {
            bytes: arriving.bytes,
            request: self.salted.commit("received", arriving.digest),
            whole: arriving.is_complete,
        });
        let payloads = match (self.stored_payloads.take(), &self.gateway.observers.payloads) {
            (Some(keeping), Some(desk)) => Some(keeping.into_payloads(desk)),
            _ => None,
        };
        let policy = self.policy.take();
        let recorder = &self.gateway.observers.recorder;
        // The log may have been rotated since the admission.
        let (incarnation, admission) = recorder.locate(self.admission);
        let elsewhere = (!recorder.is_current(self.admission)).then(|| incarnation.to_string());
        let completion = |seq| Completion {
            seq,
            ts,
            id: self.id.as_str().into(),
            admission,
            incarnation: elsewhere.as_deref().map(Into::into),
            status,
            upstream_status: self.attempt_progress.status,
            attempts: self.attempts,
            outcome,
            received,
            bytes: self.response_bytes,
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
        recorder.open_exchanges().remove(self.open_index);
        self.gateway.observers.metrics.in_flight.dec();
        self.gateway
            .observers
            .metrics
            .response_bytes
            .inc_by(self.response_bytes);
        self.gateway.observers.metrics.record_outcome(outcome);
        let took = Timing {
            is_stream: self.stream,
            microseconds: duration_us,
        };
        self.series.record_finished(outcome, usage, cost, took);
        if let Some(observed) = self.observed_exchange.take() {
            let ended = telemetry::FinishedExchange {
                outcome,
                status,
                error: self.error,
                attempts: self.attempts,
                duration_us,
                response_bytes: self.response_bytes,
                usage,
                cost_nanodollars: cost,
            };
            observed.report_finished(
                &self.gateway.observers.telemetry,
                self.id,
                self.request_bytes,
                ended,
            );
        }
        appended.ok()
    }

    /// Ends the current attempt, whose response is not relayed, and releases its in-flight permit.
    pub fn end_attempt(&mut self) {
        self.end_attempt_with_usage(None);
    }

    /// Releases the in-flight permit. `used`: the attempt's tokens; `None` if not known.
    fn end_attempt_with_usage(&mut self, used: Option<u64>) {
        let unused = self.is_unused().then_some(0);
        if let Some(attending) = self.in_flight.take() {
            attending.settle(self.attempt_progress.send_outcome(), used.or(unused));
        }
    }

    /// Whether the current attempt used no tokens, according to the provider's reports so far.
    fn is_unused(&self) -> bool {
        match self.attempt_progress.status {
            Some(status) => status >= 400,
            None => self.attempt_progress.execution == ExecutionState::NotExecuted,
        }
    }

    /// Whether a provider may have processed the request and will charge for it.
    pub(crate) fn may_have_run(&self) -> bool {
        self.account.has_unsettled_attempt() || !self.is_unused()
    }

    /// Reserves money for another attempt if the failed attempt may have been processed and
    /// charged. Returns whether the request may be sent again.
    pub(crate) fn reserve_retry(&mut self) -> bool {
        let (Some(grant), Some(cost)) = (&mut self.grant, self.account.reserved_cost()) else {
            return true;
        };
        if self.has_retry_reservation || self.attempt_progress.send_outcome() != SendOutcome::Maybe {
            return true;
        }
        let now = self.started_at.saturating_add(micros(self.started.elapsed()));
        let fits = self
            .gateway
            .limits
            .limiter
            .borrow_mut()
            .reserve_retry_cost(grant, cost, now);
        self.has_retry_reservation = fits;
        fits
    }

    /// Whether the request asks for a prompt cache that keeps entries for more than five minutes.
    pub(crate) fn has_extended_cache(&self) -> bool {
        self.account.has_extended_cache()
    }

    /// Whether the provider of the current attempt receives tools that it runs itself.
    pub(crate) fn sends_hosted_tools(&self) -> bool {
        self.account.sends_hosted_tools()
    }

    /// Releases the tenant's reservation. Returns the charged tokens and the cost in nanodollars.
    /// The tokens are `None` if the reservation is charged because the usage is unknown; the cost
    /// is `None` if it is not known.
    fn settle(&mut self, usage: Option<Usage>, now: u64) -> (Option<u64>, Option<u64>) {
        let charge = self.account.charge(&LastAttempt {
            usage,
            is_unused: self.is_unused(),
            event_count: self.event_count,
        });
        let Charge {
            last_attempt_tokens: last,
            tokens: used,
            cost,
        } = charge;
        self.end_attempt_with_usage(last);
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
            None => limiter.keep_reservation(grant),
        }
        drop(limiter);
        self.gateway
            .limits
            .queues
            .notify_released(&self.tenant.name, is_shared);
        (used.filter(|_| counted), cost)
    }

    /// Waits until record `seq` is written, and measures the wait as `stage`; returns `false` if the ledger stopped.
    pub async fn wait_until_written(&mut self, seq: Option<u64>, stage: Stage) -> bool {
        let written = self
            .gateway
            .observers
            .recorder
            .wait_written_or_stopped(seq)
            .await
            .is_ok();
        self.span.lap_now(stage);
        written
    }

    /// Records that the last byte was passed to the kernel.
    pub fn mark_sent(mut self: Box<Self>) {
        self.span.lap_now(Stage::ClientWrite);
    }
}

impl Drop for OpenExchange {
    fn drop(&mut self) {
        self.finish(Outcome::InternalError, 500, None);
        std::mem::take(&mut self.span).finish_now(&self.gateway.observers.profiler);
    }
}

#[cfg(test)]
#[path = "open_exchange_tests.rs"]
mod tests;
