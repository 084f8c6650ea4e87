//! Tools that a provider runs itself, as a request offers them: how often they may be called, and what that costs.

use proofgate_config::ToolCalls;
use proofgate_ledger::record::Usage;
use proofgate_prices::Price;
use proofgate_providers::{CallLimit, HostedTool, ParsedRequest};

/// Rounds after which Anthropic stops by itself, whatever its tools are ("Handling stop reasons", `pause_turn`).
const MAX_ROUNDS: u64 = 10;

/// How a plan bounds what tools cost that a provider runs.
#[derive(Clone, Copy, Debug)]
pub struct ToolCallBounds {
    /// Calls of a request, or of one of its tools, that names no bound.
    pub max_calls: u64,
    /// Tokens that a call is expected to bring at most; `None` for as many as the model takes.
    pub tokens_per_call: Option<u64>,
}

impl From<ToolCalls> for ToolCallBounds {
    fn from(calls: ToolCalls) -> Self {
        ToolCallBounds {
            max_calls: calls.most,
            tokens_per_call: calls.tokens,
        }
    }
}

/// The tools of a request that its tenant may use and its provider runs.
#[derive(Debug)]
pub struct OfferedTools {
    /// With the most calls of each.
    tools: Vec<(HostedTool, u64)>,
    bound: CallLimit,
    /// The most calls of all together.
    max_calls: u64,
    tokens_per_call: Option<u64>,
}

impl OfferedTools {
    /// `None` where there are none. `allowed`: the names of those that its tenant may use.
    pub fn from_call(call: &ParsedRequest<'_>, allowed: &[String], terms: ToolCallBounds) -> Option<Self> {
        if !call.dialect.consumes_tokens() {
            return None;
        }
        let bound = call.dialect.call_limit();
        let answers = u64::from(call.choice_count).saturating_mul(call.prompt_count as u64);
        let calls_of = |tool: &HostedTool| match bound {
            CallLimit::PerTool if tool.has_max_uses() => tool.max_calls.unwrap_or(terms.max_calls),
            CallLimit::PerTool => terms.max_calls.max(MAX_ROUNDS),
            CallLimit::PerRequest => call.tools.max_calls.unwrap_or(terms.max_calls),
            // Nothing in the request bounds them: their prices are those of an answer.
            CallLimit::Unsupported => answers,
        };
        let allowed = call.tools.hosted.iter().filter(|tool| tool.is_allowed(allowed));
        let tools: Vec<_> = allowed.map(|tool| (tool.clone(), calls_of(tool))).collect();
        let sum = |sum: u64, (_, calls): &(_, u64)| sum.saturating_add(*calls);
        let calls = match bound {
            CallLimit::PerRequest => tools.first()?.1,
            _ => tools.iter().fold(0, sum),
        };
        (!tools.is_empty()).then_some(OfferedTools {
            tools,
            bound,
            max_calls: calls,
            tokens_per_call: terms.tokens_per_call,
        })
    }

    /// The most calls of all together, and the field of the request that bounds them, where there is one.
    pub fn bound(&self) -> (u64, Option<&'static str>) {
        let field = match self.bound {
            CallLimit::PerTool => Some("max_uses"),
            CallLimit::PerRequest => Some("max_tool_calls"),
            CallLimit::Unsupported => None,
        };
        (self.max_calls, field)
    }

    /// The kind of the first one that has no price here.
    pub fn unpriced(&self, price: &Price) -> Option<&str> {
        let mut tools = self.tools.iter().map(|(tool, _)| tool);
        tools
            .find(|tool| price_per_call(tool, price).is_none())
            .map(|tool| &*tool.kind)
    }

    /// The most that their calls can cost, in picodollars.
    pub fn max_cost(&self, price: &Price) -> u128 {
        self.max_cost_where(price, |_| true)
    }

    /// The same of some of them.
    fn max_cost_where(&self, price: &Price, is_counted: impl Fn(&HostedTool) -> bool) -> u128 {
        let tools = self.tools.iter().filter(|(tool, _)| is_counted(tool));
        let costs = tools
            .map(|(tool, calls)| u128::from(*calls) * u128::from(price_per_call(tool, price).unwrap_or(0)));
        match self.bound {
            CallLimit::PerRequest => costs.max().unwrap_or(0),
            _ => costs.fold(0, u128::saturating_add),
        }
    }

    /// What their calls cost by what an answer tells of them, in picodollars. `is_bounded`: whether a budget in money counts
    /// them: then those of which nothing is told count as often as they may be called.
    pub fn cost(&self, price: &Price, usage: &Usage, is_bounded: bool) -> u128 {
        if is_bounded && usage.partial {
            return self.max_cost(price);
        }
        let told = [ToolUsageCounter::Search, ToolUsageCounter::Fetch]
            .into_iter()
            .map(|told| {
                let tools = self
                    .tools
                    .iter()
                    .filter(|(tool, _)| ToolUsageCounter::for_tool(tool) == Some(told));
                let dearest = tools.filter_map(|(tool, _)| price_per_call(tool, price)).max();
                u128::from(told.calls(usage, self.bound).unwrap_or(0)) * u128::from(dearest.unwrap_or(0))
            });
        let told = told.fold(0, u128::saturating_add);
        if !is_bounded {
            return told;
        }
        let is_untold = |tool: &HostedTool| {
            ToolUsageCounter::for_tool(tool).is_none_or(|told| told.calls(usage, self.bound).is_none())
        };
        told.saturating_add(self.max_cost_where(price, is_untold))
    }

    /// The most tokens that the prompts of all rounds can have, where the request's own has at most `own` and its model takes
    /// `most` (`None`: not known). What a call brings stands in the prompt of every round after it.
    pub fn max_prompt_tokens(&self, own: u64, most: Option<u64>) -> u64 {
        let rounds = self.max_calls.saturating_add(1);
        let window = most.map_or(u64::MAX, |most| most.saturating_mul(rounds));
        match (self.tokens_per_call, most) {
            (Some(tokens), _) => {
                let rereads = u128::from(self.max_calls) * u128::from(rounds) / 2;
                let brought = rereads.saturating_mul(u128::from(tokens));
                let brought = u64::try_from(brought).unwrap_or(u64::MAX);
                own.saturating_mul(rounds).saturating_add(brought).min(window)
            }
            (None, Some(_)) => window,
            (None, None) => own.saturating_mul(rounds),
        }
    }
}

/// Picodollars for one call, where it has a price.
fn price_per_call(tool: &HostedTool, price: &Price) -> Option<u64> {
    price.tool_price(&tool.kind, tool.kind_without_date())
}

/// What answers tell of calls.
#[derive(Clone, Copy, PartialEq)]
enum ToolUsageCounter {
    Search,
    Fetch,
}

impl ToolUsageCounter {
    /// In which count the calls of a tool are.
    fn for_tool(tool: &HostedTool) -> Option<Self> {
        match tool.kind_without_date() {
            "web_search" | "web_search_preview" => Some(ToolUsageCounter::Search),
            "web_fetch" => Some(ToolUsageCounter::Fetch),
            _ => None,
        }
    }

    /// How many an answer tells. A message that is counted and names none had none.
    fn calls(self, usage: &Usage, bound: CallLimit) -> Option<u64> {
        let told = match self {
            ToolUsageCounter::Search => usage.web_search_requests,
            ToolUsageCounter::Fetch => usage.web_fetch_requests,
        };
        told.or((bound == CallLimit::PerTool && !usage.partial).then_some(0))
    }
}

#[cfg(test)]
#[path = "offered_tools_tests.rs"]
mod tests;
