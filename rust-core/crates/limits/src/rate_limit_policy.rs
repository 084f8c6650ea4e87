//! Names and descriptions of limits in header fields (draft-ietf-httpapi-ratelimit-headers-11).

use crate::config::Ceilings;
use crate::kinds::{Limit, Limits, Period, Quantity};
use crate::limit_exceeded::Scope;
use crate::text::push_integer;

/// Appends the name of a limit's quota policy, quoted.
pub(crate) fn push_name(out: &mut Vec<u8>, scope: Scope, limit: Limit) {
    let scope = match scope {
        Scope::Tenant => "\"",
        Scope::Key => "\"key-",
        Scope::Namespace => "\"namespace-",
        // Headers report the limits of the client, not those of each model.
        Scope::Model => {
            out.extend_from_slice(b"\"model\"");
            return;
        }
    };
    let kind = limit.kind();
    let period = match kind.period {
        Period::Minute | Period::Instant => "\"",
        Period::Day => "-day\"",
        Period::Month => "-month\"",
    };
    for part in [scope, kind.quantity.as_str(), period] {
        out.extend_from_slice(part.as_bytes());
    }
}

/// Appends unit and window (section 3.1). The unit for tokens is not registered, but a value
/// without a unit would mean requests.
fn push_parameters(out: &mut Vec<u8>, limit: Limit) {
    let kind = limit.kind();
    let unit = match kind.quantity {
        Quantity::Requests => "",
        Quantity::Tokens => r#";qu="tokens""#,
        Quantity::Concurrency => r#";qu="concurrent-requests""#,
        Quantity::Money => r#";qu="microdollars""#,
    };
    let window = match kind.period {
        Period::Minute => ";w=60",
        Period::Day => ";w=86400",
        // Months differ in length.
        Period::Month | Period::Instant => "",
    };
    out.extend_from_slice(unit.as_bytes());
    out.extend_from_slice(window.as_bytes());
}

/// Returns an amount in the reported unit. Money is reported in microdollars, rounded down, so that
/// budgets up to a thousand million dollars fit a structured-field integer.
pub(crate) fn reported_amount(limit: Limit, amount: u64) -> u64 {
    if limit.is_money() { amount / 1000 } else { amount }
}

/// Returns the value of `RateLimit-Policy` for a tenant; empty without limits.
pub(crate) fn describe(limits: &Limits, key_limits: &Limits) -> Box<[u8]> {
    with_scope(&with_scope(&[], Scope::Tenant, limits), Scope::Key, key_limits)
}

/// Returns `described` with the limits of one more scope appended.
pub(crate) fn with_scope(described: &[u8], scope: Scope, limits: &Limits) -> Box<[u8]> {
    let mut text = described.to_vec();
    for (limit, value) in Ceilings::from(limits).iter_limits() {
        if !text.is_empty() {
            text.extend_from_slice(b", ");
        }
        push_name(&mut text, scope, limit);
        text.extend_from_slice(b";q=");
        push_integer(&mut text, reported_amount(limit, value));
        push_parameters(&mut text, limit);
    }
    text.into_boxed_slice()
}
