//! A rule reports the group `value` of its regex; names, quotes and separators around it are only
//! conditions.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use proofgate_policy::Scope;
use serde_json::{Value, json};
use support::{Policy, base64};

const ASSIGNMENT: &str = r#"\b(?:password|api_?key)"?\s?[:=]\s?"?(?<value>[^\s"]{4,40})"?"#;

fn policy(more: Value) -> Policy {
    let mut rule = json!({"regex": ASSIGNMENT, "view": "Folded"});
    let fields = rule.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    Policy::rule(rule)
}

#[test]
fn only_the_value_is_reported() {
    for (before, value, behind) in [
        (r#"{"api_key":""#, "v8Qm2Zx9", r#"","region":"eu"}"#),
        ("APIKEY = \"", "k7Tz3LmP", "\"\nDEBUG = False"),
        ("password: ", "hunter2", "\nnext"),
        ("api_key=", "hunter2", ""),
    ] {
        let text = format!("{before}{value}{behind}");
        assert_eq!(policy(json!({})).matched(&text), Some(value), "{text:?}");
    }
}

#[test]
fn the_position_of_a_value_is_exact_behind_what_folding_changes() {
    for (before, value, behind) in [
        ("p\u{430}ssword \n\t =\u{a0}\u{a0}", "hunt\u{435}r2", "\u{200b} x"),
        ("pass**word: ", "h&#117;nter2", "&nbsp;x"),
        (
            "\u{fb01} p\u{200b}assword=",
            "\u{fb01}x-\u{1d422}\u{ff11}",
            "\u{200b}\"",
        ),
        ("pass<b>word=", "hun</b>ter2", " x"),
    ] {
        let text = format!("{before}{value}{behind}");
        assert_eq!(policy(json!({})).matched(&text), Some(value), "{text:?}");
    }
}

#[test]
fn a_check_is_about_the_value() {
    let mut policy = policy(json!({"check": "Mixed"}));
    assert_eq!(policy.matched("password: abcd1"), Some("abcd1"));
    // With its name, this would contain a digit and a letter.
    assert!(policy.ids("password: 12345").is_empty());
}

#[test]
fn literals_may_stand_in_the_name() {
    let mut policy = policy(json!({"literals": ["api"]}));
    assert_eq!(policy.matched("api_key=hunter2"), Some("hunter2"));
    assert!(policy.ids("password=hunter2").is_empty());
}

#[test]
fn a_group_that_takes_no_part_leaves_all_of_the_match() {
    let mut policy = Policy::rule(json!({"regex": "key=(?P<value>[a-z]{3,9})|sk-[0-9]{3}"}));
    assert_eq!(policy.matched("key=abc"), Some("abc"));
    assert_eq!(policy.matched("see sk-123"), Some("sk-123"));
}

#[test]
fn groups_without_a_name_before_it_change_nothing() {
    let mut policy = Policy::rule(json!({"regex": "((a)|(b))=(?<value>(c)|d{2})(;)"}));
    assert_eq!(policy.matched("b=dd;"), Some("dd"));
}

#[test]
fn what_stands_around_a_value_is_consumed() {
    let mut policy = Policy::rule(json!({"regex": "a(?<value>b)a"}));
    let found = policy.found(Scope::User, "ababa");
    assert_eq!(
        found.into_iter().collect::<Vec<_>>(),
        [("a-rule".to_owned(), 1, 2)]
    );
}

#[test]
fn a_value_in_an_encoding_is_reported_where_the_encoding_stands() {
    let encoded = base64(b"this is my password: hunter2, keep it");
    let text = format!("see {encoded} there");
    assert_eq!(
        policy(json!({})).matched(&text),
        Some(encoded.trim_end_matches('='))
    );
}

#[test]
fn a_stream_holds_what_may_become_a_value_and_reports_it() {
    let mut policy = policy(json!({}));
    let pieces = ["the pass", "word", ": \"hunt", "er", "2", "\" and"];
    let (found, cleared) = policy.stream(Scope::Response, pieces).unwrap();
    let start = pieces.concat().find("hunter2").unwrap();
    let value = ("a-rule".to_owned(), start, start + "hunter2".len());
    assert_eq!(found.into_iter().collect::<Vec<_>>(), [value]);
    // The name is released; no part of the value is released before the match is decided.
    assert_eq!(cleared[..5], [8, 12, start, start, start]);
}
