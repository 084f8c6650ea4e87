//! Why a request is not admitted.

use crate::kinds::Limit;
use std::error::Error;
use std::fmt;
use std::time::Duration;

/// Whose limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The tenant's, for all of its keys together.
    Tenant,
    /// The API key's.
    Key,
    /// The tenant's for this model, for all of its keys together.
    Model,
    /// The namespace's: what the tenants of one namespace share that have the same plan.
    Namespace,
}

/// How long a request is told to wait for those under way to end, whose reservations are all that keeps it out: most need
/// a fraction of what they reserve.
pub(crate) const RESERVATION_RETRY_AFTER: Duration = Duration::from_secs(2);

/// A request would pass a limit. When it would pass several, this is the one that keeps it out longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitExceeded {
    /// Which limit.
    pub limit: Limit,
    /// Whose.
    pub scope: Scope,
    /// The limit itself, in its unit.
    pub value: u64,
    /// What is left of it now, in its unit.
    pub remaining: u64,
    /// What requests under way have reserved of it, in its unit, where the request would pass if they used nothing of that; else 0.
    pub reserved: u64,
    /// Time until the same request passes every limit, if nothing else is admitted or settled before: exact to the
    /// microsecond, and earlier it cannot pass. Zero when it only waits for another request to end, which can be any
    /// moment; two seconds at most when it waits for what is `reserved`. `None`: it never passes, because it alone asks for more than the limit.
    pub retry_after: Option<Duration>,
}

impl LimitExceeded {
    /// Whether the request can never pass, so that it must not be tried again.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        self.retry_after.is_none()
    }

    /// Stable machine code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self.retry_after {
            None => "request_exceeds_limit",
            Some(_) => self.limit.kind().code,
        }
    }

    /// Value of `Retry-After` (RFC 9110 section 10.2.3): whole seconds, rounded up, at least 1. `None` when the request
    /// never passes.
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
                "the request alone needs more than this {owner} {kind} of {value} {noun}: make it smaller"
            ),
            Some(seconds) if self.reserved > 0 => {
                let reserved = match self.limit.is_money() {
                    true => format_dollars(self.reserved),
                    false => self.reserved.to_string(),
                };
                write!(
                    out,
                    "this {owner} {kind} of {value} {noun} has no capacity now, because requests in flight reserve \
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

/// Nanodollars as a decimal number of dollars, without zeros at its end.
#[must_use]
pub fn format_dollars(nanodollars: u64) -> String {
    let text = format!(
        "{}.{:09}",
        nanodollars / 1_000_000_000,
        nanodollars % 1_000_000_000
    );
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
