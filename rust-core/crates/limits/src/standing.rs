//! What is left to a sender, as header fields.

use crate::DAY_SECONDS;
use crate::config::Ceilings;
use crate::demand::ActualUsage;
use crate::exceeded::{Limit, Scope};
use crate::moment::Moment;
use crate::policies;
use crate::subject::Totals;
use crate::text::{push_integer, push_number, push_seconds};
use crate::window::HELD_SECONDS;

/// What is left of one limit.
#[derive(Clone, Copy, Debug)]
struct Left {
    scope: Scope,
    limit: Limit,
    value: u64,
    remaining: u64,
    /// Seconds in which no more than `remaining` can be used; `None` for concurrent requests.
    more_in: Option<u64>,
    /// Seconds until nothing is used any more, if nothing else is.
    reset_in: u64,
}

/// What is left of every limit of a tenant and a key at one moment.
#[derive(Clone, Debug)]
pub struct LimitStatus<'a> {
    policies: &'a [u8],
    second: u64,
    left: [Option<Left>; 18],
}

impl<'a> LimitStatus<'a> {
    pub(crate) fn new(policies: &'a [u8], second: u64) -> Self {
        Self {
            policies,
            second,
            left: [None; 18],
        }
    }

    /// Adds a subject's limits; `span` is the oldest and the latest second that it has consumed anything in.
    pub(crate) fn add(
        &mut self,
        scope: Scope,
        ceilings: &Ceilings,
        totals: Totals,
        span: Option<(u64, u64)>,
    ) {
        let second = self.second;
        let leaves_in = |held: u64| held.saturating_add(HELD_SECONDS).saturating_sub(second);
        for (limit, value) in policies::set(ceilings) {
            let (_, used, _) = totals.of(limit, ceilings, ActualUsage::default());
            let (more_in, reset_in) = match limit {
                Limit::Concurrency => (None, 0),
                Limit::TokensPerDay | Limit::MoneyPerDay => {
                    let day = DAY_SECONDS - second % DAY_SECONDS;
                    (Some(day), if used == 0 { 0 } else { day })
                }
                Limit::MoneyPerMonth => {
                    let month = Moment::of_second(second).next_month().saturating_sub(second);
                    (Some(month), if used == 0 { 0 } else { month })
                }
                Limit::RequestsPerMinute | Limit::TokensPerMinute => match span.filter(|_| used > 0) {
                    Some((oldest, latest)) => (Some(leaves_in(oldest)), leaves_in(latest)),
                    None => (Some(60), 0),
                },
            };
            let left = Left {
                scope,
                limit,
                value,
                remaining: value.saturating_sub(used),
                more_in,
                reset_in,
            };
            if let Some(free) = self.left.iter_mut().find(|entry| entry.is_none()) {
                *free = Some(left);
            }
        }
    }

    /// Whether there is nothing to tell, because there are no limits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.left[0].is_none()
    }

    /// Appends the header fields as whole lines, names in lower case; nothing without limits.
    ///
    /// `ratelimit-policy` and `ratelimit` tell every limit (draft-ietf-httpapi-ratelimit-headers-11); the
    /// `x-ratelimit-*` fields that OpenAI's clients know tell, of requests and of tokens, the limit of which least is
    /// left. Seconds are rounded up.
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
            out.extend_from_slice(policies::name(left.scope, left.limit).as_bytes());
            out.extend_from_slice(b";r=");
            push_integer(out, policies::told(left.limit, left.remaining));
            if let Some(seconds) = left.more_in {
                out.extend_from_slice(b";t=");
                push_integer(out, seconds);
            }
        }
        out.extend_from_slice(b"\r\n");
        if let Some(left) = self.least(|limit| limit == Limit::RequestsPerMinute) {
            left.write("requests", out);
        }
        if let Some(left) = self.least(|limit| matches!(limit, Limit::TokensPerMinute | Limit::TokensPerDay))
        {
            left.write("tokens", out);
        }
    }

    fn least(&self, wanted: impl Fn(Limit) -> bool) -> Option<&Left> {
        let wanted = self.left.iter().flatten().filter(|left| wanted(left.limit));
        wanted.min_by_key(|left| left.remaining)
    }
}

impl Left {
    /// In the dialect of OpenAI's clients.
    fn write(&self, unit: &str, out: &mut Vec<u8>) {
        for (name, number) in [
            (&b"x-ratelimit-limit-"[..], self.value),
            (b"x-ratelimit-remaining-", self.remaining),
        ] {
            begin(name, unit, out);
            push_number(out, number);
            out.extend_from_slice(b"\r\n");
        }
        begin(b"x-ratelimit-reset-", unit, out);
        push_seconds(out, self.reset_in);
        out.extend_from_slice(b"\r\n");
    }
}

fn begin(name: &[u8], unit: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(name);
    out.extend_from_slice(unit.as_bytes());
    out.extend_from_slice(b": ");
}
