//! The parts that both ends are made of.

use stream_load::body::{Body, Framing, Head, read_head};
use stream_load::mark;
use stream_load::report::Report;
use stream_load::request;

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
            stream: true
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
            stream: true
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
