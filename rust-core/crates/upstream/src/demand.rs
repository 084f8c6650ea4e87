//! The maximum tokens and cost of a call, which are reserved from its tenant's limits.

use proofgate_limits::Demand;
use proofgate_providers::ParsedRequest;

use crate::pricing::{PricedFeatures, ProviderPrice, TokenBounds, Unpriced, max_cost, max_response_tokens};
use crate::routes::Model;

/// The maximum tokens and cost of a call.
pub struct MaxDemand<'m> {
    /// The call's tokens (estimated for its prompt, the maximum for all its responses), and its
    /// maximum cost at the most expensive of its providers.
    pub demand: Demand<'m>,
    /// The maximum billed tokens over all providers.
    pub bounds: TokenBounds,
    /// The first item whose price is not known; `None` if all prices are known.
    pub unpriced: Option<Unpriced>,
}

/// Returns the maximum tokens and cost of a call, at the prices in force at `now` (Unix
/// microseconds).
///
/// The cost is an upper bound, not an estimate: a prompt has at most one token per byte, and a
/// response has at most the tokens that the request or its model allows.
pub fn max_demand<'m>(
    call: &ParsedRequest<'_>,
    asked: &PricedFeatures,
    model: &'m Model,
    now: u64,
) -> MaxDemand<'m> {
    let mut cost = Ok((0, TokenBounds::default()));
    if call.dialect.consumes_tokens() {
        let offers = model.targets.iter().map(|target| ProviderPrice {
            price: target.price(&target.model_name_for(model, &call.model).model, now),
            receives_tools: asked.tools.is_none() || target.receives_hosted_tools(call.dialect),
        });
        cost = max_cost(call, asked, model.max_output_tokens, offers);
    }
    let (cost, bounds, unpriced) = match cost {
        Ok((cost, bounds)) => (Some(cost), bounds, None),
        Err(unpriced) => (None, TokenBounds::default(), Some(unpriced)),
    };
    MaxDemand {
        demand: Demand {
            tokens: max_tokens(call, model),
            model: &model.name,
            cost,
        },
        bounds,
        unpriced,
    }
}

/// Returns the prompt and response tokens that are reserved for a call.
pub fn max_tokens(call: &ParsedRequest<'_>, model: &Model) -> u64 {
    if !call.dialect.consumes_tokens() {
        return 0;
    }
    let prompt = call.estimated_prompt_tokens();
    prompt.saturating_add(response_token_bound(call, model))
}

/// Returns the maximum tokens of all responses to a call.
pub fn response_token_bound(call: &ParsedRequest<'_>, model: &Model) -> u64 {
    max_response_tokens(call, model.max_output_tokens)
}
