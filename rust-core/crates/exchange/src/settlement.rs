//! What an exchange is charged: from what was reserved, what its answer tells, and what attempts before may have cost.

use std::sync::Arc;

use proofgate_ledger::record::Usage;
use proofgate_limits::ActualUsage;
use proofgate_prices::Price;
use proofgate_upstream::pricing::{Offer, PricedFeatures, TokenBounds};

/// So many events of an answer may bring no token: they begin and end it and its parts.
const NON_TOKEN_EVENTS: u64 = 16;

/// What the account of an exchange knows from its admission on.
#[derive(Clone, Debug, Default)]
pub struct ExchangeReservation {
    /// Tokens; `None` when its tenant has no limits.
    pub tokens: Option<u64>,
    /// Nanodollars; `None` when no budget counts them.
    pub cost: Option<u64>,
    /// Of the tokens, those of its answers.
    pub(crate) response_tokens: u64,
    /// What bounds the tokens that it pays for.
    pub bounds: TokenBounds,
    /// What its request asks for that has a price of its own.
    pub priced_features: PricedFeatures,
}

/// The account of an exchange.
pub(crate) struct Account {
    reserved: ExchangeReservation,
    /// The price of the attempt under way, where it is known.
    price: Option<Arc<Price>>,
    /// Whether tools reach the provider of that attempt that it would run.
    sends_tools: bool,
    /// What attempts before may have used, about which nobody knows.
    unsettled: ActualUsage,
    /// Whether one of them may have been answered and paid for.
    has_unsettled: bool,
}

/// How the last attempt of an exchange ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct LastAttempt {
    /// What its answer tells.
    pub usage: Option<Usage>,
    /// Whether its provider has done nothing, as far as it has said nothing else.
    pub(crate) is_unused: bool,
    /// Events that its answer has had.
    pub event_count: u64,
}

/// What an exchange is charged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Charge {
    /// Tokens of the last attempt; `None` when nobody knows them.
    pub last_attempt_tokens: Option<u64>,
    /// Tokens; `None` when the reservation stands because nobody knows what was used.
    pub tokens: Option<u64>,
    /// Nanodollars, where that is known.
    pub cost: Option<u64>,
}

impl Account {
    pub fn new(reserved: ExchangeReservation, offer: Offer) -> Self {
        Account {
            reserved,
            price: offer.price,
            sends_tools: offer.receives_tools,
            unsettled: ActualUsage::default(),
            has_unsettled: false,
        }
    }

    /// Nanodollars that one attempt may cost; `None` when no budget counts them.
    pub(crate) fn reserved_cost(&self) -> Option<u64> {
        self.reserved.cost
    }

    /// What a cache is asked for: whether it is to keep what is written for longer than five minutes.
    pub(crate) fn has_long_cache(&self) -> bool {
        self.reserved.priced_features.has_extended_cache
    }

    /// Whether its request has tools that a provider would run.
    pub(crate) fn requests_tools(&self) -> bool {
        self.reserved.priced_features.tools.is_some()
    }

    /// Whether tools reach the provider of the attempt under way that it would run.
    pub(crate) fn offers_tools(&self) -> bool {
        self.sends_tools && self.requests_tools()
    }

    /// Whether an attempt before may have been answered and paid for.
    pub(crate) fn has_unsettled(&self) -> bool {
        self.has_unsettled
    }

    /// Another attempt begins, at a provider that offers this; `is_paid`: the one before may have been answered and paid for.
    pub fn start_attempt(&mut self, offer: Offer, is_paid: bool) {
        if is_paid {
            self.unsettled = self.unsettled_with_current();
            self.has_unsettled = true;
        }
        (self.price, self.sends_tools) = (offer.price, offer.receives_tools);
    }

    /// What attempts before may have used, and this one as much as was set aside for it.
    fn unsettled_with_current(&self) -> ActualUsage {
        let ExchangeReservation { tokens, cost, .. } = self.reserved;
        ActualUsage {
            tokens: self.unsettled.tokens.saturating_add(tokens.unwrap_or(0)),
            cost: self.unsettled.cost.saturating_add(cost.unwrap_or(0)),
        }
    }

    /// Tokens that the answer has at least, by its events, where these are more than were set aside for it: a provider need
    /// not obey the maximum that a request names.
    fn observed_tokens(&self, events: u64) -> Option<u64> {
        let expected = self.reserved.response_tokens.saturating_add(NON_TOKEN_EVENTS);
        (events > expected).then_some(events)
    }

    /// What was used at least where no usage is told, if that is more than the reservation.
    fn observed_usage(&self, events: u64) -> Option<ActualUsage> {
        let answer = self.observed_tokens(events)?;
        let bounds = &self.reserved.bounds;
        let asked = self.reserved.priced_features.for_provider(self.sends_tools);
        let prompt = self
            .reserved
            .tokens?
            .saturating_sub(self.reserved.response_tokens);
        let bounds = TokenBounds {
            responses: answer,
            ..*bounds
        };
        let price = self.price.as_deref();
        let cost = price.and_then(|price| asked.max_cost(price, bounds)).unwrap_or(0);
        Some(ActualUsage {
            tokens: prompt.saturating_add(answer),
            // It may have been reserved at the price of a dearer provider.
            cost: cost.max(self.reserved.cost.unwrap_or(0)),
        })
    }

    /// A usage with as many tokens of its answer as were set aside, where its provider has not counted it, or have been seen.
    fn max_usage(&self, usage: Usage, answer: u64, events: u64) -> Usage {
        let completion_tokens = match usage.partial {
            true => {
                let expected = answer.max(self.observed_tokens(events).unwrap_or(0));
                usage.completion_tokens.max(expected)
            }
            false => usage.completion_tokens,
        };
        Usage {
            completion_tokens,
            ..usage
        }
    }

    /// What a usage costs. Where its provider runs tools, what is told of an answer that goes on says nothing of the prompts
    /// of its later rounds.
    fn cost(&self, price: &Price, usage: &Usage) -> u64 {
        let ExchangeReservation { bounds, cost, .. } = &self.reserved;
        let asked = self.reserved.priced_features.for_provider(self.sends_tools);
        let has_money = cost.is_some();
        let told = asked.cost(price, usage, has_money);
        match has_money && usage.partial && asked.tools.is_some() {
            true => told.max(asked.max_cost(price, *bounds).unwrap_or(0)),
            false => told,
        }
    }

    /// What the exchange is charged when its last attempt has ended.
    pub(crate) fn charge(&self, ended: &LastAttempt) -> Charge {
        let ExchangeReservation { bounds, .. } = &self.reserved;
        let has_money = self.reserved.cost.is_some();
        let (last, cost) = match ended.usage {
            Some(usage) => {
                let charged = self.max_usage(usage, self.reserved.response_tokens, ended.event_count);
                let paid = match has_money {
                    true => self.max_usage(usage, bounds.responses, ended.event_count),
                    false => usage,
                };
                let cost = (self.price.as_deref()).map(|price| self.cost(price, &paid));
                let tokens = charged.prompt_tokens.saturating_add(charged.completion_tokens);
                (Some(tokens), cost)
            }
            None if ended.is_unused => (Some(0), None),
            None => {
                let seen = self.observed_usage(ended.event_count);
                let cost = seen.filter(|_| has_money).map(|used| used.cost);
                (seen.map(|used| used.tokens), cost)
            }
        };
        let (tokens, cost) = match (last, self.unsettled) {
            (_, ActualUsage { tokens: 0, cost: 0 }) => (last, cost),
            (Some(tokens), before) => (
                Some(tokens.saturating_add(before.tokens)),
                Some(cost.unwrap_or(0).saturating_add(before.cost)),
            ),
            // Nobody knows what this one used either.
            (None, _) => {
                let all = self.unsettled_with_current();
                (Some(all.tokens), Some(all.cost))
            }
        };
        Charge {
            last_attempt_tokens: last,
            tokens,
            cost,
        }
    }
}
