//! The report for `GET /v1/usage`: the used part of the limits of a tenant and its key.

use std::collections::BTreeMap;

use proofgate_auth::{AuthError, Identity};
use proofgate_base::rejection::Rejection;
use proofgate_limits::{UsageEntry, UsageReport, format_dollars};
use serde::Serialize;

use crate::admission::credential_id;
use crate::gateway::Gateway;

/// The usage report. It omits amounts that are not counted.
#[derive(Serialize)]
struct Usage<'u> {
    object: &'static str,
    /// Time of the report, in Unix seconds.
    at: u64,
    tenant: Tenant<'u>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    key: Amounts,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<Namespace<'u>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    models: BTreeMap<&'u str, Amounts>,
}

#[derive(Serialize)]
struct Tenant<'u> {
    name: &'u str,
    #[serde(flatten)]
    parts: Amounts,
}

/// The total use of a namespace's tenants that share a plan's limits.
#[derive(Serialize)]
struct Namespace<'u> {
    name: &'u str,
    plan: String,
    #[serde(flatten)]
    parts: Amounts,
}

/// Amounts by the name of the counted unit.
type Amounts = BTreeMap<&'static str, Amount>;

/// An amount: a number, or dollars as a decimal number in a string.
#[derive(Serialize)]
#[serde(untagged)]
enum Amount {
    Count(LimitStatus<u64>),
    Money(LimitStatus<String>),
}

#[derive(Serialize)]
struct LimitStatus<A> {
    used: A,
    /// Null if there is no limit.
    limit: Option<A>,
    remaining: Option<A>,
    /// The Unix second in which the day or month of the limit ends; null for a sliding window.
    resets_at: Option<u64>,
}

/// Reports the use of limits by the sender of a request at `now` (Unix microseconds).
///
/// # Errors
/// [`Rejection`] if the tenant was removed since it was authenticated.
pub fn build_report(gateway: &Gateway, identity: &Identity, now: u64) -> Result<Vec<u8>, Rejection> {
    let mut limiter = gateway.limits.limiter.borrow_mut();
    let name = &*identity.tenant.name;
    let tenant = limiter
        .find(name)
        .ok_or_else(|| Rejection::from(AuthError::UnknownKey))?;
    let UsageReport {
        tenant,
        key,
        namespace,
        models,
    } = limiter.report(tenant, credential_id(identity), now);
    let of_models = models.iter().map(|(model, counted)| (&**model, amounts(counted)));
    let usage = Usage {
        object: "usage",
        at: now / 1_000_000,
        tenant: Tenant {
            name,
            parts: amounts(&tenant),
        },
        key: amounts(&key),
        namespace: namespace.map(|(plan, counted)| Namespace {
            name: name.split_once('/').map_or("", |(namespace, _)| namespace),
            plan: plan.to_string(),
            parts: amounts(&counted),
        }),
        models: of_models.collect(),
    };
    // Strings and numbers always serialize.
    Ok(serde_json::to_vec(&usage).unwrap_or_default())
}

fn amounts(counted: &[UsageEntry]) -> Amounts {
    let part = |one: &UsageEntry| match one.limit.is_money() {
        true => Amount::Money(limit_status(one, format_dollars)),
        false => Amount::Count(limit_status(one, |count| count)),
    };
    counted.iter().map(|one| (one.limit.name(), part(one))).collect()
}

fn limit_status<A>(one: &UsageEntry, amount: impl Fn(u64) -> A) -> LimitStatus<A> {
    LimitStatus {
        used: amount(one.used),
        limit: one.value.map(&amount),
        remaining: one.value.map(|value| amount(value.saturating_sub(one.used))),
        resets_at: one.resets_at,
    }
}
