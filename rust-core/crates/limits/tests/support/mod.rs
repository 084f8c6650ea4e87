//! Limits and names used by every test.
#![allow(dead_code, reason = "each test binary uses only some of these helpers")]

use proofgate_limits::{CredentialId, Limiter, Limits, Quotas, Snapshot, TenantId, TenantLimits};
use std::num::NonZeroU64;
use std::sync::Arc;

/// Microseconds in a second.
pub const SECOND: u64 = 1_000_000;
/// A moment in the middle of a second, long before midnight: 2023-11-14, 22:13:20.5 UTC.
pub const START: u64 = 1_700_000_000 * SECOND + SECOND / 2;
/// The next midnight UTC after `START`.
pub const MIDNIGHT: u64 = 19_676 * 86_400 * SECOND;

pub const KEY: CredentialId = CredentialId::ApiKey([1, 2, 3, 4]);
pub const OTHER_KEY: CredentialId = CredentialId::ApiKey([5, 6, 7, 8]);

/// Requests per minute, tokens per minute, tokens per day, concurrency; 0 is no limit.
pub fn limits(values: [u64; 4]) -> Limits {
    let [requests, tokens, day, concurrency] = values.map(NonZeroU64::new);
    Limits {
        requests_per_minute: requests,
        tokens_per_minute: tokens,
        tokens_per_day: day,
        concurrency,
        ..Limits::default()
    }
}

pub fn tenant(name: &str, of_tenant: [u64; 4], of_key: [u64; 4]) -> TenantLimits {
    TenantLimits {
        name: name.into(),
        quotas: Arc::new(Quotas::new(&limits(of_tenant), &limits(of_key))),
    }
}

/// Creates a limiter with one tenant.
pub fn limiter(of_tenant: [u64; 4], of_key: [u64; 4]) -> (Limiter, TenantId) {
    let mut limiter = Limiter::new();
    let ids = limiter.set_limits(&[tenant("acme", of_tenant, of_key)]);
    (limiter, ids[0])
}

/// Admits a request that uses exactly the tokens that it reserves.
pub fn consume(limiter: &mut Limiter, tenant: TenantId, key: CredentialId, tokens: u64, now: u64) {
    let grant = limiter.admit(tenant, key, tokens, now).unwrap();
    limiter.keep_reservation(grant);
}

/// Returns the consumption in a snapshot, without requests in flight.
pub fn consumed(snapshot: &Snapshot) -> Snapshot {
    let mut consumed = snapshot.clone();
    for usage in consumed.subjects.values_mut() {
        usage.in_flight = 0;
    }
    consumed.subjects.retain(|_, usage| !usage.is_empty());
    consumed
}
