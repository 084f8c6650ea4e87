//! Client tools and hosted tools of a request.

use proofgate_providers::{CallLimit, Dialect, ParsedRequest, Tools};
use proptest::prelude::*;

#[test]
fn who_runs_a_tool_is_told_by_what_the_api_says_of_it() {
    for (dialect, tool, hosted) in [
        (Dialect::Responses, r#"{"type":"function"}"#, None),
        (Dialect::Responses, r#"{"type":"custom"}"#, None),
        (
            Dialect::Responses,
            r#"{"type":"tool_search","execution":"client"}"#,
            None,
        ),
        (
            Dialect::Responses,
            r#"{"type":"shell","environment":{"type":"local"}}"#,
            None,
        ),
        (
            Dialect::Responses,
            r#"{"environment":{"type":"local"},"type":"shell"}"#,
            None,
        ),
        (
            Dialect::Responses,
            r#"{"type":"shell","environment":{"type":"container_auto"}}"#,
            Some("shell"),
        ),
        (Dialect::Responses, r#"{"type":"shell"}"#, Some("shell")),
        (
            Dialect::Responses,
            r#"{"type":"namespace","name":"a","tools":[{"type":"function"},{"type":"custom"}]}"#,
            None,
        ),
        (
            Dialect::Responses,
            r#"{"type":"namespace","name":"a","tools":[{"type":"mcp"}]}"#,
            Some("namespace"),
        ),
        (Dialect::Responses, r#"{"type":"web_search"}"#, Some("web_search")),
        (Dialect::Responses, r#"{"type":"mcp"}"#, Some("mcp")),
        (
            Dialect::Responses,
            r#"{"type":"code_interpreter"}"#,
            Some("code_interpreter"),
        ),
        (
            Dialect::Responses,
            r#"{"type":"not a name, but text"}"#,
            Some("unknown"),
        ),
        (Dialect::Messages, r#"{"name":"x","input_schema":{}}"#, None),
        (Dialect::Messages, r#"{"type":"custom"}"#, None),
        (Dialect::Messages, r#"{"type":"text_editor_20250728"}"#, None),
        (
            Dialect::Messages,
            r#"{"type":"tool_search_tool_regex_20251119"}"#,
            None,
        ),
        (
            Dialect::Messages,
            r#"{"type":"web_search_20250305"}"#,
            Some("web_search_20250305"),
        ),
        (
            Dialect::Messages,
            r#"{"type":"web_f\u0065tch_20250910"}"#,
            Some("web_fetch_20250910"),
        ),
        (
            Dialect::Messages,
            r#"{"type":"mcp_toolset"}"#,
            Some("mcp_toolset"),
        ),
    ] {
        let body = format!(r#"{{"model":"m","messages":[],"tools":[{tool}]}}"#);
        let (tools, kinds) = tools_of(dialect, &body);
        assert_eq!(kinds, Vec::from_iter(hosted), "{tool}");
        assert_eq!(tools.has_client_tools, hosted.is_none(), "{tool}");
    }
}

fn tools_of(dialect: Dialect, body: &str) -> (Tools, Vec<String>) {
    let Ok(ParsedRequest { tools, .. }) = ParsedRequest::parse(dialect, body.as_bytes()) else {
        unreachable!("{body} was not read");
    };
    let kinds = tools.hosted.iter().map(|tool| tool.kind.to_string()).collect();
    (tools, kinds)
}

#[test]
fn a_tool_of_the_provider_is_allowed_by_its_kind_with_or_without_its_date() {
    let body = r#"{"model":"m","messages":[],"tools":[{"type":"web_search_20250305"}]}"#;
    let (tools, _) = tools_of(Dialect::Messages, body);
    assert_eq!(tools.hosted[0].kind_without_date(), "web_search");
    for (name, allowed) in [
        ("web_search", true),
        ("web_search_20250305", true),
        ("web_search_20260209", false),
        ("web", false),
        ("web_fetch", false),
    ] {
        assert_eq!(tools.hosted[0].is_allowed(&[name.to_owned()]), allowed, "{name}");
    }
}

#[test]
fn a_search_beside_a_chat_is_a_hosted_tool_that_can_be_left_out() {
    for (body, left) in [
        (
            r#"{"model":"m","messages":[], "web_search_options" : {"user_location":{"type":"approximate"}} ,"n":2}"#,
            r#"{"model":"m","messages":[], "n":2}"#,
        ),
        (
            r#"{"model":"m","messages":[],"w\u0065b_search_options":{}}"#,
            r#"{"model":"m","messages":[]}"#,
        ),
        (
            r#"{"web_search_options":{},"model":"m","messages":[]}"#,
            r#"{"model":"m","messages":[]}"#,
        ),
    ] {
        let (tools, kinds) = tools_of(Dialect::Chat, body);
        assert_eq!(kinds, ["web_search_options"], "{body}");
        assert!(tools.hosted[0].is_optional_field() && !tools.has_client_tools);
        let mut written = Vec::new();
        tools.write_body_without_tools(body.as_bytes(), |_| true, None, &mut written);
        assert_eq!(String::from_utf8_lossy(&written), left);
    }
    let nothing = r#"{"model":"m","messages":[],"web_search_options":null}"#;
    assert_eq!(tools_of(Dialect::Chat, nothing).1.len(), 0);
    let almost = br#"{"model":"m","messages":[],"Web_search_options":{}}"#;
    assert!(ParsedRequest::parse(Dialect::Chat, almost).is_err());
}

#[test]
fn a_request_says_how_often_its_hosted_tools_may_be_called() {
    let of = |tool: &str| format!(r#"{{"model":"m","messages":[],"tools":[{tool}]}}"#);
    for (tool, calls) in [
        (r#"{"type":"web_search_20250305","max_uses":3}"#, Some(3)),
        (r#"{"max_uses":0,"type":"web_fetch_20250910"}"#, Some(0)),
        (r#"{"type":"web_search_20250305"}"#, None),
        (r#"{"type":"web_search_20250305","max_uses":null}"#, None),
    ] {
        let (tools, _) = tools_of(Dialect::Messages, &of(tool));
        assert_eq!(tools.hosted[0].max_calls, calls, "{tool}");
    }
    for tool in [
        r#"{"type":"web_search_20250305","max_uses":-1}"#,
        r#"{"type":"web_search_20250305","max_uses":"3"}"#,
        r#"{"type":"web_search_20250305","max_uses":1.5}"#,
        r#"{"type":"web_search_20250305","Max_uses":9}"#,
    ] {
        assert!(
            ParsedRequest::parse(Dialect::Messages, of(tool).as_bytes()).is_err(),
            "{tool}"
        );
    }
    // The client's own tools may have such a field.
    let own = of(r#"{"type":"custom","name":"x","max_uses":"a few"}"#);
    assert!(tools_of(Dialect::Messages, &own).0.has_client_tools);
    let responses = r#"{"model":"m","input":"a","max_tool_calls":7,"tools":[{"type":"web_search"}]}"#;
    assert_eq!(tools_of(Dialect::Responses, responses).0.max_calls, Some(7));
}

#[test]
fn a_bound_that_says_null_is_replaced() {
    for (dialect, body, bounded) in [
        (
            Dialect::Messages,
            r#"{"model":"m","tools":[{"type":"web_search_20250305","max_uses" : null}]}"#,
            r#"{"model":"m","tools":[{"type":"web_search_20250305","max_uses" : 10}]}"#,
        ),
        (
            Dialect::Responses,
            r#"{"model":"m","max_tool_calls":null,"tools":[{"type":"web_search"}]}"#,
            r#"{"model":"m","max_tool_calls":10,"tools":[{"type":"web_search"}]}"#,
        ),
    ] {
        let (tools, _) = tools_of(dialect, body);
        let mut written = Vec::new();
        tools.write_body_without_tools(
            body.as_bytes(),
            |_| false,
            Some((dialect.call_limit(), 10)),
            &mut written,
        );
        assert_eq!(String::from_utf8_lossy(&written), bounded);
    }
}

proptest! {
    /// Limits are added to the tools that have none, and nothing else changes.
    #[test]
    fn without_the_bounds_that_were_written_a_body_is_what_it_was(
        tools in proptest::collection::vec((0..5usize, "[ \n]{0,2}", "[ \n]{0,2}"), 1..6), most in 1..1000u64,
        is_responses in any::<bool>(),
    ) {
        let element = |(kind, before, inside): &(usize, String, String)| {
            let member = ["\"type\":\"web_search_20250305\"", "\"type\":\"web_fetch_20250910\",\"max_uses\":2",
                "\"type\":\"code_execution_20250825\"", "\"name\":\"own\",\"type\":\"custom\"",
                "\"x\":[{}],\"type\":\"web_search\""][*kind];
            format!("{before}{{{inside}{member}}}")
        };
        let written: Vec<String> = tools.iter().map(element).collect();
        let body = format!(r#" {{ "model":"m","messages":[],"input":"{{","tools":[{}]}}"#, written.join(","));
        let dialect = if is_responses { Dialect::Responses } else { Dialect::Messages };
        let (known, _) = tools_of(dialect, &body);
        let bound = dialect.call_limit();
        let mut bounded = Vec::new();
        known.write_body_without_tools(body.as_bytes(), |_| false, Some((bound, most)), &mut bounded);
        let bounded = String::from_utf8_lossy(&bounded);
        prop_assert_eq!(known.needs_call_limit(bound, |_| false), bounded != body);
        let added = match bound {
            CallLimit::PerRequest => format!("\"max_tool_calls\":{most},"),
            _ => format!("\"max_uses\":{most},"),
        };
        prop_assert_eq!(bounded.replace(&added, ""), body);
        let (again, _) = tools_of(dialect, &bounded);
        prop_assert!(!again.needs_call_limit(bound, |_| false));
        for tool in again.hosted.iter().filter(|tool| !is_responses && tool.has_max_uses()) {
            let is_own = &*tool.kind == "web_fetch_20250910";
            prop_assert_eq!(tool.max_calls, Some(if is_own { 2 } else { most }));
        }
    }

    /// Removing tools leaves the rest unchanged and valid, whatever separates them.
    #[test]
    fn tools_that_are_left_out_leave_all_others_as_they_came(
        tools in proptest::collection::vec((any::<bool>(), any::<bool>(), "[ \n]{0,2}", "[ \n]{0,2}"), 0..6),
    ) {
        let element = |(place, (hosted, denied, before, behind)): (usize, &(bool, bool, String, String))| {
            let kind = match (hosted, denied) {
                (true, true) => "mcp",
                (true, false) => "web_search",
                _ => "function",
            };
            format!(r#"{before}{{"type":"{kind}","n":{place}}}{behind}"#)
        };
        let written: Vec<String> = tools.iter().enumerate().map(element).collect();
        let body = format!(r#"{{"model":"m","input":"a","tools":[{}],"x":[1,2]}}"#, written.join(","));
        let (known, _) = tools_of(Dialect::Responses, &body);
        let mut left = Vec::new();
        known.write_body_without_tools(body.as_bytes(), |tool| &*tool.kind == "mcp", None, &mut left);
        let left: serde_json::Value = serde_json::from_slice(&left).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let mut expected: serde_json::Value = serde_json::from_str(&body).map_err(|error| TestCaseError::fail(error.to_string()))?;
        if let Some(tools) = expected["tools"].as_array_mut() {
            tools.retain(|tool| tool["type"] != "mcp");
        }
        prop_assert_eq!(left, expected);
    }
}
