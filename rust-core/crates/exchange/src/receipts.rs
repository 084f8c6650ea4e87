//! Receipts: the signed proofs of a tenant's exchanges, which the tenant gets with its own key.
//!
//! The proofs are read from the volume, which may be slow and large. Dedicated threads read them
//! and take queries from a queue, which rejects queries when it is full. The data-plane thread only
//! waits for the result. Tenants take turns, and each tenant can occupy at most one of the threads.
//! The query for an exchange that no checkpoint covers yet is queued again after a pause, which
//! blocks no thread.

mod bundle;
mod fair_queue;
mod receipt_service;

use std::path::Path;
use std::sync::Arc;

use proofgate_auth::{AuthError, Identity};
use proofgate_base::rejection::Rejection;
use proofgate_ledger::VerifyingKey;
use proofgate_limits::Demand;
use proofgate_upstream::catalog::Catalog;

use self::receipt_service::{ClientCheckpoint, ReceiptQuery};
pub use self::receipt_service::{ReceiptRequest, ReceiptService};
use crate::admission::credential_id;
use crate::gateway::Gateway;
use crate::open_exchange::PendingGrant;

impl ReceiptService {
    /// Creates the service for all shards of the ledger in `directory`.
    pub fn for_ledger(directory: &Path, key: VerifyingKey) -> Self {
        let directory = directory.to_owned();
        Self::start(move |question| bundle::look_up(&directory, &key, question))
    }
}

/// Answers a receipt request. It uses only the tenant's request limits; the remaining limits are
/// written to `extra`.
///
/// # Errors
/// The rejection for the client.
pub async fn respond(
    gateway: &Gateway,
    catalog: &Catalog,
    identity: &Identity,
    asked: &ReceiptRequest,
    now: std::time::Instant,
    extra: &mut Vec<u8>,
) -> Result<Vec<u8>, Rejection> {
    let held = ClientCheckpoint::from_query(asked.query.as_deref())?;
    let tenant = &identity.tenant;
    let (key, now) = (credential_id(identity), gateway.clock.unix_micros(now));
    let nothing = Demand {
        cost: Some(0),
        ..Demand::default()
    };
    let grant = {
        let mut limiter = gateway.limits.limiter.borrow_mut();
        let counter = limiter
            .find(&tenant.name)
            .ok_or_else(|| Rejection::from(AuthError::UnknownKey))?;
        let grant = limiter.admit(counter, key, nothing, now);
        if !catalog.settings.plan(tenant).quotas.is_unlimited() {
            limiter.limit_status(counter, key, now).write(extra);
        }
        grant
    };
    let grant = grant.map_err(|exceeded| {
        gateway.observers.metrics.record_limit_refusal();
        Rejection::from(exceeded)
    })?;
    // The request is counted, whatever its outcome.
    let _granted = PendingGrant::new(gateway, &tenant.name, grant);
    let question = ReceiptQuery {
        id: asked.id.clone(),
        tenant: Arc::clone(&tenant.name),
        is_open: gateway.observers.recorder.open_exchanges().contains(&asked.id),
        client_checkpoint: held,
        shred_keys: catalog.settings.shred_keys.clone(),
    };
    gateway.receipts.request(question).await
}
