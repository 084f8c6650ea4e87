//! Evaluates the external policies of a request, one after the other. Each policy sees the text
//! with the replacements of the previous policies.

use std::borrow::Cow;
use std::sync::Arc;

use proofgate_base::memory::{MemoryExhausted, MemoryReservation, SLICE_BYTES};
use proofgate_base::rejection::Rejection;
use proofgate_external_policies::{
    ExternalPolicy, OnFailure, PolicyFailure, PolicyRequest, RequestTexts, Verdict,
};
use proofgate_ledger::record::PolicyNote;
use proofgate_policy::Mode;
use proofgate_providers::{Dialect, ParsedRequest};
use proofgate_upstream::catalog::Catalog;
use proofgate_upstream::settings::TenantPlan;

use super::masks::{Masks, ReplacementError};
use super::replacement::replace;
use crate::gateway::Gateway;
use crate::gateway::buffers::{RequestBuffers, prepare_text};
use crate::policy_decision::{self, AllowedRequest, DeniedRequest};

/// A request that passed the rules.
pub struct HookRequest<'a> {
    pub gateway: &'a Gateway,
    pub catalog: &'a Catalog,
    pub plan: &'a TenantPlan,
    pub dialect: Dialect,
    pub tenant: &'a Arc<str>,
    pub model: &'a str,
    /// The body as the client sent it.
    pub body: &'a [u8],
}

/// Evaluates the plan's external policies and adds their findings to `judged`. `reading` contains
/// the text of `body`. While the request waits, other requests use that memory, and its reservation
/// `room` is released.
///
/// # Errors
/// The rejection if a policy denies the request, if a policy fails that is configured to deny
/// requests then, or if the total score reaches the threshold.
pub async fn evaluate_hooks<'c>(
    asking: HookRequest<'_>,
    reading: &mut RequestBuffers,
    room: &mut MemoryReservation,
    judged: &mut AllowedRequest<'c>,
) -> Result<(), Box<DeniedRequest<'c>>> {
    let mut asked = HookEvaluation {
        request: asking,
        reading,
        room,
        judged,
        // The text is read again, so that policies do not see parts that rules have redacted.
        is_text_current: false,
    };
    asked.is_text_current = asked.judged.rewritten.is_none();
    let asking = &asked.request;
    let (hooks, threshold) = (&asking.plan.external_policies, asking.plan.profile.threshold());
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
                    asked.request.gateway.observers.metrics.record_policy_block();
                    return Err(asked.deny(Rejection::denied_by_policy(name, &reason)));
                }
                asked.mark_would_block();
            }
            Ok(Verdict::Flag { rule, score }) => {
                // The score is limited, so that a policy cannot deny by its score alone.
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
            asked.request.gateway.observers.metrics.record_policy_block();
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

/// The state of a request during the evaluation of its external policies.
struct HookEvaluation<'a, 'r, 'c> {
    request: HookRequest<'a>,
    reading: &'r mut RequestBuffers,
    room: &'r mut MemoryReservation,
    judged: &'r mut AllowedRequest<'c>,
    /// Whether `reading` contains the current text of the body.
    is_text_current: bool,
}

impl<'c> HookEvaluation<'_, '_, 'c> {
    /// Evaluates one policy and applies its replacements.
    ///
    /// # Errors
    /// The rejection if there is no memory for the request.
    async fn evaluate(&mut self, hook: &ExternalPolicy) -> Result<Result<Verdict, PolicyFailure>, Rejection> {
        if hook.breaker.is_open() && hook.breaker.try_acquire().is_none() {
            // No copy is made for a policy that is not evaluated.
            return Ok(Err(hook.counters.record_failure(PolicyFailure::BreakerOpen)));
        }
        self.read_text().await?;
        let overloaded = |MemoryExhausted| Rejection::OVERLOADED;
        let room = &self.request.gateway.policy.policy_copy_memory;
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
        room.shrink_reservation();
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

    /// Reads the current text of the body into `reading`.
    async fn read_text(&mut self) -> Result<(), Rejection> {
        if self.is_text_current {
            return Ok(());
        }
        let rewritten = self.judged.rewritten.as_ref();
        let body = rewritten.map_or(self.request.body, |rewritten| &rewritten.body);
        if self.reading.text.capacity() == 0 {
            *self.reading = self.request.gateway.buffers.request_buffers.take();
        }
        let attachments = policy_decision::attachment_policy(self.request.catalog);
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
            // The text of a form is not JSON.
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

    /// Releases the buffers, because a waiting request does not need them.
    fn release_buffers(&mut self) {
        std::mem::take(self.reading).release_to(&self.request.gateway.buffers);
        // Shrinking never fails.
        let _ = self.room.resize(0);
        self.is_text_current = false;
    }

    fn note_mut(&mut self) -> &mut PolicyNote<'c> {
        self.judged.note.get_or_insert_default()
    }

    /// Adds the finding of a policy, as `<policy>/<id>`.
    fn add_finding(&mut self, policy: &str, id: &str, score: u32) {
        let note = self.note_mut();
        note.score = note.score.saturating_add(score);
        policy_decision::add_rule(note, Cow::Owned(format!("{policy}/{id}")));
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
