use proofgate_prices::{PriceEntry, PriceTable, ProviderRef};
use proofgate_providers::Dialect;
use serde_json::json;

use super::*;

/// Picodollars in a cent.
const CENT: u128 = 10_000_000_000;

fn price() -> Price {
    let entry = json!({"model": "m", "effectiveFrom": "1970-01-01", "input": "1", "output": "2", "maxInputTokens": 1000,
        "tools": {"web_search": "0.01", "web_fetch": "0", "file_search": "0.03", "web_search_options": "0.02"}});
    let entry: PriceEntry = serde_json::from_value(entry).unwrap();
    let seller = ProviderRef {
        provider: "p",
        host: "h",
    };
    let schedule = PriceTable::new(&[entry]).unwrap().schedule(seller, "m");
    Price::clone(&schedule.at(0).unwrap().price)
}

fn offered(dialect: Dialect, body: &str, tokens_per_call: Option<u64>) -> Option<OfferedTools> {
    let call = ParsedRequest::parse(dialect, body.as_bytes()).unwrap();
    let names = [
        "web_search",
        "web_fetch",
        "file_search",
        "web_search_options",
        "code_execution",
    ];
    let terms = ToolCallBounds {
        max_calls: 5,
        tokens_per_call,
    };
    OfferedTools::from_call(&call, &names.map(str::to_owned), terms)
}

fn usage(searches: Option<u64>, fetches: Option<u64>) -> Usage {
    Usage {
        web_search_requests: searches,
        web_fetch_requests: fetches,
        ..Usage::default()
    }
}

#[test]
fn each_tool_of_a_message_has_calls_of_its_own() {
    let body = r#"{"model":"m","tools":[{"type":"web_search_20250305","max_uses":3},{"type":"web_fetch_20250910"},{"type":"mcp_toolset"}]}"#;
    let tools = offered(Dialect::Messages, body, None).unwrap();
    assert_eq!(
        tools.bound(),
        (8, Some("max_uses")),
        "what is not allowed is left out"
    );
    assert_eq!(tools.max_cost(&price()), 3 * CENT);
    assert_eq!(tools.unpriced(&price()), None);
    let cost = |usage| tools.cost(&price(), &usage, true);
    assert_eq!(cost(usage(Some(2), Some(4))), 2 * CENT);
    assert_eq!(cost(usage(None, None)), 0, "a counted message names what it used");
    let partial = Usage {
        partial: true,
        ..usage(Some(1), None)
    };
    assert_eq!(cost(partial), 3 * CENT, "it may go on");
    assert_eq!(tools.cost(&price(), &partial, false), CENT, "no budget bounds it");
}

#[test]
fn the_tools_of_a_response_share_their_calls() {
    let body = r#"{"model":"m","input":"a","max_tool_calls":4,"tools":[{"type":"web_search"},{"type":"file_search"}]}"#;
    let tools = offered(Dialect::Responses, body, None).unwrap();
    assert_eq!(tools.bound(), (4, Some("max_tool_calls")));
    assert_eq!(tools.max_cost(&price()), 12 * CENT);
    let cost = |usage, is_bounded| tools.cost(&price(), &usage, is_bounded);
    assert_eq!(
        cost(usage(Some(1), None), true),
        13 * CENT,
        "nothing is told of files"
    );
    assert_eq!(cost(usage(None, None), true), 12 * CENT);
    assert_eq!(cost(usage(Some(1), None), false), CENT);
    let without = r#"{"model":"m","input":"a","tools":[{"type":"web_search"}]}"#;
    let tools = offered(Dialect::Responses, without, None).unwrap();
    assert_eq!(tools.max_cost(&price()), 5 * CENT);
    assert_eq!(tools.cost(&price(), &usage(Some(0), None), true), 0);
}

#[test]
fn a_search_beside_a_chat_counts_once_for_each_answer() {
    let body = r#"{"model":"m","messages":[],"n":3,"web_search_options":{}}"#;
    let tools = offered(Dialect::Chat, body, None).unwrap();
    assert_eq!(tools.bound(), (3, None));
    assert_eq!(tools.cost(&price(), &usage(None, None), true), 6 * CENT);
    let none = r#"{"model":"m","messages":[]}"#;
    assert!(offered(Dialect::Chat, none, None).is_none());
    let counted = r#"{"model":"m","tools":[{"type":"web_search_20250305"}]}"#;
    assert!(
        offered(Dialect::CountTokens, counted, None).is_none(),
        "counting tokens runs nothing"
    );
}

#[test]
fn a_tool_without_a_price_is_named_and_its_rounds_are_bounded_by_its_provider() {
    let body = r#"{"model":"m","tools":[{"type":"web_search_20250305","max_uses":0},{"type":"code_execution_20250825"}]}"#;
    let tools = offered(Dialect::Messages, body, None).unwrap();
    assert_eq!(tools.unpriced(&price()), Some("code_execution_20250825"));
    assert_eq!(tools.bound().0, 10);
}

#[test]
fn every_round_may_fill_the_window_unless_a_plan_says_what_a_call_brings() {
    let body = r#"{"model":"m","input":"a","max_tool_calls":3,"tools":[{"type":"web_search"}]}"#;
    let prompt = |tokens, own, most| {
        offered(Dialect::Responses, body, tokens).map(|tools| tools.max_prompt_tokens(own, most))
    };
    assert_eq!(prompt(None, 100, Some(1000)), Some(4000));
    assert_eq!(
        prompt(None, 100, None),
        Some(400),
        "nothing more is known without a window"
    );
    // 100, 110, 120 and 130.
    assert_eq!(prompt(Some(10), 100, Some(1000)), Some(460));
    assert_eq!(prompt(Some(1_000_000), 100, Some(1000)), Some(4000));
    assert_eq!(prompt(Some(1_000_000), u64::MAX, None), Some(u64::MAX));
    let many = format!(
        r#"{{"model":"m","input":"a","max_tool_calls":{},"tools":[{{"type":"web_search"}}]}}"#,
        u64::MAX
    );
    for tokens in [None, Some(1_000_000)] {
        let tools = offered(Dialect::Responses, &many, tokens).unwrap();
        assert_eq!(tools.max_prompt_tokens(1, Some(1_000_000)), u64::MAX);
        assert_eq!(tools.max_cost(&price()), u128::from(u64::MAX) * CENT);
    }
}
