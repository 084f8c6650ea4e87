//! An accepted request head has the properties that its readers rely on, and reads the same when written
//! anew.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofgate_wire::{HeadScanner, Limits, RequestFraming, encode, parse_request};

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits::default();
    let scanned = HeadScanner::new().scan(bytes, &limits);
    if let Ok(whole) = parse_request(bytes, &limits) {
        assert_eq!(
            scanned,
            Ok(Some(bytes.len())),
            "what parses as a head was one to the scanner: {whole:?}"
        );
    }
    let Ok(Some(length)) = scanned else { return };
    let Ok(head) = parse_request(&bytes[..length], &limits) else {
        return;
    };
    assert!(head.target.starts_with('/') && !head.target.contains('#'));
    assert!(!head.host.is_empty() && !head.host.contains([',', '@', ' ', '/']));
    for (name, value) in head.headers.iter() {
        assert!(!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':'));
        assert!(
            !value
                .iter()
                .any(|&byte| byte == b'\r' || byte == b'\n' || byte == 0)
        );
    }
    let count = |name: &str| {
        head.headers
            .iter()
            .filter(|(field, _)| field.eq_ignore_ascii_case(name))
            .count()
    };
    let lengths = count("content-length");
    let codings = count("transfer-encoding");
    assert_eq!(count("host"), 1);
    assert!(lengths + codings <= 1 && count("authorization") <= 1);
    assert_eq!(codings == 1, head.framing == RequestFraming::Chunked);

    let mut again = Vec::new();
    encode::write_request_head(&mut again, head.method_text, head.target, head.headers.iter())
        .expect("it is valid");
    let reread = parse_request(
        &again,
        &Limits {
            head_bytes: usize::MAX,
            ..limits
        },
    )
    .expect("it is valid again");
    assert_eq!(
        (reread.method, reread.target, reread.framing),
        (head.method, head.target, head.framing)
    );
    assert!(head.headers.iter().eq(reread.headers.iter()));
});
