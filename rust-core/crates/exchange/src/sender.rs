//! Sends an admitted request to one of its model's providers, up to the head of an accepted response.

mod deferred_response;
mod missing_path;
mod set_fields;
mod streamed_upload;
mod upstream_outcome;

use std::cell::Cell;
use std::pin::pin;
use std::time::Duration;

use proofgate_base::error_response::ResponseOptions;
use proofgate_base::lifecycle::Phase;
use proofgate_base::memory::{Buffer, MemoryExhausted};
use proofgate_base::rejection::Rejection;
use proofgate_base::response_head::{InspectionLevel, write_head};
use proofgate_config::FallbackReason;
use proofgate_ledger::record::Outcome;
use proofgate_providers::{Family, ParsedRequest, UpstreamBody, is_key_rejection, is_prompt_too_long};
use proofgate_upstream::attempt::{
    EarlyFailure, Request, SharedBuffers, attempt, read_early_failure, read_full_body, upstream_body,
};
use proofgate_upstream::failure::{Failure, Timeout};
use proofgate_upstream::routes::{Model, TargetSet};
use proofgate_upstream::upstream::Verdict;
use proofgate_wire::ResponseHead;
use tokio::time::Instant;

use crate::admission::{ChosenTarget, TranslatedRequest};
use crate::incoming_call::IncomingCall;
use crate::open_exchange::OpenExchange;
use crate::reply::{ConnectionBuffers, Reply};
use crate::rewritten_body::RewrittenBody;

pub use self::deferred_response::DeferredResponse;
use self::missing_path::is_missing_path;
use self::streamed_upload::{StreamedUpload, UploadError};
pub use self::upstream_outcome::UpstreamOutcome;

/// Maximum wait for the body of a refusal, which states the reason.
const REASON_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum wait for the first event of a response that may be a failure, if no heartbeat interval
/// is configured.
const FIRST_EVENT_TIMEOUT: Duration = Duration::from_secs(15);

/// An admitted request that is sent to one or more providers.
pub struct UpstreamSender<'s, 'c> {
    pub(crate) incoming: &'s IncomingCall<'c>,
    pub call: ParsedRequest<'c>,
    pub model: &'c Model,
    pub(crate) rewritten: Option<RewrittenBody>,
    /// Deadline of the complete response.
    pub response_deadline: Option<Instant>,
    /// Whether a part of the streamed body was consumed, so that the request cannot be sent again.
    pub(crate) has_consumed_body: Cell<bool>,
    /// A response that is kept while other providers are tried, until the request is sent to
    /// another provider.
    pub deferred: Cell<Option<Box<DeferredResponse>>>,
}

impl UpstreamSender<'_, '_> {
    /// Returns the body after the rules.
    pub fn body(&self) -> &[u8] {
        match &self.rewritten {
            Some(rewritten) => &rewritten.body,
            None => self.incoming.body,
        }
    }

    /// Whether a request whose first target is `place` can fall back to another target.
    pub(crate) fn can_fall_back(&self, place: usize) -> bool {
        let (dialect, tried) = (self.incoming.dialect, TargetSet::only(place));
        // The clock is read again, because policies may have taken time since the body arrived.
        // Most models have one target and do not need the clock.
        self.model.targets.len() > 1
            && self
                .model
                .has_next_target(dialect, tried, std::time::Instant::now())
    }

    /// Sends the request to a target and waits for the head of its response. Writes the client's
    /// response head to the reply's head buffer. `may_turn`: whether the request can fall back to
    /// another target.
    pub async fn send(
        &self,
        reply: &mut Reply<'_>,
        open: &mut OpenExchange,
        chosen: &mut ChosenTarget<'_>,
        may_turn: bool,
    ) -> UpstreamOutcome {
        let IncomingCall { gateway, catalog, .. } = *self.incoming;
        open.in_flight = chosen.in_flight.take();
        let target = &self.model.targets[chosen.target_index];
        let upstream = &*target.upstream;
        let rewritten = chosen.stripped.as_ref().or(self.rewritten.as_ref());
        let (said, model) = match rewritten {
            Some(rewritten) => (&*rewritten.body, rewritten.model_range.clone()),
            None => (self.incoming.body, self.call.model_value()),
        };
        let translated = chosen.translated.as_ref();
        let form = self.incoming.form;
        let (body, keeps_usage) = match translated {
            None if form.is_some() => {
                let name = &*chosen.upstream_model.model;
                let edit = (name != self.call.model).then_some((model, name.as_bytes()));
                (UpstreamBody::new(said, [edit, None]), false)
            }
            Some(translated) => (UpstreamBody::new(&translated.body, [None, None]), false),
            None => {
                let (usage, name) = (
                    upstream.stream_usage,
                    chosen.upstream_model.replacement_name.as_deref(),
                );
                upstream_body(usage, name, &self.call, said, model, rewritten.is_some())
            }
        };
        let mut with_fields = Buffer::new(&gateway.buffers.budget);
        let body = match form {
            None => match self.set_fields(upstream, &body, &mut with_fields, reply.extra_headers) {
                Ok(true) => UpstreamBody::new(&with_fields, [None, None]),
                Ok(false) => body,
                Err(MemoryExhausted) => {
                    return UpstreamOutcome::Refused(Rejection::OVERLOADED, Outcome::InternalError);
                }
            },
            Some(_) => body,
        };
        let mut fields = match (translated, &self.incoming.anthropic_headers, form) {
            (Some(translated), _, _) => translated.response_translation.header_lines().to_vec(),
            (None, Some(fields), _) => fields.for_upstream(upstream.betas.as_deref(), reply.extra_headers),
            (None, None, Some(form)) => form.content_type.clone(),
            (None, None, None) => Vec::new(),
        };
        if let Some(token) = &upstream.token {
            token.write(&mut fields);
        }
        if let Some(observed) = &mut open.observed_exchange {
            observed.mark_sent(self.incoming.head_received_at);
            observed.write_trace(&mut fields);
        }
        let name = &chosen.upstream_model.model;
        let path_end = match (translated, self.incoming.stored_call) {
            (_, Some(stored)) => stored.path_suffix(),
            (
                Some(TranslatedRequest {
                    response_translation: back,
                    ..
                }),
                _,
            ) => upstream
                .path_style
                .suffix_for(back.upstream_dialect(), name, back.is_streamed()),
            (None, None) => upstream
                .path_style
                .suffix_for(self.call.dialect, name, self.call.stream),
        };
        let id = open.id;
        let mut upload = self.incoming.upload.take();
        let rest = form.and_then(|form| form.pending_body).map(|coming| {
            let missing = |all: u64| all.saturating_sub(self.body().len() as u64);
            let declared = coming.declared.map(missing);
            declared.map(|missing| missing + body.length() as u64)
        });
        let request = Request {
            upstream,
            template: chosen.template,
            model: &path_end,
            header_lines: &fields,
            id: id.as_str(),
            sent_at: upstream.signer.as_ref().map_or(0, |_| open.now() / 1_000_000),
            body,
            incoming_length: rest,
        };
        let scrutiny = match (&open.masks, &open.guard) {
            // A response that may be denied is inspected to its end, as for rules.
            (Some(_), _) => InspectionLevel::Enforce,
            (None, Some(guard)) if guard.denies() => InspectionLevel::Enforce,
            (None, Some(_)) => InspectionLevel::Observe,
            (None, None) => InspectionLevel::from_profile(&catalog.settings.plan(&open.tenant).profile),
        };
        let closes = Cell::new(reply.close);
        let options = ResponseOptions {
            close: reply.close,
            head_only: false,
            extra_headers: reply.extra_headers,
            family: reply.family(),
        };
        let ConnectionBuffers {
            head: out,
            upstream: answer,
        } = &mut *reply.buffers;
        let declined = Cell::new(None);
        let accept = |head: &ResponseHead<'_>| {
            let may_turn = may_turn && !self.has_consumed_body.get();
            declined.set(self.head_failure(head, may_turn));
            gateway.buffers.pool.acquire(out);
            let options = ResponseOptions {
                close: closes.get(),
                ..options
            };
            write_head(head, id.as_str(), options, scrutiny, out).map_err(|_| Failure::Unreachable)
        };
        let lent = SharedBuffers {
            outgoing: &gateway.buffers.outgoing,
            incoming: &gateway.buffers.incoming,
        };
        let limits = catalog.settings.limits;
        // Whether the client's streamed body was sent only in part.
        let mut is_cut = false;
        let attempted = if let Some(mut upload) = upload.take() {
            let passing = StreamedUpload {
                incoming: self.incoming,
                model: &self.call.model,
                client: &mut *reply.client,
                deadline: &mut *reply.deadline,
                lifecycle: &mut *reply.lifecycle,
                open_exchange: &mut *open,
                upload: &mut upload,
                response_deadline: self.response_deadline,
                limits,
                shared_buffers: lent,
                has_consumed_body: &self.has_consumed_body,
                should_close: &closes,
            };
            let attempted = Box::pin(passing.attempt(request, answer, accept)).await;
            if !upload.is_sent() {
                is_cut = self.has_consumed_body.get();
                // The connection closes, because no request can follow an unread body.
                reply.close = true;
                self.incoming.upload.set(Some(upload));
            }
            match attempted {
                Ok(begun) => Ok(begun),
                Err(UploadError::Upstream(failure)) => Err(failure),
                Err(UploadError::ClientDisconnected) => return UpstreamOutcome::ClientDisconnected,
                Err(UploadError::Refused(rejection, outcome)) => {
                    return UpstreamOutcome::Refused(rejection, outcome);
                }
            }
        } else {
            let (reached, span) = (&mut open.attempt_progress, &mut open.span);
            let attempting = pin!(attempt(request, limits, reached, span, lent, answer, accept));
            tokio::select! {
                biased;
                attempted = reply.deadline.with_timeout_and_deadline(upstream.first_byte_timeout, self.response_deadline, attempting) => {
                    attempted.unwrap_or_else(|_| Err(Failure::timed_out(Timeout::FirstByte, self.response_deadline)))
                }
                () = reply.client.wait_for_disconnect() => return UpstreamOutcome::ClientDisconnected,
                () = reply.lifecycle.wait_for(Phase::Cancelled) => return UpstreamOutcome::Failed(Failure::Draining),
            }
        };
        let failed = |failure: Failure, open: &mut OpenExchange| {
            let verdict = match failure {
                // The client used a part of the time to send its body.
                Failure::TimedOut(Timeout::Exchange) if self.has_consumed_body.get() => Verdict::Inconclusive,
                // The upstream may have closed the connection because the client sent its body too
                // slowly.
                Failure::Unreachable if is_cut => Verdict::Inconclusive,
                _ => failure.verdict(open.attempt_progress.send_outcome()),
            };
            if let Some(attending) = &mut open.in_flight {
                attending.record_verdict(verdict, name, std::time::Instant::now());
            }
            open.end_attempt();
            gateway
                .observers
                .metrics
                .record_provider_failure(&upstream.name, failure.response().code);
            UpstreamOutcome::Failed(failure)
        };
        let mut begun = match attempted {
            Ok(begun) => begun,
            Err(failure) => return failed(failure, open),
        };
        if let Some(failure) = declined.take() {
            let heard = failed(failure, open);
            self.defer(DeferredResponse::new(begun, keeps_usage, out, answer));
            return heard;
        }
        let may_turn = may_turn && !self.has_consumed_body.get();
        let status = begun.head.status;
        if may_turn && begun.head.is_success() && self.model.fallback_reasons.depend_on_response() {
            let spoken = translated.map_or(self.call.dialect, |translated| {
                translated.response_translation.upstream_dialect()
            });
            let shape = (
                begun.head.framing,
                begun.head.is_amazon_framed && spoken.family() == Family::Amazon,
            );
            // Boxed, because only requests that can fall back need the memory.
            let early = Box::pin(read_early_failure(&mut begun, shape, spoken, lent, answer));
            // The client must not wait longer for the head of its response.
            let patience = catalog.settings.timeouts.heartbeat.unwrap_or(FIRST_EVENT_TIMEOUT);
            let patience = patience.min(upstream.idle_timeout);
            let early = tokio::select! {
                biased;
                early = reply.deadline.with_timeout_and_deadline(patience, self.response_deadline, early) => early.ok().flatten(),
                () = reply.client.wait_for_disconnect() => return UpstreamOutcome::ClientDisconnected,
                () = reply.lifecycle.wait_for(Phase::Cancelled) => return UpstreamOutcome::Failed(Failure::Draining),
            };
            if let Some((failure, early)) = early.and_then(|early| Some((self.early_failure(&early)?, early)))
            {
                let heard = failed(failure, open);
                match failure {
                    Failure::Unauthorized => {
                        upstream.report_refusal(
                            &gateway.observers.metrics,
                            name,
                            early.status,
                            None,
                            &early.excerpt,
                        );
                    }
                    _ => self.defer(DeferredResponse::new(begun, keeps_usage, out, answer)),
                }
                return heard;
            }
        }
        let is_refused = FallbackReason::from_status(status) == Some(FallbackReason::Unauthorized);
        let is_down = matches!(
            FallbackReason::from_status(status),
            Some(FallbackReason::Overloaded | FallbackReason::ServerError)
        );
        if let Some(attending) = &mut open.in_flight {
            match is_down && status != 500 {
                _ if is_refused => {}
                // The upstream timed out because it waited for the client.
                true if status == 408 && is_cut => {
                    attending.record_verdict(Verdict::Inconclusive, name, self.incoming.head_received_at);
                }
                true => attending.record_verdict(Verdict::Failed, name, std::time::Instant::now()),
                false => attending.record_verdict(Verdict::Healthy, name, self.incoming.head_received_at),
            }
        }
        let may_be_too_long = matches!(status, 400 | 413)
            && may_turn
            && self.model.fallback_reasons.has(FallbackReason::ContextLength);
        let may_be_the_key = status == 400 && upstream.family == Family::Google;
        let spoken = translated.map_or(self.call.dialect, |translated| {
            translated.response_translation.upstream_dialect()
        });
        let may_be_the_path = matches!(status, 404 | 405) && spoken.uses_responses_format();
        if may_be_too_long || may_be_the_key || may_be_the_path || is_refused {
            let patience = match is_refused {
                true => upstream.idle_timeout.min(REASON_TIMEOUT),
                false => upstream.idle_timeout,
            };
            let framing = begun.head.framing;
            let read = Box::pin(read_full_body(&mut begun, framing, lent, answer));
            // If the body is incomplete, the relay detects the same failure.
            let body = tokio::select! {
                biased;
                body = reply.deadline.with_timeout_and_deadline(patience, self.response_deadline, read) => body.ok().flatten(),
                () = reply.client.wait_for_disconnect() => return UpstreamOutcome::ClientDisconnected,
                () = reply.lifecycle.wait_for(Phase::Cancelled) => return UpstreamOutcome::Failed(Failure::Draining),
            };
            let body = body.unwrap_or_default();
            let failure = if is_refused || (may_be_the_key && is_key_rejection(&body)) {
                // The client does not get this body, because it is about the gateway's key and may
                // quote it.
                let kind = begun.head.error_kind.as_deref();
                upstream.report_refusal(&gateway.observers.metrics, name, status, kind, &body);
                Some(Failure::Unauthorized)
            } else if may_be_the_path && is_missing_path(status, &body) {
                Some(Failure::ResponsesUnsupported)
            } else if may_be_too_long && is_prompt_too_long(&body) {
                Some(Failure::Declined {
                    status,
                    reason: FallbackReason::ContextLength,
                    retry_after: None,
                })
            } else {
                None
            };
            if let Some(failure) = failure {
                gateway
                    .observers
                    .metrics
                    .record_provider_failure(&upstream.name, failure.response().code);
                open.end_attempt();
                if let Failure::Declined { .. } = failure {
                    self.defer(DeferredResponse::new(begun, keeps_usage, out, answer));
                }
                return UpstreamOutcome::Failed(failure);
            }
        }
        UpstreamOutcome::Started { begun, keeps_usage }
    }

    /// Keeps a response while other providers are tried.
    fn defer(&self, answer: DeferredResponse) {
        self.deferred.set(Some(Box::new(answer)));
    }

    /// Returns the reason not to relay a response that starts with a failure.
    fn early_failure(&self, early: &EarlyFailure) -> Option<Failure> {
        let status = early.status;
        let reason = match early.is_too_long {
            true => Some(FallbackReason::ContextLength),
            false => FallbackReason::from_status(status),
        };
        let reason = reason.filter(|reason| self.model.fallback_reasons.has(*reason))?;
        Some(match reason {
            FallbackReason::Unauthorized => Failure::Unauthorized,
            reason => Failure::Declined {
                status,
                reason,
                retry_after: None,
            },
        })
    }

    /// Returns the reason not to relay a response, given its head.
    fn head_failure(&self, head: &ResponseHead<'_>, may_turn: bool) -> Option<Failure> {
        if head.status < 400 {
            return None;
        }
        // A response about the gateway's key is not decided by its head, because its body is read
        // first.
        let reason =
            FallbackReason::from_status(head.status).filter(|reason| *reason != FallbackReason::Unauthorized);
        let reason = reason.filter(|reason| may_turn && self.model.fallback_reasons.has(*reason))?;
        Some(Failure::Declined {
            status: head.status,
            reason,
            retry_after: retry_after(head),
        })
    }
}

/// Parses `Retry-After` in seconds (RFC 9110 section 10.2.3); `None` if it is not a number.
fn retry_after(head: &ResponseHead<'_>) -> Option<u32> {
    let value = std::str::from_utf8(head.headers.get("retry-after")?).ok()?;
    value.trim().parse().ok()
}
