//! Requests that would change their meaning on the way from HTTP/2 to HTTP/1.1 (RFC 9113 section 10.3). None of them
//! reaches the upstream.

use crate::gateway::{ACME, Gateway, MODEL};
use crate::raw::{Field, Outcome, Raw, data, headers, reset};

const PROTOCOL_ERROR: u32 = 1;
const COMPRESSION_ERROR: u32 = 9;

/// The way in which a request is refused.
#[derive(Debug, Clone, Copy)]
enum Refused {
    /// By a response with this machine code, and a record.
    Answer(&'static str),
    /// By resetting the stream.
    Reset,
    /// By closing the connection: the header block cannot be decoded, so later frames cannot be
    /// decoded either.
    GoAway,
}
use Refused::{Answer, GoAway, Reset};

impl Refused {
    fn is(self, outcome: &Outcome) -> bool {
        match self {
            Answer(code) => {
                matches!(outcome, Outcome::Answer(body) if body.contains(&format!("\"code\":\"{code}\"")))
            }
            Reset => *outcome == Outcome::Reset(PROTOCOL_ERROR),
            GoAway => matches!(outcome, Outcome::GoAway(PROTOCOL_ERROR | COMPRESSION_ERROR)),
        }
    }
}

const METHOD: Field<'_> = (":method", "POST");
const SCHEME: Field<'_> = (":scheme", "https");
const AUTHORITY: Field<'_> = (":authority", "gateway.test");
const PATH: Field<'_> = (":path", "/v1/chat/completions");
pub const GOOD: [Field<'_>; 4] = [METHOD, SCHEME, AUTHORITY, PATH];

fn body() -> String {
    format!("{{\"model\":\"{MODEL}\",\"messages\":[]}}")
}

/// Returns the fields of an otherwise valid request with its key.
pub fn request<'f>(pseudo: &[Field<'f>], fields: &[Field<'f>], key: &'f str) -> Vec<Field<'f>> {
    [pseudo, &[("authorization", key)], fields].concat()
}

async fn refused(gateway: &Gateway, name: &str, frames: &[Vec<u8>], how: Refused) {
    let mut raw = Raw::connect(gateway).await;
    raw.send(&frames.concat()).await;
    let outcome = raw.outcome(1).await;
    assert!(how.is(&outcome), "{name}: {outcome:?} instead of {how:?}");
    assert_eq!(gateway.upstream.requests(), 0, "{name}");
}

/// Sends a valid request, which shows that the other requests are refused only for their faults.
pub async fn the_good_request_is_served(mut gateway: Gateway) {
    let key = format!("Bearer {ACME}");
    let mut raw = Raw::connect(&gateway).await;
    let frames = [
        headers(1, &request(&GOOD, &[], &key), false),
        data(1, &body(), true),
    ];
    raw.send(&frames.concat()).await;
    gateway.upstream.exchange().await.answer(b"{\"good\":true}").await;
    assert_eq!(raw.outcome(1).await, Outcome::Answer("{\"good\":true}".into()));
    assert_eq!(gateway.upstream.requests(), 1);
}

#[tokio::test]
async fn a_request_that_http_1_would_read_differently_is_refused() {
    let gateway = Gateway::start().await;
    let key = format!("Bearer {ACME}");
    let cases: &[(&str, &[Field<'_>], Refused)] = &[
        ("transfer-encoding", &[("transfer-encoding", "chunked")], Reset),
        ("obfuscated coding", &[("transfer-encoding", "xchunked")], Reset),
        (
            "imitated coding",
            &[("transfer_encoding", "chunked")],
            Answer("imitated_header"),
        ),
        ("connection", &[("connection", "close")], Reset),
        ("keep-alive", &[("keep-alive", "timeout=5")], Reset),
        ("proxy-connection", &[("proxy-connection", "keep-alive")], Reset),
        ("upgrade", &[("upgrade", "websocket")], Reset),
        (
            "upgrade to h2c",
            &[("http2-settings", "AAMAAABkAAQAAP__")],
            Answer("invalid_connection"),
        ),
        ("te", &[("te", "gzip")], Reset),
        ("te with trailers", &[("te", "trailers, chunked")], Reset),
        ("line end in a value", &[("x-a", "a\r\nhost: evil")], GoAway),
        (
            "LF in a value",
            &[("x-a", "a\ntransfer-encoding: chunked")],
            GoAway,
        ),
        ("CR in a value", &[("x-a", "a\rb")], GoAway),
        ("NUL in a value", &[("x-a", "a\0b")], GoAway),
        (
            "space before a value",
            &[("x-a", " a")],
            Answer("invalid_header_value"),
        ),
        (
            "tab behind a value",
            &[("content-type", "application/json\t")],
            Answer("invalid_header_value"),
        ),
        (
            "upper case in a name",
            &[("Transfer-Encoding", "chunked")],
            GoAway,
        ),
        (
            "line end in a name",
            &[("x\r\ntransfer-encoding", "chunked")],
            GoAway,
        ),
        ("space in a name", &[("transfer-encoding ", "chunked")], GoAway),
        ("colon in a name", &[("x:y", "a")], GoAway),
        ("empty name", &[("", "a")], GoAway),
        (
            "two hosts",
            &[("host", "gateway.test"), ("host", "gateway.test")],
            Answer("duplicate_host"),
        ),
        (
            "another host",
            &[("host", "evil.test")],
            Answer("target_contradicts_host"),
        ),
        (
            "another port",
            &[("host", "gateway.test:80")],
            Answer("target_contradicts_host"),
        ),
        (
            "user in host",
            &[("host", "evil@gateway.test")],
            Answer("invalid_host"),
        ),
        (
            "two lengths",
            &[("content-length", "40"), ("content-length", "41")],
            Reset,
        ),
        ("signed length", &[("content-length", "+40")], Reset),
        ("list of lengths", &[("content-length", "40, 40")], Reset),
        (
            "unknown expectation",
            &[("expect", "a miracle")],
            Answer("unknown_expectation"),
        ),
        (
            "two keys",
            &[("authorization", "Bearer other")],
            Answer("duplicate_header"),
        ),
        (
            "pseudo-header field behind others",
            &[(":path", "/v1/models")],
            Reset,
        ),
        ("unknown pseudo-header field", &[(":host", "evil.test")], GoAway),
        ("status in a request", &[(":status", "200")], Reset),
    ];
    for (name, fields, how) in cases {
        let frames = [
            headers(1, &request(&GOOD, fields, &key), false),
            data(1, &body(), true),
        ];
        refused(&gateway, name, &frames, *how).await;
    }
    the_good_request_is_served(gateway).await;
}

#[tokio::test]
async fn a_request_without_exactly_one_method_scheme_authority_and_path_is_refused() {
    let gateway = Gateway::start().await;
    let key = format!("Bearer {ACME}");
    let with = |index: usize, value: &'static str| {
        let mut pseudo = GOOD.to_vec();
        pseudo[index].1 = value;
        pseudo
    };
    let without = |index: usize| {
        let mut pseudo = GOOD.to_vec();
        pseudo.remove(index);
        pseudo
    };
    let twice = |index: usize| {
        let mut pseudo = GOOD.to_vec();
        pseudo.push(GOOD[index]);
        pseudo
    };
    let mut cases = vec![
        (
            "method with a line end",
            with(0, "GET / HTTP/1.1\r\nhost: evil\r\n\r\nPOST"),
            GoAway,
        ),
        ("method with a space", with(0, "POST /v1/models"), GoAway),
        ("scheme http", with(1, "http"), Answer("invalid_scheme")),
        ("scheme with a target", with(1, "https://evil.test/?"), Reset),
        ("empty authority", with(2, ""), Reset),
        (
            "user in authority",
            with(2, "evil@gateway.test"),
            Answer("invalid_host"),
        ),
        ("path in authority", with(2, "gateway.test/v1/models?"), Reset),
        (
            "list of authorities",
            with(2, "gateway.test,evil.test"),
            Answer("invalid_host"),
        ),
        (
            "authority with a line end",
            with(2, "gateway.test\r\nx: y"),
            Reset,
        ),
        ("empty path", with(3, ""), Reset),
        ("path with a space", with(3, "/v1/models HTTP/1.1"), Reset),
        (
            "path with a line end",
            with(3, "/ HTTP/1.1\r\nhost: evil\r\n\r\nGET /"),
            Reset,
        ),
        (
            "path that is a URL",
            with(3, "https://gateway.test/v1/models"),
            Reset,
        ),
        ("path without a slash", with(3, "v1/models"), Reset),
        (
            "path that is an asterisk",
            with(3, "*"),
            Answer("unsupported_target_form"),
        ),
        (
            "path with NUL escaped",
            with(3, "/v1%00"),
            Answer("invalid_target"),
        ),
        ("no authority and no host", without(2), Answer("missing_host")),
        (
            "CONNECT",
            vec![(":method", "CONNECT"), AUTHORITY],
            Answer("connect_method"),
        ),
        (
            "extended CONNECT",
            vec![
                (":method", "CONNECT"),
                (":protocol", "websocket"),
                SCHEME,
                AUTHORITY,
                PATH,
            ],
            Reset,
        ),
    ];
    for index in [0, 1, 3] {
        cases.push(("one missing", without(index), Reset));
    }
    for index in 0..4 {
        cases.push(("one given twice", twice(index), Reset));
    }
    for (name, pseudo, how) in cases {
        let frames = [
            headers(1, &request(&pseudo, &[], &key), false),
            data(1, &body(), true),
        ];
        refused(&gateway, name, &frames, how).await;
    }
    the_good_request_is_served(gateway).await;
}

#[tokio::test]
async fn a_request_without_path_and_authority_is_refused() {
    let gateway = Gateway::start().await;
    let key = format!("Bearer {ACME}");
    let fields = request(&[METHOD, SCHEME], &[("host", "gateway.test")], &key);
    let frames = [headers(1, &fields, false), data(1, &body(), true)];
    refused(&gateway, "neither", &frames, Answer("invalid_target")).await;
    the_good_request_is_served(gateway).await;
}

#[tokio::test]
async fn a_body_that_is_not_as_long_as_it_says_is_refused() {
    let gateway = Gateway::start().await;
    let (key, body) = (format!("Bearer {ACME}"), body());
    let said = |length: String, frames: &[Vec<u8>]| {
        let length = [("content-length", length.as_str())];
        [&[headers(1, &request(&GOOD, &length, &key), false)], frames].concat()
    };
    let length = body.len();
    let smuggled = "GET /v1/models HTTP/1.1\r\nHost: gateway.test\r\n\r\n";
    let whole = data(1, &body, true);
    let cases = [
        (
            "shorter",
            said((length + 1).to_string(), std::slice::from_ref(&whole)),
            Reset,
        ),
        (
            "longer",
            said((length - 1).to_string(), std::slice::from_ref(&whole)),
            Reset,
        ),
        (
            "longer by another frame",
            said(
                length.to_string(),
                &[data(1, &body, false), data(1, smuggled, true)],
            ),
            Reset,
        ),
        (
            "none where one was announced",
            said("0".into(), std::slice::from_ref(&whole)),
            Reset,
        ),
        (
            "leading zero",
            said(format!("0{length}"), std::slice::from_ref(&whole)),
            Answer("invalid_content_length"),
        ),
        (
            "announced and never begun",
            vec![headers(
                1,
                &request(&GOOD, &[("content-length", "5")], &key),
                true,
            )],
            Reset,
        ),
        (
            "with a method that has none",
            vec![
                headers(
                    1,
                    &request(
                        &[(":method", "GET"), SCHEME, AUTHORITY, (":path", "/v1/models")],
                        &[],
                        &key,
                    ),
                    false,
                ),
                data(1, smuggled, true),
            ],
            Answer("unexpected_body"),
        ),
    ];
    for (name, frames, how) in cases {
        refused(&gateway, name, &frames, how).await;
    }
    let twice = [
        ("content-length", &*length.to_string()),
        ("content-length", &*length.to_string()),
    ];
    let frames = [headers(1, &request(&GOOD, &twice, &key), false), whole];
    refused(
        &gateway,
        "the same length twice",
        &frames,
        Answer("duplicate_content_length"),
    )
    .await;
    the_good_request_is_served(gateway).await;
}

#[tokio::test]
async fn a_body_that_may_still_go_on_does_not_leave() {
    let gateway = Gateway::start().await;
    let (key, body) = (format!("Bearer {ACME}"), body());
    let length = body.len().to_string();
    let mut raw = Raw::connect(&gateway).await;
    let fields = request(&GOOD, &[("content-length", &length)], &key);
    raw.send(&[headers(1, &fields, false), data(1, &body, false)].concat())
        .await;
    // A second stream is answered meanwhile.
    let models = [(":method", "GET"), SCHEME, AUTHORITY, (":path", "/v1/models")];
    raw.send(&headers(3, &request(&models, &[], &key), true)).await;
    assert!(matches!(raw.outcome(3).await, Outcome::Answer(_)));
    assert_eq!(gateway.upstream.requests(), 0);
    raw.send(&reset(1)).await;
    the_good_request_is_served(gateway).await;
}

#[tokio::test]
async fn refusals_at_the_translation_are_recorded() {
    let gateway = Gateway::start().await;
    let key = format!("Bearer {ACME}");
    let pseudo = [METHOD, (":scheme", "http"), AUTHORITY, PATH];
    let frames = [headers(1, &request(&pseudo, &[], &key), true)];
    refused(&gateway, "scheme http", &frames, Answer("invalid_scheme")).await;
    assert_eq!(gateway.metric(r#"proofgate_rejections_total{status="400"}"#), 1);
    let written = gateway.worker.status().unwrap().written;
    assert_eq!(written, 2, "the opening record and the refusal's");
}

#[tokio::test]
async fn bodies_and_connections_that_break_the_protocol_are_recorded() {
    let gateway = Gateway::start().await;
    let key = format!("Bearer {ACME}");
    let short = [
        headers(1, &request(&GOOD, &[("content-length", "1000")], &key), false),
        data(1, &body(), true),
    ];
    refused(&gateway, "short", &short, Reset).await;
    let rejections = r#"proofgate_rejections_total{status="400"}"#;
    gateway.wait_for_metric(rejections, 1).await;
    let smuggled = [headers(1, &request(&GOOD, &[("x-a", "a\r\nb: c")], &key), true)];
    refused(&gateway, "CR LF", &smuggled, GoAway).await;
    gateway.wait_for_metric(rejections, 2).await;
}
