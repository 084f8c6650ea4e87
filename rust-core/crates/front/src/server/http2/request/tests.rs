//! The HTTP/1.1 parser reads every request that is written as the same request, or rejects it.

use http::{HeaderName, HeaderValue, Request};
use proofgate_wire::{HeadScanner, parse_request};
use proptest::prelude::*;

use super::*;

/// Values that `h2` accepts: any without control bytes (RFC 9113 section 8.2.1).
fn value() -> impl Strategy<Value = Vec<u8>> {
    let byte = any::<u8>().prop_filter("no control byte", |&byte| {
        HeaderValue::from_bytes(&[byte]).is_ok()
    });
    prop_oneof![
        proptest::collection::vec(byte, 0..20),
        "(chunked|close|100-continue|gateway[.]test|0|5|12|trailers)".prop_map(String::into_bytes),
    ]
}

fn field() -> impl Strategy<Value = (String, Vec<u8>)> {
    let tricky = "(host|content-length|transfer-encoding|connection|te|cookie|expect|authorization|[!-9a-z^_`|~]{1,9})"
        .prop_filter("a field name", |name| HeaderName::from_bytes(name.as_bytes()).is_ok());
    prop_oneof![
        4 => ("x-[a-z]{1,5}", "[!-~]([!-~ ]{0,9}[!-~])?".prop_map(String::into_bytes)),
        1 => ("cookie", "[a-z]=[a-z]".prop_map(String::into_bytes)),
        1 => ("content-length", "[1-9]{1,5}".prop_map(String::into_bytes)),
        2 => (tricky, value()),
    ]
}

fn uri() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "https://gateway[.]test/[0-9A-Za-z/?=&.-]{0,20}",
        1 => "https://gateway[.]test[/?][!-~]{0,20}",
        1 => "https://[!-~]{1,10}/[!-~]{0,10}",
        1 => "/[!-~]{0,20}",
    ]
}

proptest! {
    #[test]
    fn what_the_parser_accepts_is_the_request_that_was_sent(
        method in "(GET|POST|POST|POST|HEAD|OPTIONS|[!#$%&'*+.^_`|~0-9A-Za-z-]{1,8})",
        uri in uri(),
        fields in proptest::collection::vec(field(), 0..5),
        ended in any::<bool>(),
    ) {
        let mut request = Request::builder().method(&*method).uri(&*uri);
        for (name, value) in &fields {
            request = request.header(
                HeaderName::from_bytes(name.as_bytes()).unwrap(),
                HeaderValue::from_bytes(value).unwrap(),
            );
        }
        let Ok(request) = request.body(()) else { return Ok(()) };
        let (parts, ()) = request.into_parts();
        let mut head = Vec::new();
        let Ok(chunked) = write_head(parts.clone(), ended, &mut head) else { return Ok(()) };
        let limits = Limits::default();
        let Ok(Some(length)) = HeadScanner::new().scan(&head, &limits) else {
            return Err(TestCaseError::fail("a head without an end"));
        };
        prop_assert_eq!(length, head.len(), "something follows the head");
        let Ok(read) = parse_request(&head, &limits) else { return Ok(()) };
        prop_assert!(!read.keep_alive);
        prop_assert_eq!(read.method_text, parts.method.as_str());
        prop_assert_eq!(read.target, parts.uri.path_and_query().unwrap().as_str());
        match read.framing {
            RequestFraming::Empty => prop_assert!(!chunked),
            RequestFraming::Chunked => prop_assert!(chunked),
            RequestFraming::Length(length) => {
                prop_assert!(!chunked);
                prop_assert_eq!(parts.headers["content-length"].to_str().unwrap(), length.to_string());
            }
        }
        for (name, value) in &parts.headers {
            if !matches!(name.as_str(), "te" | "cookie") {
                let found = read.headers.iter().any(|field| field == (name.as_str(), value.as_bytes()));
                prop_assert!(found, "{} is lost", name);
            }
        }
        let written = read.headers.iter().filter(|(name, _)| *name != "cookie").count();
        let own = 1 + usize::from(chunked) + usize::from(!parts.headers.contains_key("host"));
        let kept = parts.headers.iter().filter(|(name, _)| !matches!(name.as_str(), "te" | "cookie"));
        prop_assert_eq!(written, kept.count() + own, "something was added");
    }
}
