//! The most that a call can use, which is reserved in its tenant's limits.

use proofgate_limits::Demand;
use proofgate_providers::ParsedRequest;

use crate::pricing::{Offer, PricedFeatures, TokenBounds, Unpriced, max_cost, max_response_tokens};
use crate::routes::Model;

/// The most that a call can use.
pub struct MaxDemand<'m> {
    /// The tokens of its prompt, about, as many for each answer as it may have, and what it costs at most at the dearest of its
    /// providers.
    pub demand: Demand<'m>,
    /// What bounds the tokens that it pays for, at any of them.
    pub bounds: TokenBounds,
    /// The first thing whose price is not known.
    pub unpriced: Option<Unpriced>,
}

/// The most that a call can use, at the prices that hold at `now` (unix microseconds).
///
/// Money is reserved by bounds, not by estimates: a prompt has at most a token for every byte, and an answer as many as the
/// request or its model allows.
pub fn max_demand<'m>(
    call: &ParsedRequest<'_>,
    asked: &PricedFeatures,
    model: &'m Model,
    now: u64,
) -> MaxDemand<'m> {
    let mut cost = Ok((0, TokenBounds::default()));
    if call.dialect.consumes_tokens() {
        let offers = model.targets.iter().map(|target| Offer {
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

/// The tokens that a call may come to.
pub fn max_tokens(call: &ParsedRequest<'_>, model: &Model) -> u64 {
    if !call.dialect.consumes_tokens() {
        return 0;
    }
    let prompt = call.estimated_prompt_tokens();
    prompt.saturating_add(response_token_bound(call, model))
}

/// The most tokens that the answers of a call can have.
pub fn response_token_bound(call: &ParsedRequest<'_>, model: &Model) -> u64 {
    max_response_tokens(call, model.max_output_tokens)
}
