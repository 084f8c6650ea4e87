//! One exchange: from the body of a request to the last byte of its answer.

use std::ops::Range;
use std::pin::pin;
use std::rc::Rc;
use std::time::Instant;

use bytes::Buf;
use proofgate_auth::Identity;
use proofgate_ledger::record::{Outcome, Usage};
use proofgate_limits::{Grant, KeyId};
use proofgate_providers::{BodyText, ChatRequest};
use proofgate_stages::{Span, Stage};
use tokio::io::AsyncWriteExt;

use crate::answer::{Answer, Manner};
use crate::catalog::{Catalog, ModelRoute};
use crate::connection::After;
use crate::deadline::Deadline;
use crate::downstream::Client;
use crate::endpoint::CHAT_COMPLETIONS;
use crate::failure::{CLIENT_CLOSED_REQUEST, Failure};
use crate::gateway::{Gateway, Refused};
use crate::lifecycle::{Lifecycle, Phase};
use crate::open_exchange::{Admitted, OpenExchange};
use crate::rejection::Rejection;
use crate::relay::{Buffers, Relay};
use crate::request_policy;
use crate::upstream::{ConnectError, UpstreamStream};

/// A request for a chat completion whose sender is known and whose body is whole.
pub(crate) struct ChatCall<'c> {
    pub(crate) gateway: &'c Rc<Gateway>,
    pub(crate) catalog: &'c Rc<Catalog>,
    pub(crate) identity: Identity,
    pub(crate) body: &'c [u8],
    /// When its head was complete.
    pub(crate) now: Instant,
    pub(crate) span: Span,
}

/// The way back to the client.
pub(crate) struct WayBack<'c> {
    pub(crate) client: &'c mut Client,
    pub(crate) buffers: &'c mut Buffers,
    /// Header lines that the answer gets besides its own.
    pub(crate) extra: &'c mut Vec<u8>,
    pub(crate) lifecycle: &'c mut Lifecycle,
    pub(crate) deadline: &'c mut Deadline,
    /// Whether the connection ends with the answer.
    pub(crate) close: bool,
}

/// A request that was understood, passed limits and rules, and is in the ledger.
struct Accepted<'c> {
    chat: ChatRequest<'c>,
    route: &'c ModelRoute,
    open: Box<OpenExchange>,
    rewritten: Rewritten,
}

/// Serves a chat completion: limit, judge, record, forward, relay, record, finish.
pub(crate) async fn run(mut call: ChatCall<'_>, mut back: WayBack<'_>) -> After {
    let back = &mut back;
    let accepted = match accept(&mut call, back) {
        Ok(accepted) => accepted,
        Err(turned_away) => {
            let TurnedAway { rejection, refused } = *turned_away;
            return Box::pin(refuse(call, back, rejection, refused)).await;
        }
    };
    let Accepted {
        chat,
        route,
        mut open,
        rewritten,
    } = accepted;
    let admission = open.admission;
    if !open.written(Some(admission), Stage::AdmissionRecord).await {
        let id = open.id;
        open.end(Outcome::LedgerStopped, 503, None);
        back.close = true;
        return send_answer(back, &Rejection::LEDGER_STOPPED.answer(), id.as_str()).await;
    }

    let rewritten_body = std::mem::take(&mut back.buffers.rewritten);
    let (body, model) = match rewritten {
        Some(model) => (&rewritten_body[..], model),
        None => (call.body, chat.model_value()),
    };
    let timeouts = call.catalog.terms.timeouts;
    let forwarded = {
        let forwarding = pin!(forward(call.gateway, route, &mut open, body, model));
        tokio::select! {
            biased;
            forwarded = back.deadline.within(timeouts.upstream_response, forwarding) => {
                Some(forwarded.unwrap_or(Err(Failure::TimedOut)))
            }
            () = back.client.gone() => None,
            () = back.lifecycle.reached(Phase::Cancelled) => Some(Err(Failure::Drained)),
        }
    };
    back.buffers.rewritten = rewritten_body;
    match forwarded {
        None => {
            open.end(Outcome::ClientDisconnect, CLIENT_CLOSED_REQUEST, None);
            After::Close
        }
        Some(Ok(upstream)) => {
            let relay = Relay {
                gateway: call.gateway,
                back,
                silence: timeouts.upstream_response,
            };
            pin!(relay.run(open, upstream, &route.upstream.pool)).await
        }
        Some(Err(failure)) => {
            let (outcome, answer) = (failure.outcome(), failure.answer());
            Box::pin(finish_with_answer(back, open, outcome, answer, None)).await
        }
    }
}

/// Where the model's name stands in the rewritten body, if the rules had it rewritten.
type Rewritten = Option<Range<usize>>;

/// A request that is turned away after it was understood.
struct TurnedAway<'c> {
    rejection: Rejection,
    /// What is recorded of it, where that is more than is known of every request.
    refused: Option<Refused<'c>>,
}

impl From<Rejection> for Box<TurnedAway<'_>> {
    fn from(rejection: Rejection) -> Self {
        Box::new(TurnedAway {
            rejection,
            refused: None,
        })
    }
}

/// Holds what was granted until the exchange is open; dropped before that, it counts as a request that used nothing.
struct Held<'g> {
    gateway: &'g Gateway,
    grant: Option<Grant>,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if let Some(grant) = self.grant.take() {
            self.gateway.limiter.borrow_mut().refund(grant, true);
        }
    }
}

/// Reads a request and admits it. Nothing here waits, so all connections read into the same memory, which is still in the
/// cache.
fn accept<'c>(call: &mut ChatCall<'c>, back: &mut WayBack<'_>) -> Result<Accepted<'c>, Box<TurnedAway<'c>>> {
    let reading = &mut *call.gateway.reading.borrow_mut();
    let read = ChatRequest::read(call.body, &mut reading.workspace, &mut reading.text);
    call.span.lap_now(Stage::Parse);
    let chat = read.map_err(Rejection::from)?;
    let tenant = call.catalog.terms.tenant(call.identity.tenant);
    let route = call.catalog.route(tenant, &chat.model);
    let route = route.ok_or(Rejection::UNKNOWN_MODEL)?;
    let (open, rewritten) = admit(call, back, &chat, route, &reading.text)?;
    Ok(Accepted {
        chat,
        route,
        open,
        rewritten,
    })
}

/// Takes a request through the limits and the rules into the ledger.
fn admit<'c>(
    call: &mut ChatCall<'c>,
    back: &mut WayBack<'_>,
    chat: &ChatRequest<'_>,
    route: &ModelRoute,
    text: &BodyText,
) -> Result<(Box<OpenExchange>, Rewritten), Box<TurnedAway<'c>>> {
    let ChatCall { gateway, catalog, .. } = *call;
    let index = call.identity.tenant;
    let key = KeyId::of_hash(call.identity.key.digest());
    let turn_away = |rejection, counted: Option<KeyId>, policy| {
        Box::new(TurnedAway {
            rejection,
            refused: Some(Refused {
                tenant: Some(&catalog.terms.tenant(index).name),
                counted: counted.map(|key| key.to_string()),
                endpoint: Some(CHAT_COMPLETIONS),
                bytes: call.body.len(),
                policy,
            }),
        })
    };
    let counter = catalog.counters[index];
    let now = gateway.clock.unix_micros(call.now);
    let grant = gateway
        .limiter
        .borrow_mut()
        .admit(counter, key, tokens(chat, route), now);
    let limited = !catalog.terms.is_unlimited(index);
    if limited {
        let mut limiter = gateway.limiter.borrow_mut();
        limiter.standing(counter, key, now).write(back.extra);
    }
    call.span.lap_now(Stage::Limit);
    let grant = grant.map_err(|exceeded| {
        gateway.metrics.limited();
        turn_away(Rejection::from(exceeded), None, None)
    })?;
    let mut held = Held {
        gateway,
        grant: Some(grant),
    };
    let judged = request_policy::judge(
        gateway,
        catalog,
        index,
        text,
        call.body,
        &mut back.buffers.rewritten,
    );
    call.span.lap_now(Stage::Policy);
    let judged = judged.map_err(|denied| turn_away(denied.rejection, limited.then_some(key), denied.note))?;
    let Some(grant) = held.grant.take() else {
        return Err(turn_away(Rejection::LEDGER_STOPPED, None, None));
    };
    let admitted = Admitted {
        gateway,
        catalog,
        tenant: index,
        key,
        body: call.body,
        chat,
        route,
        policy: judged.note,
        started: call.now,
    };
    let span = std::mem::take(&mut call.span);
    let open = OpenExchange::admit(&admitted, grant, span).map_err(|(unavailable, grant)| {
        gateway.limiter.borrow_mut().refund(grant, false);
        gateway.metrics.ledger_refusals.inc();
        turn_away(Rejection::from(unavailable), None, None)
    })?;
    Ok((open, judged.rewritten))
}

/// Tokens that a request can use at most: its prompt, about, and as many for each answer as it may have.
fn tokens(chat: &ChatRequest<'_>, route: &ModelRoute) -> u64 {
    let answer = chat.max_tokens.unwrap_or(route.max_output_tokens);
    let answers = answer.saturating_mul(u64::from(chat.n));
    chat.estimated_prompt_tokens().saturating_add(answers)
}

/// Sends a request upstream, with the model's name replaced where the manifest says so.
async fn forward(
    gateway: &Gateway,
    route: &ModelRoute,
    open: &mut OpenExchange,
    body: &[u8],
    model: Range<usize>,
) -> Result<UpstreamStream, Failure> {
    let upstream = route.upstream.pool.connection(&route.upstream.name).await;
    open.span.lap_now(Stage::Connect);
    let mut upstream = upstream.map_err(|error| match error {
        ConnectError::Failed => Failure::Unreachable,
        ConnectError::TimedOut => Failure::TimedOut,
    })?;
    let (before, name, after) = match &route.replacement {
        Some(name) => (&body[..model.start], &name[..], &body[model.end..]),
        None => (body, &b""[..], &b""[..]),
    };
    let mut head = gateway.outgoing.take();
    head.clear();
    let length = before.len() + name.len() + after.len();
    route.upstream.template.write(open.id.as_str(), length, &mut head);
    open.span.lap_now(Stage::Adapt);
    open.forwarded = true;
    let sent = async {
        if length <= ONE_PIECE {
            for part in [before, name, after] {
                head.extend_from_slice(part);
            }
            upstream.write_all(&head).await?;
        } else {
            let message = Buf::chain(Buf::chain(&head[..], before), name);
            upstream.write_all_buf(&mut Buf::chain(message, after)).await?;
        }
        upstream.flush().await
    };
    sent.await.map_err(|_: std::io::Error| Failure::Unreachable)?;
    gateway.outgoing.set(head);
    open.span.lap_now(Stage::UpstreamWrite);
    Ok(upstream)
}

/// Up to so many bytes a copy costs less than a vectored write.
const ONE_PIECE: usize = 16 * 1024;

/// Ends an exchange with an answer of our own, which leaves only after its completion is written.
pub(crate) async fn finish_with_answer(
    back: &mut WayBack<'_>,
    mut open: Box<OpenExchange>,
    outcome: Outcome,
    answer: Answer<'_>,
    usage: Option<Usage>,
) -> After {
    open.respond(&answer.json());
    let id = open.id;
    let completion = open.end(outcome, answer.status, usage);
    if !open.written(completion, Stage::CompletionRecord).await {
        return After::Close;
    }
    let after = send_answer(back, &answer, id.as_str()).await;
    open.sent();
    after
}

/// Records a refusal and tells the client.
async fn refuse(
    mut call: ChatCall<'_>,
    back: &mut WayBack<'_>,
    rejection: Rejection,
    refused: Option<Refused<'_>>,
) -> After {
    let refused = refused.unwrap_or_else(|| Refused {
        tenant: Some(&call.catalog.terms.tenant(call.identity.tenant).name),
        endpoint: Some(CHAT_COMPLETIONS),
        bytes: call.body.len(),
        ..Refused::default()
    });
    let id = call.gateway.reject(&rejection, refused).await;
    call.span.lap_now(Stage::CompletionRecord);
    let after = send_answer(back, &rejection.answer(), id.as_str()).await;
    call.span.lap_now(Stage::ClientWrite);
    call.span.finish_now(&call.gateway.profiler);
    after
}

/// Sends an answer of our own.
pub(crate) async fn send_answer(back: &mut WayBack<'_>, answer: &Answer<'_>, id: &str) -> After {
    back.buffers.head.clear();
    let manner = Manner {
        close: back.close,
        head_only: false,
        extra: back.extra,
    };
    answer.write(id, manner, &mut back.buffers.head);
    match back.client.send(&back.buffers.head).await {
        Ok(()) if back.close => After::Linger,
        Ok(()) => After::Continue,
        Err(_) => After::Close,
    }
}
