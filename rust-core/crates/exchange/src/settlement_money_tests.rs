//! Tests that a client that chooses every field cannot spend more than its budget of one dollar,
//! whatever a provider responds.
//!
//! Spending is summed by a separate pricing function, which is written from the providers' pages
//! and shares no code with the product. Its prices are in ten-thousandths of a dollar per million
//! tokens, by tier, prompt length and kind of token.

mod client;
mod served;
mod vendor;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::Arc;

use proofgate_base::workspace::to_record_usage;
use proofgate_json::Workspace;
use proofgate_limits::{
    ActualUsage, CredentialId, Demand, Grant, Limiter, Limits, Quotas, TenantId, TenantLimits,
};
use proofgate_prices::Price;
use proofgate_providers::{BodyText, ParsedRequest, UsageReader};
use proofgate_upstream::offered_tools::{OfferedTools, ToolCallBounds};
use proofgate_upstream::pricing::{PricedFeatures, ProviderPrice, max_cost};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::Value;

use self::client::{AttemptOutcome, ProviderScenario, RequestParams, provider_scenario, request_params};
use self::served::ProviderUsage;
use self::vendor::Vendor;
use crate::settlement::{Account, Charge, ExchangeReservation, LastAttempt};

const DOLLAR: u64 = 1_000_000_000;
const NOW: u64 = 1_764_201_600_000_000;
const KEY: CredentialId = CredentialId::ApiKey([7; 4]);
/// Maximum number of calls of hosted tools that set no maximum.
const MOST_CALLS: u64 = 2;
/// The hosted tools that the tenant's plan allows.
const ALLOWED: [&str; 6] = [
    "web_search",
    "web_fetch",
    "file_search",
    "web_search_options",
    "googleSearch",
    "urlContext",
];
/// Tokens that the manifest reserves for a response without a maximum: fewer than models generate.
const MAX_OUTPUT_TOKENS: u64 = 4096;

/// A request in flight.
struct Open {
    grant: Grant,
    account: Account,
    chosen: RequestParams,
    fate: ProviderScenario,
    /// The body sent to the provider.
    sent: Value,
    /// Cost of the attempts so far.
    spent: u128,
}

fn offer(price: &Arc<Price>) -> ProviderPrice {
    ProviderPrice {
        price: Some(Arc::clone(price)),
        receives_tools: true,
    }
}

struct Bench {
    limiter: Limiter,
    tenant: TenantId,
    prices: BTreeMap<String, Arc<Price>>,
    /// Total spent at the providers.
    spent: u128,
    admitted: usize,
    /// Admitted requests whose provider may run a tool.
    with_tools: usize,
}

impl Bench {
    fn new() -> Self {
        let mut limiter = Limiter::new();
        let limits = Limits {
            nanodollars_per_day: NonZeroU64::new(DOLLAR),
            ..Limits::default()
        };
        let quotas = Quotas::new(&limits, &Limits::default());
        let tenant = limiter.set_tenant(&TenantLimits {
            name: "acme".into(),
            quotas: Arc::new(quotas),
        });
        let prices = Vendor::ALL.map(|vendor| (format!("{vendor:?}"), vendor.configured_price()));
        Bench {
            limiter,
            tenant,
            prices: prices.into(),
            spent: 0,
            admitted: 0,
            with_tools: 0,
        }
    }

    fn admit(&mut self, chosen: RequestParams, fate: ProviderScenario) -> Option<Open> {
        let body = chosen.body();
        let mut workspace = Workspace::default();
        let call = ParsedRequest::read(
            chosen.vendor.dialect(),
            body.as_bytes(),
            &mut workspace,
            &mut BodyText::default(),
        );
        let call = call.unwrap();
        let price = Arc::clone(&self.prices[&format!("{:?}", chosen.vendor)]);
        let terms = ToolCallBounds {
            max_calls: MOST_CALLS,
            tokens_per_call: chosen.hosted_tools.tokens_per_call,
        };
        let allowed = ALLOWED.map(str::to_owned);
        let asked = PricedFeatures::from_call(&call, OfferedTools::from_call(&call, &allowed, terms));
        let mut sent = Vec::new();
        let bound = call.dialect.call_limit();
        call.tools.write_body_without_tools(
            body.as_bytes(),
            |_| false,
            Some((bound, terms.max_calls)),
            &mut sent,
        );
        let cost = max_cost(&call, &asked, MAX_OUTPUT_TOKENS, [offer(&price)].into_iter());
        let priced = chosen.priced_tiers();
        let is_known = priced.len() <= 1
            && !chosen.has_unpriced_tool()
            && priced
                .iter()
                .all(|tier| *tier == "flex" || chosen.vendor.tiers().contains(tier));
        assert_eq!(
            cost.is_ok(),
            is_known,
            "what has no price is refused: {priced:?} {:?}",
            chosen.hosted_tools
        );
        let (cost, bounds) = cost.ok()?;
        let demand = Demand {
            tokens: call.estimated_prompt_tokens(),
            model: "model",
            cost: Some(cost),
        };
        let mut grant = self.limiter.admit(self.tenant, KEY, demand, NOW).ok()?;
        self.limiter.mark_recorded(&mut grant);
        self.admitted += 1;
        self.with_tools += usize::from(asked.tools.is_some());
        let reserved = ExchangeReservation {
            tokens: grant.reserved(),
            cost: grant.reserved_cost(),
            response_tokens: call.max_tokens.unwrap_or(MAX_OUTPUT_TOKENS),
            bounds,
            priced_features: asked,
        };
        let account = Account::new(reserved, offer(&price));
        Some(Open {
            grant,
            account,
            chosen,
            fate,
            sent: serde_json::from_slice(&sent).unwrap(),
            spent: 0,
        })
    }

    /// Runs one attempt that may have been processed, and starts another one if there is money for
    /// it. Returns whether it started one.
    fn turn(&mut self, open: &mut Open) -> bool {
        open.spent += ProviderUsage::of(&open.chosen, &open.fate, &open.sent).cost(open.chosen.vendor);
        let again = open.account.reserved_cost().unwrap();
        if !self.limiter.reserve_retry_cost(&mut open.grant, again, NOW) {
            return false;
        }
        let price = Arc::clone(&self.prices[&format!("{:?}", open.chosen.vendor)]);
        open.account.start_attempt(offer(&price), true);
        true
    }

    fn end(&mut self, mut open: Open) {
        let (chosen, fate) = (open.chosen.clone(), open.fate.clone());
        let served = ProviderUsage::of(&chosen, &fate, &open.sent);
        let is_sent_again = fate.outcome != AttemptOutcome::Retried || self.turn(&mut open);
        if fate.outcome != AttemptOutcome::Rejected && is_sent_again {
            open.spent += served.cost(chosen.vendor);
        }
        let answer = match fate.outcome {
            AttemptOutcome::UsageReported | AttemptOutcome::Retried if is_sent_again => {
                served.response(&chosen, &fate, false)
            }
            AttemptOutcome::ClientDisconnected => served.response(&chosen, &fate, true),
            _ => None,
        };
        let mut reader = UsageReader::new(chosen.vendor.dialect());
        if open.account.has_extended_cache() {
            reader.expect_long_cache();
        }
        if open.account.sends_hosted_tools() {
            reader.expect_tool_calls();
        }
        if let Some((answer, is_event)) = answer {
            match is_event {
                true => drop(reader.push_event(format!("event: x\ndata: {answer}\n\n").as_bytes())),
                false => drop(reader.push(answer.to_string().as_bytes())),
            }
        }
        let ended = LastAttempt {
            usage: reader.usage().map(to_record_usage),
            is_unused: fate.outcome == AttemptOutcome::Rejected,
            event_count: 0,
        };
        let Charge { tokens, cost, .. } = open.account.charge(&ended);
        let charged = match tokens {
            Some(_) => cost.unwrap_or(0),
            None => open.account.reserved_cost().unwrap(),
        };
        assert!(
            u128::from(charged) * 10 >= open.spent,
            "{charged} nanodollars charged for {} of 10^10: {chosen:?} {fate:?} {served:?}",
            open.spent
        );
        match tokens {
            Some(tokens) => self.limiter.settle(
                open.grant,
                ActualUsage {
                    tokens,
                    cost: cost.unwrap_or(0),
                },
                NOW,
            ),
            None => self.limiter.keep_reservation(open.grant),
        }
        self.spent += open.spent;
    }

    fn assert_within_budget(&self, last: &RequestParams) {
        // A dollar is 10⁴ ten-thousandths, and prices are per 10⁶ tokens.
        assert!(
            self.spent <= 10_u128.pow(10),
            "{} of 10^10 spent after {last:?}",
            self.spent
        );
    }
}

/// Runs 100 clients with 100 requests each, up to eight of which are in flight at the same time.
#[test]
fn a_budget_of_a_dollar_is_never_passed_whatever_a_client_chooses() {
    let clients = prop::collection::vec((request_params(), provider_scenario(), 0..8usize), 100);
    let with_tools = Cell::new(0);
    let mut runner = TestRunner::new(ProptestConfig::with_cases(100));
    let result = runner.run(&clients, |requests| {
        let bench = spend(requests);
        with_tools.set(with_tools.get() + bench.with_tools);
        prop_assert!(bench.admitted > 0);
        Ok(())
    });
    result.unwrap();
    assert!(with_tools.get() > 100, "only {} with tools", with_tools.get());
}

/// Runs one client's requests.
fn spend(requests: Vec<(RequestParams, ProviderScenario, usize)>) -> Bench {
    let mut bench = Bench::new();
    let mut under_way: Vec<Open> = Vec::new();
    for (chosen, fate, ends) in requests {
        let last = chosen.clone();
        under_way.extend(bench.admit(chosen, fate));
        if under_way.len() > 7 || ends > 3 && !under_way.is_empty() {
            let open = under_way.swap_remove(ends % under_way.len());
            bench.end(open);
            bench.assert_within_budget(&last);
        }
    }
    for open in under_way {
        let last = open.chosen.clone();
        bench.end(open);
        bench.assert_within_budget(&last);
    }
    bench
}
