//! The paths, field names and final events of each dialect.

use proofgate_providers::{BadRequest, BaseUrl, Dialect, EventMeaning, ProviderKey, RequestTemplate};

#[path = "support/reading.rs"]
mod reading;

use reading::read;

fn refused(dialect: Dialect, body: &str) -> BadRequest {
    match read(dialect, body) {
        Err(bad) => bad,
        Ok(_) => unreachable!("{body} was read"),
    }
}

#[test]
fn each_path_speaks_its_dialect() {
    for dialect in Dialect::ALL {
        assert_eq!(Dialect::from_path(dialect.path()), Some(dialect));
    }
    assert_eq!(Dialect::from_path("/v1/chat/completions/"), None);
    assert_eq!(Dialect::from_path("/v1"), None);
}

#[test]
fn a_request_goes_to_its_path_with_the_key_as_its_provider_wants_it() {
    let base = BaseUrl::parse("https://host/prefix/v1").unwrap();
    for (dialect, begin, field) in [
        (
            Dialect::Chat,
            "POST /prefix/v1/chat/completions ",
            "Authorization: Bearer ",
        ),
        (Dialect::Embeddings, "POST /prefix/v1/embeddings ", "api-key: "),
        (
            Dialect::CountTokens,
            "POST /prefix/v1/messages/count_tokens ",
            "x-api-key: ",
        ),
    ] {
        let key = format!("\r\n{field}k\r\n");
        let mut head = Vec::new();
        let fields = b"anthropic-version: 2023-06-01\r\n";
        RequestTemplate::new(
            &base,
            dialect,
            Some(ProviderKey {
                header_prefix: field,
                key: "k",
            }),
        )
        .write("req_1", 7, "", fields, &mut head);
        let head = String::from_utf8(head).unwrap();
        assert!(head.starts_with(begin) && head.contains(&key), "{head}");
        let end = "\r\nanthropic-version: 2023-06-01\r\nX-Request-Id: req_1\r\nContent-Length: 7\r\n\r\n";
        assert!(head.ends_with(end), "{head}");
    }
}

#[test]
fn a_name_that_differs_by_case_from_one_that_is_read_is_refused_in_each_dialect() {
    for (dialect, body, name) in [
        (Dialect::Messages, r#"{"model":"m","System":"x"}"#, "system"),
        (
            Dialect::Responses,
            r#"{"model":"m","Previous_Response_Id":"x"}"#,
            "previous_response_id",
        ),
        (Dialect::Embeddings, r#"{"model":"m","INPUT":"x"}"#, "input"),
        (
            Dialect::Responses,
            r#"{"model":"m","tools":[{"type":"function","Type":"web_search"}]}"#,
            "type",
        ),
    ] {
        assert_eq!(refused(dialect, body), BadRequest::AmbiguousName(name));
    }
}

#[test]
fn tokens_in_the_place_of_text_are_told() {
    for (dialect, body, field) in [
        (
            Dialect::Embeddings,
            r#"{"model":"m","input":[[1,2],[3]]}"#,
            Some("input"),
        ),
        (Dialect::Embeddings, r#"{"model":"m","input":["a","b"]}"#, None),
        (
            Dialect::Completions,
            r#"{"model":"m","prompt":[1,2]}"#,
            Some("prompt"),
        ),
        (Dialect::Completions, r#"{"model":"m","prompt":"a"}"#, None),
    ] {
        let (call, _) = read(dialect, body).unwrap();
        assert_eq!(call.token_ids, field, "{body}");
    }
    let (call, _) = read(Dialect::Embeddings, r#"{"model":"m","input":[[1,2],[3]]}"#).unwrap();
    assert_eq!(call.estimated_prompt_tokens(), 3);
}

#[test]
fn a_completion_may_be_chosen_from_several() {
    let body = r#"{"model":"m","prompt":"a","n":2,"best_of":5}"#;
    assert_eq!(read(Dialect::Completions, body).unwrap().0.choice_count, 5);
}

#[test]
fn each_prompt_of_a_completion_counts_and_the_numbers_of_tokens_are_one() {
    for (prompt, prompts) in [
        (r#"["a","b"]"#, 2),
        ("[[1],[2]]", 2),
        (r#"["a",[1,2],"c"]"#, 3),
        ("[[1,2,3]]", 1),
        ("[1,2]", 1),
        (r#""a""#, 1),
        ("[]", 1),
        ("null", 1),
    ] {
        let body = format!(r#"{{"model":"m","prompt":{prompt}}}"#);
        let (call, _) = read(Dialect::Completions, &body).unwrap();
        assert_eq!(call.prompt_count, prompts, "{prompt}");
    }
    let (call, _) = read(Dialect::Completions, r#"{"model":"m"}"#).unwrap();
    assert_eq!(call.prompt_count, 1);
    let (call, _) = read(Dialect::Embeddings, r#"{"model":"m","input":["a","b"]}"#).unwrap();
    assert_eq!(call.prompt_count, 1, "texts that are embedded have no answers");
}

#[test]
fn zero_names_no_maximum_where_some_take_it_for_none() {
    for (dialect, member, max_tokens) in [
        (Dialect::Chat, r#""max_tokens":0"#, None),
        (Dialect::Chat, r#""max_completion_tokens":0"#, None),
        (
            Dialect::Chat,
            r#""max_tokens":0,"max_completion_tokens":5"#,
            Some(5),
        ),
        (Dialect::Chat, r#""max_tokens":1"#, Some(1)),
        (Dialect::Completions, r#""max_tokens":0"#, None),
        (Dialect::Messages, r#""max_tokens":0"#, Some(0)),
    ] {
        let body = format!(r#"{{"model":"m","messages":[],{member}}}"#);
        let (call, _) = read(dialect, &body).unwrap();
        assert_eq!(call.max_tokens, max_tokens, "{dialect:?} {member}");
    }
}

#[test]
fn the_good_end_of_each_dialect_is_its_own() {
    use EventMeaning::{Failure, Part, SuccessfulEnd};
    for (dialect, event, meaning) in [
        (Dialect::Chat, "data: [DONE]\n\n", SuccessfulEnd),
        (
            Dialect::Chat,
            "data: {\"error\":{\"message\":\"m\"}}\n\n",
            Failure,
        ),
        (Dialect::Chat, "data: {\"choices\":[],\"error\":null}\n\n", Part),
        (
            Dialect::Chat,
            "data: {\"choices\":[{\"delta\":{\"content\":\"\\\"error\\\"\"}}]}\n\n",
            Part,
        ),
        (Dialect::Responses, "data: [DONE]\n\n", Part),
        (
            Dialect::Responses,
            "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{}}\n\n",
            SuccessfulEnd,
        ),
        (
            Dialect::Responses,
            "data: {\"type\":\"response.incomplete\"}\n\n",
            SuccessfulEnd,
        ),
        (
            Dialect::Responses,
            "data: {\"type\":\"response.failed\"}\n\n",
            Failure,
        ),
        (
            Dialect::Responses,
            "event: error\ndata: {\"message\":\"m\"}\n\n",
            Failure,
        ),
        (
            Dialect::Responses,
            "data: {\"type\":\"response.output_text.delta\",\"delta\":\"response.completed\"}\n\n",
            Part,
        ),
        (
            Dialect::Messages,
            "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
            SuccessfulEnd,
        ),
        // The sender may consider the stream complete, but the event is truncated.
        (Dialect::Messages, "event: message_stop\ndata: {\"ty", Part),
        (
            Dialect::Messages,
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n",
            Failure,
        ),
        (
            Dialect::Messages,
            "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"message_stop\"}}\n\n",
            Part,
        ),
        (
            Dialect::Messages,
            "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n",
            Part,
        ),
    ] {
        assert_eq!(
            EventMeaning::classify(dialect, event.as_bytes()),
            meaning,
            "{event}"
        );
    }
}

#[test]
fn the_dialects_of_the_families_are_all_that_there_are() {
    let clients = Dialect::ALL
        .iter()
        .all(|dialect| dialect.family().dialects().contains(dialect));
    assert!(clients);
}
