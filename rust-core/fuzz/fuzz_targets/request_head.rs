//! An accepted request head has the properties that its readers rely on, and reads the same when written
//! anew.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofgate_wire::{HeadScanner, Limits, RequestFraming, RequestHead, encode, parse_request};
use std::cell::RefCell;

thread_local! {
    static AGAIN: RefCell<Vec<u8>> = RefCell::new(Vec::with_capacity(32 * 1024));
}

/// What the fields that decide about a message say, counted without the parser's help.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    hosts: usize,
    lengths: usize,
    codings: usize,
    authorizations: usize,
    upgrades: usize,
}

fn check(head: &RequestHead<'_>) {
    assert!(head.target.starts_with('/'));
    assert!(
        head.target
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && !b"\"#<>".contains(&byte))
    );
    assert!(!head.host.is_empty() && !head.host.contains([',', '@', ' ', '/']));
    let mut counts = Counts::default();
    for (name, value) in head.headers.iter() {
        assert!(!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':'));
        assert!(!value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)));
        let count = match name.len() {
            4 if name.eq_ignore_ascii_case("host") => &mut counts.hosts,
            7 if name.eq_ignore_ascii_case("upgrade") => &mut counts.upgrades,
            13 if name.eq_ignore_ascii_case("authorization") => &mut counts.authorizations,
            14 if name.eq_ignore_ascii_case("content-length") => &mut counts.lengths,
            17 if name.eq_ignore_ascii_case("transfer-encoding") => &mut counts.codings,
            _ => continue,
        };
        *count += 1;
    }
    assert_eq!((counts.hosts, counts.upgrades), (1, 0));
    assert!(counts.lengths + counts.codings <= 1 && counts.authorizations <= 1);
    assert_eq!(counts.codings == 1, head.framing == RequestFraming::Chunked);
    for (value, name) in [
        (head.keys.authorization, "authorization"),
        (head.keys.x_api_key, "x-api-key"),
        (head.keys.api_key, "api-key"),
        (head.keys.x_goog_api_key, "x-goog-api-key"),
    ] {
        assert_eq!(value, head.headers.get(name));
    }
}

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits::default();
    let scanned = HeadScanner::new().scan(bytes, &limits);
    let whole = parse_request(bytes, &limits);
    let Ok(Some(length)) = scanned else {
        assert!(
            whole.is_err(),
            "what parses as a head is one to the scanner: {whole:?}"
        );
        return;
    };
    assert!(whole.is_err() || length == bytes.len());
    let Ok(head) = parse_request(&bytes[..length], &limits) else {
        return;
    };
    check(&head);
    AGAIN.with_borrow_mut(|again| {
        again.clear();
        encode::write_request_head(again, head.method_text, head.target, head.headers.iter())
            .expect("it is valid");
        let unlimited = Limits {
            head_bytes: usize::MAX,
            ..limits
        };
        let reread = parse_request(again, &unlimited).expect("it is valid again");
        assert_eq!(
            (
                reread.method,
                reread.target,
                reread.framing,
                reread.keep_alive,
                reread.expect_continue
            ),
            (
                head.method,
                head.target,
                head.framing,
                head.keep_alive,
                head.expect_continue
            )
        );
        assert!(head.headers.iter().eq(reread.headers.iter()));
    });
});
