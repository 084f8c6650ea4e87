//! The most that a call can use, which is reserved in its tenant's limits.

use proofgate_limits::Demand;
use proofgate_providers::Call;

use crate::pricing::{AskedFor, Bounds, Offer, Unpriced, answer_tokens, most_cost};
use crate::routes::Model;

/// The most that a call can use.
pub struct Most<'m> {
    /// The tokens of its prompt, about, as many for each answer as it may have, and what it costs at most at the dearest of its
    /// providers.
    pub demand: Demand<'m>,
    /// What bounds the tokens that it pays for, at any of them.
    pub bounds: Bounds,
    /// The first thing whose price is not known.
    pub unpriced: Option<Unpriced>,
}

/// The most that a call can use, at the prices that hold at `now` (unix microseconds).
///
/// Money is reserved by bounds, not by estimates: a prompt has at most a token for every byte, and an answer as many as the
/// request or its model allows.
pub fn most<'m>(call: &Call<'_>, asked: &AskedFor, model: &'m Model, now: u64) -> Most<'m> {
    let mut cost = Ok((0, Bounds::default()));
    if call.dialect.costs_tokens() {
        let offers = model.targets.iter().map(|target| Offer {
            price: target.price(&target.named(model, &call.model).model, now),
            gets_tools: asked.tools.is_none() || target.gets_hosted_tools(call.dialect),
        });
        cost = most_cost(call, asked, model.max_output_tokens, offers);
    }
    let (cost, bounds, unpriced) = match cost {
        Ok((cost, bounds)) => (Some(cost), bounds, None),
        Err(unpriced) => (None, Bounds::default(), Some(unpriced)),
    };
    Most {
        demand: Demand {
            tokens: most_tokens(call, model),
            model: &model.name,
            cost,
        },
        bounds,
        unpriced,
    }
}

/// The tokens that a call may come to.
pub fn most_tokens(call: &Call<'_>, model: &Model) -> u64 {
    if !call.dialect.costs_tokens() {
        return 0;
    }
    let prompt = call.estimated_prompt_tokens();
    prompt.saturating_add(most_answer_tokens(call, model))
}

/// The most tokens that the answers of a call can have.
pub fn most_answer_tokens(call: &Call<'_>, model: &Model) -> u64 {
    answer_tokens(call, model.max_output_tokens)
}
