//! One exchange: from the body of a request to the last byte of its answer.

use std::cell::Cell;
use std::pin::pin;

use proofgate_base::client::AfterExchange;
use proofgate_base::clock::micros;
use proofgate_base::rejection::Rejection;
use proofgate_ledger::record::Outcome;
use proofgate_observe::rejected_request::RejectedRequest;
use proofgate_providers::Dialect;
use proofgate_stages::Stage;
use proofgate_upstream::failure::{CLIENT_CLOSED_REQUEST, Failure};
use tokio::time::Instant;

use crate::admission::{Accepted, Chosen, RejectedCall, accept};
use crate::denial;
use crate::estimate;
use crate::fallback;
use crate::incoming_call::IncomingCall;
use crate::own_answer::finish_with_answer;
use crate::relay::Relay;
use crate::reply::{Reply, send_answer};
use crate::sender::{Sender, UpstreamOutcome};

/// Bytes of memory that an exchange takes besides large bodies and what rules hold: its answer's head and a piece of it
/// that the client has not taken yet, for the most part.
const MEMORY: usize = 32 * 1024;

/// Serves a request to a provider: limit, judge, record, forward, relay, record, finish.
pub async fn run(mut incoming: IncomingCall<'_>, mut reply: Reply<'_>) -> AfterExchange {
    let reply = &mut reply;
    let Ok(_room) = incoming.gateway.buffers.budget.share(MEMORY) else {
        return Box::pin(refuse(incoming, reply, Rejection::OVERLOADED, None, None)).await;
    };
    let accepted = match accept(&mut incoming, reply).await {
        Ok(accepted) => accepted,
        Err(turned_away) => {
            let RejectedCall {
                rejection,
                refused,
                denied,
                ..
            } = *turned_away;
            return Box::pin(refuse(incoming, reply, rejection, refused, denied)).await;
        }
    };
    let Accepted {
        call,
        model,
        chosen,
        mut open,
        rewritten,
    } = accepted;
    let admission = open.admission;
    if !open.written(Some(admission), Stage::AdmissionRecord).await {
        let id = open.id;
        open.end(Outcome::LedgerStopped, 503, None);
        reply.close = true;
        let rejection = match incoming.gateway.observers.recorder.has_stopped() {
            true => Rejection::LEDGER_STOPPED,
            false => Rejection::LEDGER_FULL,
        };
        return send_answer(reply, &rejection.answer(), id.as_str()).await;
    }
    let took = micros(incoming.body_at.elapsed());
    incoming.gateway.observers.metrics.admission_times.admitted(took);
    let Some(mut chosen) = chosen else {
        return Box::pin(estimate::answer(call.estimated_prompt_tokens(), reply, open)).await;
    };

    let timeouts = incoming.catalog.terms.timeouts;
    let sender = Sender {
        incoming: &incoming,
        call,
        model,
        rewritten,
        until: incoming.now.checked_add(timeouts.answer).map(Instant::from_std),
        has_passed: Cell::new(false),
        set_aside: Cell::default(),
    };
    let may_turn = sender.may_turn(chosen.place);
    let mut heard = pin!(sender.send(reply, &mut open, &mut chosen, may_turn)).await;
    if let UpstreamOutcome::Nothing(failure) = heard
        && fallback::is_wanted(&sender, failure, &open)
    {
        let elsewhere = fallback::elsewhere(&sender, reply, &mut open, &mut chosen, failure);
        heard = Box::pin(elsewhere).await;
    }
    if is_to_be_estimated(sender.call.dialect, &chosen, &heard) {
        let tokens = sender.call.estimated_prompt_tokens();
        return Box::pin(estimate::answer(tokens, reply, open)).await;
    }
    let until = sender.until;
    let choices = u64::from(sender.call.n).saturating_mul(sender.call.prompts as u64);
    drop(sender);
    match heard {
        UpstreamOutcome::ClientGone => {
            open.store().await;
            open.end(Outcome::ClientDisconnect, CLIENT_CLOSED_REQUEST, None);
            AfterExchange::Close
        }
        UpstreamOutcome::Begun { begun, keeps_usage } => {
            let upstream = &model.targets[chosen.place].upstream;
            let relay = Relay {
                gateway: incoming.gateway,
                reply,
                silence: upstream.idle,
                until,
                choices,
                keeps_usage,
                translation: chosen.translated.map(|translated| translated.back),
            };
            pin!(relay.run(open, begun, upstream)).await
        }
        UpstreamOutcome::Refused(rejection, outcome) => {
            Box::pin(finish_with_answer(reply, open, outcome, rejection.answer(), None)).await
        }
        UpstreamOutcome::Nothing(failure) => {
            let (outcome, answer) = (failure.outcome(), failure.answer());
            let answer = answer.of_exchange(open.may_have_run());
            Box::pin(finish_with_answer(reply, open, outcome, answer, None)).await
        }
    }
}

/// Whether a provider did not count what it was asked to, which not all of Bedrock's models and keys may.
fn is_to_be_estimated(dialect: Dialect, chosen: &Chosen<'_>, heard: &UpstreamOutcome) -> bool {
    if dialect == Dialect::ResponseTokens {
        return matches!(heard, UpstreamOutcome::Nothing(Failure::NoResponses));
    }
    let spoken = chosen
        .translated
        .as_ref()
        .map(|translated| translated.back.upstream());
    spoken == Some(Dialect::InvokeTokens)
        && match heard {
            UpstreamOutcome::Begun { begun, .. } => !begun.head.is_success(),
            UpstreamOutcome::Nothing(failure) => !matches!(failure, Failure::Drained),
            _ => false,
        }
}

/// Records a refusal and answers it. `denied`: the model that a denied request asks for.
async fn refuse(
    mut incoming: IncomingCall<'_>,
    reply: &mut Reply<'_>,
    rejection: Rejection,
    refused: Option<RejectedRequest<'_>>,
    denied: Option<String>,
) -> AfterExchange {
    if incoming.upload.take().is_some() {
        // The rest of its body is not read.
        reply.close = true;
    }
    let mut refused = refused.unwrap_or_else(|| RejectedRequest {
        tenant: Some(&incoming.identity.tenant.name),
        endpoint: Some(incoming.endpoint()),
        bytes: incoming.as_it_came.len(),
        ..RejectedRequest::default()
    });
    refused.client_address = Some(incoming.client_address);
    refused.key_name.clone_from(&incoming.identity.key_name);
    refused.series = incoming.series.take();
    refused.observed = incoming.observed.take();
    let id = match denied {
        Some(model) => denial::record(&incoming, &rejection, refused, &model).await,
        None => incoming.gateway.reject(&rejection, refused).await,
    };
    incoming.span.lap_now(Stage::CompletionRecord);
    let after = send_answer(reply, &rejection.answer(), id.as_str()).await;
    incoming.span.lap_now(Stage::ClientWrite);
    incoming.span.finish_now(&incoming.gateway.observers.profiler);
    after
}
