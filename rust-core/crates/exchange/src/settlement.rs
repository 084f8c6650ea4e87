//! The charge of an exchange, computed from its reservation, its reported usage and the possible
//! costs of earlier attempts.

use std::sync::Arc;

use proofgate_ledger::record::Usage;
use proofgate_limits::ActualUsage;
use proofgate_prices::Price;
use proofgate_upstream::pricing::{PricedFeatures, ProviderPrice, TokenBounds};

/// Number of events of a response that may contain no token, such as the start and end of the
/// response and of its parts.
const NON_TOKEN_EVENTS: u64 = 16;

/// The reservation of an exchange at its admission, and the data for its charge.
#[derive(Clone, Debug, Default)]
pub struct ExchangeReservation {
    /// Reserved tokens; `None` if the tenant has no limits.
    pub tokens: Option<u64>,
    /// Reserved nanodollars; `None` if no budget counts them.
    pub cost: Option<u64>,
    /// The part of the tokens that is for responses.
    pub(crate) response_tokens: u64,
    /// Maximum numbers of billed tokens.
    pub bounds: TokenBounds,
    /// Requested features that have their own price.
    pub priced_features: PricedFeatures,
}

/// The account of an exchange.
pub(crate) struct Account {
    reserved: ExchangeReservation,
    /// The price of the current attempt; `None` if not known.
    price: Option<Arc<Price>>,
    /// Whether the provider of the current attempt receives the tools that it runs itself.
    sends_tools: bool,
    /// The maximum usage of earlier attempts whose usage is unknown.
    unsettled: ActualUsage,
    /// Whether an earlier attempt may have been processed and charged.
    has_unsettled: bool,
}

/// The end of an exchange's last attempt.
#[derive(Clone, Copy, Debug, Default)]
pub struct LastAttempt {
    /// The reported usage; `None` if none was reported.
    pub usage: Option<Usage>,
    /// Whether the provider used no tokens, according to its reports.
    pub(crate) is_unused: bool,
    /// Number of events in the response.
    pub event_count: u64,
}

/// The charge of an exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Charge {
    /// Tokens of the last attempt; `None` if unknown.
    pub last_attempt_tokens: Option<u64>,
    /// Charged tokens; `None` if the reservation is charged because the usage is unknown.
    pub tokens: Option<u64>,
    /// Charged nanodollars; `None` if the cost is not known.
    pub cost: Option<u64>,
}

impl Account {
    /// Creates the account of an exchange whose first attempt is at a provider with the price
    /// `offer`.
    pub fn new(reserved: ExchangeReservation, offer: ProviderPrice) -> Self {
        Account {
            reserved,
            price: offer.price,
            sends_tools: offer.receives_tools,
            unsettled: ActualUsage::default(),
            has_unsettled: false,
        }
    }

    /// Returns the maximum nanodollars of one attempt; `None` if no budget counts them.
    pub(crate) fn reserved_cost(&self) -> Option<u64> {
        self.reserved.cost
    }

    /// Whether the request asks for a cache that keeps entries for more than five minutes.
    pub(crate) fn has_extended_cache(&self) -> bool {
        self.reserved.priced_features.has_extended_cache
    }

    /// Whether the request has tools that a provider runs itself.
    pub(crate) fn requests_hosted_tools(&self) -> bool {
        self.reserved.priced_features.tools.is_some()
    }

    /// Whether the provider of the current attempt receives tools that it runs itself.
    pub(crate) fn sends_hosted_tools(&self) -> bool {
        self.sends_tools && self.requests_hosted_tools()
    }

    /// Whether an earlier attempt may have been processed and charged.
    pub(crate) fn has_unsettled_attempt(&self) -> bool {
        self.has_unsettled
    }

    /// Starts another attempt at a provider with the price `offer`. `is_paid`: whether the previous
    /// attempt may have been processed and charged.
    pub fn start_attempt(&mut self, offer: ProviderPrice, is_paid: bool) {
        if is_paid {
            self.unsettled = self.unsettled_with_current();
            self.has_unsettled = true;
        }
        (self.price, self.sends_tools) = (offer.price, offer.receives_tools);
    }

    /// Returns the maximum usage of earlier attempts, plus the reservation of the current attempt.
    fn unsettled_with_current(&self) -> ActualUsage {
        let ExchangeReservation { tokens, cost, .. } = self.reserved;
        ActualUsage {
            tokens: self.unsettled.tokens.saturating_add(tokens.unwrap_or(0)),
            cost: self.unsettled.cost.saturating_add(cost.unwrap_or(0)),
        }
    }

    /// Returns the minimum tokens of the response, by its number of events; `None` if they do not
    /// exceed the reservation. A provider may ignore the maximum in a request.
    fn observed_tokens(&self, events: u64) -> Option<u64> {
        let expected = self.reserved.response_tokens.saturating_add(NON_TOKEN_EVENTS);
        (events > expected).then_some(events)
    }

    /// Returns the minimum usage of a response without a usage report; `None` if it does not exceed
    /// the reservation.
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
            // The reservation may have been made at the price of a more expensive provider.
            cost: cost.max(self.reserved.cost.unwrap_or(0)),
        })
    }

    /// Returns a usage in which the reserved or observed response tokens replace a lower count, if
    /// the provider has not reported the final count.
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

    /// Returns the cost of a usage. A partial usage with provider-run tools costs at least the
    /// maximum if money is reserved, because it does not include the prompts of later rounds.
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

    /// Returns the charge of the exchange when its last attempt has ended.
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
            // The usage of this attempt is also unknown.
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
