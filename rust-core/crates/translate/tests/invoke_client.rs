//! Requests of clients in the format of Bedrock or Vertex AI, as Messages requests.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

use proofgate_translate::invoke_client::{PathParameters, to_messages_request};

const OF_PATH: PathParameters<'static> = PathParameters {
    model: Some("claude"),
    stream: Some(true),
};

fn said(body: &str, path: PathParameters<'_>) -> Option<(String, Vec<String>)> {
    let mut out = Vec::new();
    let betas = to_messages_request(body.as_bytes(), path, &mut out);
    let text = String::from_utf8(out).unwrap();
    assert!(betas.is_some() || text.is_empty());
    betas.map(|betas| (text, betas))
}

#[test]
fn the_paths_model_and_stream_stand_in_the_body_and_its_version_and_betas_do_not() {
    let body = r#"{"anthropic_version":"bedrock-2023-05-31", "max_tokens":1.0e1,"anthropic_beta":["a","b"],"messages":[ {"x":"\u00e9"}]}"#;
    let (text, betas) = said(body, OF_PATH).unwrap();
    assert_eq!(
        text,
        r#"{"model":"claude","stream":true,"max_tokens":1.0e1,"messages":[ {"x":"\u00e9"}]}"#
    );
    assert_eq!(betas, ["a", "b"]);
    let whole = PathParameters {
        stream: Some(false),
        ..OF_PATH
    };
    let (text, betas) = said(
        r#"{"anthropic_beta":"a, b","stream":true,"model":"claude"}"#,
        whole,
    )
    .unwrap();
    assert_eq!(
        (text.as_str(), betas),
        (r#"{"model":"claude"}"#, vec!["a".to_owned(), "b".to_owned()])
    );
    let by_body = PathParameters {
        model: None,
        stream: None,
    };
    let (text, _) = said(r#"{"anthropic_version":"v","model":"m","stream":true}"#, by_body).unwrap();
    assert_eq!(text, r#"{"model":"m","stream":true}"#);
    assert_eq!(said("{}", by_body).unwrap().0, "{}");
}

#[test]
fn what_contradicts_the_path_or_has_another_type_is_left_to_be_refused() {
    let (text, betas) = said(
        r#"{"model":"other","stream":3,"anthropic_beta":{"a":1}}"#,
        OF_PATH,
    )
    .unwrap();
    assert_eq!(
        text,
        r#"{"model":"claude","stream":true,"model":"other","stream":3,"anthropic_beta":{"a":1}}"#
    );
    assert!(betas.is_empty());
    for body in ["", "[]", "3", "{", "{\"a\":1}x", "\u{feff}{}"] {
        assert_eq!(said(body, OF_PATH), None, "{body}");
    }
}
