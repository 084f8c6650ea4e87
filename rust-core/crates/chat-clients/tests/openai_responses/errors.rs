use super::*;
use proofgate_chat_clients::openai_responses::translate_error;

fn error_of(status: u16, body: &str) -> Value {
    let mut out = Vec::new();
    translate_error(status, body.as_bytes(), &mut out);
    serde_json::from_slice::<Value>(&out).expect("JSON")["error"].clone()
}

#[test]
fn an_error_passes() {
    let said =
        json!({"message": "Bad \"x\"", "type": "invalid_request_error", "param": "model", "code": "c"});
    assert_eq!(error_of(400, &json!({"error": said}).to_string()), said);
}

#[test]
fn a_field_has_the_clients_name() {
    for (theirs, ours) in [
        ("max_output_tokens", json!("max_completion_tokens")),
        ("reasoning.effort", json!("reasoning_effort")),
        ("reasoning.summary", Value::Null),
        ("text.format.schema", json!("response_format")),
        ("text.verbosity", json!("verbosity")),
        ("tools[1].parameters", json!("tools[1].function.parameters")),
        ("tools[1].type", json!("tools[1].type")),
        ("tools", json!("tools")),
        ("input", json!("messages")),
        ("input[3].content", Value::Null),
        ("temperature", json!("temperature")),
    ] {
        let body = json!({"error": {"message": "m", "type": "t", "param": theirs, "code": null}});
        assert_eq!(error_of(400, &body.to_string())["param"], ours, "{theirs}");
    }
}

#[test]
fn a_refused_key_is_not_talked_about() {
    let body = json!({"error": {"message": "Incorrect API key: sk-..x", "type": "invalid_request_error", "code": "invalid_api_key"}});
    let said = error_of(401, &body.to_string());
    assert_eq!(said["message"], "The provider refused the key.");
    assert_eq!(said["code"], "invalid_api_key");
}

#[test]
fn what_cannot_be_read_is_a_general_error() {
    for body in ["", "<html>", "[]", "{\"error\":3}"] {
        assert_eq!(
            error_of(429, body),
            json!({"message": "Too many requests.", "type": "rate_limit_error", "param": null, "code": null})
        );
        assert_eq!(error_of(503, body)["type"], "server_error");
        assert_eq!(error_of(422, body)["type"], "invalid_request_error");
    }
}
