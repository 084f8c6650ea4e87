//! One exchange: from the body of a request to the last byte of its answer.

use std::pin::pin;

use proofgate_ledger::record::Outcome;
use proofgate_providers::UpstreamBody;
use proofgate_stages::Stage;
use tokio::time::Instant;

use crate::admission::{Accepted, IncomingCall, RejectedCall, accept};
use crate::client::After;
use crate::failure::{CLIENT_CLOSED_REQUEST, Failure};
use crate::forward::{Destination, forward, upstream_body};
use crate::lifecycle::Phase;
use crate::rejection::{RejectedRequest, Rejection};
use crate::relay::Relay;
use crate::reply::{Reply, finish_with_answer, send_answer};

/// Bytes of memory that an exchange takes besides large bodies and what rules hold: its answer's head and a piece of it
/// that the client has not taken yet, for the most part.
const MEMORY: usize = 32 * 1024;

/// Serves a request to a provider: limit, judge, record, forward, relay, record, finish.
pub(crate) async fn run(mut incoming: IncomingCall<'_>, mut reply: Reply<'_>) -> After {
    let reply = &mut reply;
    let Ok(_room) = incoming.gateway.budget.share(MEMORY) else {
        return Box::pin(refuse(incoming, reply, Rejection::OVERLOADED, None)).await;
    };
    let accepted = match accept(&mut incoming, reply).await {
        Ok(accepted) => accepted,
        Err(turned_away) => {
            let RejectedCall { rejection, refused } = *turned_away;
            return Box::pin(refuse(incoming, reply, rejection, refused)).await;
        }
    };
    let Accepted {
        call,
        template,
        route,
        mut open,
        rewritten,
        translated,
    } = accepted;
    let admission = open.admission;
    if !open.written(Some(admission), Stage::AdmissionRecord).await {
        let id = open.id;
        open.end(Outcome::LedgerStopped, 503, None);
        reply.close = true;
        return send_answer(reply, &Rejection::LEDGER_STOPPED.answer(), id.as_str()).await;
    }

    let is_rewritten = rewritten.is_some();
    let (body, model) = match &rewritten {
        Some(rewritten) => (&rewritten.body[..], rewritten.model.clone()),
        None => (incoming.body, call.model_value()),
    };
    let (body, keeps_usage) = match &translated {
        Some(translated) => (UpstreamBody::new(&translated.body, [None, None]), false),
        None => upstream_body(route, &call, body, model, is_rewritten),
    };
    let fields = match (&translated, &incoming.fields) {
        (Some(translated), _) => translated.back.fields().to_vec(),
        (None, Some(fields)) => fields.for_upstream(&route.upstream.betas, reply.extra),
        (None, None) => Vec::new(),
    };
    let model_in_path = translated.as_ref().map_or_else(String::new, |translated| {
        translated
            .back
            .model_in_path(&route.upstream_model, route.upstream.arn_in_path)
    });
    let to = Destination {
        upstream: &route.upstream,
        template,
        model: &model_in_path,
        fields: &fields,
    };
    let timeouts = incoming.catalog.terms.timeouts;
    let until = incoming.now.checked_add(timeouts.answer).map(Instant::from_std);
    let forwarded = {
        let early = &mut reply.buffers.upstream;
        early.clear();
        let forwarding = pin!(forward(incoming.gateway, to, &mut open, body, early));
        tokio::select! {
            biased;
            forwarded = reply.deadline.within_until(timeouts.upstream_response, until, forwarding) => {
                Some(forwarded.unwrap_or(Err(Failure::TimedOut)))
            }
            () = reply.client.gone() => None,
            () = reply.lifecycle.reached(Phase::Cancelled) => Some(Err(Failure::Drained)),
        }
    };
    drop(rewritten);
    let translation = translated.map(|translated| translated.back);
    match forwarded {
        None => {
            open.end(Outcome::ClientDisconnect, CLIENT_CLOSED_REQUEST, None);
            After::Close
        }
        Some(Ok(upstream)) => {
            let relay = Relay {
                gateway: incoming.gateway,
                reply,
                silence: timeouts.upstream_response,
                until,
                keeps_usage,
                translation,
            };
            pin!(relay.run(open, upstream, &route.upstream.pool)).await
        }
        Some(Err(failure)) => {
            let (outcome, answer) = (failure.outcome(), failure.answer());
            Box::pin(finish_with_answer(reply, open, outcome, answer, None)).await
        }
    }
}

/// Records a refusal and tells the client.
async fn refuse(
    mut incoming: IncomingCall<'_>,
    reply: &mut Reply<'_>,
    rejection: Rejection,
    refused: Option<RejectedRequest<'_>>,
) -> After {
    let mut refused = refused.unwrap_or_else(|| RejectedRequest {
        tenant: Some(&incoming.identity.tenant.name),
        endpoint: Some(incoming.dialect.path()),
        bytes: incoming.body.len(),
        ..RejectedRequest::default()
    });
    refused.series = incoming.series.take();
    let id = incoming.gateway.reject(&rejection, refused).await;
    incoming.span.lap_now(Stage::CompletionRecord);
    let after = send_answer(reply, &rejection.answer(), id.as_str()).await;
    incoming.span.lap_now(Stage::ClientWrite);
    incoming.span.finish_now(&incoming.gateway.profiler);
    after
}
