//! Asks the policies of one request, one after the other: each sees what the one before it made of the text.

use std::borrow::Cow;
use std::sync::Arc;

use proofgate_base::memory::{AT_ONCE, Exhausted, MemoryReservation};
use proofgate_base::rejection::Rejection;
use proofgate_external_policies::{Document, Failure, Hook, OnFailure, PolicyRequest, Verdict};
use proofgate_ledger::record::PolicyNote;
use proofgate_policy::Mode;
use proofgate_providers::{Call, Dialect};
use proofgate_upstream::catalog::Catalog;
use proofgate_upstream::terms::Plan;

use super::masks::{Masks, Unreplaced};
use super::replacement::replace;
use crate::gateway::Gateway;
use crate::gateway::buffers::{Reading, make_ready};
use crate::judged::{self, DeniedRequest, JudgedRequest};

/// A request that the rules have let pass.
pub struct Asking<'a> {
    pub gateway: &'a Gateway,
    pub catalog: &'a Catalog,
    pub plan: &'a Plan,
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
pub async fn ask<'c>(
    asking: Asking<'_>,
    reading: &mut Reading,
    room: &mut MemoryReservation,
    judged: &mut JudgedRequest<'c>,
) -> Result<(), Box<DeniedRequest<'c>>> {
    let mut asked = Asked {
        asking,
        reading,
        room,
        judged,
        // What rules have redacted no policy sees.
        is_read: false,
    };
    asked.is_read = asked.judged.rewritten.is_none();
    let asking = &asked.asking;
    let (hooks, threshold) = (&asking.plan.hooks, asking.plan.profile.threshold());
    let enforced = asking.plan.profile.mode() == Mode::Enforce;
    let mut scored = None;
    for hook in hooks {
        let verdict = match asked.evaluate(hook).await {
            Ok(verdict) => verdict,
            Err(rejection) => return Err(asked.denied(rejection)),
        };
        let name = &hook.config.name;
        match verdict {
            Ok(Verdict::Allow | Verdict::Failed(_)) => {}
            Ok(Verdict::Deny { code, reason }) => {
                asked.note(name, &code, 0);
                if enforced {
                    asked.asking.gateway.observers.metrics.policy_blocked();
                    return Err(asked.denied(Rejection::denied_by_policy(name, &reason)));
                }
                asked.would_block();
            }
            Ok(Verdict::Flag { rule, score }) => {
                // No policy denies by its score alone.
                let most = threshold.map_or(u32::MAX, |threshold| threshold.saturating_sub(1));
                asked.note(name, &rule, score.min(most));
                scored = Some(name);
            }
            Ok(Verdict::Replace { rule, .. }) => asked.note(name, &rule, 0),
            Err(failure) => {
                asked.note(name, &failure.id(), 0);
                match (hook.config.on_failure, enforced) {
                    (OnFailure::Allow, _) => {}
                    (OnFailure::Deny, true) => {
                        asked.asking.gateway.observers.metrics.policy_fault();
                        return Err(asked.denied(Rejection::policy_unavailable(name)));
                    }
                    (OnFailure::Deny, false) => asked.would_block(),
                }
            }
        }
    }
    let score = asked.judged.note.as_ref().map_or(0, |note| note.score);
    match scored.filter(|_| threshold.is_some_and(|threshold| score >= threshold)) {
        Some(name) if enforced => {
            asked.asking.gateway.observers.metrics.policy_blocked();
            let reason = "The total suspicion score of the request reached the policy threshold.";
            Err(asked.denied(Rejection::denied_by_policy(name, reason)))
        }
        Some(_) => {
            asked.would_block();
            Ok(())
        }
        None => Ok(()),
    }
}

/// A request between two policies.
struct Asked<'a, 'r, 'c> {
    asking: Asking<'a>,
    reading: &'r mut Reading,
    room: &'r mut MemoryReservation,
    judged: &'r mut JudgedRequest<'c>,
    /// Whether `reading` has the text of the body as it is now.
    is_read: bool,
}

impl<'c> Asked<'_, '_, 'c> {
    /// What one policy says. Its replacements are made.
    ///
    /// # Errors
    /// The refusal of a request for which there is no room.
    async fn evaluate(&mut self, hook: &Hook) -> Result<Result<Verdict, Failure>, Rejection> {
        if hook.breaker.is_open() && hook.breaker.leave().is_none() {
            // Nothing is copied for one that is not asked.
            return Ok(Err(hook.counters.failed(Failure::BreakerOpen)));
        }
        self.read().await?;
        let overloaded = |Exhausted| Rejection::OVERLOADED;
        let room = &self.asking.gateway.policy.hook_room;
        let taken = room
            .take(Document::bytes_of(&self.reading.text))
            .map_err(overloaded)?;
        let request = PolicyRequest {
            tenant: Arc::clone(self.asking.tenant),
            model: self.asking.model.into(),
            endpoint: self.asking.dialect.path(),
            document: Document::copy(&self.reading.text),
            _taken: taken,
        };
        self.give_back();
        let verdict = hook.evaluate(request).await;
        room.settle();
        let enforced = self.asking.plan.profile.mode() == Mode::Enforce;
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
        self.read().await?;
        let body = self.judged.rewritten.as_ref();
        let body = body.map_or(self.asking.body, |rewritten| &rewritten.body);
        let (budget, text) = (&self.asking.gateway.buffers.budget, &self.reading.text);
        let masks = &mut self.judged.masks;
        let masks = reversible.then(|| &mut **masks.get_or_insert_with(|| Box::new(Masks::new(budget))));
        match replace(budget, text, body, replacements, masks) {
            Ok(rewritten) => {
                self.judged.rewritten = Some(rewritten);
                self.is_read = false;
                self.noted().redacted = true;
                Ok(verdict)
            }
            Err(Unreplaced::Failure(failure)) => Ok(Err(hook.counters.failed(failure))),
            Err(Unreplaced::Exhausted) => Err(Rejection::OVERLOADED),
        }
    }

    /// Has the text of the body as it is now in `reading`.
    async fn read(&mut self) -> Result<(), Rejection> {
        if self.is_read {
            return Ok(());
        }
        let rewritten = self.judged.rewritten.as_ref();
        let body = rewritten.map_or(self.asking.body, |rewritten| &rewritten.body);
        if self.reading.text.capacity() == 0 {
            *self.reading = self.asking.gateway.buffers.reading.take();
        }
        let attachments = judged::attachments(self.asking.catalog);
        self.reading.text.set_attachments(attachments);
        if body.len() > AT_ONCE {
            let overloaded = |Exhausted| Rejection::OVERLOADED;
            self.room.resize(body.len()).map_err(overloaded)?;
            make_ready(&mut self.reading.text, body.len()).await;
        }
        let text = Call::text_of(body).map_err(Rejection::from)?;
        let Reading {
            text: into,
            workspace,
        } = &mut *self.reading;
        match self.asking.dialect.has_form() {
            // Its text is no JSON.
            true => into.plain(text),
            false => {
                Call::read_text(self.asking.dialect, text, workspace, into).map_err(Rejection::from)?;
                self.reading.end_reading();
            }
        }
        let size = self.reading.text.size();
        self.room
            .resize(size)
            .map_err(|Exhausted| Rejection::OVERLOADED)?;
        self.is_read = true;
        Ok(())
    }

    /// Leaves the buffers to others: a request that waits needs none.
    fn give_back(&mut self) {
        std::mem::take(self.reading).give_back_to(&self.asking.gateway.buffers);
        // What becomes less is never refused.
        let _ = self.room.resize(0);
        self.is_read = false;
    }

    fn noted(&mut self) -> &mut PolicyNote<'c> {
        self.judged.note.get_or_insert_default()
    }

    /// Notes what a policy found, as `<policy>/<id>`.
    fn note(&mut self, policy: &str, id: &str, score: u32) {
        let note = self.noted();
        note.score = note.score.saturating_add(score);
        judged::name(note, Cow::Owned(format!("{policy}/{id}")));
    }

    fn would_block(&mut self) {
        self.noted().would_block = true;
    }

    fn denied(&mut self, rejection: Rejection) -> Box<DeniedRequest<'c>> {
        Box::new(DeniedRequest {
            rejection,
            note: self.judged.note.take(),
        })
    }
}
