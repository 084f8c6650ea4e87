//! A PROXY header is read the same however it arrives, and nothing behind it changes what it says.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofgate_wire::parse_proxy_header;

fuzz_target!(|bytes: &[u8]| {
    let whole = parse_proxy_header(bytes);
    let end = match whole {
        Ok(Some(header)) => {
            assert!((16..=2048).contains(&header.length) && header.length <= bytes.len());
            assert!(header.unique_id.len() + 16 <= header.length);
            assert_eq!(
                parse_proxy_header(&bytes[..header.length]),
                whole,
                "what follows plays no part"
            );
            header.length
        }
        _ => bytes.len(),
    };
    // Until its last byte is there it may be refused early, and must then be refused to the end; it is never
    // believed early.
    let middle = bytes.first().map_or(0, |byte| usize::from(*byte) * 7 % (end + 1));
    for part in [0, 1, 11, 12, 13, 15, 16, 17, middle, end.saturating_sub(1)] {
        let part = part.min(end);
        match parse_proxy_header(&bytes[..part]) {
            Ok(None) => {}
            Ok(Some(header)) => assert_eq!(header.length, part),
            Err(refusal) => assert_eq!(whole, Err(refusal)),
        }
    }
});
