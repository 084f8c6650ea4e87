//! How a provider is addressed, and what is read from its answers as they pass.

use proofgate_providers::{BaseUrl, BaseUrlError, DoneScanner, RequestTemplate, Usage, UsageTail};

#[test]
fn the_end_marker_is_found_however_the_stream_is_cut() {
    let stream = b"data: {\"a\":\"data: [DONE]\"}\n\ndata: [DON]\n\ndata: [DONE]\n\n";
    let marker = stream.len() - "data: [DONE]\n\n".len();
    for cut in 0..=stream.len() {
        let mut scanner = DoneScanner::new();
        let first = scanner.scan(&stream[..cut]);
        let found = first
            .or_else(|| scanner.scan(&stream[cut..]).map(|at| at + cut))
            .unwrap();
        let released = &stream[..found];
        assert!(found >= marker, "cut at {cut}");
        assert!(!released.ends_with(b"data: [DONE]"), "cut at {cut}");
    }
}

#[test]
fn a_stream_without_its_end_marker_has_none() {
    let mut scanner = DoneScanner::new();
    assert_eq!(scanner.scan(b"data: {}\n\n data: [DONE]\n\ndata: [D"), None);
    assert_eq!(scanner.scan(b"\n\n"), None);
}

#[test]
fn usage_is_read_from_the_end_of_an_answer_in_pieces() {
    let answer = br#"{"choices":[{"message":{"content":"\"usage\":{\"prompt_tokens\":1}"}}],"usage":{"prompt_tokens":12,"completion_tokens":34,"total_tokens":46}}"#;
    for cut in 0..=answer.len() {
        let mut tail = UsageTail::default();
        tail.push(&answer[..cut]);
        tail.push(&answer[cut..]);
        assert_eq!(
            tail.usage(),
            Some(Usage {
                prompt_tokens: 12,
                completion_tokens: 34
            })
        );
    }
}

#[test]
fn the_null_usage_of_a_streams_chunks_is_passed_over() {
    let mut tail = UsageTail::default();
    tail.push(
        b"data: {\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}\n\ndata: {\"usage\":null}\n\n",
    );
    assert_eq!(
        tail.usage(),
        Some(Usage {
            prompt_tokens: 1,
            completion_tokens: 2
        })
    );
}

#[test]
fn an_answer_of_any_length_keeps_a_bounded_tail() {
    let mut tail = UsageTail::default();
    for _ in 0..100 {
        tail.push(&[b'x'; 1000]);
    }
    tail.push(&vec![b'y'; 100_000]);
    tail.push(b"\"usage\":{\"prompt_tokens\":5}");
    assert_eq!(
        tail.usage(),
        Some(Usage {
            prompt_tokens: 5,
            completion_tokens: 0
        })
    );
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
    let template = RequestTemplate::chat_completions(&base, Some("sk-secret"));
    let mut head = Vec::new();
    template.write("req_1", 42, &mut head);
    let head = String::from_utf8(head).unwrap();
    assert!(head.starts_with("POST /v1/chat/completions HTTP/1.1\r\nHost: mock:9000\r\n"));
    assert!(head.contains("\r\nAuthorization: Bearer sk-secret\r\n"));
    assert!(head.ends_with("\r\nX-Request-Id: req_1\r\nContent-Length: 42\r\n\r\n"));
    assert!(!format!("{template:?}").contains("secret"));
}
