//! The parts that both ends are made of.

#![allow(clippy::unwrap_used)]

use stream_load::body::{Body, Framing, Head, read_head};
use stream_load::events::{Events, Stream};
use stream_load::latency::Latencies;
use stream_load::mark;
use stream_load::report::Report;
use stream_load::request;
use stream_load::session::Session;

#[test]
fn a_mark_is_read_as_it_was_written_wherever_it_stands_in_a_line() {
    let line = [
        b"data: {\"content\":\" ".as_slice(),
        &mark::write(0x12_3456_789a),
        b"\"}",
    ]
    .concat();
    assert_eq!(mark::read(&line), Some(0x12_3456_789a));
}

#[test]
fn a_line_without_a_whole_mark_has_none() {
    assert_eq!(mark::read(b"data: [DONE]"), None);
    assert_eq!(mark::read(b"tick-abc"), None);
    assert_eq!(mark::read(b"tick-abcdefghiz"), None);
}

#[test]
fn lateness_survives_the_end_of_a_marks_range() {
    let range = 1 << 40;
    assert_eq!(mark::lateness_us(range + 5, range - 10), 15);
    assert_eq!(mark::lateness_us(100, 90), 10);
}

#[test]
fn a_mark_ahead_of_the_clock_is_not_late() {
    assert_eq!(mark::lateness_us(90, 100), 0);
}

#[test]
fn a_chunked_body_reads_the_same_however_it_is_cut() {
    let wire = b"5\r\nhello\r\n7;x=y\r\n, world\r\n0\r\ntrailer: 1\r\n\r\n";
    for cut in 0..wire.len() {
        let mut body = Body::new(Framing::Chunked);
        let mut payload = Vec::new();
        body.push(&wire[..cut], &mut payload);
        assert!(!body.ended(), "ended at {cut}");
        body.push(&wire[cut..], &mut payload);
        assert_eq!(payload, b"hello, world");
        assert!(body.ended());
    }
}

#[test]
fn a_counted_body_ends_at_its_length_and_an_empty_one_at_once() {
    let mut body = Body::new(Framing::Length(3));
    let mut payload = Vec::new();
    body.push(b"abcd", &mut payload);
    assert_eq!(payload, b"abc");
    assert!(body.ended());
    assert!(Body::new(Framing::Length(0)).ended());
}

#[test]
fn a_body_without_framing_ends_only_with_the_connection() {
    let mut body = Body::new(Framing::Close);
    let mut payload = Vec::new();
    body.push(b"abc", &mut payload);
    assert!(!body.ended());
    assert_eq!(payload, b"abc");
}

#[test]
fn a_head_tells_status_and_framing() {
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nrest";
    assert_eq!(
        read_head(chunked),
        Some(Head {
            length: 47,
            status: 200,
            framing: Framing::Chunked
        })
    );
    let counted = b"HTTP/1.1 503 No\r\ncontent-length: 9\r\n\r\n";
    assert_eq!(
        read_head(counted),
        Some(Head {
            length: 38,
            status: 503,
            framing: Framing::Length(9)
        })
    );
    assert_eq!(read_head(b"HTTP/1.1 200 OK\r\n"), None);
}

#[test]
fn a_request_is_taken_only_when_its_body_is_whole() {
    let head = "POST /v1/chat/completions HTTP/1.1\r\ncontent-length: 15\r\n\r\n";
    assert_eq!(request::read(format!("{head}{{\"stream\":true").as_bytes()), None);
    let whole = format!("{head}{{\"stream\":true}}GET");
    assert_eq!(
        request::read(whole.as_bytes()),
        Some(request::Request {
            length: head.len() + 15,
            stream: true,
            calls_tools: false,
            events: Events::OpenAi,
        })
    );
}

#[test]
fn a_chunked_request_is_understood() {
    let text = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n{\"stream\": true}\r\n0\r\n\r\n";
    assert_eq!(
        request::read(text.as_bytes()),
        Some(request::Request {
            length: text.len(),
            stream: true,
            calls_tools: false,
            events: Events::OpenAi,
        })
    );
}

#[test]
fn a_report_gives_nearest_rank_percentiles() {
    let mut report = Report {
        lateness_us: (1..=200).rev().collect(),
        ..Report::default()
    };
    let json = report.to_json();
    assert!(
        json.contains(r#""late_p50_us":100,"late_p99_us":198,"late_max_us":200"#),
        "{json}"
    );
}

#[test]
fn a_report_of_nothing_is_still_a_report() {
    assert!(Report::default().to_json().contains(r#""chunks":0"#));
}

#[test]
fn the_path_says_whose_answer_it_is_and_tools_that_it_calls_one() {
    let body = r#"{"tools":[],"stream":true}"#;
    let text = format!(
        "POST /v1/messages HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let request = request::read(text.as_bytes()).unwrap();
    assert_eq!((request.events, request.calls_tools), (Events::Anthropic, true));
}

/// A whole stream of six tokens, each `t` and its number, without the framing of its chunks.
fn streamed(events: Events, with_tools: bool) -> String {
    let mut stream = Stream::new(events, with_tools, 6);
    let mut wire = Vec::new();
    stream.begin(&mut wire);
    for number in 0..6 {
        assert!(!stream.is_over());
        stream.token(&mut wire, &format!("t{number}"));
    }
    assert!(stream.is_over());
    let mut body = Body::new(Framing::Chunked);
    let mut payload = Vec::new();
    body.push(&wire, &mut payload);
    assert!(body.ended());
    String::from_utf8(payload).unwrap()
}

#[test]
fn a_stream_with_a_tools_call_thinks_speaks_and_calls() {
    let text = streamed(Events::OpenAi, true);
    let order = [
        r#"{"reasoning_content":"t1"}"#,
        r#"{"content":"t2"}"#,
        r#""function":{"name":"write_file","arguments":""}"#,
        r#"{"arguments":"{\"content\":\""}"#,
        r#"{"arguments":"t5"}"#,
        r#"{"arguments":"\"}"}"#,
        r#""finish_reason":"tool_calls""#,
        "data: [DONE]",
    ];
    let places: Vec<_> = order.iter().map(|part| text.find(part)).collect();
    assert!(
        places.iter().all(Option::is_some) && places.is_sorted(),
        "{places:?} in {text}"
    );
}

#[test]
fn a_message_with_a_tools_call_has_three_blocks() {
    let text = streamed(Events::Anthropic, true);
    let order = [
        r#""index":0,"content_block":{"type":"thinking""#,
        r#""index":0,"delta":{"type":"thinking_delta","thinking":"t1"}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#""index":1,"delta":{"type":"text_delta","text":"t2"}"#,
        r#""index":2,"content_block":{"type":"tool_use""#,
        r#""index":2,"delta":{"type":"input_json_delta","partial_json":"t5"}"#,
        r#"{"type":"content_block_stop","index":2}"#,
        r#""stop_reason":"tool_use""#,
        "event: message_stop",
    ];
    let places: Vec<_> = order.iter().map(|part| text.find(part)).collect();
    assert!(
        places.iter().all(Option::is_some) && places.is_sorted(),
        "{places:?} in {text}"
    );
}

#[test]
fn a_stream_without_tools_is_text_alone() {
    for events in [Events::OpenAi, Events::Anthropic] {
        let text = streamed(events, false);
        assert!(
            !text.contains("thinking") && !text.contains("reasoning") && !text.contains("tool"),
            "{text}"
        );
        assert!(text.contains("t0") && text.contains("t5"), "{text}");
    }
}

fn session() -> Session {
    Session::read(
        b"{\"at\":\"tick-aaaaaaaaaa\",\"messages\":[\n\"one tick-aaaaaaaaaa\"\n\"two\",\"tick-aaaaaaaaaa\"\n",
    )
    .unwrap()
}

#[test]
fn a_request_of_a_turn_is_the_conversation_up_to_it() {
    let session = session();
    assert_eq!(session.turns(), 2);
    for turn in [1, 2] {
        let mut body = Vec::new();
        session.write(turn, 1, 1, &mut body);
        assert_eq!(body.len(), session.length(turn));
    }
    let mut body = Vec::new();
    session.write(2, 1, 2, &mut body);
    let text = r#"{"at":"tick-aaaaaaaaab","messages":["one tick-aaaaaaaaab","two","tick-aaaaaaaaac"]}"#;
    assert_eq!(String::from_utf8(body).unwrap(), text);
}

#[test]
fn a_session_without_a_turn_is_none() {
    assert!(Session::read(b"{\"messages\":[\n").is_err());
}

#[test]
fn latencies_are_reported_with_their_bytes_and_the_first_failure() {
    let mut found = Latencies::default();
    for latency in 1..=100 {
        found.add(latency, 10);
    }
    found.fail("status 403: \"no\"\n".to_owned());
    found.fail("closed".to_owned());
    let json = found.to_json();
    assert!(
        json.contains(r#""requests":100,"bytes":1000,"failed":2"#),
        "{json}"
    );
    assert!(
        json.contains(r#""p50_us":50,"p99_us":99,"first_failure":"status 403: 'no' ""#),
        "{json}"
    );
}
