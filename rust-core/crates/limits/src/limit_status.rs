//! The remaining amounts of a client's limits, as header fields.

use crate::config::Ceilings;
use crate::kinds::{Limit, Period, Quantity};
use crate::limit_exceeded::Scope;
use crate::moment::Moment;
use crate::rate_limit_policy;
use crate::subject::Totals;
use crate::text::{push_integer, push_number, push_seconds};
use crate::window::WINDOW_SECONDS;
use proofgate_calendar::SECONDS_PER_DAY;

/// Maximum number of limits: those of a tenant, a key and a namespace.
const MAX_LIMITS: usize = 3 * Limit::COUNT;

/// The remaining amount of one limit.
#[derive(Clone, Copy, Debug)]
struct RemainingLimit {
    scope: Scope,
    limit: Limit,
    value: u64,
    remaining: u64,
    /// Seconds until a larger amount than `remaining` is available; `None` for concurrent requests.
    window_seconds: Option<u64>,
    /// Seconds until the used amount is 0, if there are no more requests.
    reset_in: u64,
}

/// The remaining amounts of all limits of a tenant and a key at one moment.
#[derive(Clone, Debug)]
pub struct LimitStatus<'a> {
    policies: &'a [u8],
    second: u64,
    left: [Option<RemainingLimit>; MAX_LIMITS],
}

impl<'a> LimitStatus<'a> {
    pub(crate) fn new(policies: &'a [u8], second: u64) -> Self {
        Self {
            policies,
            second,
            left: [None; MAX_LIMITS],
        }
    }

    /// Adds a subject's limits. `span` is the oldest and the latest second with consumption.
    pub(crate) fn add(
        &mut self,
        scope: Scope,
        ceilings: &Ceilings,
        totals: Totals,
        span: Option<(u64, u64)>,
    ) {
        let second = self.second;
        let leaves_in = |held: u64| held.saturating_add(WINDOW_SECONDS).saturating_sub(second);
        for (limit, value) in ceilings.iter_limits() {
            let used = totals.used(limit);
            let (more_in, reset_in) = match limit.kind().period {
                Period::Instant => (None, 0),
                Period::Day => {
                    let day = SECONDS_PER_DAY - second % SECONDS_PER_DAY;
                    (Some(day), if used == 0 { 0 } else { day })
                }
                Period::Month => {
                    let month = Moment::from_second(second).next_month().saturating_sub(second);
                    (Some(month), if used == 0 { 0 } else { month })
                }
                Period::Minute => match span.filter(|_| used > 0) {
                    Some((oldest, latest)) => (Some(leaves_in(oldest)), leaves_in(latest)),
                    None => (Some(60), 0),
                },
            };
            let left = RemainingLimit {
                scope,
                limit,
                value,
                remaining: value.saturating_sub(used),
                window_seconds: more_in,
                reset_in,
            };
            if let Some(free) = self.left.iter_mut().find(|entry| entry.is_none()) {
                *free = Some(left);
            }
        }
    }

    /// Returns whether there are no limits to report.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.left[0].is_none()
    }

    /// Appends the header fields as whole lines with lower-case names. Appends nothing if there are
    /// no limits.
    ///
    /// `ratelimit-policy` and `ratelimit` report every limit
    /// (draft-ietf-httpapi-ratelimit-headers-11). The `x-ratelimit-*` fields of OpenAI's API report
    /// the limit with the smallest remaining amount, for requests and for tokens. Seconds are
    /// rounded up.
    pub fn write(&self, out: &mut Vec<u8>) {
        if self.is_empty() {
            return;
        }
        out.extend_from_slice(b"ratelimit-policy: ");
        out.extend_from_slice(self.policies);
        out.extend_from_slice(b"\r\nratelimit: ");
        for (number, left) in self.left.iter().flatten().enumerate() {
            if number > 0 {
                out.extend_from_slice(b", ");
            }
            rate_limit_policy::push_name(out, left.scope, left.limit);
            out.extend_from_slice(b";r=");
            push_integer(
                out,
                rate_limit_policy::reported_amount(left.limit, left.remaining),
            );
            if let Some(seconds) = left.window_seconds {
                out.extend_from_slice(b";t=");
                push_integer(out, seconds);
            }
        }
        out.extend_from_slice(b"\r\n");
        for quantity in [Quantity::Requests, Quantity::Tokens] {
            if let Some(left) = self.min_remaining(quantity) {
                left.write(quantity.as_str(), out);
            }
        }
    }

    fn min_remaining(&self, quantity: Quantity) -> Option<&RemainingLimit> {
        let left = self.left.iter().flatten();
        let wanted = left.filter(|left| left.limit.kind().quantity == quantity);
        wanted.min_by_key(|left| left.remaining)
    }
}

impl RemainingLimit {
    /// Appends the fields of OpenAI's API.
    fn write(&self, unit: &str, out: &mut Vec<u8>) {
        for (name, number) in [
            (&b"x-ratelimit-limit-"[..], self.value),
            (b"x-ratelimit-remaining-", self.remaining),
        ] {
            write_field_start(name, unit, out);
            push_number(out, number);
            out.extend_from_slice(b"\r\n");
        }
        write_field_start(b"x-ratelimit-reset-", unit, out);
        push_seconds(out, self.reset_in);
        out.extend_from_slice(b"\r\n");
    }
}

fn write_field_start(name: &[u8], unit: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(name);
    out.extend_from_slice(unit.as_bytes());
    out.extend_from_slice(b": ");
}
