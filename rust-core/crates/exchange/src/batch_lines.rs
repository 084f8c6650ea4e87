//! Judges the lines of a batch's input. Each line is a separate request, which the provider
//! processes later and the gateway does not see then.

use proofgate_auth::AuthError;
use proofgate_base::memory::{MemoryExhausted, MemoryReservation, SLICE_BYTES};
use proofgate_base::rejection::Rejection;
use proofgate_ledger::record::PolicyNote;
use proofgate_policy::{Direction, Mode, Profile, Scope};
use proofgate_providers::ParsedRequest;

use crate::batch_input::{BatchLine, BatchLines};
use crate::endpoint;
use crate::gateway::buffers::{RequestBuffers, prepare_text};
use crate::hooks::{self, HookRequest};
use crate::hosted_tools;
use crate::incoming_call::IncomingCall;
use crate::policy_decision::{self, DeniedRequest};
use crate::request_policy;

/// Bytes of lines that are judged before other tasks run.
const LINE_CHUNK_BYTES: usize = 64 * 1024;

/// Judges each line like a request to its endpoint, and returns the first note of findings. Lines
/// are not changed. Some pack rules flag a line instead of redacting it; any other rule that would
/// redact it denies it.
pub async fn judge_lines<'c>(
    incoming: &IncomingCall<'c>,
    lines: &BatchLines,
) -> Result<Option<PolicyNote<'c>>, Box<DeniedRequest<'c>>> {
    let plan = incoming.catalog.settings.plan(&incoming.identity.tenant);
    let profile = plan.profile.for_fixed_texts();
    let mut seen = None;
    let mut at_once = 0;
    for line in &lines.lines {
        let bytes = lines.bytes.get(line.range.clone()).unwrap_or_default();
        at_once += bytes.len();
        if at_once > LINE_CHUNK_BYTES {
            at_once = 0;
            tokio::task::yield_now().await;
        }
        let mut reading = incoming.gateway.buffers.request_buffers.take();
        let attachments = policy_decision::attachment_policy(incoming.catalog);
        reading.text.set_attachments(attachments);
        let judged = judge_line(incoming, &profile, line, bytes, &mut reading).await;
        reading.release_to(&incoming.gateway.buffers);
        let note = judged.map_err(|denied| {
            let DeniedRequest { rejection, note } = *denied;
            Box::new(DeniedRequest {
                rejection: rejection.at_line(line.number),
                note,
            })
        })?;
        seen = seen.or(note);
    }
    Ok(seen)
}

async fn judge_line<'c>(
    incoming: &IncomingCall<'c>,
    profile: &Profile,
    line: &BatchLine,
    bytes: &[u8],
    reading: &mut RequestBuffers,
) -> Result<Option<PolicyNote<'c>>, Box<DeniedRequest<'c>>> {
    let IncomingCall { gateway, catalog, .. } = *incoming;
    let refused = |rejection| {
        Box::new(DeniedRequest {
            rejection,
            note: None,
        })
    };
    let overloaded = |MemoryExhausted| refused(Rejection::OVERLOADED);
    let tenant = &incoming.identity.tenant;
    let plan = catalog.settings.plan(tenant);
    if !endpoint::endpoint_for(line.dialect).is_none_or(|endpoint| plan.allowed.allows_endpoint(endpoint)) {
        return Err(refused(Rejection::from(AuthError::EndpointNotAllowed)));
    }
    let mut room = MemoryReservation::new(&gateway.buffers.budget);
    if bytes.len() > SLICE_BYTES {
        room.resize(bytes.len()).map_err(overloaded)?;
        prepare_text(&mut reading.text, bytes.len()).await;
    }
    let text = ParsedRequest::body_as_str(bytes).map_err(|bad| refused(bad.into()))?;
    let call = ParsedRequest::read_line(line.dialect, text, &mut reading.workspace, &mut reading.text);
    reading.release_parse_memory();
    if bytes.len() > SLICE_BYTES {
        reading.text.shrink_to_used();
    }
    let call = call.map_err(|bad| refused(bad.into()))?;
    room.resize(reading.text.size()).map_err(overloaded)?;
    check_model(incoming, &call).map_err(refused)?;
    hosted_tools::check_allowed(&call, &plan.allowed.hosted_tools).map_err(refused)?;
    let is_read = !(plan.profile.is_idle(Direction::Request) && plan.external_policies.is_empty());
    if let Some(field) = call.token_ids.filter(|_| is_read) {
        return Err(refused(Rejection::token_ids_not_inspected(field)));
    }
    let whose = (&*incoming.identity.tenant.name, profile);
    let judged = request_policy::judge(
        gateway,
        catalog,
        whose,
        &reading.text,
        call.stored_reference.is_some(),
        &mut room,
        bytes,
    );
    let mut judged = judged.await?;
    let has_tools = || {
        let mut passages = reading.text.passages();
        !call.tools.hosted.is_empty() || passages.any(|passage| passage.scope == Scope::ToolDescription)
    };
    if let Some(flag) = judged.tool_flags.first()
        && plan.tool_policy.is_some()
        && plan.profile.mode() == Mode::Enforce
        && has_tools()
    {
        gateway.observers.metrics.record_policy_block();
        return Err(Box::new(DeniedRequest {
            rejection: Rejection::guarded_call_not_inspected((flag.location, flag.scope)),
            note: judged.note,
        }));
    }
    if !plan.external_policies.is_empty() && judged.rewritten.is_none() {
        // External policies receive the text of a line in the same format as the text of a form.
        let text = reading.text.text().to_owned();
        reading.text.collect_plain_text(&text);
        let asking = HookRequest {
            gateway,
            catalog,
            plan,
            dialect: incoming.dialect,
            tenant: &tenant.name,
            model: &call.model,
            body: text.as_bytes(),
        };
        Box::pin(hooks::evaluate_hooks(asking, reading, &mut room, &mut judged)).await?;
    }
    match judged.rewritten {
        None => Ok(judged.note),
        Some(_) => {
            gateway.observers.metrics.record_policy_block();
            Err(Box::new(DeniedRequest {
                rejection: Rejection::FORM_NOT_REDACTED,
                note: judged.note,
            }))
        }
    }
}

/// Checks that the tenant may use the line's model, and that the provider that stores the file has
/// the model under the same name, because the line is not changed.
fn check_model(incoming: &IncomingCall<'_>, call: &ParsedRequest<'_>) -> Result<(), Rejection> {
    let IncomingCall {
        catalog, identity, ..
    } = *incoming;
    let model = catalog.route(&identity.tenant, &call.model);
    let model = model.ok_or(Rejection::UNKNOWN_MODEL)?;
    let object_provider = catalog.object_provider(&identity.tenant);
    let object_provider = object_provider
        .and_then(|kept| kept.targets.first())
        .map(|target| &target.upstream.name);
    let mut there = model
        .targets
        .iter()
        .filter(|target| Some(&target.upstream.name) == object_provider)
        .peekable();
    if there.peek().is_none() {
        return Err(Rejection::BATCH_MODEL_OTHER_PROVIDER);
    }
    match there.any(|target| target.model_name_for(model, &call.model).model == call.model) {
        true => Ok(()),
        false => Err(Rejection::BATCH_MODEL_RENAMED),
    }
}
