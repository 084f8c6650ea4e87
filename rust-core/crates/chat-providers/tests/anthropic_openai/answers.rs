//! Whole answers, as the client receives them.

use super::*;

// vercel/ai#14847
#[test]
fn a_call_without_arguments_has_an_empty_input() {
    for arguments in [r#""""#, "null", r#""{}""#, r#"" null ""#, "{}"] {
        let message = format!(
            r#"{{"content":"","tool_calls":[{{"id":"t","function":{{"name":"f","arguments":{arguments}}}}}]}}"#
        );
        let (message, _) = whole(&message, r#""tool_calls""#, NO_USAGE).unwrap();
        assert_eq!(message["content"][0]["input"], json(b"{}"));
        assert_eq!(message["stop_reason"], "tool_use");
    }
}

// litellm#19028
#[test]
fn truncated_arguments_are_an_error_unless_the_answer_was_cut() {
    let message = r#"{"tool_calls":[{"id":"t","function":{"name":"f","arguments":"{\"a\":"}}]}"#;
    let malformed = ResponseError::Malformed("the arguments of a tool call are invalid");
    assert_eq!(
        whole(message, r#""tool_calls""#, NO_USAGE).unwrap_err(),
        malformed
    );
    let (cut, _) = whole(message, r#""length""#, NO_USAGE).unwrap();
    assert_eq!(cut["stop_reason"], "max_tokens");
}

#[test]
fn an_answer_cut_off_before_the_first_argument_of_its_last_call_says_so() {
    let empty = r#"{"id":"t","function":{"name":"f","arguments":""}}"#;
    let absent = r#"{"id":"t","function":{"name":"f"}}"#;
    let called = r#"{"id":"s","function":{"name":"f","arguments":"{}"}}"#;
    for (calls, ends) in [
        (empty.to_owned(), "max_tokens"),
        (absent.to_owned(), "max_tokens"),
        (format!("{called},{empty}"), "max_tokens"),
        (format!("{empty},{called}"), "tool_use"),
    ] {
        let said = format!(r#"{{"tool_calls":[{calls}]}}"#);
        let (message, _) = whole(&said, r#""length""#, NO_USAGE).unwrap();
        assert_eq!(message["stop_reason"], ends, "{calls}");
        let fragments: Vec<String> = [&calls.replace("},{\"id", "}\n{\"id")]
            .into_iter()
            .flat_map(|calls| calls.split('\n').map(str::to_owned).collect::<Vec<_>>())
            .enumerate()
            .map(|(index, call)| format!(r#"{{"tool_calls":[{{"index":{index},{}]}}"#, &call[1..]))
            .collect();
        let fragments: Vec<&str> = fragments.iter().map(String::as_str).collect();
        let streamed = receive(&chunks(&fragments, "length"));
        assert_eq!(
            streamed.of_type("message_delta")[0]["delta"]["stop_reason"],
            ends,
            "{calls}"
        );
    }
}

// bifrost#3638, #6123, litellm#34692, CLIProxyAPI#5733
#[test]
fn an_answer_with_calls_ends_with_them_whatever_the_provider_says() {
    let message = r#"{"content":"","tool_calls":[{"id":"t","function":{"name":"f","arguments":"{}"}}]}"#;
    for reason in [r#""stop""#, r#""eos""#, r#""tool_calls""#, r#""length""#, "null"] {
        let (message, _) = whole(message, reason, NO_USAGE).unwrap();
        assert_eq!(message["stop_reason"], "tool_use");
        assert_eq!(message["content"].as_array().unwrap().len(), 1);
    }
}

#[test]
fn reasons_of_kin_have_their_meaning() {
    let reasons = [
        ("stop", "end_turn"),
        ("eos", "end_turn"),
        ("eos_token", "end_turn"),
        ("a_new_one", "end_turn"),
        ("tool_calls", "end_turn"),
        ("stop_sequence", "stop_sequence"),
        ("length", "max_tokens"),
        ("model_length", "max_tokens"),
        ("content_filter", "refusal"),
    ];
    for (reason, stop) in reasons {
        let (message, _) = whole(r#"{"content":"a"}"#, &format!("\"{reason}\""), NO_USAGE).unwrap();
        assert_eq!(message["stop_reason"], stop);
    }
    let failed = whole(r#"{"content":"a"}"#, r#""error""#, NO_USAGE).unwrap_err();
    assert!(matches!(failed, ResponseError::Failed(_)));
}

// litellm#9812, #11789
#[test]
fn cached_tokens_are_not_counted_twice() {
    let usage = r#"{"prompt_tokens":100,"completion_tokens":5,"total_tokens":105,"prompt_tokens_details":{"cached_tokens":60,"cache_write_tokens":30}}"#;
    let (message, usage) = whole(r#"{"content":"a"}"#, r#""stop""#, usage).unwrap();
    assert_eq!(message["usage"]["input_tokens"], 10);
    assert_eq!(usage.input, 100);
    let absurd = r#"{"prompt_tokens":1,"completion_tokens":-5,"total_tokens":null,"prompt_tokens_details":{"cached_tokens":60}}"#;
    let (message, _) = whole(r#"{"content":"a"}"#, r#""stop""#, absurd).unwrap();
    assert_eq!(message["usage"]["input_tokens"], 0);
    assert_eq!(message["usage"]["output_tokens"], 0);
}

// sub2api#5771, UKGovernmentBEIS/inspect_ai#5528
#[test]
fn reasoning_that_only_the_total_counts_is_output() {
    let usage = r#"{"prompt_tokens":32,"completion_tokens":9,"total_tokens":135}"#;
    let (_, usage) = whole(r#"{"content":"a"}"#, r#""stop""#, usage).unwrap();
    assert_eq!(usage.output, 103);
}

#[test]
fn an_error_under_a_status_of_success_is_no_answer() {
    for body in [
        r#"{"error":{"code":502,"message":"m"}}"#,
        r#"{"object":"error","message":"m","code":400}"#,
        r#"{"choices":[{"index":0,"message":{"content":""},"finish_reason":"error","error":{"code":502}}]}"#,
    ] {
        let mut out = b"before".to_vec();
        let failed = translate_response(body.as_bytes(), &asked(), &mut out);
        assert!(matches!(failed, Err(ResponseError::Failed(_))));
        assert_eq!(out, b"before");
    }
}

#[test]
fn strings_pass_byte_for_byte() {
    let body =
        r#"{"id":"c1","choices":[{"message":{"content":"\u00e9\/\ud83d\ude00é"},"finish_reason":"stop"}]}"#;
    let mut out = Vec::new();
    translate_response(body.as_bytes(), &asked(), &mut out).unwrap();
    assert!(
        String::from_utf8(out)
            .unwrap()
            .contains(r#""text":"\u00e9\/\ud83d\ude00é""#)
    );
}

#[test]
fn encrypted_reasoning_is_the_signature_of_the_thinking_before_it() {
    let message = r#"{"content":"so","reasoning":"a\n\nb\u00e4","reasoning_details":[
        {"type":"reasoning.summary","index":0,"summary":"a"},{"type":"reasoning.summary","index":1,"summary":"b\u00e4"},
        {"type":"reasoning.encrypted","index":2,"id":"rs_1","format":"openai-responses-v1","data":"E\/1"},
        {"type":"reasoning.encrypted","index":3,"data":"E2"},{"type":"reasoning.encrypted","index":4},
        {"type":"reasoning.text","index":5,"text":"c"}]}"#;
    let (message, _) = whole(message, r#""stop""#, NO_USAGE).unwrap();
    let content = message["content"].as_array().unwrap();
    let thinking: Vec<_> = content
        .iter()
        .filter_map(|block| block["thinking"].as_str())
        .collect();
    assert_eq!(thinking, ["a\n\nbä", "", "c"]);
    assert_ne!(content[0]["signature"], content[1]["signature"]);
    assert!(
        content[1]["signature"]
            .as_str()
            .unwrap()
            .starts_with("reasoning_details:")
    );
    assert_eq!(content[2]["signature"], "");
    assert_eq!(content[3]["text"], "so");
}

#[test]
fn details_that_can_be_read_alone_say_nothing_besides() {
    for details in [
        r#"[{"type":"reasoning.text","text":"a","signature":"s"}]"#,
        r#""?""#,
        "[1]",
    ] {
        let message = format!(r#"{{"content":"so","reasoning":"a","reasoning_details":{details}}}"#);
        let (message, _) = whole(&message, r#""stop""#, NO_USAGE).unwrap();
        assert_eq!(message["content"][0]["thinking"], "a");
        assert_eq!(message["content"][0]["signature"], "");
    }
}
