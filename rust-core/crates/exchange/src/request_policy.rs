//! Judges a request by the rules before any byte of it is sent.

use std::time::Duration;

use proofgate_base::memory::{Buffer, MemoryExhausted, MemoryReservation};
use proofgate_base::rejection::Rejection;
use proofgate_inspect::{InspectionOutcome, RequestInspection, RequestVerdict, TenantScanCache};
use proofgate_ledger::record::PolicyNote;
use proofgate_policy::{Direction, Engine, EvaluationError, Mode, Profile};
use proofgate_providers::BodyText;
use proofgate_upstream::catalog::Catalog;

use crate::gateway::Gateway;
use crate::gateway::buffers::{RequestBuffers, ThreadBuffers};
use crate::guarded_tools::flagged_tool_note;
use crate::hooks::{self, HookRequest, Masks};
use crate::incoming_call::IncomingCall;
use crate::policy_decision::{AllowedRequest, DeniedRequest, policy_note};
use crate::rewritten_body::RewrittenBody;

/// CPU time of a scan before other tasks run. A text of ten megabytes takes several hundred slices,
/// and no other stream waits for more than one slice.
pub(crate) const TIME_SLICE: Duration = Duration::from_micros(500);

/// Minimum offset of placeholder numbers in a continued conversation; no ordinary request has so
/// many placeholders.
const MIN_PLACEHOLDER_OFFSET: u32 = 100_000;

/// Judges a request by the rules of its tenant's plan. Redactions are made in a copy of the body.
/// `room` is the memory reserved for `text`; it grows with the findings in a long text. `goes_on`:
/// whether the request continues from content that the provider stores.
pub async fn judge<'c>(
    gateway: &Gateway,
    catalog: &'c Catalog,
    (tenant, profile): (&str, &Profile),
    text: &BodyText,
    goes_on: bool,
    room: &mut MemoryReservation,
    body: &[u8],
) -> Result<AllowedRequest<'c>, Box<DeniedRequest<'c>>> {
    let engine = &catalog.settings.engine;
    if profile.is_idle(Direction::Request) {
        return Ok(AllowedRequest::default());
    }
    let mut inspection = RequestInspection::new(engine.budget(text.text().len()));
    if goes_on {
        // The placeholder numbers in the stored content are unknown.
        inspection = inspection
            .with_last_placeholder_number(rand::random_range(MIN_PLACEHOLDER_OFFSET..1_000_000_000));
    }
    let about = (tenant, profile, text);
    let first = judge_slice(gateway, catalog, &mut inspection, about);
    let scanned = match first {
        Ok(Some(verdict)) => Ok(verdict),
        // Boxed, because only long texts need the memory.
        Ok(None) => Box::pin(judge_rest(gateway, catalog, inspection, about, room)).await,
        Err(fault) => Err(JudgementError::Fault(fault)),
    };
    let verdict = match scanned {
        Ok(verdict) => verdict,
        Err(JudgementError::Exhausted) => {
            let rejection = Rejection::OVERLOADED;
            return Err(Box::new(DeniedRequest {
                rejection,
                note: None,
            }));
        }
        Err(JudgementError::Fault(fault)) => {
            gateway.observers.metrics.record_policy_fault();
            if profile.mode() == Mode::DryRun {
                let note = Some(PolicyNote {
                    would_block: true,
                    ..PolicyNote::default()
                });
                return Ok(AllowedRequest {
                    note,
                    ..AllowedRequest::default()
                });
            }
            return Err(Box::new(DeniedRequest {
                rejection: Rejection::from(fault),
                note: None,
            }));
        }
    };
    if verdict.judgement.decision().is_none() {
        return Ok(AllowedRequest::default());
    }
    let redacted = verdict.outcome == InspectionOutcome::Redact;
    gateway.observers.metrics.record_policy_flags(&verdict.judgement);
    let mut note = policy_note(engine, &verdict.judgement, verdict.location, redacted);
    note.from_tool = flagged_tool_note(&verdict.tool_flags);
    note.unchanged = verdict.judgement.has_unreplaced_matches();
    let note = Some(note);
    if let InspectionOutcome::Block { rule, .. } = verdict.outcome {
        gateway.observers.metrics.record_policy_block();
        let rule = engine.rule(rule);
        let scope = verdict.judgement.worst().map(|worst| worst.scope);
        let rejection = Rejection::blocked(&rule.id, &rule.reason, verdict.location.zip(scope));
        return Err(Box::new(DeniedRequest { rejection, note }));
    }
    if !redacted {
        return Ok(AllowedRequest {
            note,
            tool_flags: verdict.tool_flags,
            ..AllowedRequest::default()
        });
    }
    let rewritten = rewrite(&gateway.buffers, &verdict, engine, text, body);
    let masks = rewritten.and_then(|rewritten| {
        let masks = Masks::from_placeholders(&gateway.buffers.budget, &verdict.placeholders)?;
        Ok((rewritten, masks))
    });
    match masks {
        Ok((rewritten, masks)) => Ok(AllowedRequest {
            note,
            rewritten: Some(rewritten),
            masks: masks.map(Box::new),
            redaction_counts: verdict.replacement_counts(false),
            mask_counts: verdict.replacement_counts(true),
            tool_flags: verdict.tool_flags,
        }),
        Err(MemoryExhausted) => Err(Box::new(DeniedRequest {
            rejection: Rejection::OVERLOADED,
            note,
        })),
    }
}

/// Judges the text of a form by the rules and the policies of its tenant's plan. A form is not
/// changed. Some pack rules flag a form instead of redacting it; any other rule that would redact
/// it denies it.
pub(crate) async fn judge_form<'c>(
    incoming: &IncomingCall<'c>,
    model: &str,
    text: &str,
) -> Result<AllowedRequest<'c>, Box<DeniedRequest<'c>>> {
    let gateway = incoming.gateway;
    let mut reading = gateway.buffers.request_buffers.take();
    reading.text.collect_plain_text(text);
    let mut room = MemoryReservation::new(&gateway.buffers.budget);
    let judged = judge_form_text(incoming, model, text, &mut reading, &mut room).await;
    reading.release_to(&gateway.buffers);
    judged
}

/// Like [`judge_form`], with the text in `reading` and its memory reserved in `room`.
pub(crate) async fn judge_form_text<'c>(
    incoming: &IncomingCall<'c>,
    model: &str,
    text: &str,
    reading: &mut RequestBuffers,
    room: &mut MemoryReservation,
) -> Result<AllowedRequest<'c>, Box<DeniedRequest<'c>>> {
    let IncomingCall { gateway, catalog, .. } = *incoming;
    let exhausted = |MemoryExhausted| {
        Box::new(DeniedRequest {
            rejection: Rejection::OVERLOADED,
            note: None,
        })
    };
    room.resize(reading.text.size()).map_err(exhausted)?;
    let plan = catalog.settings.plan(&incoming.identity.tenant);
    let body = text.as_bytes();
    let profile = plan.profile.for_fixed_texts();
    let whose = (&*incoming.identity.tenant.name, &*profile);
    let mut judged = judge(gateway, catalog, whose, &reading.text, false, room, body).await?;
    if !plan.external_policies.is_empty() {
        let asking = HookRequest {
            gateway,
            catalog,
            plan,
            dialect: incoming.dialect,
            tenant: &incoming.identity.tenant.name,
            model,
            body,
        };
        Box::pin(hooks::evaluate_hooks(asking, reading, room, &mut judged)).await?;
    }
    match judged.rewritten {
        None => Ok(judged),
        Some(_) => {
            gateway.observers.metrics.record_policy_block();
            Err(Box::new(DeniedRequest {
                rejection: Rejection::FORM_NOT_REDACTED,
                note: judged.note,
            }))
        }
    }
}

fn rewrite(
    buffers: &ThreadBuffers,
    verdict: &RequestVerdict,
    engine: &Engine,
    text: &BodyText,
    body: &[u8],
) -> Result<RewrittenBody, MemoryExhausted> {
    let mut rewritten = Buffer::new(&buffers.budget);
    let most = verdict.max_rewrite_bytes(engine, text, body);
    let model = rewritten.write(most, |out| verdict.rewrite(engine, text, body, out))?;
    Ok(RewrittenBody {
        body: rewritten,
        model_range: model,
    })
}

/// The reason why there is no verdict.
enum JudgementError {
    Fault(EvaluationError),
    Exhausted,
}

impl From<EvaluationError> for JudgementError {
    fn from(fault: EvaluationError) -> Self {
        JudgementError::Fault(fault)
    }
}

impl From<MemoryExhausted> for JudgementError {
    fn from(_: MemoryExhausted) -> Self {
        JudgementError::Exhausted
    }
}

/// Judges the rest of a long text, slice by slice.
async fn judge_rest(
    gateway: &Gateway,
    catalog: &Catalog,
    mut inspection: RequestInspection,
    about: JudgementInput<'_>,
    room: &mut MemoryReservation,
) -> Result<RequestVerdict, JudgementError> {
    let (_, _, text) = about;
    loop {
        room.resize(text.capacity() + inspection.capacity())?;
        tokio::task::yield_now().await;
        if let Some(verdict) = judge_slice(gateway, catalog, &mut inspection, about)? {
            return Ok(verdict);
        }
    }
}

/// The tenant, the profile and the text of a request that is being judged.
type JudgementInput<'a> = (&'a str, &'a Profile, &'a BodyText);

/// Judges a text for one time slice. Messages that the tenant has sent before are not scanned again.
fn judge_slice(
    gateway: &Gateway,
    catalog: &Catalog,
    inspection: &mut RequestInspection,
    (tenant, profile, text): JudgementInput<'_>,
) -> Result<Option<RequestVerdict>, EvaluationError> {
    let known = &mut *gateway.policy.scan_cache.borrow_mut();
    let recall = TenantScanCache { cache: known, tenant };
    let engine = &catalog.settings.engine;
    let mut scratch = catalog.scratch.borrow_mut();
    let step = inspection.step_with_cache(Some(recall), engine, profile, text, TIME_SLICE, &mut scratch);
    gateway.observers.metrics.scan_cache.count(known);
    step
}
