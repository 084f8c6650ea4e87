//! Sends an admitted request to one of its model's providers, as far as the head of an answer that is taken.

mod heard;
mod missing_path;
mod passing;
mod set_aside;
mod set_fields;

use std::cell::Cell;
use std::pin::pin;
use std::time::Duration;

use proofgate_base::answer::AnswerOptions;
use proofgate_base::lifecycle::Phase;
use proofgate_base::memory::{Buffer, Exhausted};
use proofgate_base::rejection::Rejection;
use proofgate_base::response_head::{Scrutiny, write_head};
use proofgate_config::Reason;
use proofgate_ledger::record::Outcome;
use proofgate_providers::{Call, Family, UpstreamBody, says_key_is_refused, says_prompt_is_too_long};
use proofgate_upstream::attempt::{
    EarlyFailure, Lent, Request, attempt, early_failure, upstream_body, whole_body,
};
use proofgate_upstream::failure::{Failure, Timeout};
use proofgate_upstream::routes::{Model, TargetSet};
use proofgate_upstream::upstream::Verdict;
use proofgate_wire::ResponseHead;
use tokio::time::Instant;

use crate::admission::{Chosen, Translated};
use crate::incoming_call::IncomingCall;
use crate::open_exchange::OpenExchange;
use crate::reply::{Buffers, Reply};
use crate::rewritten::Rewritten;

pub use self::heard::UpstreamOutcome;
use self::missing_path::is_missing_path;
use self::passing::{Broken, Passing};
pub use self::set_aside::SetAside;

/// How long the body is waited for that gives the reason of a refusal.
const UNTIL_A_REASON: Duration = Duration::from_secs(5);

/// How long an answer that might be a failure waits for its first event, where no heartbeat says so.
const UNTIL_THE_FIRST_EVENT: Duration = Duration::from_secs(15);

/// An admitted request, as it is sent to one provider or several.
pub struct Sender<'s, 'c> {
    pub(crate) incoming: &'s IncomingCall<'c>,
    pub call: Call<'c>,
    pub model: &'c Model,
    pub(crate) rewritten: Option<Rewritten>,
    /// When the answer must be over.
    pub until: Option<Instant>,
    /// Whether bytes of a body that was still coming have been taken, so that it cannot be sent once more.
    pub(crate) has_passed: Cell<bool>,
    /// An answer that the request went on from, while no other provider was sent it.
    pub set_aside: Cell<Option<Box<SetAside>>>,
}

impl Sender<'_, '_> {
    /// What the rules made of the body.
    pub fn body(&self) -> &[u8] {
        match &self.rewritten {
            Some(rewritten) => &rewritten.body,
            None => self.incoming.body,
        }
    }

    /// Whether a request at the target in a place, the first, could go to another one.
    pub(crate) fn may_turn(&self, place: usize) -> bool {
        let (dialect, tried) = (self.incoming.dialect, TargetSet::only(place));
        // Policies may have been asked since the body came. Most models have one target, and need no clock.
        self.model.targets.len() > 1 && self.model.has_next(dialect, tried, std::time::Instant::now())
    }

    /// Sends the request to a target and waits for the head of its answer, of which the client's stands in the reply's head buffer then.
    /// `may_turn`: whether the request goes elsewhere if the provider does not want it.
    pub async fn send(
        &self,
        reply: &mut Reply<'_>,
        open: &mut OpenExchange,
        chosen: &mut Chosen<'_>,
        may_turn: bool,
    ) -> UpstreamOutcome {
        let IncomingCall { gateway, catalog, .. } = *self.incoming;
        open.attending = chosen.attending.take();
        let target = &self.model.targets[chosen.place];
        let upstream = &*target.upstream;
        let rewritten = chosen.stripped.as_ref().or(self.rewritten.as_ref());
        let (said, model) = match rewritten {
            Some(rewritten) => (&*rewritten.body, rewritten.model.clone()),
            None => (self.incoming.body, self.call.model_value()),
        };
        let translated = chosen.translated.as_ref();
        let form = self.incoming.form;
        let (body, keeps_usage) = match translated {
            None if form.is_some() => {
                let name = &*chosen.named.model;
                let edit = (name != self.call.model).then_some((model, name.as_bytes()));
                (UpstreamBody::new(said, [edit, None]), false)
            }
            Some(translated) => (UpstreamBody::new(&translated.body, [None, None]), false),
            None => {
                let (usage, name) = (upstream.stream_usage, chosen.named.replacement.as_deref());
                upstream_body(usage, name, &self.call, said, model, rewritten.is_some())
            }
        };
        let mut with_fields = Buffer::new(&gateway.buffers.budget);
        let body = match form {
            None => match self.set_fields(upstream, &body, &mut with_fields, reply.extra) {
                Ok(true) => UpstreamBody::new(&with_fields, [None, None]),
                Ok(false) => body,
                Err(Exhausted) => {
                    return UpstreamOutcome::Refused(Rejection::OVERLOADED, Outcome::InternalError);
                }
            },
            Some(_) => body,
        };
        let mut fields = match (translated, &self.incoming.fields, form) {
            (Some(translated), _, _) => translated.back.fields().to_vec(),
            (None, Some(fields), _) => fields.for_upstream(upstream.betas.as_deref(), reply.extra),
            (None, None, Some(form)) => form.content_type.clone(),
            (None, None, None) => Vec::new(),
        };
        if let Some(token) = &upstream.token {
            token.write(&mut fields);
        }
        if let Some(observed) = &mut open.observed {
            observed.leaves(self.incoming.now);
            observed.write_trace(&mut fields);
        }
        let name = &chosen.named.model;
        let path_end = match (translated, self.incoming.stored) {
            (_, Some(stored)) => stored.path_end(),
            (Some(Translated { back, .. }), _) => {
                upstream.path_end.of(back.upstream(), name, back.is_streamed())
            }
            (None, None) => upstream.path_end.of(self.call.dialect, name, self.call.stream),
        };
        let id = open.id;
        let mut upload = self.incoming.upload.take();
        let rest = form.and_then(|form| form.coming).map(|coming| {
            let missing = |all: u64| all.saturating_sub(self.body().len() as u64);
            let declared = coming.declared.map(missing);
            declared.map(|missing| missing + body.length() as u64)
        });
        let request = Request {
            to: upstream,
            template: chosen.template,
            model: &path_end,
            fields: &fields,
            id: id.as_str(),
            at: upstream.signer.as_ref().map_or(0, |_| open.now() / 1_000_000),
            body,
            rest,
        };
        let scrutiny = match (&open.masks, &open.guard) {
            // It is held to its end, as for rules.
            (Some(_), _) => Scrutiny::Enforce,
            (None, Some(guard)) if guard.denies() => Scrutiny::Enforce,
            (None, Some(_)) => Scrutiny::Observe,
            (None, None) => Scrutiny::of(&catalog.terms.plan(&open.tenant).profile),
        };
        let closes = Cell::new(reply.close);
        let options = AnswerOptions {
            close: reply.close,
            head_only: false,
            extra: reply.extra,
            family: reply.family(),
        };
        let Buffers {
            head: out,
            upstream: answer,
        } = &mut *reply.buffers;
        let declined = Cell::new(None);
        let accept = |head: &ResponseHead<'_>| {
            let may_turn = may_turn && !self.has_passed.get();
            declined.set(self.turned_away(head, may_turn));
            gateway.buffers.spare.lend(out);
            let options = AnswerOptions {
                close: closes.get(),
                ..options
            };
            write_head(head, id.as_str(), options, scrutiny, out).map_err(|_| Failure::Unreachable)
        };
        let lent = Lent {
            outgoing: &gateway.buffers.outgoing,
            incoming: &gateway.buffers.incoming,
        };
        let limits = catalog.terms.limits;
        // Whether bytes of a body that was still coming have been taken, and not all.
        let mut is_cut = false;
        let attempted = if let Some(mut upload) = upload.take() {
            let passing = Passing {
                incoming: self.incoming,
                model: &self.call.model,
                client: &mut *reply.client,
                deadline: &mut *reply.deadline,
                lifecycle: &mut *reply.lifecycle,
                open: &mut *open,
                upload: &mut upload,
                until: self.until,
                limits,
                lent,
                has_passed: &self.has_passed,
                closes: &closes,
            };
            let attempted = Box::pin(passing.attempt(request, answer, accept)).await;
            if !upload.is_over() {
                is_cut = self.has_passed.get();
                // Behind what is not read nothing can follow.
                reply.close = true;
                self.incoming.upload.set(Some(upload));
            }
            match attempted {
                Ok(begun) => Ok(begun),
                Err(Broken::Upstream(failure)) => Err(failure),
                Err(Broken::ClientGone) => return UpstreamOutcome::ClientGone,
                Err(Broken::Refused(rejection, outcome)) => {
                    return UpstreamOutcome::Refused(rejection, outcome);
                }
            }
        } else {
            let (reached, span) = (&mut open.reached, &mut open.span);
            let attempting = pin!(attempt(request, limits, reached, span, lent, answer, accept));
            tokio::select! {
                biased;
                attempted = reply.deadline.within_until(upstream.first_byte, self.until, attempting) => {
                    attempted.unwrap_or_else(|_| Err(Failure::timed_out(Timeout::FirstByte, self.until)))
                }
                () = reply.client.gone() => return UpstreamOutcome::ClientGone,
                () = reply.lifecycle.reached(Phase::Cancelled) => return UpstreamOutcome::Nothing(Failure::Drained),
            }
        };
        let failed = |failure: Failure, open: &mut OpenExchange| {
            let verdict = match failure {
                // It had what the client left of the time.
                Failure::TimedOut(Timeout::Answer) if self.has_passed.get() => Verdict::Nothing,
                // It may not have wanted to wait for the client any longer.
                Failure::Unreachable if is_cut => Verdict::Nothing,
                _ => failure.verdict(open.reached.sent()),
            };
            if let Some(attending) = &mut open.attending {
                attending.heard(verdict, name, std::time::Instant::now());
            }
            open.leave();
            gateway
                .observers
                .metrics
                .provider_failed(&upstream.name, failure.answer().code);
            UpstreamOutcome::Nothing(failure)
        };
        let mut begun = match attempted {
            Ok(begun) => begun,
            Err(failure) => return failed(failure, open),
        };
        if let Some(failure) = declined.take() {
            let heard = failed(failure, open);
            self.keep(SetAside::new(begun, keeps_usage, out, answer));
            return heard;
        }
        let may_turn = may_turn && !self.has_passed.get();
        let status = begun.head.status;
        if may_turn && begun.head.is_success() && self.model.fall_back_on.may_be_answered() {
            let spoken = translated.map_or(self.call.dialect, |translated| translated.back.upstream());
            let shape = (
                begun.head.framing,
                begun.head.framed && spoken.family() == Family::Amazon,
            );
            // Boxed: only requests that can go elsewhere need the room.
            let early = Box::pin(early_failure(&mut begun, shape, spoken, lent, answer));
            // For longer no client is left without the head of its answer.
            let patience = catalog.terms.timeouts.heartbeat.unwrap_or(UNTIL_THE_FIRST_EVENT);
            let patience = patience.min(upstream.idle);
            let early = tokio::select! {
                biased;
                early = reply.deadline.within_until(patience, self.until, early) => early.ok().flatten(),
                () = reply.client.gone() => return UpstreamOutcome::ClientGone,
                () = reply.lifecycle.reached(Phase::Cancelled) => return UpstreamOutcome::Nothing(Failure::Drained),
            };
            if let Some((failure, early)) = early.and_then(|early| Some((self.declined(&early)?, early))) {
                let heard = failed(failure, open);
                match failure {
                    Failure::Unauthorized => {
                        upstream.report_refusal(
                            &gateway.observers.metrics,
                            name,
                            early.status,
                            None,
                            &early.said,
                        );
                    }
                    _ => self.keep(SetAside::new(begun, keeps_usage, out, answer)),
                }
                return heard;
            }
        }
        let is_refused = Reason::of_status(status) == Some(Reason::Unauthorized);
        let is_down = matches!(
            Reason::of_status(status),
            Some(Reason::Overloaded | Reason::ServerError)
        );
        if let Some(attending) = &mut open.attending {
            match is_down && status != 500 {
                _ if is_refused => {}
                // It is the client whom it has waited for.
                true if status == 408 && is_cut => {
                    attending.heard(Verdict::Nothing, name, self.incoming.now);
                }
                true => attending.heard(Verdict::Failed, name, std::time::Instant::now()),
                false => attending.heard(Verdict::Well, name, self.incoming.now),
            }
        }
        let may_be_too_long =
            matches!(status, 400 | 413) && may_turn && self.model.fall_back_on.has(Reason::ContextLength);
        let may_be_the_key = status == 400 && upstream.family == Family::Google;
        let spoken = translated.map_or(self.call.dialect, |translated| translated.back.upstream());
        let may_be_the_path = matches!(status, 404 | 405) && spoken.asks_as_responses();
        if may_be_too_long || may_be_the_key || may_be_the_path || is_refused {
            let patience = match is_refused {
                true => upstream.idle.min(UNTIL_A_REASON),
                false => upstream.idle,
            };
            let framing = begun.head.framing;
            let read = Box::pin(whole_body(&mut begun, framing, lent, answer));
            // What does not come to its end, whoever relays it meets again.
            let body = tokio::select! {
                biased;
                body = reply.deadline.within_until(patience, self.until, read) => body.ok().flatten(),
                () = reply.client.gone() => return UpstreamOutcome::ClientGone,
                () = reply.lifecycle.reached(Phase::Cancelled) => return UpstreamOutcome::Nothing(Failure::Drained),
            };
            let body = body.unwrap_or_default();
            let failure = if is_refused || (may_be_the_key && says_key_is_refused(&body)) {
                // It speaks of the gateway's key, and may quote it.
                let kind = begun.head.error_kind.as_deref();
                upstream.report_refusal(&gateway.observers.metrics, name, status, kind, &body);
                Some(Failure::Unauthorized)
            } else if may_be_the_path && is_missing_path(status, &body) {
                Some(Failure::NoResponses)
            } else if may_be_too_long && says_prompt_is_too_long(&body) {
                Some(Failure::Declined {
                    status,
                    reason: Reason::ContextLength,
                    retry_after: None,
                })
            } else {
                None
            };
            if let Some(failure) = failure {
                gateway
                    .observers
                    .metrics
                    .provider_failed(&upstream.name, failure.answer().code);
                open.leave();
                if let Failure::Declined { .. } = failure {
                    self.keep(SetAside::new(begun, keeps_usage, out, answer));
                }
                return UpstreamOutcome::Nothing(failure);
            }
        }
        UpstreamOutcome::Begun { begun, keeps_usage }
    }

    /// Keeps an answer while it is not known whether another provider takes the request.
    fn keep(&self, answer: SetAside) {
        self.set_aside.set(Some(Box::new(answer)));
    }

    /// What a failure with which an answer begins says against relaying it.
    fn declined(&self, early: &EarlyFailure) -> Option<Failure> {
        let status = early.status;
        let reason = match early.is_too_long {
            true => Some(Reason::ContextLength),
            false => Reason::of_status(status),
        };
        let reason = reason.filter(|reason| self.model.fall_back_on.has(*reason))?;
        Some(match reason {
            Reason::Unauthorized => Failure::Unauthorized,
            reason => Failure::Declined {
                status,
                reason,
                retry_after: None,
            },
        })
    }

    /// What the head of an answer says against relaying it.
    fn turned_away(&self, head: &ResponseHead<'_>, may_turn: bool) -> Option<Failure> {
        if head.status < 400 {
            return None;
        }
        // What speaks of the gateway's key is read first.
        let reason = Reason::of_status(head.status).filter(|reason| *reason != Reason::Unauthorized);
        let reason = reason.filter(|reason| may_turn && self.model.fall_back_on.has(*reason))?;
        Some(Failure::Declined {
            status: head.status,
            reason,
            retry_after: retry_after(head),
        })
    }
}

/// How long a provider wants to be left alone, in seconds (RFC 9110 section 10.2.3), where it says that as a number.
fn retry_after(head: &ResponseHead<'_>) -> Option<u32> {
    let value = std::str::from_utf8(head.headers.get("retry-after")?).ok()?;
    value.trim().parse().ok()
}
