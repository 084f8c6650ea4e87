//! Refusals of requests that would exceed a limit.

use crate::kinds::Limit;
use std::error::Error;
use std::fmt;
use std::time::Duration;

/// The scope of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The tenant's limit, for all of its keys together.
    Tenant,
    /// The API key's limit.
    Key,
    /// The tenant's limit for this model, for all of its keys together.
    Model,
    /// The namespace's limit, shared by its tenants with the same plan.
    Namespace,
}

/// The longest reported wait of a request that is refused only because of the reservations of
/// requests in flight. Most requests use only a fraction of their reservation.
pub(crate) const RESERVATION_RETRY_AFTER: Duration = Duration::from_secs(2);

/// The error for a request that would exceed a limit. If the request would exceed several limits,
/// the error names the limit with the longest wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitExceeded {
    /// The limit that would be exceeded.
    pub limit: Limit,
    /// The scope of the limit.
    pub scope: Scope,
    /// The value of the limit, in its unit.
    pub value: u64,
    /// The remaining amount of the limit now, in its unit.
    pub remaining: u64,
    /// The amount reserved by requests in flight, in the limit's unit, if the request would fit
    /// after they end without using this amount; otherwise 0.
    pub reserved: u64,
    /// Time until the same request fits every limit, if no other request is admitted or settled in
    /// the meantime. The time is exact to the microsecond: the request cannot fit earlier. Zero if
    /// the request only waits for another request to end, which can happen at any moment; at most
    /// two seconds if it waits for the `reserved` amount. `None` if the request never fits, because
    /// it alone exceeds the limit.
    pub retry_after: Option<Duration>,
}

impl LimitExceeded {
    /// Returns whether the request can never fit, so that it must not be retried.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        self.retry_after.is_none()
    }

    /// Returns the stable machine code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self.retry_after {
            None => "request_exceeds_limit",
            Some(_) => self.limit.kind().code,
        }
    }

    /// Returns the value of `Retry-After` (RFC 9110 section 10.2.3): whole seconds, rounded up, at least 1. `None` if the
    /// request never fits.
    #[must_use]
    pub fn retry_after_seconds(&self) -> Option<u64> {
        let after = self.retry_after?;
        let begun = u64::from(after.subsec_nanos() > 0);
        Some(after.as_secs().saturating_add(begun).max(1))
    }
}

impl fmt::Display for LimitExceeded {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let owner = match self.scope {
            Scope::Tenant => "tenant's",
            Scope::Key => "API key's",
            Scope::Model => "tenant's and model's",
            Scope::Namespace => "namespace's",
        };
        let (kind, value) = if self.limit.is_money() {
            ("budget", format_dollars(self.value))
        } else {
            ("limit", self.value.to_string())
        };
        let noun = self.limit.noun(value == "1");
        match self.retry_after_seconds() {
            None => write!(
                out,
                "the request alone exceeds this {owner} {kind} of {value} {noun}: send a smaller request"
            ),
            Some(seconds) if self.reserved > 0 => {
                let reserved = match self.limit.is_money() {
                    true => format_dollars(self.reserved),
                    false => self.reserved.to_string(),
                };
                write!(
                    out,
                    "this {owner} {kind} of {value} {noun} is used up for now, because requests in flight reserve \
                     {reserved} of it: try again in {seconds} s"
                )
            }
            Some(seconds) => write!(
                out,
                "this {owner} {kind} of {value} {noun} is reached: try again in {seconds} s"
            ),
        }
    }
}

impl Error for LimitExceeded {}

/// Formats nanodollars as a decimal number of dollars, without trailing zeros.
#[must_use]
pub fn format_dollars(nanodollars: u64) -> String {
    let text = format!(
        "{}.{:09}",
        nanodollars / 1_000_000_000,
        nanodollars % 1_000_000_000
    );
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
