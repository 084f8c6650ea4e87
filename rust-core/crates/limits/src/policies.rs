//! Names and descriptions of limits in header fields (draft-ietf-httpapi-ratelimit-headers-11).

use crate::config::{Ceilings, Limits};
use crate::exceeded::{Limit, Scope};
use crate::text::push_integer;

/// Name of a limit's quota policy, quoted.
pub(crate) fn name(scope: Scope, limit: Limit) -> &'static str {
    match (scope, limit) {
        (Scope::Tenant, Limit::RequestsPerMinute) => r#""requests""#,
        (Scope::Tenant, Limit::TokensPerMinute) => r#""tokens""#,
        (Scope::Tenant, Limit::TokensPerDay) => r#""tokens-day""#,
        (Scope::Tenant, Limit::Concurrency) => r#""concurrency""#,
        (Scope::Key, Limit::RequestsPerMinute) => r#""key-requests""#,
        (Scope::Key, Limit::TokensPerMinute) => r#""key-tokens""#,
        (Scope::Key, Limit::TokensPerDay) => r#""key-tokens-day""#,
        (Scope::Key, Limit::Concurrency) => r#""key-concurrency""#,
        (Scope::Tenant, Limit::MoneyPerDay) => r#""money-day""#,
        (Scope::Tenant, Limit::MoneyPerMonth) => r#""money-month""#,
        (Scope::Key, Limit::MoneyPerDay) => r#""key-money-day""#,
        (Scope::Key, Limit::MoneyPerMonth) => r#""key-money-month""#,
        (Scope::Namespace, Limit::RequestsPerMinute) => r#""namespace-requests""#,
        (Scope::Namespace, Limit::TokensPerMinute) => r#""namespace-tokens""#,
        (Scope::Namespace, Limit::TokensPerDay) => r#""namespace-tokens-day""#,
        (Scope::Namespace, Limit::Concurrency) => r#""namespace-concurrency""#,
        (Scope::Namespace, Limit::MoneyPerDay) => r#""namespace-money-day""#,
        (Scope::Namespace, Limit::MoneyPerMonth) => r#""namespace-money-month""#,
        // A request tells its client's limits, not those of each model.
        (Scope::Model, _) => r#""model""#,
    }
}

/// Window and unit (section 3.1). The unit of tokens is not registered; without one it would mean requests.
fn parameters(limit: Limit) -> &'static str {
    match limit {
        Limit::RequestsPerMinute => ";w=60",
        Limit::TokensPerMinute => r#";qu="tokens";w=60"#,
        Limit::TokensPerDay => r#";qu="tokens";w=86400"#,
        Limit::Concurrency => r#";qu="concurrent-requests""#,
        Limit::MoneyPerDay => r#";qu="microdollars";w=86400"#,
        // Months differ in length.
        Limit::MoneyPerMonth => r#";qu="microdollars""#,
    }
}

/// An amount in the unit that is told: money in microdollars, rounded down, so that budgets up to a thousand million
/// dollars fit into an integer of a structured field.
pub(crate) fn told(limit: Limit, amount: u64) -> u64 {
    match limit {
        Limit::MoneyPerDay | Limit::MoneyPerMonth => amount / 1000,
        _ => amount,
    }
}

/// The limits that there are, with their values.
pub(crate) fn set(ceilings: &Ceilings) -> impl Iterator<Item = (Limit, u64)> + use<> {
    let values = [
        ceilings.requests,
        ceilings.tokens,
        ceilings.day_tokens,
        ceilings.in_flight,
        ceilings.day_cost,
        ceilings.month_cost,
    ];
    Limit::ALL
        .into_iter()
        .zip(values)
        .filter(|(_, value)| *value != u64::MAX)
}

/// Value of `RateLimit-Policy` for a tenant; empty without limits.
pub(crate) fn describe(limits: &Limits, key_limits: &Limits) -> Box<[u8]> {
    with(&with(&[], Scope::Tenant, limits), Scope::Key, key_limits)
}

/// The same with the limits of a scope behind it.
pub(crate) fn with(described: &[u8], scope: Scope, limits: &Limits) -> Box<[u8]> {
    let mut text = described.to_vec();
    for (limit, value) in set(&Ceilings::from(limits)) {
        if !text.is_empty() {
            text.extend_from_slice(b", ");
        }
        text.extend_from_slice(name(scope, limit).as_bytes());
        text.extend_from_slice(b";q=");
        push_integer(&mut text, told(limit, value));
        text.extend_from_slice(parameters(limit).as_bytes());
    }
    text.into_boxed_slice()
}
