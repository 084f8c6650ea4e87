//! One admitted exchange: from the body of a request to the last byte of its answer.

use std::rc::Rc;
use std::time::Instant;

use bytes::Buf;
use proofgate_auth::KeyHash;
use proofgate_ledger::commitment::{self, Commitment};
use proofgate_ledger::record::{Admission, Completion, Outcome, Usage};
use proofgate_providers::ChatRequest;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use crate::answer::Answer;
use crate::catalog::ModelRoute;
use crate::client::Client;
use crate::connection::After;
use crate::gateway::{Gateway, unix_micros};
use crate::lifecycle::{Lifecycle, Phase};
use crate::recorder::{Room, Unavailable};
use crate::rejection::Rejection;
use crate::relay::{Buffers, Relay};
use crate::request_id::RequestId;
use crate::upstream::{ConnectError, UpstreamStream};

/// The one endpoint that is forwarded.
pub(crate) const CHAT_COMPLETIONS: &str = "/v1/chat/completions";

/// A request for a chat completion whose sender is known and whose body is whole.
pub(crate) struct ChatCall<'b> {
    pub(crate) tenant: usize,
    pub(crate) key: KeyHash,
    pub(crate) body: &'b [u8],
    /// Whether the connection ends with the answer.
    pub(crate) close: bool,
}

/// Serves a chat completion: admit, record, forward, relay, record, finish.
pub(crate) async fn run(
    gateway: &Rc<Gateway>,
    client: &mut Client,
    buffers: &mut Buffers,
    lifecycle: &mut Lifecycle,
    call: ChatCall<'_>,
) -> After {
    let close = call.close;
    let tenant = gateway.catalog.tenants.tenant(call.tenant);
    let refuse = async |client: &mut Client, buffers: &mut Buffers, rejection: Rejection| {
        let id = gateway
            .reject(
                &rejection,
                Some(&tenant.name),
                Some(CHAT_COMPLETIONS),
                call.body.len(),
            )
            .await;
        send_answer(client, buffers, &rejection.answer(), id.as_str(), close).await
    };
    let chat = match ChatRequest::parse(call.body) {
        Ok(chat) => chat,
        Err(bad) => return refuse(client, buffers, Rejection::from(bad)).await,
    };
    let Some(route) = gateway.catalog.route(tenant, &chat.model) else {
        return refuse(client, buffers, Rejection::UNKNOWN_MODEL).await;
    };
    let mut open = match OpenExchange::admit(gateway, &call, &chat, route) {
        Ok(open) => open,
        Err(unavailable) => {
            gateway.metrics.ledger_refusals.inc();
            return refuse(client, buffers, Rejection::from(unavailable)).await;
        }
    };
    if gateway.recorder.written(open.admission).await.is_err() {
        let id = open.id;
        open.end(Outcome::LedgerStopped, 503, None);
        return send_answer(
            client,
            buffers,
            &Rejection::LEDGER_STOPPED.answer(),
            id.as_str(),
            true,
        )
        .await;
    }

    let forwarding = forward(route, open.id, call.body, &chat, buffers);
    let forwarded = tokio::select! {
        biased;
        forwarded = timeout(gateway.timeouts.upstream_response, forwarding) => {
            forwarded.unwrap_or(Err(Failure::TimedOut))
        }
        () = client.gone() => {
            open.end(Outcome::ClientDisconnect, CLIENT_CLOSED_REQUEST, None);
            return After::Close;
        }
        () = lifecycle.reached(Phase::Cancelled) => Err(Failure::Drained),
    };
    match forwarded {
        Ok(upstream) => {
            let relay = Relay {
                gateway,
                client,
                buffers,
                lifecycle,
                close,
                silence: gateway.timeouts.upstream_response,
            };
            relay.run(open, upstream, &route.upstream).await
        }
        Err(failure) => {
            finish_with_answer(
                gateway,
                client,
                buffers,
                open,
                failure.outcome(),
                failure.answer(),
                close,
            )
            .await
        }
    }
}

/// What a client that left before its answer began is recorded with; nobody receives it.
pub(crate) const CLIENT_CLOSED_REQUEST: u16 = 499;

/// Why a request did not reach its upstream, or no answer came back.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Failure {
    /// The upstream refused the connection, broke it, or spoke something else than HTTP.
    Unreachable,
    /// The upstream did not connect or answer in time.
    TimedOut,
    /// The worker stops and may not wait any longer.
    Drained,
}

impl Failure {
    pub(crate) fn outcome(self) -> Outcome {
        match self {
            Failure::Unreachable => Outcome::UpstreamError,
            Failure::TimedOut => Outcome::UpstreamTimeout,
            Failure::Drained => Outcome::Drained,
        }
    }

    pub(crate) fn answer(self) -> Answer<'static> {
        let (status, code, message) = match self {
            Failure::Unreachable => (
                502,
                "upstream_unreachable",
                "The model provider could not be reached or broke the connection.",
            ),
            Failure::TimedOut => (
                504,
                "upstream_timeout",
                "The model provider did not answer in time.",
            ),
            Failure::Drained => (503, "draining", "The gateway is shutting down. Try again."),
        };
        Answer {
            status,
            code,
            message,
            param: None,
        }
    }
}

/// Ends an exchange with an answer of our own, which leaves only after its completion is written.
pub(crate) async fn finish_with_answer(
    gateway: &Gateway,
    client: &mut Client,
    buffers: &mut Buffers,
    mut open: OpenExchange,
    outcome: Outcome,
    answer: Answer<'_>,
    close: bool,
) -> After {
    let body = answer.json();
    open.response.update(&body);
    open.bytes = body.len() as u64;
    let id = open.id;
    let completion = open.end(outcome, answer.status, None);
    if gateway.recorder.written_or_stopped(completion).await.is_err() {
        return After::Close;
    }
    send_answer(client, buffers, &answer, id.as_str(), close).await
}

/// Sends an answer of our own.
pub(crate) async fn send_answer(
    client: &mut Client,
    buffers: &mut Buffers,
    answer: &Answer<'_>,
    id: &str,
    close: bool,
) -> After {
    buffers.head.clear();
    answer.write(id, close, &mut buffers.head);
    match client.send([&buffers.head, b"", b""]).await {
        Ok(()) if close => After::Linger,
        Ok(()) => After::Continue,
        Err(_) => After::Close,
    }
}

/// Sends a request upstream: our own head, then the body as it came, but for the model's name if it has another there.
async fn forward(
    route: &ModelRoute,
    id: RequestId,
    body: &[u8],
    chat: &ChatRequest<'_>,
    buffers: &mut Buffers,
) -> Result<UpstreamStream, Failure> {
    let mut upstream = route.upstream.connection().await.map_err(|error| match error {
        ConnectError::Failed => Failure::Unreachable,
        ConnectError::TimedOut => Failure::TimedOut,
    })?;
    let value = chat.model_value();
    let (before, name, after) = match &route.replacement {
        Some(name) => (&body[..value.start], &name[..], &body[value.end..]),
        None => (body, &b""[..], &b""[..]),
    };
    buffers.head.clear();
    let length = before.len() + name.len() + after.len();
    route
        .upstream
        .template
        .write(id.as_str(), length, &mut buffers.head);
    let message = Buf::chain(Buf::chain(&buffers.head[..], before), name);
    let mut message = Buf::chain(message, after);
    let sent = async {
        upstream.write_all_buf(&mut message).await?;
        upstream.flush().await
    };
    sent.await.map_err(|_: std::io::Error| Failure::Unreachable)?;
    Ok(upstream)
}

/// An exchange whose admission is in the ledger and whose completion is not.
///
/// However it ends — by [`OpenExchange::end`], or by being dropped when its task panics — it leaves a completion.
pub(crate) struct OpenExchange {
    gateway: Rc<Gateway>,
    room: Option<Room>,
    pub(crate) id: RequestId,
    /// Number of the admission record.
    pub(crate) admission: u64,
    /// Commitment to the response body so far.
    pub(crate) response: Commitment,
    /// Bytes of the response body so far.
    pub(crate) bytes: u64,
    pub(crate) upstream_status: Option<u16>,
    started: Instant,
    started_at: u64,
}

impl OpenExchange {
    /// Appends the admission; it is not written yet.
    fn admit(
        gateway: &Rc<Gateway>,
        call: &ChatCall<'_>,
        chat: &ChatRequest<'_>,
        route: &ModelRoute,
    ) -> Result<Self, Unavailable> {
        let mut room = gateway.recorder.reserve()?;
        let started = Instant::now();
        let started_at = unix_micros();
        let id = gateway.request_id(started_at);
        let salt = gateway.recorder.next_salt()?;
        let request = commitment::commit(&salt, "request", call.body);
        let key = hex_prefix(&call.key);
        let tenant = &gateway.catalog.tenants.tenant(call.tenant).name;
        let admission = |seq| Admission {
            seq,
            ts: started_at,
            id: id.as_str().into(),
            tenant: tenant.into(),
            key: key.as_str().into(),
            model: chat.model.as_ref().into(),
            provider: route.upstream.name.as_str().into(),
            upstream_model: route.upstream_model.as_str().into(),
            endpoint: CHAT_COMPLETIONS.into(),
            stream: chat.stream,
            bytes: call.body.len() as u64,
            request,
            config: gateway.config_digest,
        };
        let admission = gateway
            .recorder
            .append(&mut room, |seq, out| admission(seq).encode_into(out))?;
        gateway.metrics.in_flight.inc();
        gateway.metrics.request_bytes.inc_by(call.body.len() as u64);
        Ok(OpenExchange {
            gateway: Rc::clone(gateway),
            room: Some(room),
            id,
            admission,
            response: Commitment::new(&salt, "response"),
            bytes: 0,
            upstream_status: None,
            started,
            started_at,
        })
    }

    /// Appends the completion and returns its number; `None` when the ledger has stopped.
    pub(crate) fn end(&mut self, outcome: Outcome, status: u16, usage: Option<Usage>) -> Option<u64> {
        let mut room = self.room.take()?;
        let duration_us = u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX);
        let response = self.response.clone().finish();
        let completion = |seq| Completion {
            seq,
            ts: self.started_at.saturating_add(duration_us),
            id: self.id.as_str().into(),
            admission: self.admission,
            status,
            upstream_status: self.upstream_status,
            outcome,
            bytes: self.bytes,
            response,
            usage,
            duration_us,
        };
        let appended = self
            .gateway
            .recorder
            .append(&mut room, |seq, out| completion(seq).encode_into(out));
        self.gateway.metrics.in_flight.dec();
        self.gateway.metrics.response_bytes.inc_by(self.bytes);
        self.gateway.metrics.ended(outcome);
        appended.ok()
    }
}

impl Drop for OpenExchange {
    fn drop(&mut self) {
        self.end(Outcome::InternalError, 500, None);
    }
}

fn hex_prefix(hash: &KeyHash) -> String {
    hash[..4].iter().map(|byte| format!("{byte:02x}")).collect()
}
