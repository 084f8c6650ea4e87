//! Tests that written messages can be parsed by the same rules.

use proofgate_wire::{Limits, ProtocolError, ResponseFraming, encode, is_hop_by_hop, parse_response};

#[test]
fn a_written_response_head_reads_the_same() {
    let mut out = Vec::new();
    encode::write_status_line(&mut out, 200).unwrap();
    encode::write_header(&mut out, "content-type", b"application/json").unwrap();
    encode::write_content_length(&mut out, u64::MAX);
    out.extend_from_slice(encode::CRLF);
    let head = parse_response(&out, proofgate_wire::Method::Post, &Limits::default()).unwrap();
    assert_eq!(
        (head.status, head.framing),
        (200, ResponseFraming::Length(u64::MAX))
    );
    assert!(out.starts_with(b"HTTP/1.1 200 OK\r\n"));
}

#[test]
fn a_request_head_is_written_whole() {
    let mut out = Vec::new();
    let headers = [("host", &b"api.example"[..]), ("x-a", b"caf\xe9")];
    encode::write_request_head(&mut out, "POST", "/v1/models?a=b", headers).unwrap();
    assert_eq!(
        out,
        b"POST /v1/models?a=b HTTP/1.1\r\nhost: api.example\r\nx-a: caf\xe9\r\n\r\n"
    );
}

#[test]
fn a_part_that_would_break_a_line_is_refused_and_nothing_is_written() {
    let mut out = b"before".to_vec();
    for value in [&b"a\r\nX-Evil: 1"[..], b"a\nb", b"a\rb", b"a\0b"] {
        let headers = [("x-good", &b"1"[..]), ("x-a", value)];
        assert_eq!(
            encode::write_header(&mut out, "x-a", value),
            Err(ProtocolError::InvalidHeaderValue)
        );
        let written = encode::write_request_head(&mut out, "GET", "/", headers);
        assert_eq!(written, Err(ProtocolError::InvalidHeaderValue));
        let written = encode::write_response_head(&mut out, 200, headers);
        assert_eq!(written, Err(ProtocolError::InvalidHeaderValue));
    }
    assert_eq!(
        encode::write_header(&mut out, "x a", b"1"),
        Err(ProtocolError::InvalidHeaderName)
    );
    assert_eq!(
        encode::write_header(&mut out, "", b"1"),
        Err(ProtocolError::InvalidHeaderName)
    );
    assert_eq!(
        encode::write_request_line(&mut out, "GET", "/a b"),
        Err(ProtocolError::InvalidTarget)
    );
    assert_eq!(
        encode::write_request_line(&mut out, "GET ", "/"),
        Err(ProtocolError::InvalidMethod)
    );
    assert_eq!(
        encode::write_status_line(&mut out, 600),
        Err(ProtocolError::InvalidStatus)
    );
    assert_eq!(out, b"before");
}

#[test]
fn chunk_sizes_are_plain_hexadecimal() {
    for (len, expected) in [
        (1, "1\r\n"),
        (15, "f\r\n"),
        (16, "10\r\n"),
        (0xabc_def, "abcdef\r\n"),
        (0, ""),
    ] {
        let mut out = Vec::new();
        encode::write_chunk_header(&mut out, len);
        assert_eq!(out, expected.as_bytes());
    }
}

#[test]
fn hop_by_hop_names_are_known_in_any_case() {
    assert!(is_hop_by_hop("Transfer-Encoding") && is_hop_by_hop("keep-alive"));
    assert!(!is_hop_by_hop("Authorization") && !is_hop_by_hop("Content-Length"));
}
