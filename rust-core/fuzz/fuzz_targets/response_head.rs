//! An accepted response head never leaves its body's end in doubt.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofgate_wire::{HeadScanner, Limits, Method, ResponseFraming, encode, parse_response};

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits::default();
    let Ok(Some(length)) = HeadScanner::new().scan(bytes, &limits) else {
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

    let mut again = Vec::new();
    encode::write_response_head(&mut again, head.status, head.headers.iter()).expect("it is valid");
    let unlimited = Limits {
        head_bytes: usize::MAX,
        ..limits
    };
    let reread = parse_response(&again, Method::Post, &unlimited).expect("it is valid again");
    assert_eq!(
        (reread.status, reread.framing, reread.keep_alive),
        (head.status, head.framing, head.keep_alive)
    );
});
