//! The session and the end user that a request body names.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proofgate_providers::{Dialect, ParsedRequest};

/// Returns the session and the end user that a body names.
fn ids(dialect: Dialect, body: &str) -> (Option<String>, Option<String>) {
    let call = ParsedRequest::parse(dialect, body.as_bytes()).unwrap();
    let mut found = (None, None);
    call.client_ids.with_ids(&mut String::new(), |session, user| {
        found = (session.map(str::to_owned), user.map(str::to_owned));
    });
    found
}

fn some(session: &str, user: &str) -> (Option<String>, Option<String>) {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    (some(session), some(user))
}

#[test]
fn each_dialect_names_sessions_and_end_users_in_fields_of_its_own() {
    let chat = r#""model":"m","messages":[]"#;
    let claude = r#"{\"device_id\":\"d0\",\"account_uuid\":\"a1\",\"session_id\":\"s2\"}"#;
    for (dialect, fields, session, user) in [
        (Dialect::Chat, r#""user":"u1""#.to_owned(), "", "u1"),
        (
            Dialect::Chat,
            r#""user":"u1","safety_identifier":"u2""#.to_owned(),
            "",
            "u2",
        ),
        (
            Dialect::Chat,
            r#""safety_identifier":"u2","user":"u1""#.to_owned(),
            "",
            "u2",
        ),
        (Dialect::Chat, r#""prompt_cache_key":"k3""#.to_owned(), "k3", ""),
        (
            Dialect::Chat,
            r#""metadata":{"session_id":"s4","user_id":"u5"},"prompt_cache_key":"k3""#.to_owned(),
            "s4",
            "u5",
        ),
        (
            Dialect::Messages,
            format!(r#""metadata":{{"user_id":"{claude}"}}"#),
            "s2",
            "a1",
        ),
        (
            Dialect::Messages,
            r#""metadata":{"user_id":"user_d0_account__session_s2"}"#.to_owned(),
            "s2",
            "d0",
        ),
        (
            Dialect::Messages,
            r#""metadata":{"user_id":"alice"}"#.to_owned(),
            "",
            "alice",
        ),
        (
            Dialect::CountTokens,
            r#""metadata":{"user_id":"alice"}"#.to_owned(),
            "",
            "alice",
        ),
    ] {
        let body = format!("{{{chat},{fields}}}");
        assert_eq!(ids(dialect, &body), some(session, user), "{fields}");
    }
    for (fields, session, user) in [
        (r#""conversation":"conv_1","prompt_cache_key":"k3""#, "conv_1", ""),
        (r#""conversation":{"id":"conv_1"},"user":"u1""#, "conv_1", "u1"),
        (
            r#""client_metadata":{"session_id":"s4","turn_id":"t"},"prompt_cache_key":"k3""#,
            "s4",
            "",
        ),
        (r#""safety_identifier":"u2""#, "", "u2"),
    ] {
        let body = format!(r#"{{"model":"m","input":"hi",{fields}}}"#);
        assert_eq!(ids(Dialect::Responses, &body), some(session, user), "{fields}");
    }
    for dialect in [Dialect::Embeddings, Dialect::Images, Dialect::Completions] {
        let body = r#"{"model":"m","input":"hi","prompt":"hi","user":"u1"}"#;
        assert_eq!(ids(dialect, body), some("", "u1"), "{dialect:?}");
    }
}

#[test]
fn a_value_that_names_nobody_is_passed_over_and_never_refused() {
    let long = "u".repeat(2000);
    for fields in [
        r#""user":null"#.to_owned(),
        r#""user":7"#.to_owned(),
        r#""user":"""#.to_owned(),
        format!(r#""user":"{long}""#),
        r#""metadata":null"#.to_owned(),
        r#""metadata":"s4""#.to_owned(),
        r#""metadata":{"user_id":{"user_id":7}}"#.to_owned(),
        r#""metadata":[{"user":"u1"}]"#.to_owned(),
        // Names that differ only in case are other fields.
        r#""User":"u1","METADATA":{"user_id":"u1"}"#.to_owned(),
    ] {
        let body = format!(r#"{{"model":"m","messages":[],{fields}}}"#);
        assert_eq!(ids(Dialect::Chat, &body), some("", ""), "{fields}");
    }
}

#[test]
fn ids_in_the_messages_are_text_and_name_nobody() {
    let body = r#"{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"hi","user_id":"u1",
        "metadata":{"user_id":"u1","session_id":"s2"}}]}],"metadata":{"note":"x"},"tools":[{"user":"u1"}]}"#;
    assert_eq!(ids(Dialect::Chat, body), some("", ""));
}

#[test]
fn an_escaped_value_is_read_as_what_it_means() {
    let body = r#"{"model":"m","messages":[],"user":"\u0061lice","prompt_cache_key":"a\/b"}"#;
    assert_eq!(ids(Dialect::Chat, body), some("a/b", "alice"));
}
