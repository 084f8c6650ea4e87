//! Files and batches: the heads of their requests, and the data that is read from a batch.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proofgate_json::Workspace;
use proofgate_providers::{
    BaseUrl, BodyText, Dialect, InvalidBatch, ParsedRequest, ProviderKey, RequestTemplate, StorageOperation,
    batch_endpoint, is_object_id, line_endpoint,
};

fn head(stored: StorageOperation, id: &str, length: Option<u64>) -> String {
    let base = BaseUrl::parse("https://api.example.com/v1").unwrap();
    let key = ProviderKey {
        header_prefix: "Authorization: Bearer ",
        key: "k",
    };
    let template = RequestTemplate::new(&base, Dialect::Storage(stored), Some(key));
    let mut head = Vec::new();
    template.write_with_framing("id", length, &stored.path_suffix(id), b"", &mut head);
    String::from_utf8(head).unwrap()
}

#[test]
fn each_request_has_its_method_its_path_and_a_length_where_it_has_a_body() {
    for stored in StorageOperation::ALL {
        let head = head(stored, "x", Some(0));
        let (method, path) = stored.name().split_once(' ').unwrap();
        let path = path.replace("{id}", "x");
        assert!(
            head.starts_with(&format!("{method} {path} HTTP/1.1\r\n")),
            "{head}"
        );
        assert_eq!(head.contains("Content-Length: 0\r\n"), method == "POST", "{head}");
        assert_eq!(
            head.contains("Content-Type: "),
            stored == StorageOperation::BatchCreation,
            "{head}"
        );
        assert!(
            head.contains("Authorization: Bearer k\r\n") && head.ends_with("\r\n\r\n"),
            "{head}"
        );
    }
    assert!(head(StorageOperation::FileUpload, "", None).ends_with("Transfer-Encoding: chunked\r\n\r\n"));
}

#[test]
fn an_id_is_short_and_of_letters_digits_dashes_and_underscores() {
    assert!(is_object_id("file-aB_9") && is_object_id(&"x".repeat(128)));
    for id in ["", "..", "a/b", "a%2f", "a b", "a\n", "é", &"x".repeat(129)] {
        assert!(!is_object_id(id), "{id}");
    }
}

#[test]
fn what_a_line_says_is_read_wherever_its_fields_stand() {
    let body = r#"{"model":"m","messages":[{"role":"user","content":"one \u0074wo"}]}"#;
    for line in [
        format!(r#"{{"custom_id":"three","method":"POST","url":"/v1/chat/completions","body":{body}}}"#),
        format!(r#" {{"body":{body},"url":"\/v1/chat/completions","method":"POST","custom_id":"three"}} "#),
    ] {
        let mut workspace = Workspace::new();
        let dialect = line_endpoint(line.as_bytes(), &mut workspace).unwrap();
        assert_eq!(dialect, Dialect::Chat);
        let mut text = BodyText::new();
        let call = ParsedRequest::read_line(dialect, &line, &mut workspace, &mut text).unwrap();
        assert_eq!(call.model, "m");
        assert_eq!(&line[call.model_value()], "\"m\"");
        let mut found: Vec<&str> = text.text().lines().collect();
        found.sort_unstable();
        assert_eq!(found, ["one two", "three"]);
    }
}

#[test]
fn what_a_line_asks_for_is_held_to_the_same_as_a_request() {
    for (body, code) in [
        (r#"{"messages":[]}"#, "missing_model"),
        (r#"{"model":"m","messages":[],"Model":"n"}"#, "ambiguous_name"),
        (r#"{"model":"m","messages":7}"#, "invalid_value"),
    ] {
        let line =
            format!(r#"{{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{body}}}"#);
        let mut workspace = Workspace::new();
        assert_eq!(line_endpoint(line.as_bytes(), &mut workspace), Ok(Dialect::Chat));
        let read = ParsedRequest::read_line(Dialect::Chat, &line, &mut workspace, &mut BodyText::new());
        assert_eq!(read.unwrap_err().code(), code, "{body}");
    }
}

#[test]
fn a_line_that_some_readers_would_cut_in_two_is_refused() {
    let hidden = r#"{"custom_id":"b","method":"POST","url":"/v1/chat/completions","body":{"model":"n","messages":[]}}"#;
    let line = |cut: &str| {
        format!(
            r#"{{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{{"model":"m","messages":[],"metadata":{cut}{hidden}{cut}}}}}"#
        )
    };
    let read = |line: &str| line_endpoint(line.as_bytes(), &mut Workspace::new());
    assert_eq!(read(&line("\r")), Err(InvalidBatch::CarriageReturn));
    assert_eq!(
        read(&format!("\r{}", line(" "))),
        Err(InvalidBatch::CarriageReturn)
    );
    assert_eq!(read(&line(" ")), Ok(Dialect::Chat));
    assert_eq!(
        read(&format!("{}\r", line("\t"))),
        Ok(Dialect::Chat),
        "a line may end with CRLF"
    );
    // Other characters at which some readers end lines are invalid in JSON outside a string.
    for cut in [
        "\u{b}", "\u{c}", "\u{1c}", "\u{1d}", "\u{1e}", "\u{85}", "\u{2028}", "\u{2029}",
    ] {
        assert!(read(&line(cut)).is_err(), "{cut:?}");
    }
}

#[test]
fn a_batch_is_for_an_endpoint_that_takes_json() {
    for dialect in Dialect::ALL {
        let asked = format!(r#"{{"input_file_id":"file-1","endpoint":"{}"}}"#, dialect.path());
        let found = batch_endpoint(asked.as_bytes(), &mut Workspace::new());
        let is_served = dialect.upstream_path().starts_with('/')
            && dialect.family() == proofgate_providers::Family::OpenAi
            && !dialect.has_form();
        assert_eq!(found.ok(), is_served.then_some(dialect), "{asked}");
    }
}
