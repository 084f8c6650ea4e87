//! What is left to a sender, as header fields.

use crate::DAY_SECONDS;
use crate::config::Ceilings;
use crate::exceeded::{Limit, Scope};
use crate::policies;
use crate::subject::Totals;
use crate::text::Text;
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
pub struct Standing<'a> {
    policies: &'a [u8],
    second: u64,
    left: [Option<Left>; 8],
}

impl<'a> Standing<'a> {
    pub(crate) fn new(policies: &'a [u8], second: u64) -> Self {
        Self {
            policies,
            second,
            left: [None; 8],
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
            let (_, used, _) = totals.of(limit, ceilings, 0);
            let (more_in, reset_in) = match limit {
                Limit::Concurrency => (None, 0),
                Limit::TokensPerDay => {
                    let day = DAY_SECONDS - second % DAY_SECONDS;
                    (Some(day), if used == 0 { 0 } else { day })
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

    /// Calls `f` with the name, in lower case, and the value of each field; nothing is allocated.
    ///
    /// `ratelimit-policy` and `ratelimit` tell every limit (draft-ietf-httpapi-ratelimit-headers-11); the
    /// `x-ratelimit-*` fields that OpenAI's clients know tell, of requests and of tokens, the limit of which least is
    /// left. Seconds are rounded up.
    pub fn for_each_header(&self, mut f: impl FnMut(&str, &[u8])) {
        if self.is_empty() {
            return;
        }
        f("ratelimit-policy", self.policies);
        let mut text = Text::<512>::new();
        for left in self.left.iter().flatten() {
            if !text.as_bytes().is_empty() {
                text.push(", ");
            }
            text.push(policies::name(left.scope, left.limit));
            text.push(";r=");
            text.push_integer(left.remaining);
            if let Some(seconds) = left.more_in {
                text.push(";t=");
                text.push_integer(seconds);
            }
        }
        f("ratelimit", text.as_bytes());
        if let Some(left) = self.least(|limit| limit == Limit::RequestsPerMinute) {
            told(left, REQUESTS, &mut f);
        }
        if let Some(left) = self.least(|limit| matches!(limit, Limit::TokensPerMinute | Limit::TokensPerDay))
        {
            told(left, TOKENS, &mut f);
        }
    }

    fn least(&self, wanted: impl Fn(Limit) -> bool) -> Option<&Left> {
        let wanted = self.left.iter().flatten().filter(|left| wanted(left.limit));
        wanted.min_by_key(|left| left.remaining)
    }
}

const REQUESTS: [&str; 3] = [
    "x-ratelimit-limit-requests",
    "x-ratelimit-remaining-requests",
    "x-ratelimit-reset-requests",
];
const TOKENS: [&str; 3] = [
    "x-ratelimit-limit-tokens",
    "x-ratelimit-remaining-tokens",
    "x-ratelimit-reset-tokens",
];

fn told(left: &Left, [limit, remaining, reset]: [&str; 3], f: &mut impl FnMut(&str, &[u8])) {
    for (name, number) in [(limit, left.value), (remaining, left.remaining)] {
        let mut text = Text::<20>::new();
        text.push_number(number);
        f(name, text.as_bytes());
    }
    let mut text = Text::<24>::new();
    text.push_seconds(left.reset_in);
    f(reset, text.as_bytes());
}
