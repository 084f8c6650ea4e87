use proofgate_config::{TelemetryConfig, TelemetrySettings, TracesConfig};
use proofgate_wire::{Limits, parse_request};
use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::*;

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const TRACE: u128 = 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c;
const SPAN: u64 = 0xb7ad_6b71_6920_3331;

fn parse(value: &str) -> Option<TraceParent> {
    TraceParent::parse(value.as_bytes())
}

/// Returns the trace of a request with these header lines; `ratio` is the fraction of new traces that are sampled.
fn begun(lines: &str, ratio: f64) -> Trace {
    let config = TelemetryConfig {
        traces: Some(TracesConfig {
            ratio,
            propagate: true,
        }),
        ..TelemetryConfig::default()
    };
    let traces = TelemetrySettings::new(&config).unwrap().traces.unwrap();
    let head = format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
    let parsed = parse_request(head.as_bytes(), &Limits::default());
    let head = parsed.as_ref().unwrap();
    Trace::start(&head.headers, traces, &mut StdRng::seed_from_u64(7))
}

fn written(trace: &Trace) -> String {
    let mut lines = Vec::new();
    trace.write(&mut lines);
    String::from_utf8(lines).unwrap()
}

#[test]
fn a_parent_says_its_trace_its_span_and_whether_it_is_sampled() {
    let flags = |flags| {
        Some(TraceParent {
            trace_id: TRACE,
            span_id: SPAN,
            flags,
        })
    };
    assert_eq!(parse(PARENT), flags(1));
    assert_eq!(parse(&PARENT.replace("-01", "-00")), flags(0));
    assert_eq!(parse(&PARENT.replace("-01", "-ff")), flags(0xff));
}

#[test]
fn of_a_later_version_what_version_00_says_is_read() {
    for later in ["01", "cc", "fe"] {
        let value = PARENT.replacen("00", later, 1);
        assert!(parse(&value).is_some(), "{value}");
        assert!(parse(&format!("{value}-what-the-future-holds")).is_some());
        assert!(parse(&format!("{value}.what-the-future-holds")).is_none());
    }
}

/// The `traceparent` cases of W3C's own tests (trace-context/test/test.py).
#[test]
fn a_malformed_parent_is_ignored() {
    for value in [
        "",
        "00",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-001",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-.0",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0A",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "FF-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ".0-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "0-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "000-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-B7AD6B7169203331-01",
        "00-.af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c1-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b71692033311-01",
        "00_0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331_01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331 01",
    ] {
        assert_eq!(parse(value), None, "{value}");
    }
}

#[test]
fn a_trace_goes_on_with_a_span_of_our_own_and_the_state_as_it_came() {
    let trace = begun(
        &format!("traceparent: {PARENT}\r\ntracestate: rojo=1\r\nTraceState: congo=t61,b=2\r\n"),
        0.0,
    );
    assert_eq!(
        (trace.trace_id, trace.parent_span, trace.sampled),
        (TRACE, SPAN, true)
    );
    assert!(trace.client_span != SPAN && trace.server_span != SPAN && trace.client_span != trace.server_span);
    let client = trace.client_span;
    let expected = format!(
        "traceparent: 00-0af7651916cd43dd8448eb211c80319c-{client:016x}-01\r\ntracestate: rojo=1,congo=t61,b=2\r\n"
    );
    assert_eq!(written(&trace), expected);
}

#[test]
fn a_trace_that_its_sender_does_not_sample_is_not_sampled_here() {
    let trace = begun(&format!("traceparent: {}\r\n", PARENT.replace("-01", "-02")), 1.0);
    assert!(!trace.sampled);
    assert!(written(&trace).ends_with("-02\r\n"));
}

#[test]
fn without_one_parent_that_holds_a_trace_begins_here() {
    let malformed = PARENT.to_uppercase();
    for lines in [
        String::new(),
        format!("traceparent: {PARENT}\r\ntraceparent: {PARENT}\r\n"),
        format!("traceparent: {malformed}a\r\n"),
    ] {
        let lines = format!("{lines}tracestate: rojo=1\r\n");
        let trace = begun(&lines, 1.0);
        assert!(trace.trace_id != TRACE && trace.trace_id != 0);
        assert_eq!((trace.parent_span, trace.sampled), (0, true), "{lines}");
        assert!(!written(&trace).contains("tracestate"), "{lines}");
    }
    assert!(!begun("", 0.0).sampled);
}

#[test]
fn a_state_that_is_too_long_is_not_passed_on() {
    let state = |bytes: usize| format!("a={},b={}", "v".repeat(256), "v".repeat(bytes - 261));
    for (bytes, is_passed) in [(512, true), (513, false)] {
        let lines = format!("traceparent: {PARENT}\r\ntracestate: {}\r\n", state(bytes));
        assert_eq!(
            written(&begun(&lines, 0.0)).contains("tracestate"),
            is_passed,
            "{bytes}"
        );
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_as_it_was(trace in 1u128.., span in 1u64.., flags: u8) {
        let value = format!("00-{trace:032x}-{span:016x}-{flags:02x}");
        prop_assert_eq!(parse(&value), Some(TraceParent { trace_id: trace, span_id: span, flags }));
    }

    #[test]
    fn one_wrong_byte_is_never_read_as_something_else(at in 0usize..VERSION_00_LEN, byte: u8) {
        let mut value = PARENT.as_bytes().to_vec();
        value[at] = byte;
        let digits = byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let is_dash = [2, 35, 52].contains(&at);
        if is_dash && byte != b'-' || !is_dash && !digits {
            prop_assert_eq!(TraceParent::parse(&value), None);
        }
    }

    #[test]
    fn no_bytes_are_too_strange_to_be_looked_at(value: Vec<u8>) {
        let _ = TraceParent::parse(&value);
    }
}
