//! Retries and fallbacks of a request that failed at a provider.
//!
//! A request is sent to another provider only for the reasons that its model's configuration lists.
//! If there is no other provider and no byte of the request was sent, it is retried once at the
//! same provider, if a saved-up retry is left.

use std::time::{Duration, Instant};

use proofgate_base::lifecycle::Phase;
use proofgate_stages::Stage;
use proofgate_upstream::demand::max_tokens;
use proofgate_upstream::failure::Failure;
use proofgate_upstream::routes::{TargetProtocol, TargetSet};
use proofgate_wire::encode;

use crate::admission::{ChosenTarget, TranslationInput, translate};
use crate::open_exchange::OpenExchange;
use crate::reasoning_removal;
use crate::reply::Reply;
use crate::sender::{UpstreamOutcome, UpstreamSender};

/// The delay before a request is sent to the same provider again.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// Whether a failed attempt may be followed by another one.
pub fn should_retry(sender: &UpstreamSender<'_, '_>, failure: Failure, open: &OpenExchange) -> bool {
    // A consumed streamed body cannot be sent again, because it is not buffered.
    if sender.has_consumed_body.get() {
        return false;
    }
    let reason = failure.fallback_reason(open.attempt_progress.send_outcome());
    matches!(failure, Failure::ConnectFailed)
        || reason.is_some_and(|reason| sender.model.fallback_reasons.has(reason))
}

/// Sends a request to further targets until one responds or none is left. `chosen` is the target of
/// the latest attempt.
pub async fn send_to_fallback<'c>(
    sender: &UpstreamSender<'_, 'c>,
    reply: &mut Reply<'_>,
    open: &mut OpenExchange,
    chosen: &mut ChosenTarget<'c>,
    mut failure: Failure,
) -> UpstreamOutcome {
    let dialect = sender.incoming.dialect;
    let mut tried = TargetSet::only(chosen.target_index);
    let mut again = false;
    while should_retry(sender, failure, open) && open.reserve_retry() {
        let reason = failure.fallback_reason(open.attempt_progress.send_outcome());
        let turns = reason.is_some_and(|reason| sender.model.fallback_reasons.has(reason));
        let next = match turns {
            true => sender
                .model
                .next_target(dialect, &sender.call.model, tried, Instant::now()),
            false => None,
        };
        let (place, way) = match next {
            Some(next) => next,
            None => {
                let target = &sender.model.targets[chosen.target_index];
                let is_unsent = matches!(failure, Failure::ConnectFailed);
                if again || !is_unsent || !target.upstream.pool.health.take_retry() {
                    break;
                }
                again = true;
                if let Some(heard) = wait_before_retry(sender, reply).await {
                    return heard;
                }
                let Ok(way) = target.available_protocol(dialect, Instant::now()) else {
                    break;
                };
                (chosen.target_index, way)
            }
        };
        tried.add(place);
        write_attempts_header(sender, reply, open.attempts().saturating_add(1));
        let Some(prepared) = prepare(sender, place, way, reply) else {
            // The request cannot be expressed at this target, so the failure remains the result.
            continue;
        };
        *chosen = prepared;
        sender.deferred.take();
        if !start_attempt(sender, open, chosen, failure).await {
            break;
        }
        let may_turn = sender.model.has_next_target(dialect, tried, Instant::now());
        match sender.send(reply, open, chosen, may_turn).await {
            UpstreamOutcome::Failed(next) => failure = next,
            heard => return heard,
        }
    }
    write_attempts_header(sender, reply, open.attempts());
    match sender.deferred.take() {
        Some(answer) => answer.restore(reply),
        None => UpstreamOutcome::Failed(failure),
    }
}

/// Reports the number of attempts to the client, and removes the header lines of the previous attempt.
fn write_attempts_header(sender: &UpstreamSender<'_, '_>, reply: &mut Reply<'_>, attempts: u32) {
    reply
        .extra_headers
        .truncate(sender.incoming.common_headers_length);
    if attempts == 1 {
        return;
    }
    let attempts = attempts.to_string();
    let _ = encode::write_header(reply.extra_headers, "x-proofgate-attempts", attempts.as_bytes());
}

/// Prepares a request for a target; `None` if the request cannot be expressed in the target's
/// dialect.
fn prepare<'c>(
    sender: &UpstreamSender<'_, 'c>,
    place: usize,
    way: TargetProtocol<'c>,
    reply: &mut Reply<'_>,
) -> Option<ChosenTarget<'c>> {
    let incoming = sender.incoming;
    let target = &sender.model.targets[place];
    let named = target.model_name_for(sender.model, &sender.call.model);
    let body = sender.body();
    let pairs = target.translation_for(way.translation, incoming.dialect, &named.model, body);
    let stripped =
        reasoning_removal::strip_for_target(incoming, target, pairs, &named.model, body, reply.extra_headers)
            .ok()?;
    let body = stripped
        .as_ref()
        .map_or(body, |stripped| &stripped.rewritten.body);
    let translated = match pairs {
        None => None,
        Some(pairs) => {
            let said = TranslationInput {
                body,
                call: &sender.call,
                max_output_tokens: sender.model.max_output_tokens,
                received_at: incoming.gateway.clock.unix_micros(incoming.head_received_at),
            };
            Some(translate(incoming, pairs, &said, target, &named.model, reply.extra_headers).ok()?)
        }
    };
    let tokens = || max_tokens(&sender.call, sender.model);
    let upstream = &target.upstream;
    let attending = upstream.start_request(Instant::now(), &named.model, incoming.is_complete(), tokens);
    Some(ChosenTarget {
        target_index: place,
        upstream_model: named,
        template: target.template_for(
            way.template,
            translated
                .as_ref()
                .map(|translated| &*translated.response_translation),
        ),
        in_flight: Some(attending),
        stripped: stripped
            .filter(|_| translated.is_none())
            .map(|stripped| stripped.rewritten),
        translated,
    })
}

/// Waits for [`RETRY_DELAY`]; returns the outcome if the request ends during the wait.
async fn wait_before_retry(
    sender: &UpstreamSender<'_, '_>,
    reply: &mut Reply<'_>,
) -> Option<UpstreamOutcome> {
    let pause = sender.incoming.gateway.random.jitter(RETRY_DELAY);
    tokio::select! {
        () = tokio::time::sleep(pause) => None,
        () = reply.client.wait_for_disconnect() => Some(UpstreamOutcome::ClientDisconnected),
        () = reply.lifecycle.wait_for(Phase::Cancelled) => Some(UpstreamOutcome::Failed(Failure::Draining)),
    }
}

/// Records an attempt at another target. Returns whether the record is written; only then may the
/// request be sent.
async fn start_attempt(
    sender: &UpstreamSender<'_, '_>,
    open: &mut OpenExchange,
    chosen: &ChosenTarget<'_>,
    failure: Failure,
) -> bool {
    let gateway = sender.incoming.gateway;
    let target = &sender.model.targets[chosen.target_index];
    let labels = (&*sender.model.name, target.upstream.name.as_str());
    let series = gateway.observers.traffic.series(&open.tenant.name, Some(labels));
    let translated = chosen.translated.as_ref();
    let dropped = translated.map_or(&[][..], |translated| {
        translated.response_translation.dropped_fields()
    });
    match open.start_attempt(
        target,
        &chosen.upstream_model.model,
        dropped,
        series,
        failure.response().code,
    ) {
        Ok(record) => {
            open.wait_until_written(Some(record), Stage::AdmissionRecord)
                .await
        }
        Err(_) => false,
    }
}
