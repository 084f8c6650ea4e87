//! Records of requests that a rule, an external policy or the check of guarded tools denies. They
//! are as complete as the records of admitted requests, because people ask about denials later.
//!
//! Denials are the only case in which the body of an unsent request is hashed, and stored if the
//! tenant's bodies are stored.

use std::time::Instant;

use proofgate_base::rejection::Rejection;
use proofgate_base::request_id::RequestId;
use proofgate_ledger::commitment::{BodyHasher, SaltedCommitter, salt_id};
use proofgate_ledger::record::{Commitment, Rejection as RejectionRecord};
use proofgate_observe::payloads::{AdmittedBody, DeniedBody};
use proofgate_observe::rejected_request::RejectedRequest;
use proofgate_payloads::PayloadKey;

use crate::admission::{body_digest, credential_id};
use crate::incoming_call::IncomingCall;

/// Records a denied request for `model`, and waits until the record is written; returns the id for
/// the response.
///
/// The rejection is sent even if the ledger cannot store its record. It is then counted, and the count is recorded as
/// soon as the ledger has capacity.
pub(crate) async fn record_denial(
    incoming: &IncomingCall<'_>,
    rejection: &Rejection,
    mut refused: RejectedRequest<'_>,
    model: &str,
) -> RequestId {
    let gateway = incoming.gateway;
    let observers = &gateway.observers;
    let digest = body_digest(incoming.original_body).await;
    let now = gateway.clock.limit_time(Instant::now());
    let id = gateway.request_id(now);
    observers.count_rejection(now, id, rejection, &mut refused);
    let body = body_to_store(incoming);
    let denied = DenialRecord {
        incoming,
        rejection,
        request: &refused,
        model,
        digest,
    };
    let Some((position, stored)) = denied.append(now, id, body) else {
        let tenant = &incoming.identity.tenant.name;
        observers.recorder.count_unrecorded_denial(now, tenant, rejection);
        return id;
    };
    let _ = observers.recorder.wait_written(position).await;
    if let (Some(mut stored), Some(desk)) = (stored, &observers.payloads) {
        stored.wait_until_stored(desk).await;
    }
    id
}

/// Returns a copy of the body; `None` if the tenant's bodies are not stored.
fn body_to_store(incoming: &IncomingCall<'_>) -> Option<DeniedBody> {
    let tenant = &incoming.identity.tenant;
    let most = incoming.catalog.settings.plan(tenant).max_payload_bytes?;
    let body = match incoming.is_complete() {
        true => AdmittedBody::Complete(incoming.original_body),
        false => AdmittedBody::Partial,
    };
    let desk = incoming.gateway.observers.payloads.as_ref();
    Some(DeniedBody::copy(desk, &tenant.name, most, body))
}

/// The details of a denied request.
struct DenialRecord<'d> {
    incoming: &'d IncomingCall<'d>,
    rejection: &'d Rejection,
    request: &'d RejectedRequest<'d>,
    model: &'d str,
    digest: BodyHasher,
}

impl DenialRecord<'_> {
    /// Appends the record and submits the body; `None` if the ledger has no capacity.
    fn append(self, now: u64, id: RequestId, body: Option<DeniedBody>) -> Option<(u64, Option<DeniedBody>)> {
        let DenialRecord {
            incoming,
            rejection,
            request: refused,
            model,
            digest,
        } = self;
        let observers = &incoming.gateway.observers;
        let recorder = &observers.recorder;
        let tenant = &incoming.identity.tenant.name;
        let mut room = recorder.reserve().ok()?;
        let stored = recorder.next_salt().ok()?;
        // If the salt needs a shred key that is missing, the salt could never be destroyed, so the
        // record gets no commitment.
        let shred_key = incoming.catalog.settings.shred_key(tenant).ok();
        let salt = shred_key.map(|key| key.map_or(stored, |key| key.derive_salt(&stored)));
        let shred_key = shred_key.flatten();
        let payload_key = salt.zip(shred_key).map(|(salt, key)| PayloadKey::new(key, &salt));
        let body = body.zip(payload_key);
        let key = credential_id(incoming.identity).to_hex();
        let address = incoming.recorded_address();
        let names_user = incoming.catalog.settings.personal_data.end_user;
        let request = salt.map(|salt| Commitment(SaltedCommitter::new(&salt).commit("request", digest)));
        let record = |seq, tenant_seq| RejectionRecord {
            seq,
            ts: now,
            id: id.as_str().into(),
            tenant: Some((&**tenant).into()),
            tenant_seq: Some(tenant_seq),
            key: Some(key.as_str().into()),
            counted: refused.counted_key.as_deref().map(Into::into),
            key_name: refused.key_name.as_deref().map(Into::into),
            shared_plan: refused.shared_plan.as_deref().map(Into::into),
            status: rejection.status,
            code: rejection.code.into(),
            model: Some(model.into()),
            endpoint: refused.endpoint.map(Into::into),
            bytes: refused.bytes as u64,
            request,
            salt: salt.map(|salt| salt_id(&salt)),
            shred_key: shred_key.map(|key| key.id()),
            payload: body.as_ref().map(|(body, _)| body.outcome()),
            policy: refused.policy.clone(),
            attribution: {
                let shred_key = shred_key.map(|key| &**key);
                incoming.attribution.record_for(tenant, shred_key, names_user)
            },
            client_address: address.as_deref().map(Into::into),
            config: incoming.config,
        };
        let encode = |seq, tenant_seq, out: &mut Vec<u8>| record(seq, tenant_seq).encode_into(out);
        let position = recorder.append_numbered(&mut room, tenant, encode).ok()?;
        let body = body.map(|(mut body, key)| {
            if let Some(desk) = &observers.payloads {
                body.submit(desk, recorder.locate(position), key);
            }
            body
        });
        Some((position, body))
    }
}
