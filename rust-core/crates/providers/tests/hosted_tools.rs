//! Who runs the tools of a request.

use proofgate_providers::{Call, Dialect, Tools};
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
        assert_eq!(tools.of_client, hosted.is_none(), "{tool}");
    }
}

fn tools_of(dialect: Dialect, body: &str) -> (Tools, Vec<String>) {
    let Ok(Call { tools, .. }) = Call::parse(dialect, body.as_bytes()) else {
        unreachable!("{body} was not read");
    };
    let kinds = tools.hosted.iter().map(|tool| tool.kind.to_string()).collect();
    (tools, kinds)
}

#[test]
fn a_tool_of_the_provider_is_allowed_by_its_kind_with_or_without_its_date() {
    let body = r#"{"model":"m","messages":[],"tools":[{"type":"web_search_20250305"}]}"#;
    let (tools, _) = tools_of(Dialect::Messages, body);
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

proptest! {
    /// Whatever stands between the tools, what is left out goes alone and the rest is valid JSON.
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
        known.leave_out(body.as_bytes(), |tool| &*tool.kind == "mcp", &mut left);
        let left: serde_json::Value = serde_json::from_slice(&left).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let mut expected: serde_json::Value = serde_json::from_str(&body).map_err(|error| TestCaseError::fail(error.to_string()))?;
        if let Some(tools) = expected["tools"].as_array_mut() {
            tools.retain(|tool| tool["type"] != "mcp");
        }
        prop_assert_eq!(left, expected);
    }
}
