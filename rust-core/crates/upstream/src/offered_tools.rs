//! Provider-run tools that a request offers: their maximum number of calls, and the cost.

use proofgate_config::HostedTools;
use proofgate_ledger::record::Usage;
use proofgate_prices::Price;
use proofgate_providers::{CallLimit, HostedTool, ParsedRequest};

/// Number of rounds after which Anthropic stops, for all tools ("Handling stop reasons",
/// `pause_turn`).
const MAX_ROUNDS: u64 = 10;

/// The bounds that a plan sets on the cost of provider-run tools.
#[derive(Clone, Copy, Debug)]
pub struct ToolCallBounds {
    /// Maximum calls for a request that sets no bound, or for a tool without a bound.
    pub max_calls: u64,
    /// Maximum tokens that a call is expected to add; `None` means as many as the model accepts.
    pub tokens_per_call: Option<u64>,
}

impl From<&HostedTools> for ToolCallBounds {
    fn from(tools: &HostedTools) -> Self {
        ToolCallBounds {
            max_calls: tools.max_calls,
            tokens_per_call: tools.tokens_per_call,
        }
    }
}

/// The provider-run tools of a request that its tenant may use.
#[derive(Debug)]
pub struct OfferedTools {
    /// The tools, each with its maximum number of calls.
    tools: Vec<(HostedTool, u64)>,
    bound: CallLimit,
    /// Maximum number of calls of all tools together.
    max_calls: u64,
    tokens_per_call: Option<u64>,
}

impl OfferedTools {
    /// Reads the tools of a request; `None` if there are none. `allowed`: the names of the tools
    /// that the tenant may use.
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
            // No field of the request bounds the calls: their prices are per response.
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

    /// Returns the maximum number of calls of all tools together, and the request field that bounds them, if there is one.
    pub fn bound(&self) -> (u64, Option<&'static str>) {
        let field = match self.bound {
            CallLimit::PerTool => Some("max_uses"),
            CallLimit::PerRequest => Some("max_tool_calls"),
            CallLimit::Unsupported => None,
        };
        (self.max_calls, field)
    }

    /// Returns the kind of the first tool that has no price in `price`.
    pub fn unpriced(&self, price: &Price) -> Option<&str> {
        let mut tools = self.tools.iter().map(|(tool, _)| tool);
        tools
            .find(|tool| price_per_call(tool, price).is_none())
            .map(|tool| &*tool.kind)
    }

    /// Returns the maximum cost of all calls, in picodollars.
    pub fn max_cost(&self, price: &Price) -> u128 {
        self.max_cost_where(price, |_| true)
    }

    /// Returns the maximum cost of the calls of some tools, in picodollars.
    fn max_cost_where(&self, price: &Price, is_counted: impl Fn(&HostedTool) -> bool) -> u128 {
        let tools = self.tools.iter().filter(|(tool, _)| is_counted(tool));
        let costs = tools
            .map(|(tool, calls)| u128::from(*calls) * u128::from(price_per_call(tool, price).unwrap_or(0)));
        match self.bound {
            CallLimit::PerRequest => costs.max().unwrap_or(0),
            _ => costs.fold(0, u128::saturating_add),
        }
    }

    /// Returns the cost of the calls that a response reports, in picodollars. `is_bounded`: whether
    /// a money budget counts the cost; if so, a tool whose calls are not reported costs its maximum
    /// number of calls.
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

    /// Returns the maximum prompt tokens of all rounds. `own`: the maximum tokens of the request's
    /// own prompt; `most`: the maximum that its model accepts, `None` if not known. The result of a
    /// call is in the prompt of every later round.
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

/// Returns the price of one call in picodollars; `None` if the tool has no price.
fn price_per_call(tool: &HostedTool, price: &Price) -> Option<u64> {
    price.tool_price(&tool.kind, tool.kind_without_date())
}

/// The counter in a response that reports calls of a tool.
#[derive(Clone, Copy, PartialEq)]
enum ToolUsageCounter {
    Search,
    Fetch,
}

impl ToolUsageCounter {
    /// Returns the counter that covers a tool's calls.
    fn for_tool(tool: &HostedTool) -> Option<Self> {
        match tool.kind_without_date() {
            "web_search" | "web_search_preview" => Some(ToolUsageCounter::Search),
            "web_fetch" => Some(ToolUsageCounter::Fetch),
            _ => None,
        }
    }

    /// Returns the number of calls that a response reports; `None` if not known. If the request
    /// bounds each tool, a complete usage report without this counter means 0 calls.
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
