//! Tests of the incremental search for the end of a head.

use proofgate_wire::{HeadScanner, Limits, ProtocolError};

const HEAD: &[u8] = b"GET / HTTP/1.1\r\nHost: gw\r\n\r\n";

#[test]
fn the_end_is_found_as_soon_as_it_is_there_and_not_before() {
    let limits = Limits::default();
    let mut scanner = HeadScanner::new();
    for length in 0..HEAD.len() {
        assert_eq!(
            scanner.scan(&HEAD[..length], &limits),
            Ok(None),
            "after {length} bytes"
        );
    }
    assert_eq!(scanner.scan(HEAD, &limits), Ok(Some(HEAD.len())));
}

#[test]
fn bytes_after_the_head_are_not_looked_at() {
    let bytes = [HEAD, b"\0\n\r\x01"].concat();
    assert_eq!(
        HeadScanner::new().scan(&bytes, &Limits::default()),
        Ok(Some(HEAD.len()))
    );
}

#[test]
fn a_reset_scanner_starts_the_next_head() {
    let limits = Limits::default();
    let mut scanner = HeadScanner::new();
    assert_eq!(scanner.scan(HEAD, &limits), Ok(Some(HEAD.len())));
    scanner.reset();
    assert_eq!(
        scanner.scan(b"\r\n", &limits),
        Err(ProtocolError::LeadingEmptyLine)
    );
}

#[test]
fn a_forbidden_byte_is_refused_before_the_head_is_complete() {
    for (start, expected) in [
        (&b"\r"[..], ProtocolError::LeadingEmptyLine),
        (b"\n", ProtocolError::LeadingEmptyLine),
        (b"GET / HTTP/1.1\n", ProtocolError::BareLineFeed),
        (b"GET / HTTP/1.1\rH", ProtocolError::BareCarriageReturn),
        (b"GET / HTTP/1.1\r\nX: \0", ProtocolError::ControlByte),
        (b"GET / HTTP/1.1\r\n\rX", ProtocolError::BareCarriageReturn),
        (b"\x16\x03\x01", ProtocolError::ControlByte),
    ] {
        assert_eq!(
            HeadScanner::new().scan(start, &Limits::default()),
            Err(expected),
            "{start:?}"
        );
    }
}

#[test]
fn a_refusal_is_repeated() {
    let mut scanner = HeadScanner::new();
    for _ in 0..2 {
        assert_eq!(
            scanner.scan(b"GET /\nHost", &Limits::default()),
            Err(ProtocolError::BareLineFeed)
        );
    }
}

#[test]
fn a_head_that_never_ends_is_refused_at_the_limit() {
    let limits = Limits {
        head_bytes: 100,
        ..Limits::default()
    };
    let endless = [&b"GET / HTTP/1.1\r\nX: "[..], &[b'a'; 100]].concat();
    assert_eq!(HeadScanner::new().scan(&endless[..99], &limits), Ok(None));
    assert_eq!(
        HeadScanner::new().scan(&endless[..100], &limits),
        Err(ProtocolError::HeadTooLarge)
    );
    assert_eq!(
        HeadScanner::new().scan(&endless, &limits),
        Err(ProtocolError::HeadTooLarge)
    );
}
