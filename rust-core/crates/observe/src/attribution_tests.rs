use proofgate_providers::{Dialect, ParsedRequest};
use proofgate_wire::{Limits, parse_request};

use super::*;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// Returns the recorded attribution of a request with these header lines and this Messages body.
fn recorded(fields: &[(&str, &str)], body: &str) -> String {
    let mut attribution = Attribution::default();
    read(&mut attribution, fields, body);
    said(&attribution)
}

fn read(attribution: &mut Attribution, fields: &[(&str, &str)], body: &str) {
    let lines = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
    let head = format!(
        "POST /v1/messages HTTP/1.1\r\nHost: gateway\r\n{}\r\n",
        lines.collect::<String>()
    );
    let head = parse_request(head.as_bytes(), &Limits::default()).unwrap();
    attribution.read_head(&head.headers);
    let body = format!(r#"{{"model":"m","max_tokens":1,"messages":[]{body}}}"#);
    attribution.read_body(
        &ParsedRequest::parse(Dialect::Messages, body.as_bytes())
            .unwrap()
            .client_ids,
    );
}

fn said(attribution: &Attribution) -> String {
    text(attribution.record_for("acme", None, false))
}

fn text(recorded: Option<Recorded<'_>>) -> String {
    recorded.map_or_else(String::new, |recorded| serde_json::to_string(&recorded).unwrap())
}

/// Returns a body member that names an end user.
fn user(name: &str) -> String {
    format!(
        r#","metadata":{{"user_id":{}}}"#,
        serde_json::to_string(name).unwrap()
    )
}

#[test]
fn claude_code_names_its_session_and_its_agents_in_the_head() {
    let fields = [
        ("X-Claude-Code-Session-Id", "0f3c2a10-55aa-4c1e-9d3b-1c2d3e4f5a6b"),
        ("x-claude-code-agent-id", "reviewer@team"),
        ("x-claude-code-parent-agent-id", "a77"),
        (
            "traceparent",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ),
    ];
    let expected = format!(
        r#"{{"session":"0f3c2a10-55aa-4c1e-9d3b-1c2d3e4f5a6b","agent":"reviewer@team","parent_agent":"a77","trace_id":"{TRACE}"}}"#
    );
    assert_eq!(recorded(&fields, ""), expected);
}

#[test]
fn codex_names_its_session_and_the_thread_of_an_agent_below_it() {
    let main = [("session-id", "s1"), ("thread-id", "s1")];
    assert_eq!(recorded(&main, ""), r#"{"session":"s1"}"#);
    let below = [
        ("thread-id", "t2"),
        ("session-id", "s1"),
        ("x-codex-parent-thread-id", "s1"),
    ];
    assert_eq!(
        recorded(&below, ""),
        r#"{"session":"s1","agent":"t2","parent_agent":"s1"}"#
    );
    let former = [("conversation_id", "c1"), ("session_id", "s1")];
    assert_eq!(recorded(&former, ""), r#"{"session":"s1"}"#);
    assert_eq!(recorded(&former[..1], ""), r#"{"session":"c1"}"#);
}

#[test]
fn the_session_of_the_head_goes_before_that_of_the_body_and_the_end_user_is_a_pseudonym() {
    let body = r#","metadata":{"user_id":"user_d0_account_alice_session_s2"}"#;
    let alice = EndUserId::derive("acme", None, "alice");
    assert_eq!(
        recorded(&[], body),
        format!(r#"{{"session":"s2","end_user":"{alice}"}}"#)
    );
    let head = [("x-session-id", "s1")];
    assert_eq!(
        recorded(&head, body),
        format!(r#"{{"session":"s1","end_user":"{alice}"}}"#)
    );
}

#[test]
fn an_end_user_is_named_only_where_that_is_asked_for() {
    let mut attribution = Attribution::default();
    read(&mut attribution, &[], &user("alice@example.com"));
    let alice = EndUserId::derive("acme", None, "alice@example.com");
    assert_eq!(said(&attribution), format!(r#"{{"end_user":"{alice}"}}"#));
    assert_eq!(
        text(attribution.record_for("acme", None, true)),
        format!(r#"{{"end_user":"{alice}","end_user_name":"alice@example.com"}}"#)
    );
    read(&mut attribution, &[("session-id", "s1")], "");
    assert_eq!(
        text(attribution.record_for("acme", None, true)),
        r#"{"session":"s1"}"#
    );
}

#[test]
fn a_long_name_is_cut_between_characters_and_its_pseudonym_is_that_of_the_whole() {
    let name = format!("{}\u{e9}and more", "a".repeat(Recorded::MAX_NAME_LEN - 1));
    let mut attribution = Attribution::default();
    read(&mut attribution, &[], &user(&name));
    let recorded = attribution.record_for("acme", None, true).unwrap();
    assert_eq!(
        recorded.end_user_name.as_deref(),
        Some(&name[..Recorded::MAX_NAME_LEN - 1])
    );
    assert_eq!(recorded.end_user, Some(EndUserId::derive("acme", None, &name)));
}

#[test]
fn what_is_no_opaque_id_is_left_out() {
    let long = "s".repeat(129);
    for session in [
        "alice@example.com",
        "my session",
        "s\u{e9}ance",
        "\"s\"",
        "s\\1",
        &long,
    ] {
        assert_eq!(recorded(&[("session-id", session)], ""), "", "{session}");
        assert_eq!(
            recorded(&[("x-claude-code-session-id", session), ("session-id", "s1")], ""),
            r#"{"session":"s1"}"#
        );
    }
    for trace in [
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "mine",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
    ] {
        assert_eq!(recorded(&[("traceparent", trace)], ""), "", "{trace}");
    }
    let valid = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    assert_eq!(
        recorded(&[("traceparent", valid), ("traceparent", valid)], ""),
        ""
    );
}

#[test]
fn nothing_of_a_request_is_left_for_the_next_one_of_its_connection() {
    let mut attribution = Attribution::default();
    let fields = [
        ("session-id", "s1"),
        ("thread-id", "t2"),
        ("x-codex-parent-thread-id", "t1"),
    ];
    read(&mut attribution, &fields, r#","metadata":{"user_id":"alice"}"#);
    assert_ne!(said(&attribution), "");
    read(&mut attribution, &[], "");
    assert_eq!(said(&attribution), "");
}

#[test]
fn the_longest_that_can_be_said_fits_into_the_room_for_it() {
    let long = "s".repeat(Recorded::MAX_ID_LEN);
    let fields = [
        ("session-id", long.as_str()),
        ("x-claude-code-agent-id", &long[1..]),
        ("x-claude-code-parent-agent-id", &long),
        (
            "traceparent",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ),
    ];
    let mut attribution = Attribution::default();
    read(
        &mut attribution,
        &fields,
        &user(&"\u{1}".repeat(Recorded::MAX_NAME_LEN)),
    );
    let longest = text(attribution.record_for("acme", None, true)).len() + 1;
    let field = r#","attribution":"#.len();
    assert!(longest + field <= crate::recorder::ATTRIBUTION_BYTES, "{longest}");
}

#[test]
fn an_idle_connection_keeps_no_memory_for_a_long_name() {
    let mut attribution = Attribution::default();
    let body = format!(r#","metadata":{{"user_id":"\u0061{}"}}"#, "a".repeat(900));
    read(&mut attribution, &[], &body);
    assert!(attribution.text.capacity() >= 900);
    attribution.clear();
    assert!(attribution.text.capacity() + attribution.unescaped.capacity() < 900);
    assert_eq!(said(&attribution), "");
}

proptest::proptest! {
    #[test]
    fn a_recorded_name_is_the_beginning_of_what_was_said(name in "\\PC{0,200}") {
        let cut = truncate_name(&name);
        proptest::prop_assert!(name.starts_with(cut) && cut.len() <= Recorded::MAX_NAME_LEN);
        let next = name[cut.len()..].chars().next();
        proptest::prop_assert!(next.is_none_or(|next| cut.len() + next.len_utf8() > Recorded::MAX_NAME_LEN));
    }
}
