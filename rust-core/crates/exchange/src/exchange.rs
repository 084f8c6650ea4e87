//! One exchange: from the body of a request to the last byte of its response.

use std::cell::Cell;
use std::pin::pin;

use proofgate_base::client::ConnectionAction;
use proofgate_base::clock::micros;
use proofgate_base::rejection::Rejection;
use proofgate_ledger::record::Outcome;
use proofgate_observe::rejected_request::RejectedRequest;
use proofgate_providers::Dialect;
use proofgate_stages::Stage;
use proofgate_upstream::failure::{CLIENT_CLOSED_REQUEST, Failure};
use tokio::time::Instant;

use crate::admission::{AdmittedRequest, ChosenTarget, RejectedCall, accept};
use crate::denial;
use crate::estimate;
use crate::fallback;
use crate::gateway_response::finish_with_response;
use crate::incoming_call::IncomingCall;
use crate::relay::Relay;
use crate::reply::{Reply, send_error};
use crate::sender::{UpstreamOutcome, UpstreamSender};

/// Bytes of memory that an exchange needs in addition to large bodies and text that rules hold. It
/// is mostly for the response's head and a piece that the client has not read yet.
const EXCHANGE_MEMORY: usize = 32 * 1024;

/// Serves a request to a provider: applies limits and rules, records and sends the request, relays
/// the response, records the completion and ends the response.
pub async fn run(mut incoming: IncomingCall<'_>, mut reply: Reply<'_>) -> ConnectionAction {
    let reply = &mut reply;
    let Ok(_room) = incoming.gateway.buffers.budget.reserve(EXCHANGE_MEMORY) else {
        return Box::pin(refuse(incoming, reply, Rejection::OVERLOADED, None, None)).await;
    };
    let accepted = match accept(&mut incoming, reply).await {
        Ok(accepted) => accepted,
        Err(turned_away) => {
            let RejectedCall {
                rejection,
                record: refused,
                denied_model: denied,
                ..
            } = *turned_away;
            return Box::pin(refuse(incoming, reply, rejection, refused, denied)).await;
        }
    };
    let AdmittedRequest {
        call,
        model,
        target: chosen,
        open_exchange: mut open,
        rewritten,
    } = accepted;
    let admission = open.admission;
    if !open
        .wait_until_written(Some(admission), Stage::AdmissionRecord)
        .await
    {
        let id = open.id;
        open.finish(Outcome::LedgerStopped, 503, None);
        reply.close = true;
        let rejection = match incoming.gateway.observers.recorder.has_stopped() {
            true => Rejection::LEDGER_STOPPED,
            false => Rejection::LEDGER_FULL,
        };
        return send_error(reply, &rejection.to_response(), id.as_str()).await;
    }
    let took = micros(incoming.body_received_at.elapsed());
    incoming.gateway.observers.metrics.admission_times.record(took);
    let Some(mut chosen) = chosen else {
        return Box::pin(estimate::send_estimate(
            call.estimated_prompt_tokens(),
            reply,
            open,
        ))
        .await;
    };

    let timeouts = incoming.catalog.settings.timeouts;
    let sender = UpstreamSender {
        incoming: &incoming,
        call,
        model,
        rewritten,
        response_deadline: incoming
            .head_received_at
            .checked_add(timeouts.answer)
            .map(Instant::from_std),
        has_consumed_body: Cell::new(false),
        deferred: Cell::default(),
    };
    let may_turn = sender.can_fall_back(chosen.target_index);
    let mut heard = pin!(sender.send(reply, &mut open, &mut chosen, may_turn)).await;
    if let UpstreamOutcome::Failed(failure) = heard
        && fallback::should_retry(&sender, failure, &open)
    {
        let elsewhere = fallback::send_to_fallback(&sender, reply, &mut open, &mut chosen, failure);
        heard = Box::pin(elsewhere).await;
    }
    if needs_estimate(sender.call.dialect, &chosen, &heard) {
        let tokens = sender.call.estimated_prompt_tokens();
        return Box::pin(estimate::send_estimate(tokens, reply, open)).await;
    }
    let until = sender.response_deadline;
    let choices = u64::from(sender.call.choice_count).saturating_mul(sender.call.prompt_count as u64);
    drop(sender);
    match heard {
        UpstreamOutcome::ClientDisconnected => {
            open.wait_until_stored().await;
            open.finish(Outcome::ClientDisconnect, CLIENT_CLOSED_REQUEST, None);
            ConnectionAction::Close
        }
        UpstreamOutcome::Started { begun, keeps_usage } => {
            let upstream = &model.targets[chosen.target_index].upstream;
            let relay = Relay {
                gateway: incoming.gateway,
                reply,
                silence_timeout: upstream.idle_timeout,
                response_deadline: until,
                choices,
                withholds_usage: keeps_usage,
                translation: chosen
                    .translated
                    .map(|translated| translated.response_translation),
            };
            pin!(relay.run(open, begun, upstream)).await
        }
        UpstreamOutcome::Refused(rejection, outcome) => {
            Box::pin(finish_with_response(
                reply,
                open,
                outcome,
                rejection.to_response(),
                None,
            ))
            .await
        }
        UpstreamOutcome::Failed(failure) => {
            let (outcome, answer) = (failure.outcome(), failure.response());
            let answer = answer.without_retry_if(open.may_have_run());
            Box::pin(finish_with_response(reply, open, outcome, answer, None)).await
        }
    }
}

/// Whether the provider did not count the tokens as requested. Not all models and keys of Bedrock
/// may count tokens.
fn needs_estimate(dialect: Dialect, chosen: &ChosenTarget<'_>, heard: &UpstreamOutcome) -> bool {
    if dialect == Dialect::ResponseTokens {
        return matches!(heard, UpstreamOutcome::Failed(Failure::ResponsesUnsupported));
    }
    let spoken = chosen
        .translated
        .as_ref()
        .map(|translated| translated.response_translation.upstream_dialect());
    spoken == Some(Dialect::InvokeTokens)
        && match heard {
            UpstreamOutcome::Started { begun, .. } => !begun.head.is_success(),
            UpstreamOutcome::Failed(failure) => !matches!(failure, Failure::Draining),
            _ => false,
        }
}

/// Records and sends a rejection. `denied` is the requested model of a denied request.
async fn refuse(
    mut incoming: IncomingCall<'_>,
    reply: &mut Reply<'_>,
    rejection: Rejection,
    refused: Option<RejectedRequest<'_>>,
    denied: Option<String>,
) -> ConnectionAction {
    if incoming.upload.take().is_some() {
        // The connection closes, because the rest of the body is not read.
        reply.close = true;
    }
    let mut refused = refused.unwrap_or_else(|| RejectedRequest {
        tenant: Some(&incoming.identity.tenant.name),
        endpoint: Some(incoming.endpoint()),
        bytes: incoming.original_body.len(),
        ..RejectedRequest::default()
    });
    refused.client_address = Some(incoming.client_address);
    refused.key_name.clone_from(&incoming.identity.key_name);
    refused.series = incoming.series.take();
    refused.observed_exchange = incoming.observed_exchange.take();
    let id = match denied {
        Some(model) => denial::record_denial(&incoming, &rejection, refused, &model).await,
        None => incoming.gateway.reject(&rejection, refused).await,
    };
    incoming.span.lap_now(Stage::CompletionRecord);
    let after = send_error(reply, &rejection.to_response(), id.as_str()).await;
    incoming.span.lap_now(Stage::ClientWrite);
    incoming.span.finish_now(&incoming.gateway.observers.profiler);
    after
}
