use crate::openai_responses::{input, tools};
use proofgate_chat_request::{ChatRequest, DroppedFields, OutputFormat, raw_json, translate};
use proofgate_dialect::constraints::{Constraint, effort_for_budget, has_constraint};
use proofgate_dialect::json::{bool_literal, write_all, write_member, write_number, write_string};
use proofgate_dialect::json_text::JsonText;
use proofgate_dialect::object::{Flag, Number, UnescapedString, object};
use proofgate_dialect::{RequestContext, Target, UntranslatableRequest};

/// The minimum of `max_output_tokens` (OpenAI's API reference, Responses).
const MIN_OUTPUT_TOKENS: u64 = 16;

/// The fields that Responses supports, in addition to the fields that every provider supports.
const SUPPORTED_FIELDS: &[&str] = &[
    "parallel_tool_calls",
    "logprobs",
    "top_logprobs",
    "verbosity",
    "thinking",
    "service_tier",
    "user",
    "safety_identifier",
    "metadata",
    "moderation",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "stream_options.include_obfuscation",
    "response_format.json_schema.description",
    "messages[].content[].image_url.detail",
    "messages[].content[].file.filename",
    "messages[].content[].prompt_cache_breakpoint",
    "messages[].tool_calls[].custom",
    "tools[].custom",
    "tools[].function.strict",
];

object! {
    /// Anthropic's field for thinking.
    Thinking { kind("type"): UnescapedString<'b>, budget_tokens: u64, display: UnescapedString<'b> }
}

/// Writes the `/v1/responses` request for a chat-completions request.
///
/// `out` receives the JSON body; it is unchanged if the request is refused.
///
/// # Errors
/// Returns [`UntranslatableRequest`] if the body is not such a request, if it asks for a feature
/// that Responses does not have and whose omission would change the request, or if
/// [`Target::untranslatable`] refuses a field without a counterpart.
///
/// Source: openai 3.54.0, `types/responses/response_create_params.py`.
pub fn translate_request(
    body: &[u8],
    target: &Target<'_>,
    out: &mut Vec<u8>,
) -> Result<RequestContext, UntranslatableRequest> {
    translate(body, target, out, SUPPORTED_FIELDS, |chat, losses, out| {
        write(chat, target.model, losses, out)
    })
}

fn write(
    chat: &ChatRequest<'_>,
    model: &str,
    losses: &mut DroppedFields,
    out: &mut Vec<u8>,
) -> Result<(), UntranslatableRequest> {
    write_all(out, &["{\"model\":"]);
    write_string(out, model);
    write_all(out, &[",\"store\":false"]);
    write_include(chat, model, out);
    input::write(chat, losses, out)?;
    tools::write(chat, losses, out)?;
    write_limit(chat, losses, out)?;
    write_reasoning(chat, model, losses, out)?;
    write_text(chat, losses, out)?;
    let sampling = chat.sampling(model, f64::INFINITY, losses)?;
    write_member(out, "temperature", sampling.temperature);
    write_member(out, "top_p", sampling.top_p);
    write_rest(chat, out);
    out.push(b'}');
    Ok(())
}

/// Writes `include`. It requests the reasoning, which is encrypted because the provider stores nothing. Models that do not
/// reason refuse this ("Encrypted content is not supported with this model").
fn write_include(chat: &ChatRequest<'_>, model: &str, out: &mut Vec<u8>) {
    let reasons = !has_constraint(model, Constraint::NoThinking) && !model.contains("-chat");
    let wanted = [
        (reasons, "\"reasoning.encrypted_content\""),
        (
            chat.logprobs.is_some_and(Flag::is_true),
            "\"message.output_text.logprobs\"",
        ),
    ];
    let mut before = ",\"include\":[";
    for (_, name) in wanted.into_iter().filter(|(is_wanted, _)| *is_wanted) {
        write_all(out, &[std::mem::replace(&mut before, ","), name]);
    }
    if before == "," {
        out.push(b']');
    }
}

fn write_limit(
    chat: &ChatRequest<'_>,
    losses: &mut DroppedFields,
    out: &mut Vec<u8>,
) -> Result<(), UntranslatableRequest> {
    if let Some((name, json, limit)) = chat.max_tokens(losses)? {
        if limit < MIN_OUTPUT_TOKENS {
            losses.record_field(name, json);
        }
        write_all(out, &[",\"max_output_tokens\":"]);
        write_number(out, limit.max(MIN_OUTPUT_TOKENS));
    }
    Ok(())
}

/// Writes `reasoning`. `reasoning_effort` is kept, because both APIs have the same levels.
/// `thinking` requests a summary, and an effort if no other field does.
fn write_reasoning(
    chat: &ChatRequest<'_>,
    model: &str,
    losses: &mut DroppedFields,
    out: &mut Vec<u8>,
) -> Result<(), UntranslatableRequest> {
    let thinking: Thinking<'_> = match chat.thinking {
        Some(thinking) => chat.parse(thinking.json())?,
        None => Thinking::default(),
    };
    losses.drop_unknown(thinking.unknown.as_ref());
    let effort = chat.reasoning_effort.filter(|effort| !effort.is_empty());
    let mut before = ",\"reasoning\":{";
    if let Some(effort) = effort {
        write_next_member(&mut before, "\"effort\":", effort.raw(), out);
    } else if let Some(effort) = thinking.effort(model) {
        write_next_member(&mut before, "\"effort\":\"", effort, out);
        out.push(b'"');
    }
    if thinking.is_visible() {
        write_next_member(&mut before, "\"summary\":", "\"auto\"", out);
    }
    if before == "," {
        out.push(b'}');
    }
    Ok(())
}

fn write_next_member(before: &mut &str, name: &str, value: &str, out: &mut Vec<u8>) {
    write_all(out, &[std::mem::replace(before, ","), name, value]);
}

impl Thinking<'_> {
    /// Returns whether the client wants to see the thoughts. By default no summary is requested: OpenAI refuses it to
    /// organizations that are not verified (windmill-labs/windmill#10147), and Anthropic's newest models show none either.
    fn is_visible(&self) -> bool {
        match (self.kind.as_deref(), self.display.as_deref()) {
            (Some("disabled"), _) => false,
            (_, Some(display)) => display == "summarized",
            (kind, None) => kind == Some("enabled"),
        }
    }

    /// Returns the effort that a client requests by `thinking` alone.
    fn effort(&self, model: &str) -> Option<&'static str> {
        match self.kind.as_deref() {
            // Models that accept tools without an effort have the level `none`.
            Some("disabled")
                if has_constraint(model, Constraint::ToolsWithoutEffort)
                    && !has_constraint(model, Constraint::ResponsesOnly) =>
            {
                Some("none")
            }
            Some("disabled") => None,
            _ => self.budget_tokens.map(|budget| effort_for_budget(model, budget)),
        }
    }
}

/// Writes `response_format` and `verbosity`.
fn write_text(
    chat: &ChatRequest<'_>,
    losses: &mut DroppedFields,
    out: &mut Vec<u8>,
) -> Result<(), UntranslatableRequest> {
    let mut before = ",\"text\":{";
    match chat.output_format(losses)? {
        OutputFormat::Text => {}
        OutputFormat::Json => {
            write_next_member(&mut before, "\"format\":", "{\"type\":\"json_object\"}", out)
        }
        OutputFormat::Schema(described, schema) => {
            write_next_member(&mut before, "\"format\":", "{\"type\":\"json_schema\"", out);
            write_member(out, "name", described.name.map(JsonText::raw));
            write_member(out, "description", described.description.map(JsonText::raw));
            write_member(out, "schema", Some(schema.json()));
            write_member(out, "strict", Some(bool_literal(described.strict == Some(true))));
            out.push(b'}');
        }
    }
    if let Some(verbosity) = chat.verbosity {
        write_next_member(&mut before, "\"verbosity\":", verbosity.get(), out);
    }
    if before == "," {
        out.push(b'}');
    }
    Ok(())
}

/// Writes the fields that have the same name in both APIs.
fn write_rest(chat: &ChatRequest<'_>, out: &mut Vec<u8>) {
    write_member(out, "top_logprobs", chat.top_logprobs.map(Number::json));
    for (name, value) in [
        ("metadata", chat.metadata),
        ("moderation", chat.moderation),
        ("prompt_cache_options", chat.prompt_cache_options),
        ("prompt_cache_retention", chat.prompt_cache_retention),
        ("user", chat.user),
        ("safety_identifier", chat.safety_identifier),
        ("prompt_cache_key", chat.prompt_cache_key),
        ("service_tier", chat.service_tier),
    ] {
        write_member(out, name, raw_json(value));
    }
    if chat.stream != Some(true) {
        return;
    }
    write_all(out, &[",\"stream\":true"]);
    let options = chat.stream_options.as_ref();
    if let Some(obfuscation) = options.and_then(|options| options.include_obfuscation) {
        let obfuscation = obfuscation.get();
        write_all(
            out,
            &[",\"stream_options\":{\"include_obfuscation\":", obfuscation, "}"],
        );
    }
}
