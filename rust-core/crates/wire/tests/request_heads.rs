//! Tests of the rules that refuse request heads, and of the contents of accepted heads.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use proofgate_wire::{HeadScanner, Limits, Method, ProtocolError, RequestFraming, parse_request};

fn refusal(head: &str) -> ProtocolError {
    let bytes: Vec<u8> = head
        .chars()
        .map(|character| u8::try_from(character).unwrap())
        .collect();
    let limits = Limits::default();
    match HeadScanner::new().scan(&bytes, &limits) {
        Err(refusal) => refusal,
        Ok(Some(length)) => parse_request(&bytes[..length], &limits).map(|_| ()).unwrap_err(),
        Ok(None) => ProtocolError::IncompleteHead,
    }
}

fn refusal_of_fields(fields: &str) -> ProtocolError {
    refusal(&format!("POST / HTTP/1.1\r\nHost: gw\r\n{fields}\r\n"))
}

fn refusal_of_line(line: &str) -> ProtocolError {
    refusal(&format!("{line}\r\nHost: gw\r\n\r\n"))
}

#[test]
fn an_accepted_head_says_what_was_sent() {
    let bytes =
        b"POST /v1/chat/completions?x=1 HTTP/1.1\r\nHost: gw:80\r\nContent-Length: 31\r\nX-A: \tb \r\n\r\n";
    let head = parse_request(bytes, &Limits::default()).unwrap();
    assert_eq!((head.method, head.method_text), (Method::Post, "POST"));
    assert_eq!((head.target, head.host), ("/v1/chat/completions?x=1", "gw:80"));
    assert_eq!(head.framing, RequestFraming::Length(31));
    assert!(head.keep_alive && !head.expect_continue);
    let fields: Vec<_> = head.headers.iter().collect();
    assert_eq!(
        fields,
        [("Host", &b"gw:80"[..]), ("Content-Length", b"31"), ("X-A", b"b")]
    );
    assert_eq!(head.headers.get("x-a"), Some(&b"b"[..]));
    assert_eq!(head.headers.get("x-b"), None);
}

#[test]
fn a_head_has_no_body_without_length_or_coding() {
    let head = parse_request(b"POST / HTTP/1.1\r\nHost: gw\r\n\r\n", &Limits::default()).unwrap();
    assert_eq!(head.framing, RequestFraming::Empty);
}

#[test]
fn methods_are_case_sensitive() {
    let head = parse_request(b"get / HTTP/1.1\r\nHost: gw\r\n\r\n", &Limits::default()).unwrap();
    assert_eq!(
        (head.method, head.method_text, head.method.as_str()),
        (Method::Other, "get", None)
    );
}

#[test]
fn an_absolute_target_equal_to_the_host_becomes_its_path() {
    for (target, host, path) in [
        ("http://gw/v1/models", "gw", "/v1/models"),
        ("HTTP://GW:80/v1/models?a=/", "gw", "/v1/models?a=/"),
        ("https://gw/", "gw:443", "/"),
        ("http://gw", "gw", "/"),
        ("http://[::1]:8080/a", "[::1]:8080", "/a"),
    ] {
        let text = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        assert_eq!(
            parse_request(text.as_bytes(), &Limits::default()).unwrap().target,
            path,
            "{target}"
        );
    }
}

#[test]
fn an_absolute_target_that_is_not_the_host_is_refused() {
    for (target, expected) in [
        ("http://evil/", ProtocolError::TargetContradictsHost),
        ("https://gw:80/", ProtocolError::TargetContradictsHost),
        ("http://gw:8080/", ProtocolError::TargetContradictsHost),
        ("http://u@gw/", ProtocolError::InvalidTarget),
        ("http:///", ProtocolError::InvalidTarget),
        ("http://gw?a", ProtocolError::InvalidTarget),
        ("ftp://gw/", ProtocolError::UnsupportedTargetForm),
        ("gw:80", ProtocolError::UnsupportedTargetForm),
        ("*", ProtocolError::UnsupportedTargetForm),
    ] {
        assert_eq!(
            refusal_of_line(&format!("GET {target} HTTP/1.1")),
            expected,
            "{target}"
        );
    }
}

#[test]
fn a_malformed_start_line_is_refused_by_its_rule() {
    for (line, expected) in [
        ("CONNECT gw:80 HTTP/1.1", ProtocolError::ConnectMethod),
        ("GET / HTTP/1.0", ProtocolError::UnsupportedVersion),
        ("GET / HTTP/1.2", ProtocolError::UnsupportedVersion),
        ("GET / http/1.1", ProtocolError::UnsupportedVersion),
        ("GET / HTTP/1.10", ProtocolError::UnsupportedVersion),
        ("GET /", ProtocolError::InvalidStartLine),
        ("GET", ProtocolError::InvalidStartLine),
        ("G(T / HTTP/1.1", ProtocolError::InvalidMethod),
        ("GET  / HTTP/1.1", ProtocolError::InvalidStartLine),
        ("GET /  HTTP/1.1", ProtocolError::InvalidStartLine),
        ("GET / HTTP/1.1 ", ProtocolError::InvalidStartLine),
        ("GET /a b HTTP/1.1", ProtocolError::InvalidStartLine),
        ("GET /a#b HTTP/1.1", ProtocolError::InvalidTarget),
        ("GET /\u{e9} HTTP/1.1", ProtocolError::InvalidTarget),
    ] {
        assert_eq!(refusal_of_line(line), expected, "{line}");
    }
}

#[test]
fn a_framing_field_is_refused_by_its_rule() {
    for (fields, expected) in [
        (
            "Content-Length: 5\r\nContent-Length: 5\r\n",
            ProtocolError::DuplicateContentLength,
        ),
        (
            "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
            ProtocolError::LengthAndCoding,
        ),
        (
            "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n",
            ProtocolError::LengthAndCoding,
        ),
        ("Content-Length: 05\r\n", ProtocolError::InvalidContentLength),
        (
            "Content-Length: 18446744073709551616\r\n",
            ProtocolError::InvalidContentLength,
        ),
        (
            "Content-Length: 18446744073709551615\r\n",
            ProtocolError::BodyTooLarge,
        ),
        ("Content-Length: 33554433\r\n", ProtocolError::BodyTooLarge),
        (
            "Transfer-Encoding: gzip, chunked\r\n",
            ProtocolError::InvalidTransferEncoding,
        ),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            ProtocolError::InvalidTransferEncoding,
        ),
        ("Transfer_Encoding: chunked\r\n", ProtocolError::ImitatedHeader),
        ("X_Proofgate_Tenant: acme\r\n", ProtocolError::ImitatedHeader),
        ("Host: gw\r\n", ProtocolError::DuplicateHost),
        (
            "Authorization: a\r\nauthorization: a\r\n",
            ProtocolError::DuplicateHeader,
        ),
        ("Expect: 100-continue, x\r\n", ProtocolError::UnknownExpectation),
        (
            "Connection: close, X-Proofgate-Tenant\r\n",
            ProtocolError::ProtectedConnectionOption,
        ),
        (
            "Connection: keep-alive,  Host\r\n",
            ProtocolError::ProtectedConnectionOption,
        ),
        ("Connection: a b\r\n", ProtocolError::InvalidConnection),
    ] {
        assert_eq!(refusal_of_fields(fields), expected, "{fields:?}");
    }
}

#[test]
fn a_malformed_line_is_refused_by_its_rule() {
    for (fields, expected) in [
        ("X-A : 1\r\n", ProtocolError::SpaceBeforeColon),
        ("X-A: 1\r\n b\r\n", ProtocolError::FoldedHeader),
        ("X-A:\r\n\tb\r\n", ProtocolError::FoldedHeader),
        ("X(A): 1\r\n", ProtocolError::InvalidHeaderName),
        (": 1\r\n", ProtocolError::InvalidHeaderName),
        ("X-A\r\n", ProtocolError::InvalidHeaderName),
        ("X-A: a\rb\r\n", ProtocolError::BareCarriageReturn),
        ("X-A: a\nb\r\n", ProtocolError::BareLineFeed),
        ("X-A: a\0b\r\n", ProtocolError::ControlByte),
        ("X-A: a\x7fb\r\n", ProtocolError::ControlByte),
    ] {
        assert_eq!(refusal_of_fields(fields), expected, "{fields:?}");
    }
}

#[test]
fn the_parser_alone_forgives_no_line_end_that_the_scanner_refuses() {
    for head in [
        "GET / HTTP/1.1\nHost: gw\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: gw\n\r\n",
        "GET / HTTP/1.1\r\nHost: gw\r\n\n",
        "\r\nGET / HTTP/1.1\r\nHost: gw\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: gw\r\n\r\nGET",
        "GET / HTTP/1.1\r\nHost: gw\r\n",
        "GET / HTTP/1.1\r\nHost: gw\r\nX-A: \x01\r\n\r\n",
        "",
    ] {
        assert!(
            parse_request(head.as_bytes(), &Limits::default()).is_err(),
            "{head:?}"
        );
    }
}

#[test]
fn a_body_on_get_head_or_trace_is_refused() {
    for method in ["GET", "HEAD", "TRACE"] {
        let head = |fields| format!("{method} / HTTP/1.1\r\nHost: gw\r\n{fields}\r\n\r\n");
        assert_eq!(refusal(&head("Content-Length: 5")), ProtocolError::UnexpectedBody);
        assert_eq!(
            refusal(&head("Transfer-Encoding: chunked")),
            ProtocolError::UnexpectedBody
        );
        assert!(parse_request(head("Content-Length: 0").as_bytes(), &Limits::default()).is_ok());
    }
}

#[test]
fn a_tab_beside_a_framing_value_is_refused_and_beside_another_is_not() {
    for field in [
        "Content-Length:\t5",
        "Content-Length: 5 \t",
        "Transfer-Encoding: chunked\t",
        "connection: close\t",
        "Connection: TE,\tclose",
        "Expect:\t100-continue",
    ] {
        assert_eq!(
            refusal_of_fields(&format!("{field}\r\n")),
            ProtocolError::InvalidHeaderValue,
            "{field:?}"
        );
    }
    let text = b"POST / HTTP/1.1\r\nHost: gw\r\nX-Host:\ta\tb\t\r\n\r\n";
    let head = parse_request(text, &Limits::default()).unwrap();
    assert_eq!(head.headers.get("x-host"), Some(&b"a\tb"[..]));
}

#[test]
fn a_connection_that_both_closes_and_stays_is_refused() {
    for fields in [
        "Connection: close, Keep-Alive\r\n",
        "Connection: keep-alive\r\nConnection: TE, close\r\n",
    ] {
        assert_eq!(
            refusal_of_fields(fields),
            ProtocolError::InvalidConnection,
            "{fields:?}"
        );
    }
}

#[test]
fn a_websocket_is_refused_with_426_whatever_connection_says() {
    for fields in [
        "Upgrade: websocket\r\nConnection: upgrade\r\n",
        "upgrade: WebSocket\r\n",
        "Upgrade: h2c, websocket/13\r\n",
        "Upgrade: websocket\r\nUpgrade: h2c\r\n",
    ] {
        let refusal = refusal_of_fields(fields);
        assert_eq!(refusal, ProtocolError::WebSocketRequested, "{fields:?}");
        assert_eq!(refusal.status(), 426);
    }
}

#[test]
fn every_other_offer_to_upgrade_is_ignored() {
    for offer in [
        "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAA\r\n",
        "Upgrade: TLS/1.0, x-websocket\r\n",
        "upgrade:\r\n",
        "Connection: upgrade\r\n",
    ] {
        let with_body = format!("POST / HTTP/1.1\r\nHost: gw\r\n{offer}Content-Length: 2\r\n\r\n");
        let head = parse_request(with_body.as_bytes(), &Limits::default()).expect("ignored");
        assert_eq!(head.framing, RequestFraming::Length(2), "{offer:?}");
        assert!(head.keep_alive, "{offer:?}");
    }
    let without_body = b"GET / HTTP/1.1\r\nHost: gw\r\nUpgrade: h2c\r\n\r\n";
    let head = parse_request(without_body, &Limits::default()).expect("ignored");
    assert!(
        !head.keep_alive,
        "what follows may be taken for the other protocol"
    );
}

#[test]
fn a_name_that_imitates_a_protected_one_is_refused() {
    for name in [
        "Content_Length",
        "content.length",
        "X~Api~Key",
        "X_Goog-Api_Key",
        "X_Forwarded_For",
    ] {
        assert_eq!(
            refusal_of_fields(&format!("{name}: 1\r\n")),
            ProtocolError::ImitatedHeader,
            "{name}"
        );
    }
    let head = b"POST / HTTP/1.1\r\nHost: gw\r\nX_Request.Id: 1\r\nContentLength: 1\r\n\r\n";
    assert!(parse_request(head, &Limits::default()).is_ok());
}

#[test]
fn a_field_that_says_who_asks_is_given_once() {
    for name in [
        "Authorization",
        "api-key",
        "X-Api-Key",
        "x-goog-api-key",
        "Content-Type",
    ] {
        assert_eq!(
            refusal_of_fields(&format!("{name}: a\r\n{name}: a\r\n")),
            ProtocolError::DuplicateHeader,
            "{name}"
        );
    }
}

#[test]
fn the_fields_that_can_hold_a_key_are_told_apart_whatever_their_case_and_order() {
    let text = b"GET / HTTP/1.1\r\nX-GOOG-API-KEY: goog\r\napi-key: \t azure \r\nHost: gw\r\nX-Key: none\r\n\
        x-Api-Key: anthropic\r\nAUTHORIZATION: Bearer openai\r\n\r\n";
    let keys = parse_request(text, &Limits::default()).unwrap().keys;
    assert_eq!(keys.authorization, Some(&b"Bearer openai"[..]));
    assert_eq!(keys.x_api_key, Some(&b"anthropic"[..]));
    assert_eq!(keys.api_key, Some(&b"azure"[..]));
    assert_eq!(keys.x_goog_api_key, Some(&b"goog"[..]));
}

#[test]
fn a_field_that_holds_no_key_is_there_and_one_that_is_not_sent_is_not() {
    let text = b"GET / HTTP/1.1\r\nHost: gw\r\nX-Api-Key:\r\nKey: a\r\nX-Goog-Api-Keys: a\r\n\r\n";
    let keys = parse_request(text, &Limits::default()).unwrap().keys;
    assert_eq!(keys.x_api_key, Some(&b""[..]));
    assert_eq!(
        (keys.authorization, keys.api_key, keys.x_goog_api_key),
        (None, None, None)
    );
}

#[test]
fn a_target_holds_only_what_a_url_holds() {
    for target in [
        "/a\"b", "/a<b", "/a>b", "/a\\b", "/a^b", "/a`b", "/{a}", "/a?\"", "/a?<", "/a?>", "/a%", "/a%4",
        "/a%zz", "/a%00", "/a?b=%", "/a?b=%0",
    ] {
        assert_eq!(
            refusal_of_line(&format!("GET {target} HTTP/1.1")),
            ProtocolError::InvalidTarget,
            "{target}"
        );
    }
    for target in [
        "/a?b[]={c}|^`\\d",
        "/a%2F%7e?%41",
        "/v1beta/models/m:generate;v=1,2/!$&'()*+=@~|[x]",
        "//a//",
        "/?",
    ] {
        let text = format!("GET {target} HTTP/1.1\r\nHost: gw\r\n\r\n");
        assert_eq!(
            parse_request(text.as_bytes(), &Limits::default()).unwrap().target,
            target
        );
    }
}

#[test]
fn a_host_that_other_servers_refuse_is_refused() {
    for host in [
        "",
        ".",
        "..",
        ".gw",
        "a..b",
        "gw..",
        "g%77",
        "g~w",
        "g!w",
        "g=w",
        "gw:00000080",
        "[::1%25eth0]",
        "[v1.a]",
    ] {
        let text = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
        assert_eq!(refusal(&text), ProtocolError::InvalidHost, "{host}");
    }
    for host in ["gw.", "gw_1", "1.2.3.4", "[::]:0", "xn--bcher-kva.example"] {
        let text = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
        assert_eq!(
            parse_request(text.as_bytes(), &Limits::default()).unwrap().host,
            host
        );
    }
}

#[test]
fn every_method_but_connect_is_accepted_without_a_body() {
    for (method, expected) in [
        ("GET", Method::Get),
        ("HEAD", Method::Head),
        ("POST", Method::Post),
        ("PUT", Method::Put),
        ("DELETE", Method::Delete),
        ("OPTIONS", Method::Options),
        ("PATCH", Method::Patch),
        ("TRACE", Method::Trace),
        ("QUERY", Method::Other),
        ("A!#$%&'*+-.^_`|~9", Method::Other),
    ] {
        let text = format!("{method} / HTTP/1.1\r\nHost: gw\r\n\r\n");
        let head = parse_request(text.as_bytes(), &Limits::default()).unwrap();
        assert_eq!((head.method, head.method_text), (expected, method));
    }
}

#[test]
fn a_header_named_by_connection_is_hop_by_hop() {
    let text =
        b"GET / HTTP/1.1\r\nHost: gw\r\nConnection: close, X-Trace\r\nX-Trace: 1\r\nX-Other: 1\r\n\r\n";
    let head = parse_request(text, &Limits::default()).unwrap();
    assert!(!head.keep_alive);
    assert!(head.headers.is_hop_by_hop("x-trace") && head.headers.is_hop_by_hop("TE"));
    assert!(!head.headers.is_hop_by_hop("x-other"));
}

#[test]
fn an_expectation_counts_only_with_a_body() {
    let head = |length: u8| {
        let text = format!(
            "POST / HTTP/1.1\r\nHost: gw\r\nExpect: 100-Continue\r\nContent-Length: {length}\r\n\r\n"
        );
        parse_request(text.as_bytes(), &Limits::default())
            .unwrap()
            .expect_continue
    };
    assert!(head(1));
    assert!(!head(0));
}

#[test]
fn an_expectation_is_100_continue_and_given_once() {
    for fields in [
        "Expect: x\r\n",
        "Expect:\r\n",
        "Expect: 100-continue, x\r\n",
        "Expect: 100-continue\r\nExpect: 100-continue\r\n",
    ] {
        let refused = refusal_of_fields(fields);
        assert_eq!(
            (refused, refused.status()),
            (ProtocolError::UnknownExpectation, 417),
            "{fields:?}"
        );
    }
}

#[test]
fn limits_hold_at_their_edge() {
    let limits = Limits {
        head_bytes: 64,
        target_bytes: 8,
        headers: 2,
        body_bytes: 9,
    };
    let parse = |text: &str| parse_request(text.as_bytes(), &limits).map(|_| ());
    assert_eq!(parse("POST /1234567 HTTP/1.1\r\nHost: g\r\n\r\n"), Ok(()));
    assert_eq!(
        parse("POST /12345678 HTTP/1.1\r\nHost: g\r\n\r\n"),
        Err(ProtocolError::TargetTooLong)
    );
    assert_eq!(
        parse("POST / HTTP/1.1\r\nHost: g\r\nContent-Length: 9\r\n\r\n"),
        Ok(())
    );
    assert_eq!(
        parse("POST / HTTP/1.1\r\nHost: g\r\nContent-Length: 10\r\n\r\n"),
        Err(ProtocolError::BodyTooLarge)
    );
    assert_eq!(
        parse("POST / HTTP/1.1\r\nHost: g\r\nA: 1\r\nB: 1\r\n\r\n"),
        Err(ProtocolError::TooManyHeaders)
    );
    let largest = format!("GET / HTTP/1.1\r\nHost: g\r\nA: {}\r\n\r\n", "a".repeat(64 - 32));
    assert_eq!((largest.len(), parse(&largest)), (64, Ok(())));
    assert_eq!(HeadScanner::new().scan(largest.as_bytes(), &limits), Ok(Some(64)));
    let larger = largest.replace("A: a", "A: aa");
    assert_eq!(parse(&larger), Err(ProtocolError::HeadTooLarge));
    assert_eq!(
        HeadScanner::new().scan(larger.as_bytes(), &limits),
        Err(ProtocolError::HeadTooLarge)
    );
    assert_eq!(
        HeadScanner::new().scan(&[b'a'; 64], &limits),
        Err(ProtocolError::TargetTooLong)
    );
}

#[test]
fn debug_output_shows_no_header_value() {
    let text = b"GET / HTTP/1.1\r\nHost: gw\r\nAuthorization: Bearer secret\r\nX-Api-Key: secret\r\n\r\n";
    let shown = format!("{:?}", parse_request(text, &Limits::default()).unwrap());
    assert!(
        shown.contains("Authorization") && !shown.contains("secret"),
        "{shown}"
    );
}
