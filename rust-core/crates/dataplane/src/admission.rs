//! From a whole request to an open exchange: read, limit, judge, record.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use proofgate_auth::{AuthError, Credential, Identity, Tenant};
use proofgate_ledger::commitment::BodyDigest;
use proofgate_ledger::record::ConfigId;
use proofgate_limits::CredentialId;
use proofgate_providers::{BodyText, ChatRequest};
use proofgate_stages::{Span, Stage};

use crate::catalog::{Catalog, ModelRoute};
use crate::endpoint::CHAT_COMPLETIONS;
use crate::gateway::{Gateway, Reading};
use crate::memory::{AT_ONCE, Exhausted, Share};
use crate::metrics::{RequestOutcome, Series};
use crate::open_exchange::{Admitted, Granted, OpenExchange};
use crate::rejection::{RejectedRequest, Rejection};
use crate::reply::Reply;
use crate::request_policy::{self, Rewritten};

/// A request for a chat completion whose sender is known and whose body is whole.
pub(crate) struct ChatCall<'c> {
    pub(crate) gateway: &'c Rc<Gateway>,
    pub(crate) catalog: &'c Rc<Catalog>,
    pub(crate) identity: &'c Identity,
    /// What was in force when its head was complete.
    pub(crate) config: ConfigId,
    pub(crate) body: &'c [u8],
    /// When its head was complete.
    pub(crate) now: Instant,
    pub(crate) span: Span,
    /// Where it counts, once its model is known.
    pub(crate) series: Option<Arc<Series>>,
}

/// A request that was understood, passed limits and rules, and is in the ledger.
pub(crate) struct Accepted<'c> {
    pub(crate) chat: ChatRequest<'c>,
    pub(crate) route: &'c ModelRoute,
    pub(crate) open: Box<OpenExchange>,
    pub(crate) rewritten: Option<Rewritten>,
}

/// A request that is turned away after it was understood.
pub(crate) struct RejectedChat<'c> {
    pub(crate) rejection: Rejection,
    /// What is recorded of it, where that is more than is known of every request.
    pub(crate) refused: Option<RejectedRequest<'c>>,
}

impl From<Rejection> for Box<RejectedChat<'_>> {
    fn from(rejection: Rejection) -> Self {
        Box::new(RejectedChat {
            rejection,
            refused: None,
        })
    }
}

/// Reads a request and admits it. Only a long one waits here, between two slices of its scan, or pieces of its digest; so nearly all connections read
/// into the same memory, which is still in the cache.
pub(crate) async fn accept<'c>(
    call: &mut ChatCall<'c>,
    reply: &mut Reply<'_>,
) -> Result<Accepted<'c>, Box<RejectedChat<'c>>> {
    let gateway = call.gateway;
    let mut reading = gateway.reading.take();
    let attachments = request_policy::attachments(call.catalog);
    reading.text.set_attachments(attachments);
    let accepted = read_and_admit(call, reply, &mut reading).await;
    reading.end();
    gateway.reading.set(reading);
    accepted
}

async fn read_and_admit<'c>(
    call: &mut ChatCall<'c>,
    reply: &mut Reply<'_>,
    reading: &mut Reading,
) -> Result<Accepted<'c>, Box<RejectedChat<'c>>> {
    let mut room = Share::new(&call.gateway.budget);
    if call.body.len() > AT_ONCE {
        // What the text can take at most.
        room.resize(call.body.len())
            .map_err(|Exhausted| Rejection::OVERLOADED)?;
        make_ready(&mut reading.text, call.body.len()).await;
    }
    let body = ChatRequest::text_of(call.body).map_err(Rejection::from)?;
    if body.len() > AT_ONCE {
        tokio::task::yield_now().await;
    }
    let read = ChatRequest::read_text(body, &mut reading.workspace, &mut reading.text);
    reading.end_reading();
    if body.len() > AT_ONCE {
        reading.text.shrink();
    }
    call.span.lap_now(Stage::Parse);
    let chat = read.map_err(Rejection::from)?;
    room.resize(reading.text.size())
        .map_err(|Exhausted| Rejection::OVERLOADED)?;
    let route = call.catalog.route(&call.identity.tenant, &chat.model);
    let route = route.ok_or(Rejection::UNKNOWN_MODEL)?;
    let labels = (chat.model.as_ref(), route.upstream.name.as_str());
    let series = call
        .gateway
        .traffic
        .series(&call.identity.tenant.name, Some(labels));
    call.series = Some(Arc::clone(&series));
    if route.upstream.key_missing {
        return Err(Rejection::NO_PROVIDER_KEY.into());
    }
    let (open, rewritten) = admit(call, reply, &chat, route, series, &reading.text, &mut room).await?;
    Ok(Accepted {
        chat,
        route,
        open,
        rewritten,
    })
}

/// Takes a request through the limits and the rules into the ledger. `room`: what is taken of the memory for `text`.
async fn admit<'c>(
    call: &mut ChatCall<'c>,
    reply: &mut Reply<'_>,
    chat: &ChatRequest<'_>,
    route: &ModelRoute,
    series: Arc<Series>,
    text: &BodyText,
    room: &mut Share,
) -> Result<(Box<OpenExchange>, Option<Rewritten>), Box<RejectedChat<'c>>> {
    let ChatCall { gateway, catalog, .. } = *call;
    let tenant: &'c Tenant = &call.identity.tenant;
    let plan = catalog.terms.plan(tenant);
    let key = match &call.identity.credential {
        Credential::ApiKey(digest) => CredentialId::of_api_key(digest),
        Credential::Subject(digest) => CredentialId::of_subject(digest),
    };
    let turn_away = |rejection, counted: Option<CredentialId>, outcome, policy| {
        Box::new(RejectedChat {
            rejection,
            refused: Some(RejectedRequest {
                tenant: Some(&*tenant.name),
                counted: counted.map(|key| key.to_string()),
                endpoint: Some(CHAT_COMPLETIONS),
                bytes: call.body.len(),
                policy,
                series: None,
                outcome,
            }),
        })
    };
    // By name: a tenant that was removed while the body came is not there any more.
    let counter = gateway.limiter.borrow().find(&tenant.name);
    let Some(counter) = counter else {
        return Err(turn_away(
            Rejection::from(AuthError::UnknownKey),
            None,
            RequestOutcome::Refused,
            None,
        ));
    };
    let now = gateway.clock.unix_micros(call.now);
    let grant = gateway
        .limiter
        .borrow_mut()
        .admit(counter, key, tokens(chat, route), now);
    let limited = !plan.quotas.is_unlimited();
    if limited {
        let mut limiter = gateway.limiter.borrow_mut();
        limiter.standing(counter, key, now).write(reply.extra);
    }
    call.span.lap_now(Stage::Limit);
    let grant = grant.map_err(|exceeded| {
        gateway.metrics.limited();
        turn_away(Rejection::from(exceeded), None, RequestOutcome::Refused, None)
    })?;
    let mut granted = Granted::new(gateway, grant);
    let judged = request_policy::judge(gateway, catalog, &plan.profile, text, room, call.body).await;
    call.span.lap_now(Stage::Policy);
    let judged = judged.map_err(|denied| {
        turn_away(
            denied.rejection,
            limited.then_some(key),
            RequestOutcome::Denied,
            denied.note,
        )
    })?;
    let digest = digest(call.body).await;
    granted.counts = false;
    let admitted = Admitted {
        gateway,
        catalog,
        tenant,
        key,
        body: call.body,
        digest,
        chat,
        route,
        series,
        policy: judged.note,
        config: call.config,
        started: call.now,
    };
    let span = std::mem::take(&mut call.span);
    let open = OpenExchange::admit(admitted, granted, span).map_err(|unavailable| {
        gateway.metrics.ledger_refusals.inc();
        turn_away(Rejection::from(unavailable), None, RequestOutcome::Refused, None)
    })?;
    Ok((open, judged.rewritten))
}

/// Boxed as all that only long bodies wait in: the others need no room for it.
async fn make_ready(text: &mut BodyText, bytes: usize) {
    let pieces = async {
        for (number, ()) in text.make_ready(bytes).enumerate() {
            if number % 4 == 3 {
                tokio::task::yield_now().await;
            }
        }
    };
    Box::pin(pieces).await;
}

async fn digest(body: &[u8]) -> BodyDigest {
    let mut digest = BodyDigest::new();
    if body.len() <= AT_ONCE {
        digest.update(body);
        return digest;
    }
    let pieces = async {
        for piece in body.chunks(AT_ONCE) {
            digest.update(piece);
            tokio::task::yield_now().await;
        }
    };
    Box::pin(pieces).await;
    digest
}

/// Tokens that a request can use at most: its prompt, about, and as many for each answer as it may have.
fn tokens(chat: &ChatRequest<'_>, route: &ModelRoute) -> u64 {
    let answer = chat.max_tokens.unwrap_or(route.max_output_tokens);
    let answers = answer.saturating_mul(u64::from(chat.n));
    chat.estimated_prompt_tokens().saturating_add(answers)
}
