//! The admission of a request: reads it, applies limits and rules, records it and opens its
//! exchange.

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use proofgate_auth::{AuthError, Credential, Identity, Tenant};
use proofgate_base::memory::{Buffer, MemoryExhausted, MemoryReservation, SLICE_BYTES};
use proofgate_base::rejection::Rejection;
use proofgate_ledger::commitment::BodyHasher;
use proofgate_limits::CredentialId;
use proofgate_observe::metrics::{RequestOutcome, Series};
use proofgate_observe::rejected_request::RejectedRequest;
use proofgate_policy::Direction;
use proofgate_providers::{BadRequest, ParsedRequest, RequestTemplate, batch_endpoint};
use proofgate_stages::Stage;
use proofgate_translate::Target as TranslationTarget;
use proofgate_upstream::demand::{self, MaxDemand, max_tokens};
use proofgate_upstream::offered_tools::OfferedTools;
use proofgate_upstream::pricing::{PricedFeatures, Unpriced};
use proofgate_upstream::routes::{Model, Target, TargetProtocol, UpstreamModelName};
use proofgate_upstream::translation::{ResponseTranslator, TranslationPath};
use proofgate_upstream::upstream::InFlightPermit;
use proofgate_wire::encode;

use crate::batch_lines;
use crate::denied_betas::FeatureStrippedRequest;
use crate::endpoint;
use crate::gateway::buffers::{RequestBuffers, prepare_text};
use crate::guarded_tools::{GuardContext, ToolGuard};
use crate::hooks::{self, HookRequest};
use crate::hosted_tools::ToolChanges;
use crate::incoming_call::IncomingCall;
use crate::limit_wait::LimitWait;
use crate::open_exchange::{AdmissionParams, OpenExchange, PendingGrant};
use crate::policy_decision::{self, DeniedRequest};
use crate::reasoning_removal;
use crate::reply::Reply;
use crate::request_policy;
use crate::rewritten_body::RewrittenBody;

/// A valid request that passed the limits and the rules and is recorded in the ledger.
pub struct AdmittedRequest<'c> {
    pub call: ParsedRequest<'c>,
    pub model: &'c Model,
    /// The first target; `None` if the gateway itself answers with an estimate.
    pub(crate) target: Option<ChosenTarget<'c>>,
    pub open_exchange: Box<OpenExchange>,
    pub(crate) rewritten: Option<RewrittenBody>,
}

/// The target of a request, and the form in which the request is sent to it.
pub struct ChosenTarget<'c> {
    /// Index among the model's targets.
    pub target_index: usize,
    /// The name of the model at the provider.
    pub upstream_model: UpstreamModelName<'c>,
    pub(crate) template: &'c RequestTemplate,
    /// The request's in-flight permit at the provider. When the request is sent, the exchange takes
    /// it.
    pub(crate) in_flight: Option<InFlightPermit>,
    /// The translated request; `None` for a provider of the client's dialect.
    pub translated: Option<TranslatedRequest>,
    /// The body without fields of other providers; `None` if none is removed or the request is
    /// translated.
    pub(crate) stripped: Option<RewrittenBody>,
}

/// A request in its provider's dialect.
pub struct TranslatedRequest {
    pub body: Buffer,
    pub response_translation: Box<ResponseTranslator>,
}

/// A request that is rejected after it is parsed.
pub struct RejectedCall<'c> {
    pub rejection: Rejection,
    /// The details to record; `None` for the usual details.
    pub record: Option<RejectedRequest<'c>>,
    /// Whether a limit or budget of the tenant is the reason.
    pub(crate) is_over_limit: bool,
    /// The requested model if a rule, an external policy or the check of guarded tools denies the
    /// request; otherwise `None`.
    pub(crate) denied_model: Option<String>,
    /// The time after which the request may be retried; `None` unless it would fit after requests
    /// in flight release their whole reservations.
    pub(crate) retry_in: Option<Duration>,
}

impl From<Rejection> for Box<RejectedCall<'_>> {
    fn from(rejection: Rejection) -> Self {
        Box::new(RejectedCall {
            rejection,
            record: None,
            is_over_limit: false,
            denied_model: None,
            retry_in: None,
        })
    }
}

/// Reads and admits a request. Only a long request yields to other tasks, between slices of its
/// scan or pieces of its digest. So nearly all connections read into the same memory, which is
/// still in the CPU cache.
pub async fn accept<'c>(
    incoming: &mut IncomingCall<'c>,
    reply: &mut Reply<'_>,
) -> Result<AdmittedRequest<'c>, Box<RejectedCall<'c>>> {
    let gateway = incoming.gateway;
    let mut reading = gateway.buffers.request_buffers.take();
    let attachments = policy_decision::attachment_policy(incoming.catalog);
    reading.text.set_attachments(attachments);
    let accepted = read_and_admit(incoming, reply, &mut reading).await;
    reading.release_to(&gateway.buffers);
    accepted
}

async fn read_and_admit<'c>(
    incoming: &mut IncomingCall<'c>,
    reply: &mut Reply<'_>,
    reading: &mut RequestBuffers,
) -> Result<AdmittedRequest<'c>, Box<RejectedCall<'c>>> {
    let mut room = MemoryReservation::new(&incoming.gateway.buffers.budget);
    let call = match incoming.form {
        Some(form) => {
            reading.text.collect_plain_text(&form.summary.text);
            form.summary.to_call(incoming.dialect).map_err(Rejection::from)?
        }
        None if !incoming.dialect.has_body() => {
            reading.text.collect_plain_text("");
            ParsedRequest::without_body(incoming.dialect)
        }
        None => read_json(incoming, reading, &mut room).await?,
    };
    route_and_admit(incoming, reply, reading, call, room).await
}

/// Reads a JSON request.
async fn read_json<'c>(
    incoming: &mut IncomingCall<'c>,
    reading: &mut RequestBuffers,
    room: &mut MemoryReservation,
) -> Result<ParsedRequest<'c>, Rejection> {
    if incoming.body.len() > SLICE_BYTES {
        // The body length is an upper bound of the text's memory.
        room.resize(incoming.body.len())
            .map_err(|MemoryExhausted| Rejection::OVERLOADED)?;
        prepare_text(&mut reading.text, incoming.body.len()).await;
    }
    let body = ParsedRequest::body_as_str(incoming.body).map_err(Rejection::from)?;
    if body.len() > SLICE_BYTES {
        tokio::task::yield_now().await;
    }
    if incoming.stored_call.is_some() {
        let endpoint = batch_endpoint(incoming.body, &mut reading.workspace).map_err(Rejection::from)?;
        let plan = incoming.catalog.settings.plan(&incoming.identity.tenant);
        if !endpoint::endpoint_for(endpoint).is_none_or(|endpoint| plan.allowed.allows_endpoint(endpoint)) {
            return Err(Rejection::from(AuthError::EndpointNotAllowed));
        }
    }
    let read = ParsedRequest::read_text(incoming.dialect, body, &mut reading.workspace, &mut reading.text);
    reading.release_parse_memory();
    if body.len() > SLICE_BYTES {
        reading.shrink_text();
    }
    incoming.span.lap_now(Stage::Parse);
    let mut call = read.map_err(Rejection::from)?;
    incoming.attribution.read_body(&call.client_ids);
    if let Some(in_path) = incoming.path_params {
        match in_path.stream {
            Some(stream) => {
                call.model = in_path.model.as_str().into();
                call.stream = stream;
            }
            None if in_path.model.is_empty() || call.model == in_path.model => {}
            None => return Err(Rejection::from(BadRequest::ModelMismatch)),
        }
    }
    if let Some(observed) = &mut incoming.observed_exchange {
        observed.set_request(&call.model, call.stream);
    }
    Ok(call)
}

async fn route_and_admit<'c>(
    incoming: &mut IncomingCall<'c>,
    reply: &mut Reply<'_>,
    reading: &mut RequestBuffers,
    call: ParsedRequest<'c>,
    mut room: MemoryReservation,
) -> Result<AdmittedRequest<'c>, Box<RejectedCall<'c>>> {
    let held = match incoming.body.len() > SLICE_BYTES {
        true => reading.text.capacity(),
        false => reading.text.size(),
    };
    room.resize(held)
        .map_err(|MemoryExhausted| Rejection::OVERLOADED)?;
    let tenant = &incoming.identity.tenant;
    let model = match incoming.stored_call {
        None => incoming
            .catalog
            .route(tenant, &call.model)
            .ok_or(Rejection::UNKNOWN_MODEL),
        Some(_) => incoming
            .catalog
            .object_provider(tenant)
            .ok_or(Rejection::OBJECTS_NOT_CONFIGURED),
    }?;
    if call.stored_reference.is_some()
        && !incoming.catalog.is_dedicated_to(tenant, model)
        && let Some(field) = reasoning_removal::stored_content_reference(incoming, &call)?
    {
        return Err(Rejection::from(BadRequest::ProviderStoredReference(field)).into());
    }
    let denied = &incoming.catalog.settings.plan(tenant).denied_betas;
    if let Some(fields) = incoming.anthropic_headers.as_mut().filter(|_| !denied.is_empty()) {
        fields.deny_betas(denied, reply.extra_headers);
    }
    let patience = incoming.catalog.settings.plan(tenant).max_wait;
    let mut waiting = LimitWait::new(&incoming.gateway.limits.queues, &tenant.name, patience);
    let extra = reply.extra_headers.len();
    loop {
        let admitted = choose_and_admit(incoming, reply, reading, (&call, model), &mut room).await;
        let rejected = match admitted {
            Ok((chosen, open, rewritten)) => {
                return Ok(AdmittedRequest {
                    call,
                    model,
                    target: chosen,
                    open_exchange: open,
                    rewritten,
                });
            }
            Err(rejected) => rejected,
        };
        if let Some(fits_in) = rejected.retry_in
            && waiting.wait_for_capacity(fits_in, reply).await
        {
            reply.extra_headers.truncate(extra);
            continue;
        }
        if rejected.is_over_limit {
            incoming.gateway.observers.metrics.record_limit_refusal();
        }
        return Err(rejected);
    }
}

/// Chooses a target for a request and admits the request. A rejected request does not count as in
/// flight at the target.
async fn choose_and_admit<'c>(
    incoming: &mut IncomingCall<'c>,
    reply: &mut Reply<'_>,
    reading: &mut RequestBuffers,
    (call, model): (&ParsedRequest<'c>, &'c Model),
    room: &mut MemoryReservation,
) -> Result<(Option<ChosenTarget<'c>>, Box<OpenExchange>, Option<RewrittenBody>), Box<RejectedCall<'c>>> {
    let is_estimated = incoming.dialect.only_counts_tokens() && !model.supports(incoming.dialect);
    let first = match is_estimated {
        true => Ok(None),
        false => model
            .first_target(incoming.dialect, &call.model, incoming.body_received_at)
            .map(Some),
    };
    let place = match &first {
        Ok(Some((place, ..))) => *place,
        _ => 0,
    };
    let target = &model.targets[place];
    let named = target.model_name_for(model, &call.model);
    let labels = (&*model.name, target.upstream.name.as_str());
    let series = incoming
        .gateway
        .observers
        .traffic
        .series(&incoming.identity.tenant.name, Some(labels));
    incoming.series = Some(Arc::clone(&series));
    let first = first?.map(|(_, way, among)| {
        let tokens = || max_tokens(call, model);
        let (at, is_whole) = (incoming.body_received_at, incoming.is_complete());
        let attending = target.upstream.start_request(at, &named.model, is_whole, tokens);
        (way, among, attending)
    });
    let is_at_target = Cell::new(false);
    let wanted = AdmissionRequest {
        is_target_specific: &is_at_target,
        call,
        model,
        target,
        upstream_model: &named,
        pairs: first.as_ref().and_then(|(way, ..)| way.translation),
        series,
    };
    let admitted = admit(incoming, reply, wanted, reading, room).await;
    if let Some((_, among, _)) = &first
        && admitted.is_err()
        && !is_at_target.get()
    {
        model.undo_pick(place, *among);
    }
    let RecordedAdmission {
        open,
        rewritten,
        translated,
        stripped,
    } = admitted?;
    let chosen = first.map(|(TargetProtocol { template, .. }, _, attending)| ChosenTarget {
        target_index: place,
        upstream_model: named,
        template: target.template_for(
            template,
            translated
                .as_ref()
                .map(|translated| &*translated.response_translation),
        ),
        in_flight: Some(attending),
        translated,
        stripped,
    });
    Ok((chosen, open, rewritten))
}

/// The parameters of an admission.
struct AdmissionRequest<'w> {
    /// Whether a rejection is specific to the target. Any other rejection undoes the pick of the
    /// target.
    is_target_specific: &'w Cell<bool>,
    call: &'w ParsedRequest<'w>,
    model: &'w Model,
    target: &'w Target,
    upstream_model: &'w UpstreamModelName<'w>,
    /// The translation between client and provider; `None` if their dialects are equal.
    pairs: Option<TranslationPath>,
    series: Arc<Series>,
}

/// The outcome of a successful admission.
struct RecordedAdmission {
    open: Box<OpenExchange>,
    rewritten: Option<RewrittenBody>,
    translated: Option<TranslatedRequest>,
    stripped: Option<RewrittenBody>,
}

/// Checks a request against the limits and the rules, and records it in the ledger. `room` is the memory reserved for
/// the text in `reading`.
async fn admit<'c>(
    incoming: &mut IncomingCall<'c>,
    reply: &mut Reply<'_>,
    wanted: AdmissionRequest<'_>,
    reading: &mut RequestBuffers,
    room: &mut MemoryReservation,
) -> Result<RecordedAdmission, Box<RejectedCall<'c>>> {
    let AdmissionRequest {
        is_target_specific: is_at_target,
        call,
        model,
        target,
        upstream_model: named,
        pairs,
        series,
    } = wanted;
    let IncomingCall { gateway, catalog, .. } = *incoming;
    let tenant: &'c Tenant = &incoming.identity.tenant;
    let plan = catalog.settings.plan(tenant);
    let key = credential_id(incoming.identity);
    let endpoint = incoming.endpoint();
    let turn_away = |rejection, counted: Option<LimitKey>, outcome, policy| {
        let shared_plan = counted.as_ref().and_then(|counted| counted.shared_plan.clone());
        Box::new(RejectedCall {
            rejection,
            record: Some(RejectedRequest {
                tenant: Some(&*tenant.name),
                counted_key: counted.map(|counted| counted.key.to_string()),
                shared_plan,
                endpoint: Some(endpoint),
                bytes: incoming.original_body.len(),
                policy,
                outcome,
                ..RejectedRequest::default()
            }),
            is_over_limit: false,
            denied_model: None,
            retry_in: None,
        })
    };
    if let Some(field) = call.token_ids
        && !(plan.profile.is_idle(Direction::Request) && plan.external_policies.is_empty())
    {
        return Err(Rejection::token_ids_not_inspected(field).into());
    }
    let has_budget = plan.quotas.has_budget_for(&model.name);
    let allowed = &plan.allowed.hosted_tools;
    let reach = |target: &Target| target.receives_hosted_tools(call.dialect);
    let offered = OfferedTools::from_call(call, allowed, plan.tool_calls);
    let asked = PricedFeatures::from_call(call, offered.filter(|_| model.targets.iter().any(reach)));
    let bounded_to = (has_budget && asked.tools.is_some()).then_some(plan.tool_calls.max_calls);
    let tool_changes = ToolChanges::for_call(call, allowed, bounded_to)?;
    if incoming.form.is_some() && call.stream && !plan.profile.is_idle(Direction::Response) {
        return Err(Rejection::STREAM_NOT_INSPECTED.into());
    }
    // The tenant is found by name, because it may have been removed while the body arrived.
    let counter = gateway.limits.limiter.borrow().find(&tenant.name);
    let Some(counter) = counter else {
        return Err(turn_away(
            Rejection::from(AuthError::UnknownKey),
            None,
            RequestOutcome::Refused,
            None,
        ));
    };
    let now = gateway.clock.limit_time(incoming.head_received_at);
    // The same price applies at settlement.
    let admitted_at = gateway.limits.limiter.borrow_mut().effective_now(now);
    let MaxDemand {
        demand,
        bounds,
        unpriced,
    } = demand::max_demand(call, &asked, model, admitted_at);
    if let Some(unpriced) = unpriced
        && has_budget
    {
        let rejection = match unpriced {
            Unpriced::Model => Rejection::PRICE_UNKNOWN,
            Unpriced::Tier => Rejection::TIER_NOT_PRICED,
            Unpriced::Tool(kind) => Rejection::tool_not_priced(&kind, &model.name),
        };
        return Err(turn_away(rejection, None, RequestOutcome::Refused, None));
    }
    let grant = gateway
        .limits
        .limiter
        .borrow_mut()
        .admit(counter, key, demand, now);
    let limited = !plan.quotas.is_unlimited();
    if limited {
        let mut limiter = gateway.limits.limiter.borrow_mut();
        limiter.limit_status(counter, key, now).write(reply.extra_headers);
    }
    incoming.common_headers_length = reply.extra_headers.len();
    incoming.span.lap_now(Stage::Limit);
    let grant = grant.map_err(|exceeded| {
        let (answers, tools) = match exceeded.limit.is_money() {
            true => (bounds.responses, asked.tools.as_deref().map(OfferedTools::bound)),
            false => (demand::response_token_bound(call, model), None),
        };
        let rejection = Rejection::over_limit(exceeded, call, answers, tools);
        Box::new(RejectedCall {
            is_over_limit: true,
            retry_in: exceeded.retry_after.filter(|_| exceeded.reserved > 0),
            ..*turn_away(rejection, None, RequestOutcome::Refused, None)
        })
    })?;
    let mut granted = PendingGrant::new(gateway, &tenant.name, grant);
    let shared_plan = granted.shared_plan();
    let counted = || {
        limited.then(|| LimitKey {
            key,
            shared_plan: shared_plan.clone(),
        })
    };
    let judged = match incoming.form {
        None => {
            request_policy::judge(
                gateway,
                catalog,
                (&tenant.name, &plan.profile),
                &reading.text,
                call.stored_reference.is_some(),
                room,
                incoming.body,
            )
            .await
        }
        Some(form) => {
            let text = &form.summary.text;
            Box::pin(request_policy::judge_form_text(
                incoming,
                &call.model,
                text,
                reading,
                room,
            ))
            .await
        }
    };
    incoming.span.lap_now(Stage::Policy);
    let turn_denied_away = |denied: Box<DeniedRequest<'c>>| {
        let model = denied.rejection.is_denial().then(|| call.model.to_string());
        Box::new(RejectedCall {
            denied_model: model,
            ..*turn_away(denied.rejection, counted(), RequestOutcome::Denied, denied.note)
        })
    };
    let mut judged = judged.map_err(turn_denied_away)?;
    let guard = match &plan.tool_policy {
        Some(policy)
            if !judged.tool_flags.is_empty()
                && incoming.form.is_none()
                && call.dialect.generates_output() =>
        {
            let guarded = GuardContext {
                tenant: &tenant.name,
                mode: plan.profile.mode(),
                approvals: incoming.approvals,
                now: now / 1_000_000,
            };
            let flags = &judged.tool_flags;
            // Boxed, because only flagged requests need the memory.
            let guard =
                ToolGuard::for_request(policy, flags, &reading.text, guarded, &gateway.policy.approvals);
            Box::pin(guard).await.map(Box::new)
        }
        _ => None,
    };
    if let Some(form) = incoming.form.filter(|form| !form.summary.lines.lines.is_empty()) {
        // Boxed, because only such uploads need the memory.
        let lines = Box::pin(batch_lines::judge_lines(incoming, &form.summary.lines)).await;
        judged.note = judged.note.or(lines.map_err(turn_denied_away)?);
        incoming.span.lap_now(Stage::Policy);
    }
    if !plan.external_policies.is_empty() && incoming.form.is_none() && incoming.dialect.has_body() {
        let asking = HookRequest {
            gateway,
            catalog,
            plan,
            dialect: incoming.dialect,
            tenant: &tenant.name,
            model: &call.model,
            body: incoming.body,
        };
        // Boxed, because only requests with external policies need the memory.
        let asked = Box::pin(hooks::evaluate_hooks(asking, reading, room, &mut judged)).await;
        incoming.span.lap_now(Stage::Policy);
        asked.map_err(turn_denied_away)?;
    }
    judged.write_headers(&catalog.settings.engine, plan.profile.mode(), reply.extra_headers);
    if let Some(changes) = &tool_changes {
        let body = judged.rewritten.take();
        let written = changes.write(&gateway.buffers, call, incoming.body, body, reply.extra_headers);
        judged.rewritten = Some(written.map_err(|rejection| match rejection.is_denial() {
            true => turn_denied_away(Box::new(DeniedRequest {
                rejection,
                note: judged.note.take(),
            })),
            false => rejection.into(),
        })?);
    }
    let without = match incoming.form {
        None => {
            let body = judged.rewritten.as_ref();
            let body = body.map_or(incoming.body, |rewritten| &rewritten.body);
            let denied = &plan.denied_betas;
            FeatureStrippedRequest::write(
                &gateway.buffers,
                incoming.dialect,
                denied,
                body,
                reply.extra_headers,
            )
        }
        Some(_) => Ok(None),
    };
    let without = without.map_err(|MemoryExhausted| Rejection::OVERLOADED)?;
    let mut features = Vec::new();
    if let Some(without) = without {
        judged.rewritten = Some(without.body);
        features = without.removed_fields;
    }
    // The header lines so far are about removals that apply to every target.
    incoming.common_headers_length = reply.extra_headers.len();
    is_at_target.set(true);
    let body = judged
        .rewritten
        .as_ref()
        .map_or(incoming.body, |rewritten| &rewritten.body);
    let pairs = target.translation_for(pairs, incoming.dialect, &named.model, body);
    let stripped =
        reasoning_removal::strip_for_target(incoming, target, pairs, &named.model, body, reply.extra_headers);
    let stripped = stripped.map_err(|MemoryExhausted| Rejection::OVERLOADED)?;
    let body = stripped
        .as_ref()
        .map_or(body, |stripped| &stripped.rewritten.body);
    let translated = match pairs {
        None => None,
        Some(pairs) => {
            let said = TranslationInput {
                body,
                call,
                max_output_tokens: model.max_output_tokens,
                received_at: now,
            };
            let translated = translate(incoming, pairs, &said, target, &named.model, reply.extra_headers);
            // The rules have run, which is the most expensive step of an admission, so the request
            // is counted.
            let note = || judged.note.clone();
            Some(
                translated
                    .map_err(|rejection| turn_away(rejection, counted(), RequestOutcome::Refused, note()))?,
            )
        }
    };
    let mut dropped = Cow::Borrowed(translated.as_ref().map_or(&[][..], |translated| {
        translated.response_translation.dropped_fields()
    }));
    if let Some(stripped) = &stripped {
        dropped.to_mut().extend_from_slice(&stripped.dropped_fields);
    }
    if let Some(changes) = tool_changes.filter(|changes| !changes.dropped_fields.is_empty()) {
        dropped.to_mut().extend(changes.dropped_fields);
    }
    if !features.is_empty() {
        dropped.to_mut().extend(features);
    }
    granted.counts_request = false;
    let digest = body_digest(incoming.original_body).await;
    let admitted = AdmissionParams {
        gateway,
        catalog,
        tenant,
        key,
        key_name: incoming.identity.key_name.as_deref(),
        attribution: &*incoming.attribution,
        client_address: incoming.recorded_address(),
        body: incoming.original_body,
        digest,
        pending_body: incoming.form.and_then(|form| form.pending_body),
        call,
        endpoint: match incoming.stored_call {
            None => endpoint.into(),
            Some(stored) => stored.record_name().into(),
        },
        model: &model.name,
        target,
        upstream_model: &named.model,
        response_tokens: demand::response_token_bound(call, model),
        bounds,
        priced_features: asked,
        dropped_fields: &dropped,
        series,
        policy: judged.note,
        config: incoming.config,
        started: incoming.head_received_at,
    };
    let span = std::mem::take(&mut incoming.span);
    let mut open = OpenExchange::admit(admitted, granted, span).map_err(|unavailable| {
        gateway.observers.metrics.ledger_refusals.inc();
        turn_away(Rejection::from(unavailable), None, RequestOutcome::Refused, None)
    })?;
    open.observed_exchange = incoming.observed_exchange.take();
    if let Some(observed) = &mut open.observed_exchange {
        observed.set_provider(&target.upstream.name, &named.model);
        let shred_key = catalog.settings.shred_key(&tenant.name).ok().flatten();
        let recorded = incoming
            .attribution
            .record_for(&tenant.name, shred_key.map(|key| &**key), false);
        if let Some(recorded) = &recorded {
            observed.set_attribution(recorded);
        }
    }
    open.masks = judged.masks;
    open.guard = guard;
    let stripped = stripped.filter(|_| translated.is_none());
    Ok(RecordedAdmission {
        open,
        rewritten: judged.rewritten,
        translated,
        stripped: stripped.map(|stripped| stripped.rewritten),
    })
}

/// The limit counters of a request that is rejected after it passed the limits.
struct LimitKey {
    key: CredentialId,
    /// The plan whose limits the tenant's namespace shares; `None` if no limits are shared.
    shared_plan: Option<Arc<str>>,
}

/// Returns the id of a request's credential in limits and records.
pub(crate) fn credential_id(identity: &Identity) -> CredentialId {
    match &identity.credential {
        Credential::ApiKey(digest) => CredentialId::from_api_key_hash(digest),
        Credential::Subject(digest) => CredentialId::from_subject_hash(digest),
    }
}

/// A request that is to be translated.
pub struct TranslationInput<'s> {
    /// The body after the rules.
    pub body: &'s [u8],
    pub call: &'s ParsedRequest<'s>,
    /// Tokens reserved for a response if the request sets no maximum.
    pub max_output_tokens: u64,
    /// Time of arrival, in Unix microseconds.
    pub received_at: u64,
}

/// Translates a request for a provider whose name for the model is `model`. Appends a header line
/// with the names of the dropped fields to `extra`.
pub fn translate(
    incoming: &IncomingCall<'_>,
    pairs: TranslationPath,
    said: &TranslationInput<'_>,
    target: &Target,
    model: &str,
    extra: &mut Vec<u8>,
) -> Result<TranslatedRequest, Rejection> {
    let TranslationInput { body, call, .. } = *said;
    let betas = match (pairs, &incoming.anthropic_headers) {
        (pairs, Some(fields)) if pairs.has_betas_in_body() => {
            fields.allowed_betas(target.upstream.betas.as_deref(), extra)
        }
        _ => Vec::new(),
    };
    let provider = TranslationTarget {
        model,
        max_output_tokens: said.max_output_tokens,
        untranslatable: target.upstream.untranslatable_fields,
    };
    let mut translated = Buffer::new(&incoming.gateway.buffers.budget);
    let most = pairs.max_request_bytes(body.len(), model);
    let way = translated.write(most, |out| {
        pairs.write_request(body, &call.model, &provider, &betas, out)
    });
    let way = way.map_err(|MemoryExhausted| Rejection::OVERLOADED)??;
    if !way.dropped_fields().is_empty() {
        // Field names are valid in a header line.
        let _ = encode::write_header(
            extra,
            "x-proofgate-dropped-fields",
            way.dropped_fields().join(", ").as_bytes(),
        );
    }
    let prompt = call.estimated_prompt_tokens();
    Ok(TranslatedRequest {
        body: translated,
        response_translation: Box::new(ResponseTranslator::new(
            way,
            &call.model,
            said.received_at / 1_000_000,
            prompt,
        )),
    })
}

/// Computes the digest of a body. Yields to other tasks between the pieces of a long body.
pub(crate) async fn body_digest(body: &[u8]) -> BodyHasher {
    let mut digest = BodyHasher::new();
    if body.len() <= SLICE_BYTES {
        digest.update(body);
        return digest;
    }
    let pieces = async {
        for piece in body.chunks(SLICE_BYTES) {
            digest.update(piece);
            tokio::task::yield_now().await;
        }
    };
    Box::pin(pieces).await;
    digest
}
