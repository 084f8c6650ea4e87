//! Requests to a provider, and reading its responses as they pass through.

use proofgate_providers::{
    BaseUrl, BaseUrlError, BodyKind, Dialect, EventBoundaries, EventMeaning, EventReader, ProviderKey,
    RequestTemplate, Usage, UsageReader, is_usage_only,
};
use proptest::prelude::*;

/// Returns the events of a stream cut into these pieces; the last event may be incomplete.
fn events(pieces: &[&[u8]]) -> Vec<Vec<u8>> {
    let mut ends = EventBoundaries::default();
    let (mut events, mut event) = (Vec::new(), Vec::new());
    for piece in pieces {
        let mut rest = *piece;
        while let Some(end) = ends.next_boundary(rest) {
            event.extend_from_slice(&rest[..end]);
            events.push(std::mem::take(&mut event));
            rest = &rest[end..];
        }
        event.extend_from_slice(rest);
    }
    events.push(event);
    events
}

#[test]
fn the_ends_of_events_are_found_however_the_stream_is_cut() {
    let streams: [(&[u8], usize); 4] = [
        (b"data: 1\n\n: comment\n\ndata: 2\ndata: 3\n\nrest", 3),
        (b"data: 1\r\n\r\ndata: 2\r\n\r\n", 2),
        (b"data: 1\r\rdata: 2\r\rrest", 2),
        (b"\n\ndata: 1\r\n\ndata: 2\n\r\n", 4),
    ];
    for (stream, count) in streams {
        assert_eq!(events(&[stream]).len(), count + 1, "{}", stream.escape_ascii());
        for cut in 0..=stream.len() {
            let cut = events(&[&stream[..cut], &stream[cut..]]);
            assert_eq!(cut.concat(), stream);
            assert_eq!(cut.len(), count + 1, "{}", stream.escape_ascii());
        }
    }
}

proptest! {
    #[test]
    fn events_end_where_the_reader_of_events_sees_them_end(
        stream in "(data: x|:|\r\n|\n|\r|y){0,12}",
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
    ) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &stream.as_bytes()[cut[0]..cut[1]]).collect();
        let cut = events(&pieces);
        let mut reader = EventReader::new(1000);
        reader.push(stream.as_bytes());
        let mut count = 0;
        while reader.next_event().unwrap().is_some() {
            count += 1;
        }
        // After a final CR, the reader waits for a possible LF.
        let waits = usize::from(stream.ends_with('\r'));
        prop_assert!((count..=count + waits).contains(&(cut.len() - 1)));
        prop_assert_eq!(cut.concat(), stream.as_bytes());
    }

    #[test]
    fn usage_is_the_same_however_an_answer_is_cut(
        parts in prop::collection::vec(prop::sample::select(&[
            "\"usage\"", "\"usage\":", " ", "{", "}", "{\"prompt_tokens\":7}", "null", "\"", "\"usage\" : {\"completion_tokens\":1,\"prompt_tokens\":9}", "\\\"usage\\\"", "x",
        ][..]), 0..12),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..5),
    ) {
        let answer = parts.concat();
        let mut whole = UsageReader::default();
        whole.push(answer.as_bytes());
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(answer.len() + 1)).collect();
        cuts.extend([0, answer.len()]);
        cuts.sort_unstable();
        let mut reader = UsageReader::default();
        for cut in cuts.windows(2) {
            reader.push(&answer.as_bytes()[cut[0]..cut[1]]);
        }
        prop_assert_eq!(reader.usage(), whole.usage());
    }
}

#[test]
fn the_end_marker_is_a_line_of_its_own() {
    for event in [
        "data: [DONE]\n\n",
        "data:[DONE]\r\n\r\n",
        "event: end\ndata: [DONE]\n\n",
        "data: [DONE]",
    ] {
        assert_eq!(
            EventMeaning::classify(Dialect::Chat, event.as_bytes()),
            EventMeaning::SuccessfulEnd,
            "{event:?}"
        );
    }
    for event in [
        "data: {\"a\":\"data: [DONE]\"}\n\n",
        " data: [DONE]\n\n",
        "data: [DONE",
        "data: [DONE] 1\n\n",
        "",
    ] {
        assert_eq!(
            EventMeaning::classify(Dialect::Chat, event.as_bytes()),
            EventMeaning::Part,
            "{event:?}"
        );
    }
}

#[test]
fn the_event_that_brings_usage_alone_is_told_from_the_others() {
    let usage = r#""usage":{"prompt_tokens":1,"completion_tokens":2}"#;
    for (event, alone) in [
        (format!("data: {{\"choices\":[],{usage}}}\n\n"), true),
        (format!("data:{{{usage},\"choices\":[ ]}}\r\n\r\n"), true),
        (format!("data: {{\"choices\":[{{}}],{usage}}}\n\n"), false),
        // ROCm/ATOM#1711.
        (format!("data: {{{usage}}}\n\n"), true),
        ("data: {\"choices\":[],\"usage\":null}\n\n".into(), false),
        (format!("data: {{\"choices\":[],{usage}}}\ndata: 1\n\n"), false),
        ("data: [DONE]\n\n".into(), false),
    ] {
        assert_eq!(is_usage_only(event.as_bytes()), alone, "{event}");
    }
}

#[test]
fn usage_is_read_wherever_it_stands_in_an_answer_and_however_that_is_cut() {
    let long = "x".repeat(10_000);
    let usage =
        r#""usage":{"prompt_tokens":12,"completion_tokens":34,"total_tokens":46,"details":{"cached":{}}}"#;
    let quoted = r#""choices":[{"message":{"content":"\"usage\":{\"prompt_tokens\":1}"}}]"#;
    for answer in [
        format!("{{{quoted},{usage}}}"),
        format!("{{{usage},{quoted},\"text\":\"{long}\"}}"),
    ] {
        for cut in 0..answer.len().min(300) {
            let mut reader = UsageReader::default();
            reader.push(&answer.as_bytes()[..cut]);
            reader.push(&answer.as_bytes()[cut..]);
            let usage = Usage {
                prompt_tokens: 12,
                completion_tokens: 34,
                ..Usage::default()
            };
            assert_eq!(reader.usage(), Some(usage));
        }
    }
}

#[test]
fn the_null_usage_of_a_streams_chunks_is_passed_over_and_the_last_usage_counts() {
    let mut reader = UsageReader::default();
    assert!(!reader.push(b"data: {\"usage\":null}\n\n"));
    assert!(reader.push(b"data: {\"usage\":{\"prompt_tokens\":1}}\n\n"));
    assert!(reader.push(b"data: {\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}\n\n"));
    assert!(!reader.push(b"data: {\"usage\":null}\n\n"));
    assert_eq!(reader.usage().map(|usage| usage.completion_tokens), Some(2));
}

#[test]
fn what_never_becomes_a_usage_is_passed_over() {
    let mut reader = UsageReader::default();
    reader.push(b"{\"usage\":{\"a\":\"");
    for _ in 0..1000 {
        reader.push(&[b'x'; 10]);
    }
    reader.push(b"\"},\"usage\":{\"prompt_tokens\":5}}");
    assert_eq!(reader.usage().map(|usage| usage.prompt_tokens), Some(5));
}

#[test]
fn a_usage_within_an_object_that_breaks_off_counts_however_the_break_comes() {
    let answer = r#"{"usage":{"usage":{"completion_tokens":1,"prompt_tokens":9}"broken" "#;
    for cut in 0..=answer.len() {
        let mut reader = UsageReader::default();
        reader.push(&answer.as_bytes()[..cut]);
        reader.push(&answer.as_bytes()[cut..]);
        let prompt = reader.usage().map(|usage| usage.prompt_tokens);
        assert_eq!(prompt, Some(9), "cut at {cut}");
    }
}

#[test]
fn a_body_is_known_by_its_first_bytes() {
    for (begin, kind) in [
        ("", None),
        (" \n", None),
        ("da", None),
        ("\u{feff}", None),
        ("{", Some(BodyKind::Object)),
        ("\n \t{", Some(BodyKind::Object)),
        ("data:", Some(BodyKind::Events)),
        (": OPENROUTER PROCESSING", Some(BodyKind::Events)),
        ("\r\n\nevent: x", Some(BodyKind::Events)),
        ("\u{feff}id:1", Some(BodyKind::Events)),
        (" data: x", Some(BodyKind::Other)),
        ("[", Some(BodyKind::Other)),
        ("<html>", Some(BodyKind::Other)),
        ("dat{", Some(BodyKind::Other)),
    ] {
        assert_eq!(BodyKind::detect(begin.as_bytes()), kind, "{begin:?}");
    }
}

#[test]
fn base_urls_are_read() {
    let url = BaseUrl::parse("https://api.example.com/v1/").unwrap();
    assert_eq!(
        (url.tls, url.host.as_str(), url.port, url.path.as_str()),
        (true, "api.example.com", 443, "/v1")
    );
    let url = BaseUrl::parse("http://[::1]:9000").unwrap();
    assert_eq!(
        (url.tls, url.host.as_str(), url.port, url.path.as_str()),
        (false, "::1", 9000, "")
    );
}

#[test]
fn a_base_url_with_a_wrong_part_is_refused_naming_the_part() {
    let cases = [
        ("ftp://host/", BaseUrlError::Scheme),
        ("https://", BaseUrlError::Host),
        ("https://user@host/", BaseUrlError::Host),
        ("https://host:0/", BaseUrlError::Port),
        ("https://host:http/", BaseUrlError::Port),
        ("https://host/v1?x=1", BaseUrlError::Path),
        ("https://host/v 1", BaseUrlError::Path),
    ];
    for (url, error) in cases {
        assert_eq!(BaseUrl::parse(url).unwrap_err(), error, "{url}");
    }
}

#[test]
fn a_request_head_is_complete_and_its_key_is_never_printed() {
    let base = BaseUrl::parse("http://mock:9000/v1").unwrap();
    let template = RequestTemplate::new(
        &base,
        Dialect::Chat,
        Some(ProviderKey {
            header_prefix: "Authorization: Bearer ",
            key: "sk-secret",
        }),
    );
    let mut head = Vec::new();
    template.write("req_1", 42, "", b"", &mut head);
    let head = String::from_utf8(head).unwrap();
    assert!(head.starts_with("POST /v1/chat/completions HTTP/1.1\r\nHost: mock:9000\r\n"));
    assert!(head.contains("\r\nAuthorization: Bearer sk-secret\r\n"));
    assert!(head.ends_with("\r\nX-Request-Id: req_1\r\nContent-Length: 42\r\n\r\n"));
    assert!(!format!("{template:?}").contains("secret"));
}
