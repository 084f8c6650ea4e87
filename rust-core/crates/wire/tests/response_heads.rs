//! Tests of the framing of response heads, and of refused response heads.

use proofgate_wire::{Limits, Method, ProtocolError, ResponseFraming, ResponseHead, parse_response};

fn parse(text: &str, method: Method) -> Result<ResponseHead<'_>, ProtocolError> {
    parse_response(text.as_bytes(), method, &Limits::default())
}

#[test]
fn the_end_of_the_body_is_where_rfc_9112_says() {
    for (fields, method, expected) in [
        (
            "200 OK\r\nContent-Length: 5\r\n",
            Method::Post,
            ResponseFraming::Length(5),
        ),
        (
            "200 OK\r\nContent-Length: 0\r\n",
            Method::Post,
            ResponseFraming::Empty,
        ),
        (
            "200 OK\r\nTransfer-Encoding: Chunked\r\n",
            Method::Post,
            ResponseFraming::Chunked,
        ),
        ("200 OK\r\n", Method::Post, ResponseFraming::UntilClose),
        ("200 \r\n", Method::Post, ResponseFraming::UntilClose),
        ("200\r\n", Method::Post, ResponseFraming::UntilClose),
        (
            "200 OK\r\nUpgrade: h2c\r\nContent-Length: 5\r\n",
            Method::Post,
            ResponseFraming::Length(5),
        ),
        (
            "200 OK\r\nContent-Length: 5\r\n",
            Method::Head,
            ResponseFraming::Empty,
        ),
        (
            "200 OK\r\nTransfer-Encoding: chunked\r\n",
            Method::Head,
            ResponseFraming::Empty,
        ),
        (
            "304 Not Modified\r\nContent-Length: 5\r\n",
            Method::Get,
            ResponseFraming::Empty,
        ),
        ("204 No Content\r\n", Method::Post, ResponseFraming::Empty),
        (
            "204 No Content\r\nContent-Length: 0\r\n",
            Method::Post,
            ResponseFraming::Empty,
        ),
        ("100 Continue\r\n", Method::Post, ResponseFraming::Empty),
    ] {
        let text = format!("HTTP/1.1 {fields}\r\n");
        assert_eq!(parse(&text, method).unwrap().framing, expected, "{fields:?}");
    }
}

#[test]
fn an_ambiguous_response_is_refused_by_its_rule() {
    for (text, expected) in [
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n",
            ProtocolError::DuplicateContentLength,
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n",
            ProtocolError::LengthAndCoding,
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n",
            ProtocolError::InvalidTransferEncoding,
        ),
        (
            "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n",
            ProtocolError::UnexpectedBody,
        ),
        (
            "HTTP/1.1 100 Continue\r\nTransfer-Encoding: chunked\r\n",
            ProtocolError::UnexpectedBody,
        ),
        (
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n",
            ProtocolError::UnexpectedUpgrade,
        ),
        ("HTTP/1.1 600 Odd\r\n", ProtocolError::InvalidStatus),
        ("HTTP/1.1 099 Odd\r\n", ProtocolError::InvalidStatus),
        ("HTTP/1.1 20 Odd\r\n", ProtocolError::InvalidStartLine),
        (
            "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n",
            ProtocolError::UnsupportedVersion,
        ),
        ("HTTP/2 200\r\n", ProtocolError::UnsupportedVersion),
        ("HTTP/1.1 200 OK\r\nX-A : 1\r\n", ProtocolError::SpaceBeforeColon),
        ("HTTP/1.1 200 OK\r\nX-A: 1\r\n b\r\n", ProtocolError::FoldedHeader),
        ("HTTP/1.1 200 OK\r\nX-A: 1\n", ProtocolError::BareLineFeed),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\t\r\n",
            ProtocolError::InvalidHeaderValue,
        ),
        (
            "HTTP/1.1 200 OK\r\nX-A: \x01\r\n",
            ProtocolError::InvalidHeaderValue,
        ),
    ] {
        assert_eq!(
            parse(&format!("{text}\r\n"), Method::Post).map(|_| ()),
            Err(expected),
            "{text:?}"
        );
    }
}

#[test]
fn a_connection_is_kept_only_when_the_body_ends_before_it() {
    for (fields, expected) in [
        ("Content-Length: 5\r\n", true),
        ("Content-Length: 5\r\nConnection: TE, CLOSE\r\n", false),
        (
            "Content-Length: 5\r\nConnection: keep-alive\r\nConnection: close\r\n",
            false,
        ),
        ("Content-Type: text/event-stream\r\n", false),
    ] {
        let text = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
        assert_eq!(
            parse(&text, Method::Post).unwrap().keep_alive,
            expected,
            "{fields:?}"
        );
    }
}
