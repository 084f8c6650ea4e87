//! Asks the policies of one request, one after the other: each sees what the one before it made of the text.

use std::borrow::Cow;
use std::sync::Arc;

use proofgate_base::memory::{MemoryExhausted, MemoryReservation, SLICE_BYTES};
use proofgate_base::rejection::Rejection;
use proofgate_external_policies::{Hook, OnFailure, PolicyFailure, PolicyRequest, RequestTexts, Verdict};
use proofgate_ledger::record::PolicyNote;
use proofgate_policy::Mode;
use proofgate_providers::{Dialect, ParsedRequest};
use proofgate_upstream::catalog::Catalog;
use proofgate_upstream::terms::TenantPlan;

use super::masks::{Masks, ReplacementError};
use super::replacement::replace;
use crate::gateway::Gateway;
use crate::gateway::buffers::{RequestBuffers, prepare_text};
use crate::judged::{self, DeniedRequest, JudgedRequest};

/// A request that the rules have let pass.
pub struct HookRequest<'a> {
    pub gateway: &'a Gateway,
    pub catalog: &'a Catalog,
    pub plan: &'a TenantPlan,
    pub dialect: Dialect,
    pub tenant: &'a Arc<str>,
    pub model: &'a str,
    /// As the client sent it.
    pub body: &'a [u8],
}

/// Asks the policies of the plan, and notes in `judged` what they say. `reading` has the text of `body`; while the request
/// waits, its memory serves other requests, and `room`, its part of the budget, is given back.
///
/// # Errors
/// The refusal, where a policy denies the request or has failed and its requests are denied then, or where the scores of
/// several reach the threshold.
pub async fn evaluate_hooks<'c>(
    asking: HookRequest<'_>,
    reading: &mut RequestBuffers,
    room: &mut MemoryReservation,
    judged: &mut JudgedRequest<'c>,
) -> Result<(), Box<DeniedRequest<'c>>> {
    let mut asked = HookEvaluation {
        request: asking,
        reading,
        room,
        judged,
        // What rules have redacted no policy sees.
        is_text_current: false,
    };
    asked.is_text_current = asked.judged.rewritten.is_none();
    let asking = &asked.request;
    let (hooks, threshold) = (&asking.plan.hooks, asking.plan.profile.threshold());
    let enforced = asking.plan.profile.mode() == Mode::Enforce;
    let mut scored = None;
    for hook in hooks {
        let verdict = match asked.evaluate(hook).await {
            Ok(verdict) => verdict,
            Err(rejection) => return Err(asked.deny(rejection)),
        };
        let name = &hook.config.name;
        match verdict {
            Ok(Verdict::Allow | Verdict::Failed(_)) => {}
            Ok(Verdict::Deny { code, reason }) => {
                asked.add_finding(name, &code, 0);
                if enforced {
                    asked.request.gateway.observers.metrics.policy_blocked();
                    return Err(asked.deny(Rejection::denied_by_policy(name, &reason)));
                }
                asked.mark_would_block();
            }
            Ok(Verdict::Flag { rule, score }) => {
                // No policy denies by its score alone.
                let most = threshold.map_or(u32::MAX, |threshold| threshold.saturating_sub(1));
                asked.add_finding(name, &rule, score.min(most));
                scored = Some(name);
            }
            Ok(Verdict::Replace { rule, .. }) => asked.add_finding(name, &rule, 0),
            Err(failure) => {
                asked.add_finding(name, &failure.id(), 0);
                match (hook.config.on_failure, enforced) {
                    (OnFailure::Allow, _) => {}
                    (OnFailure::Deny, true) => {
                        asked.request.gateway.observers.metrics.record_policy_fault();
                        return Err(asked.deny(Rejection::policy_unavailable(name)));
                    }
                    (OnFailure::Deny, false) => asked.mark_would_block(),
                }
            }
        }
    }
    let score = asked.judged.note.as_ref().map_or(0, |note| note.score);
    match scored.filter(|_| threshold.is_some_and(|threshold| score >= threshold)) {
        Some(name) if enforced => {
            asked.request.gateway.observers.metrics.policy_blocked();
            let reason = "The total suspicion score of the request reached the policy threshold.";
            Err(asked.deny(Rejection::denied_by_policy(name, reason)))
        }
        Some(_) => {
            asked.mark_would_block();
            Ok(())
        }
        None => Ok(()),
    }
}

/// A request between two policies.
struct HookEvaluation<'a, 'r, 'c> {
    request: HookRequest<'a>,
    reading: &'r mut RequestBuffers,
    room: &'r mut MemoryReservation,
    judged: &'r mut JudgedRequest<'c>,
    /// Whether `reading` has the text of the body as it is now.
    is_text_current: bool,
}

impl<'c> HookEvaluation<'_, '_, 'c> {
    /// What one policy says. Its replacements are made.
    ///
    /// # Errors
    /// The refusal of a request for which there is no room.
    async fn evaluate(&mut self, hook: &Hook) -> Result<Result<Verdict, PolicyFailure>, Rejection> {
        if hook.breaker.is_open() && hook.breaker.try_acquire().is_none() {
            // Nothing is copied for one that is not asked.
            return Ok(Err(hook.counters.record_failure(PolicyFailure::BreakerOpen)));
        }
        self.read_text().await?;
        let overloaded = |MemoryExhausted| Rejection::OVERLOADED;
        let room = &self.request.gateway.policy.hook_memory;
        let taken = room
            .reserve(RequestTexts::max_copy_bytes(&self.reading.text))
            .map_err(overloaded)?;
        let request = PolicyRequest {
            tenant: Arc::clone(self.request.tenant),
            model: self.request.model.into(),
            endpoint: self.request.dialect.path(),
            texts: RequestTexts::from_body(&self.reading.text),
            _permit: taken,
        };
        self.release_buffers();
        let verdict = hook.evaluate(request).await;
        room.release_dropped();
        let enforced = self.request.plan.profile.mode() == Mode::Enforce;
        let Ok(Verdict::Replace {
            replacements,
            reversible,
            ..
        }) = &verdict
        else {
            return Ok(verdict);
        };
        if !enforced {
            return Ok(verdict);
        }
        self.read_text().await?;
        let body = self.judged.rewritten.as_ref();
        let body = body.map_or(self.request.body, |rewritten| &rewritten.body);
        let (budget, text) = (&self.request.gateway.buffers.budget, &self.reading.text);
        let masks = &mut self.judged.masks;
        let masks = reversible.then(|| &mut **masks.get_or_insert_with(|| Box::new(Masks::new(budget))));
        match replace(budget, text, body, replacements, masks) {
            Ok(rewritten) => {
                self.judged.rewritten = Some(rewritten);
                self.is_text_current = false;
                self.note_mut().redacted = true;
                Ok(verdict)
            }
            Err(ReplacementError::InvalidRanges(failure)) => Ok(Err(hook.counters.record_failure(failure))),
            Err(ReplacementError::Exhausted) => Err(Rejection::OVERLOADED),
        }
    }

    /// Has the text of the body as it is now in `reading`.
    async fn read_text(&mut self) -> Result<(), Rejection> {
        if self.is_text_current {
            return Ok(());
        }
        let rewritten = self.judged.rewritten.as_ref();
        let body = rewritten.map_or(self.request.body, |rewritten| &rewritten.body);
        if self.reading.text.capacity() == 0 {
            *self.reading = self.request.gateway.buffers.request_buffers.take();
        }
        let attachments = judged::attachment_policy(self.request.catalog);
        self.reading.text.set_attachments(attachments);
        if body.len() > SLICE_BYTES {
            let overloaded = |MemoryExhausted| Rejection::OVERLOADED;
            self.room.resize(body.len()).map_err(overloaded)?;
            prepare_text(&mut self.reading.text, body.len()).await;
        }
        let text = ParsedRequest::body_as_str(body).map_err(Rejection::from)?;
        let RequestBuffers {
            text: into,
            workspace,
        } = &mut *self.reading;
        match self.request.dialect.has_form() {
            // Its text is no JSON.
            true => into.collect_plain_text(text),
            false => {
                ParsedRequest::read_text(self.request.dialect, text, workspace, into)
                    .map_err(Rejection::from)?;
                self.reading.release_parse_memory();
            }
        }
        let size = self.reading.text.size();
        self.room
            .resize(size)
            .map_err(|MemoryExhausted| Rejection::OVERLOADED)?;
        self.is_text_current = true;
        Ok(())
    }

    /// Leaves the buffers to others: a request that waits needs none.
    fn release_buffers(&mut self) {
        std::mem::take(self.reading).release_to(&self.request.gateway.buffers);
        // What becomes less is never refused.
        let _ = self.room.resize(0);
        self.is_text_current = false;
    }

    fn note_mut(&mut self) -> &mut PolicyNote<'c> {
        self.judged.note.get_or_insert_default()
    }

    /// Notes what a policy found, as `<policy>/<id>`.
    fn add_finding(&mut self, policy: &str, id: &str, score: u32) {
        let note = self.note_mut();
        note.score = note.score.saturating_add(score);
        judged::add_rule(note, Cow::Owned(format!("{policy}/{id}")));
    }

    fn mark_would_block(&mut self) {
        self.note_mut().would_block = true;
    }

    fn deny(&mut self, rejection: Rejection) -> Box<DeniedRequest<'c>> {
        Box::new(DeniedRequest {
            rejection,
            note: self.judged.note.take(),
        })
    }
}
