//! An accepted response head never leaves its body's end in doubt.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofgate_wire::{HeadScanner, Limits, Method, ResponseFraming, encode, parse_response};
use std::cell::RefCell;

thread_local! {
    static AGAIN: RefCell<Vec<u8>> = RefCell::new(Vec::with_capacity(32 * 1024));
}

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits::default();
    let scanned = HeadScanner::new().scan(bytes, &limits);
    let Ok(Some(length)) = scanned else {
        assert!(parse_response(bytes, Method::Post, &limits).is_err());
        return;
    };
    let Ok(head) = parse_response(&bytes[..length], Method::Post, &limits) else {
        return;
    };
    assert!((100..=599).contains(&head.status) && head.status != 101);
    if head.status < 200 || head.status == 204 || head.status == 304 {
        assert_eq!(head.framing, ResponseFraming::Empty);
    }
    assert!(!(head.keep_alive && head.framing == ResponseFraming::UntilClose));
    let to_head =
        parse_response(&bytes[..length], Method::Head, &limits).expect("the method changes only the body");
    assert_eq!(to_head.framing, ResponseFraming::Empty);

    AGAIN.with_borrow_mut(|again| {
        again.clear();
        encode::write_response_head(again, head.status, head.headers.iter()).expect("it is valid");
        let unlimited = Limits {
            head_bytes: usize::MAX,
            ..limits
        };
        let reread = parse_response(again, Method::Post, &unlimited).expect("it is valid again");
        assert_eq!(
            (reread.status, reread.framing, reread.keep_alive),
            (head.status, head.framing, head.keep_alive)
        );
        assert!(head.headers.iter().eq(reread.headers.iter()));
    });
});
