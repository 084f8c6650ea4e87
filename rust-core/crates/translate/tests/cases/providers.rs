//! Requests and answers that providers or clients failed on in the field, with the expected output, in one table. The first
//! word of a row identifies its case.

use super::*;
use proofgate_translate::{openai_responses, responses_openai};

#[path = "providers/answers.rs"]
mod answers;

/// The outcome of a request or an answer: the translation, and the fields left out.
type Outcome = Result<(Value, Vec<&'static str>), UntranslatableRequest>;

struct Row {
    about: &'static str,
    outcome: Outcome,
}

impl Row {
    fn written(&self) -> &(Value, Vec<&'static str>) {
        let about = self.about;
        let outcome = self.outcome.as_ref();
        outcome.unwrap_or_else(|refused| panic!("{about}: {refused:?}"))
    }

    /// Expects these values at their JSON pointers; `null` means that the value is absent.
    fn has(self, values: &[(&str, Value)]) -> Self {
        let (written, _) = self.written();
        for (pointer, expected) in values {
            let found = written.pointer(pointer).unwrap_or(&Value::Null);
            assert_eq!(found, expected, "{} {pointer}: {written}", self.about);
        }
        self
    }

    /// Expects that these were left out and reported.
    fn drops(self, names: &[&str]) -> Self {
        assert_eq!(self.written().1, names, "{}", self.about);
        self
    }

    /// Expects that it is refused with this path.
    fn refuses(self, path: &str) {
        let refused = self.outcome.expect_err(self.about);
        assert_eq!(refused.param, path, "{}", self.about);
    }
}

fn sent(
    about: &'static str,
    writer: Writer,
    model: &str,
    rule: UntranslatableFieldPolicy,
    body: Value,
) -> Row {
    Row {
        about,
        outcome: written(writer, model, rule, &body),
    }
}

/// Returns a row for a client of Anthropic's messages.
fn messages(about: &'static str, rule: UntranslatableFieldPolicy, fields: Value) -> Row {
    let model = fields["model"].as_str().unwrap_or("gpt").to_owned();
    let mut body = asking(fields);
    body["max_tokens"] = json!(20);
    sent(about, anthropic_openai::translate_request, &model, rule, body)
}

/// Returns a row for a client of Responses.
fn responses(about: &'static str, tools: Value) -> Row {
    let body = json!({"model": "gpt", "input": "Hi", "store": false, "tools": tools});
    sent(about, responses_openai::translate_request, "m", REFUSE, body)
}

fn look_up() -> Value {
    json!({"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]})
}

#[test]
fn clients_of_messages_reach_chat_completions() {
    let used = |thoughts: Value, result: Value| {
        let mut said = thoughts.as_array().unwrap().clone();
        said.push(json!({"type": "tool_use", "id": "u1", "name": "look_up", "input": {"q": "x"}}));
        json!([
            {"role": "user", "content": "What is x?"},
            {"role": "assistant", "content": said},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "u1", "content": result}]},
        ])
    };
    let tools = json!([{"name": "look_up", "input_schema": look_up()}]);
    let png =
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}});
    let seen = json!([{"type": "text", "text": "seen"}, png]);
    messages(
        "12: a picture that a tool returned stands behind all results",
        DROP,
        json!({"tools": tools, "messages": used(json!([]), seen)}),
    )
    .has(&[
        ("/messages/2/role", json!("tool")),
        ("/messages/2/content", json!("seen")),
        ("/messages/3/role", json!("user")),
        ("/messages/3/content/0/type", json!("image_url")),
    ])
    .drops(&[]);
    let thought = json!([{"type": "thinking", "thinking": "Look it up", "signature": ""}]);
    messages(
        "14: a thought returns to the provider that had it",
        DROP,
        json!({"model": "deepseek-reasoner", "tools": tools, "messages": used(thought, json!("y"))}),
    )
    .has(&[("/messages/1/reasoning_content", json!("Look it up"))]);
    let effort = json!({"tools": tools, "output_config": {"effort": "high"}});
    let mut by_model = effort.clone();
    by_model["model"] = json!("gpt-5.4");
    messages(
        "16: tools without an effort, where chat completions refuse both",
        DROP,
        by_model,
    )
    .has(&[("/reasoning_effort", json!("none"))])
    .drops(&["output_config.effort"]);
    assert!(
        openai_responses::requires_responses_api("gpt-5.4", effort.to_string().as_bytes()),
        "16: or by Responses, with both"
    );
    messages(
        "20: what need not be there cannot be strict",
        REFUSE,
        json!({"output_config": {"format": {"type": "json_schema", "schema": {"type": "object", "required": ["x"],
            "properties": {"x": {"type": "number"}, "y": {"type": "number"}}, "additionalProperties": false}}}}),
    )
    .has(&[("/response_format/json_schema/strict", Value::Null)]);
    messages(
        "21: the line that differs from session to session is for Anthropic",
        REFUSE,
        json!({"system": [{"type": "text", "text": "x-anthropic-billing-header: cc_version=9; cch=1;"},
            {"type": "text", "text": "Be kind"}]}),
    )
    .has(&[("/messages/0/content", json!("Be kind"))]);
    messages(
        "06: to keep all thinking asks for nothing elsewhere",
        REFUSE,
        json!({"context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}}),
    )
    .drops(&[]);
    messages(
        "10: a refusal names its field",
        REFUSE,
        json!({"thinking": {"type": "adaptive"}, "top_k": 4}),
    )
    .refuses("top_k");
}

#[test]
fn clients_of_chat_completions_reach_claude() {
    let claude = openai_anthropic::translate_request;
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"],
        "additionalProperties": false});
    let format =
        json!({"type": "json_schema", "json_schema": {"name": "n", "strict": true, "schema": schema}});
    let body = asking(json!({"response_format": format}));
    sent(
        "22: a keyword that is refused stands in words",
        claude,
        "claude-sonnet-4-5",
        REFUSE,
        body,
    )
    .has(&[
        ("/output_config/format/schema/properties/n/minimum", Value::Null),
        (
            "/output_config/format/schema/properties/n/description",
            json!("{minimum: 1}"),
        ),
    ]);
    let body = asking(json!({"reasoning_effort": "high", "max_tokens": 40_000}));
    sent(
        "24: a model without efforts thinks with a budget",
        claude,
        "claude-haiku-4-5",
        DROP,
        body,
    )
    .has(&[
        ("/output_config", Value::Null),
        ("/thinking/budget_tokens", json!(16_384)),
    ]);
    let thought = json!([{"type": "thinking", "index": 0, "thinking": "t", "signature": "S"}]);
    let body = asking(json!({"messages": [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "a", "reasoning_content": "t", "reasoning_details": thought},
        {"role": "user", "content": "and?"},
    ]}));
    sent(
        "26: signed thoughts go on at Anthropic",
        claude,
        "claude-sonnet-4-5",
        REFUSE,
        body.clone(),
    )
    .has(&[("/messages/1/content/0/signature", json!("S"))])
    .drops(&[]);
    let place = "/messages/1/content/0/reasoningContent/reasoningText/signature";
    sent(
        "26: and at Bedrock",
        openai_converse::translate_request,
        "anthropic.claude-sonnet-4-5",
        REFUSE,
        body,
    )
    .has(&[(place, json!("S"))])
    .drops(&[]);
}

fn with_a_call(fields: Value) -> Value {
    let function = json!({"name": "look_up", "arguments": "{\"q\":\"x\"}"});
    let mut body = asking(json!({"messages": [
        {"role": "user", "content": "What is x?"},
        {"role": "assistant", "content": null, "tool_calls": [{"id": "k", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "k", "content": "y"},
        {"role": "user", "content": "In short?"},
    ]}));
    for (name, value) in fields.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

#[test]
fn clients_of_chat_completions_reach_gemini_and_converse() {
    let gemini = openai_gemini::translate_request;
    let tools = json!([{"type": "function", "function": {"name": "look_up", "parameters": look_up()}}]);
    let body = with_a_call(json!({"tools": tools}));
    let signature = "/contents/1/parts/0/thoughtSignature";
    let stand_in = json!("skip_thought_signature_validator");
    sent(
        "29: a call without its signature",
        gemini,
        "gemini-3-flash",
        REFUSE,
        body,
    )
    .has(&[(signature, stand_in)]);
    let said = |part: Value| asking(json!({"messages": [{"role": "user", "content": [part]}]}));
    let marked = said(json!({"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}));
    sent(
        "30: a mark for a cache is left out",
        gemini,
        "gemini-2.5-pro",
        REFUSE,
        marked,
    )
    .drops(&["cache_control"]);
    let image = said(json!({"type": "image_url", "image_url": {"url": "https://pictures.example/b.png"}}));
    let address = json!("https://pictures.example/b.png");
    sent(
        "31: a picture at an address",
        gemini,
        "gemini-2.5-pro",
        REFUSE,
        image.clone(),
    )
    .has(&[("/contents/0/parts/0/fileData/fileUri", address)]);
    sent(
        "31: which Converse does not fetch",
        openai_converse::translate_request,
        "nova",
        DROP,
        image,
    )
    .refuses("messages[0].content[0].image_url.url");
    let file = json!({"filename": "b.pdf", "file_data": "data:application/pdf;base64,JVBERi0xLjcK"});
    let pdf = said(json!({"type": "file", "file": file}));
    sent(
        "35: the name of a file says nothing",
        gemini,
        "gemini-2.5-pro",
        REFUSE,
        pdf,
    )
    .has(&[(
        "/contents/0/parts/0/inlineData/mimeType",
        json!("application/pdf"),
    )])
    .drops(&["messages[].content[].file.filename"]);
    let row = sent(
        "36: calls without tools",
        openai_converse::translate_request,
        "nova",
        REFUSE,
        with_a_call(json!({})),
    );
    let tools = row
        .written()
        .0
        .pointer("/toolConfig/tools")
        .and_then(Value::as_array);
    assert_eq!(tools.map(Vec::len), Some(1), "36: one that is not to be called");
}

#[test]
fn clients_of_responses_reach_chat_completions() {
    let search = json!({"type": "function", "name": "search", "parameters": look_up()});
    let namespace = json!({"type": "namespace", "name": "docs", "description": "d", "tools": [search]});
    let row = responses(
        "01: functions of a namespace are the client's",
        json!([namespace]),
    );
    assert_eq!(row.written().0["tools"].as_array().map(Vec::len), Some(1));
    let shell = json!({"type": "shell", "environment": {"type": "local"}});
    assert!(
        responses("02: so is a shell of its own", json!([shell]))
            .outcome
            .is_ok()
    );
    let web = json!({"type": "web_search", "external_web_access": false});
    let row = responses(
        "04: a tool of the provider's is left out and named",
        json!([search, namespace, web]),
    );
    assert_eq!(row.written().0["tools"].as_array().map(Vec::len), Some(2));
    row.drops(&["tools[].type"]);
}
