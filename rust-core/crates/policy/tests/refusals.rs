//! An invalid configuration is refused, and the error names the rule and the field that have to be changed.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use proofgate_policy::{Engine, Pack, PolicyConfig, PolicyError, TenantPolicy};
use serde_json::{Value, json};
use support::{Policy, refusal, with_defaults};

/// Returns the field that the refusal of a rule names; the message has to name the rule and contain `said`.
fn refused(rule: Value, said: &str) -> &'static str {
    let error = refusal(json!({"rules": [with_defaults(rule)]}));
    let text = error.to_string();
    assert!(text.contains(said), "{text}");
    match error {
        PolicyError::InvalidRule { rule, field, .. } => {
            assert!(text.starts_with(&format!("rule {rule}: {field}: ")), "{text}");
            field
        }
        other => panic!("{other}"),
    }
}

fn refused_regex(regex: &str, said: &str) {
    assert_eq!(
        refused(json!({"id": "mine", "regex": regex}), said),
        "regex",
        "{regex}"
    );
}

#[test]
fn a_rule_without_regex_and_literals_is_refused() {
    assert_eq!(refused(json!({}), "needs a regex or literals"), "regex");
}

#[test]
fn an_id_that_is_not_kebab_case_is_refused() {
    let too_long = "a".repeat(65);
    for id in ["", "Mine", "my_rule", "-a", "a-", "a--b", "é", &too_long] {
        assert_eq!(
            refused(json!({"id": id, "literals": ["x"]}), "lower-case words"),
            "id",
            "{id}"
        );
    }
}

#[test]
fn an_id_that_is_used_twice_is_refused() {
    let rule = with_defaults(json!({"id": "twice", "literals": ["x"]}));
    let error = refusal(json!({"rules": [rule, rule]}));
    assert!(
        error
            .to_string()
            .starts_with("rule twice: id: two rules have this id"),
        "{error}"
    );
}

#[test]
fn the_id_of_a_rule_of_a_pack_is_taken() {
    let rule = with_defaults(json!({"id": "pii-email", "literals": ["x"]}));
    let error = refusal(json!({"packs": ["pii"], "rules": [rule]}));
    assert!(error.to_string().starts_with("rule pii-email: id: "), "{error}");
}

#[test]
fn a_rule_without_a_reason_is_refused() {
    assert_eq!(
        refused(json!({"reason": " ", "literals": ["x"]}), "one sentence"),
        "reason"
    );
}

#[test]
fn a_score_beyond_1000_is_refused() {
    assert_eq!(
        refused(json!({"score": 1001, "literals": ["x"]}), "0 to 1000"),
        "score"
    );
}

#[test]
fn an_unknown_check_is_refused_with_the_known_ones() {
    assert_eq!(
        refused(json!({"check": "magic", "literals": ["x"]}), "Luhn, Mod97, Ssn"),
        "check"
    );
}

#[test]
fn literals_that_fold_to_nothing_are_refused() {
    for literal in ["", "\u{200b}"] {
        assert_eq!(
            refused(json!({"literals": ["x", literal]}), "invisible"),
            "literals"
        );
    }
}

#[test]
fn a_regex_that_cannot_be_read_is_refused() {
    for regex in ["(", "[a", "a{2,1}", "*"] {
        refused_regex(regex, "");
    }
}

#[test]
fn a_regex_of_any_length_is_refused_and_told_to_bound_its_repetitions() {
    for regex in ["a+", "a*b", "a.*b", "a{3,}"] {
        refused_regex(regex, "limit its repetitions");
    }
}

#[test]
fn a_regex_beyond_1024_bytes_is_refused() {
    refused_regex("a{1025}", "can match 1025 bytes");
    refused_regex(".{257}", "can match 1028 bytes");
    assert_eq!(
        Policy::rule(json!({"regex": "a{1024}"})).engine.rules().count(),
        1
    );
}

#[test]
fn a_regex_that_matches_nothing_at_all_is_refused() {
    for regex in ["", "a?", "a{0,3}", "(?:a|)", r"\b"] {
        refused_regex(regex, "require at least one character");
    }
}

#[test]
fn a_regex_that_engines_read_differently_is_refused() {
    for (regex, said) in [
        ("(?i)a", "flags"),
        ("(?i:a)", "flags"),
        (r"\p{L}", "between regex engines"),
        ("[[:alpha:]]", "between regex engines"),
        ("[a[b]]", "between regex engines"),
        ("[a&&b]", "between regex engines"),
        ("[a-z--b]", "between regex engines"),
        ("[a~~b]", "between regex engines"),
        (r"\x{41}", "between regex engines"),
        ("^a", "is not supported"),
        ("a$", "is not supported"),
        (r"\Aa", "is not supported"),
        (r"a\z", "is not supported"),
        ("(?=a)a", ""),
        (r"(a)\1", ""),
    ] {
        refused_regex(regex, said);
    }
}

#[test]
fn a_group_that_is_no_value_or_cannot_be_one_is_refused() {
    for (regex, said) in [
        ("(?<name>a)", "the group name \"name\" is not known"),
        ("(?P<name>a)", "the group name \"name\" is not known"),
        ("(?<value>a)(?<value>b)", ""),
        ("a(?<value>b?)", "can be empty"),
        ("(?:a(?<value>b)){2}", "must not be repeated"),
        ("(?<value>a){1,3}", "must not be repeated"),
    ] {
        refused_regex(regex, said);
    }
}

#[test]
fn a_regex_that_could_never_match_the_folded_copy_is_refused() {
    refused_regex("Ignore", "lower case");
    refused_regex("a\u{fb01}", "instead of");
    refused_regex("a\u{200b}", "sees the text without");
    refused_regex("[\u{410}-\u{42f}]", "list the characters");
    let as_written = json!({"regex": "Ignore", "view": "Text"});
    assert_eq!(Policy::rule(as_written).matched("Ignore ignore"), Some("Ignore"));
}

#[test]
fn a_regex_that_compiles_to_too_much_is_refused() {
    refused_regex(r"(?:[^a]{0,16}[^b]{0,16}){8}x", "");
}

#[test]
fn an_unknown_pack_is_refused_with_the_known_ones() {
    let error = refusal(json!({"packs": ["piii"]}));
    let said = error.to_string();
    assert!(
        said.contains("\"piii\"") && said.contains("prompt-injection, jailbreak"),
        "{said}"
    );
}

#[test]
fn disabling_a_rule_that_does_not_exist_is_refused() {
    let error = refusal(json!({"packs": ["pii"], "actions": [{"rules": ["pii-emial"], "action": "Ignore"}]}));
    assert_eq!(error.to_string(), "actions: there is no rule \"pii-emial\"");
    let policy = Policy::of(&json!({"packs": ["pii"]}));
    let tenant: TenantPolicy =
        serde_json::from_value(json!({"actions": [{"rules": ["pii-emial"], "action": "Ignore"}]})).unwrap();
    assert!(matches!(
        policy.engine.profile(Some(&tenant)),
        Err(PolicyError::UnknownRule { .. })
    ));
}

#[test]
fn disabling_a_rule_of_a_pack_that_is_off_is_no_mistake() {
    let policy = Policy::of(
        &json!({"packs": ["pii"], "actions": [{"rules": ["injection-override"], "action": "Ignore"}]}),
    );
    assert!(!policy.engine.is_empty());
}

#[test]
fn settings_out_of_bounds_are_refused() {
    assert_eq!(
        refusal(json!({"threshold": 0})).to_string(),
        "threshold: must be at least 1"
    );
    assert_eq!(
        refusal(json!({"budgetMilliseconds": 0})).to_string(),
        "budgetMilliseconds: must be at least 0.001"
    );
    let policy = Policy::of(&json!({}));
    let tenant: TenantPolicy = serde_json::from_value(json!({"threshold": 0})).unwrap();
    assert!(policy.engine.profile(Some(&tenant)).is_err());
}

#[test]
fn a_budget_that_is_no_duration_is_refused() {
    for budget in ["-1", "3600000.1", "1e300", "\"10\"", "null"] {
        let text = format!(r#"{{"budgetMilliseconds": {budget}}}"#);
        assert!(serde_json::from_str::<PolicyConfig>(&text).is_err(), "{budget}");
    }
    let config: PolicyConfig = serde_json::from_value(json!({"budgetMilliseconds": 0.1})).unwrap();
    assert_eq!(config.budget_us, 100);
}

#[test]
fn a_scope_that_does_not_exist_is_refused_with_those_that_do() {
    let actions = json!([{"rules": ["r"], "scopes": ["tool_result"], "action": "Flag"}]);
    let error = serde_json::from_value::<PolicyConfig>(json!({"actions": actions})).unwrap_err();
    let said = error.to_string();
    assert!(
        said.contains("\"tool_result\"") && said.contains("ToolArguments, ToolResult"),
        "{said}"
    );
}

#[test]
fn too_many_rules_are_refused() {
    let rule = |number: usize| {
        with_defaults(json!({"id": format!("rule-{number}"), "literals": [format!("word{number}.")]}))
    };
    let rules: Vec<Value> = (0..1025).map(rule).collect();
    assert!(
        refusal(json!({"rules": rules}))
            .to_string()
            .contains("at most 1024")
    );
    assert_eq!(
        Policy::of(&json!({"rules": &rules[..1024]})).ids("word1023."),
        ["rule-1023"]
    );
}

#[test]
fn unknown_fields_are_refused() {
    for config in [
        json!({"pack": []}),
        json!({"rules": [{"id": "a", "reason": "b", "regexp": "c"}]}),
    ] {
        assert!(serde_json::from_value::<PolicyConfig>(config).is_err());
    }
    assert!(serde_json::from_value::<TenantPolicy>(json!({"rules": []})).is_err());
}

#[test]
fn a_pack_that_cannot_be_read_names_itself() {
    let error = Pack::read("mine", "name = \"mine\"\nrule = 3").unwrap_err();
    assert!(error.to_string().starts_with("pack mine: "), "{error}");
}

#[test]
fn no_rules_at_all_are_no_mistake() {
    let engine = Engine::compile(&PolicyConfig::default()).unwrap();
    assert!(engine.is_empty());
    assert_eq!(engine.config().budget_us, 10_000);
    assert_eq!(engine.config().budget_us_per_kib, 200);
}
