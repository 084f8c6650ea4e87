//! A request whose provider failed it, on its way to another one.
//!
//! It is sent on only for what its model names as a reason. Where there is no other provider, a request of which not a byte was
//! taken is sent to the same one again, once, as long as few are.

use std::time::{Duration, Instant};

use proofgate_base::lifecycle::Phase;
use proofgate_stages::Stage;
use proofgate_upstream::demand::most_tokens;
use proofgate_upstream::failure::Failure;
use proofgate_upstream::routes::{TargetSet, Way};
use proofgate_wire::encode;

use crate::admission::{Chosen, Said, translate};
use crate::open_exchange::OpenExchange;
use crate::own_thoughts;
use crate::reply::Reply;
use crate::sender::{Sender, UpstreamOutcome};

/// Before a request is sent to the same provider again.
const PAUSE: Duration = Duration::from_millis(100);

/// Whether a failed attempt may be followed by another one.
pub fn is_wanted(sender: &Sender<'_, '_>, failure: Failure, open: &OpenExchange) -> bool {
    // Of a body that passed, nothing is held.
    if sender.has_passed.get() {
        return false;
    }
    let reason = failure.reason(open.reached.sent());
    matches!(failure, Failure::Unconnected)
        || reason.is_some_and(|reason| sender.model.fall_back_on.has(reason))
}

/// Sends a request on until a provider answers it, or none is left; `chosen` is where it was sent last.
pub async fn elsewhere<'c>(
    sender: &Sender<'_, 'c>,
    reply: &mut Reply<'_>,
    open: &mut OpenExchange,
    chosen: &mut Chosen<'c>,
    mut failure: Failure,
) -> UpstreamOutcome {
    let dialect = sender.incoming.dialect;
    let mut tried = TargetSet::only(chosen.place);
    let mut again = false;
    while is_wanted(sender, failure, open) && open.reserve_again() {
        let reason = failure.reason(open.reached.sent());
        let turns = reason.is_some_and(|reason| sender.model.fall_back_on.has(reason));
        let next = match turns {
            true => sender
                .model
                .next(dialect, &sender.call.model, tried, Instant::now()),
            false => None,
        };
        let (place, way) = match next {
            Some(next) => next,
            None => {
                let target = &sender.model.targets[chosen.place];
                let is_unsent = matches!(failure, Failure::Unconnected);
                if again || !is_unsent || !target.upstream.pool.health.take_retry() {
                    break;
                }
                again = true;
                if let Some(heard) = pause(sender, reply).await {
                    return heard;
                }
                let Ok(way) = target.way(dialect, Instant::now()) else {
                    break;
                };
                (chosen.place, way)
            }
        };
        tried.add(place);
        say_attempts(sender, reply, open.attempts().saturating_add(1));
        let Some(prepared) = prepare(sender, place, way, reply) else {
            // It cannot be said there; the failure stands.
            continue;
        };
        *chosen = prepared;
        sender.set_aside.take();
        if !turn_to(sender, open, chosen, failure).await {
            break;
        }
        let may_turn = sender.model.has_next(dialect, tried, Instant::now());
        match sender.send(reply, open, chosen, may_turn).await {
            UpstreamOutcome::Nothing(next) => failure = next,
            heard => return heard,
        }
    }
    say_attempts(sender, reply, open.attempts());
    match sender.set_aside.take() {
        Some(answer) => answer.restore(reply),
        None => UpstreamOutcome::Nothing(failure),
    }
}

/// Tells the client how often its request was sent; what was said of the attempt before is taken back.
fn say_attempts(sender: &Sender<'_, '_>, reply: &mut Reply<'_>, attempts: u32) {
    reply.extra.truncate(sender.incoming.own_fields);
    if attempts == 1 {
        return;
    }
    let attempts = attempts.to_string();
    let _ = encode::write_header(reply.extra, "x-proofgate-attempts", attempts.as_bytes());
}

/// Puts a request into the words of a target; `None` when that has none for it.
fn prepare<'c>(
    sender: &Sender<'_, 'c>,
    place: usize,
    way: Way<'c>,
    reply: &mut Reply<'_>,
) -> Option<Chosen<'c>> {
    let incoming = sender.incoming;
    let target = &sender.model.targets[place];
    let named = target.named(sender.model, &sender.call.model);
    let body = sender.body();
    let pairs = target.pairs_for(way.pairs, incoming.dialect, &named.model, body);
    let stripped = own_thoughts::strip(incoming, target, pairs, &named.model, body, reply.extra).ok()?;
    let body = stripped
        .as_ref()
        .map_or(body, |stripped| &stripped.rewritten.body);
    let translated = match pairs {
        None => None,
        Some(pairs) => {
            let said = Said {
                body,
                call: &sender.call,
                max_output_tokens: sender.model.max_output_tokens,
                now: incoming.gateway.clock.unix_micros(incoming.now),
            };
            Some(translate(incoming, pairs, &said, target, &named.model, reply.extra).ok()?)
        }
    };
    let tokens = || most_tokens(&sender.call, sender.model);
    let upstream = &target.upstream;
    let attending = upstream.begin(Instant::now(), &named.model, incoming.is_whole(), tokens);
    Some(Chosen {
        place,
        named,
        template: target.template_for(
            way.template,
            translated.as_ref().map(|translated| &*translated.back),
        ),
        attending: Some(attending),
        stripped: stripped
            .filter(|_| translated.is_none())
            .map(|stripped| stripped.rewritten),
        translated,
    })
}

/// Waits a little; says what comes of the request if that ends it.
async fn pause(sender: &Sender<'_, '_>, reply: &mut Reply<'_>) -> Option<UpstreamOutcome> {
    let pause = sender.incoming.gateway.random.vary(PAUSE);
    tokio::select! {
        () = tokio::time::sleep(pause) => None,
        () = reply.client.gone() => Some(UpstreamOutcome::ClientGone),
        () = reply.lifecycle.reached(Phase::Cancelled) => Some(UpstreamOutcome::Nothing(Failure::Drained)),
    }
}

/// Records that a request goes to another target; says whether that is written, so that it may.
async fn turn_to(
    sender: &Sender<'_, '_>,
    open: &mut OpenExchange,
    chosen: &Chosen<'_>,
    failure: Failure,
) -> bool {
    let gateway = sender.incoming.gateway;
    let target = &sender.model.targets[chosen.place];
    let labels = (&*sender.model.name, target.upstream.name.as_str());
    let series = gateway.observers.traffic.series(&open.tenant.name, Some(labels));
    let translated = chosen.translated.as_ref();
    let dropped = translated.map_or(&[][..], |translated| translated.back.dropped());
    match open.turn_to(
        target,
        &chosen.named.model,
        dropped,
        series,
        failure.answer().code,
    ) {
        Ok(record) => open.written(Some(record), Stage::AdmissionRecord).await,
        Err(_) => false,
    }
}
