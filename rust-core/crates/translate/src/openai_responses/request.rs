use serde_json::value::RawValue;

use crate::constraints::{Constraint, effort_of_budget, has};
use crate::json::{write_number, write_string};
use crate::openai_anthropic::json_text::{JsonText, is_object};
use crate::openai_anthropic::left_out::LeftOut;
use crate::openai_anthropic::preferences::in_order;
use crate::openai_anthropic::unreadable::unreadable;
use crate::openai_responses::body::{Body, ResponseFormat, Thinking};
use crate::openai_responses::{input, tools};
use crate::{Asked, Target, Untranslatable};

/// The fewest tokens that `max_output_tokens` may be (OpenAI's API reference, Responses).
const LEAST_OUTPUT_TOKENS: u64 = 16;

/// Writes the request to `/v1/responses` that means what a chat-completions request means.
///
/// `out` gets the JSON body; it is as it was when the request is refused.
///
/// # Errors
/// [`Untranslatable`] when the body is not such a request, when it asks for something that Responses do not have and that cannot be
/// left out without asking for something else, or when [`Target::untranslatable`] refuses what has no counterpart.
///
/// Source: openai 3.54.0, `types/responses/response_create_params.py`.
pub fn request(body: &[u8], target: &Target<'_>, out: &mut Vec<u8>) -> Result<Asked, Untranslatable> {
    let text = std::str::from_utf8(body).map_err(|_| Untranslatable::new("", "the body is not UTF-8"))?;
    let read = serde_json::from_str(text).map_err(|error| unreadable(text, text, &error))?;
    let start = out.len();
    let asked = write(text, &read, target, out);
    if asked.is_err() {
        out.truncate(start);
    }
    asked
}

fn write(
    text: &str,
    body: &Body<'_>,
    target: &Target<'_>,
    out: &mut Vec<u8>,
) -> Result<Asked, Untranslatable> {
    let mut left_out = LeftOut::new(target.untranslatable);
    let model = body.model.as_deref().filter(|model| !model.is_empty());
    let model = model.ok_or_else(|| Untranslatable::new("model", "model is missing"))?;
    leave_out(body, &mut left_out)?;

    out.reserve(text.len().saturating_add(256));
    out.extend_from_slice(b"{\"model\":");
    write_string(out, target.model);
    out.extend_from_slice(b",\"store\":false");
    write_include(body, target.model, out);
    let said = body.messages.as_deref().unwrap_or_default();
    input::write(text, said, &mut left_out, out)?;
    tools::write(text, body, &mut left_out, out)?;
    write_limit(body, &mut left_out, out)?;
    write_reasoning(body, target.model, out);
    write_text(body, &mut left_out, out)?;
    write_sampling(body, target.model, &mut left_out, out)?;
    write_rest(body, &mut left_out, out)?;
    out.push(b'}');

    let options = body.stream_options.as_ref();
    Ok(Asked {
        model: model.to_owned(),
        stream: body.stream == Some(true),
        include_usage: options.and_then(|options| options.include_usage) == Some(true),
        json_by_tool: false,
        base64: false,
        response: None,
        dropped: in_order(left_out.into_names(), text),
    })
}

/// Leaves out or refuses what Responses have no words for.
fn leave_out(body: &Body<'_>, left_out: &mut LeftOut) -> Result<(), Untranslatable> {
    for (name, value) in [
        ("n", body.n),
        ("functions", body.functions),
        ("function_call", body.function_call),
        ("modalities", body.modalities),
        ("audio", body.audio),
        ("web_search_options", body.web_search_options),
        ("stop", body.stop),
        ("seed", body.seed),
        ("prediction", body.prediction),
        ("frequency_penalty", body.frequency_penalty),
        ("presence_penalty", body.presence_penalty),
        ("logit_bias", body.logit_bias),
        ("store", body.store),
        ("top_k", body.top_k),
        ("cache_control", body.cache_control),
    ] {
        left_out.leave_value(name, value)?;
    }
    left_out.leave_unknown(body.unknown.as_deref(), str::to_owned)
}

/// What the answer is to have besides: the reasoning, which comes encrypted because the provider keeps nothing. Models that
/// do not reason refuse to be asked for it ("Encrypted content is not supported with this model").
fn write_include(body: &Body<'_>, model: &str, out: &mut Vec<u8>) {
    let reasons = !has(model, Constraint::NoThinking) && !model.contains("-chat");
    let wanted = [
        (reasons, "\"reasoning.encrypted_content\""),
        (body.logprobs == Some(true), "\"message.output_text.logprobs\""),
    ];
    let mut before = ",\"include\":[";
    for (_, name) in wanted.into_iter().filter(|(is_wanted, _)| *is_wanted) {
        out.extend_from_slice(std::mem::replace(&mut before, ",").as_bytes());
        out.extend_from_slice(name.as_bytes());
    }
    if before == "," {
        out.push(b']');
    }
}

fn write_limit(body: &Body<'_>, left_out: &mut LeftOut, out: &mut Vec<u8>) -> Result<(), Untranslatable> {
    let count = |name: &'static str, value: Option<&RawValue>| match value {
        None => Ok(None),
        Some(value) => match value.get().parse::<u64>() {
            Ok(count) if count > 0 => Ok(Some((name, count))),
            _ => Err(Untranslatable::new(
                name,
                format!("{name} has to be an integer above 0"),
            )),
        },
    };
    let older = count("max_tokens", body.max_tokens)?;
    let newer = count("max_completion_tokens", body.max_completion_tokens)?;
    if let (Some((_, older)), Some((_, newer))) = (older, newer)
        && older != newer
    {
        return Err(Untranslatable::new(
            "max_tokens",
            "max_tokens and max_completion_tokens say different things",
        ));
    }
    if let Some((name, limit)) = newer.or(older) {
        if limit < LEAST_OUTPUT_TOKENS {
            left_out.note(name);
        }
        out.extend_from_slice(b",\"max_output_tokens\":");
        write_number(out, limit.max(LEAST_OUTPUT_TOKENS));
    }
    Ok(())
}

/// `reasoning_effort` as the client has it: both APIs have the same levels. `thinking` asks for a summary, and for an effort where
/// nothing else does.
fn write_reasoning(body: &Body<'_>, model: &str, out: &mut Vec<u8>) {
    let thinking = body.thinking.as_ref();
    let effort = body.reasoning_effort.filter(|effort| !effort.is_empty());
    let mut before = ",\"reasoning\":{";
    if let Some(effort) = effort {
        put(&mut before, "\"effort\":", effort.raw(), out);
    } else if let Some(effort) = thinking.and_then(|thinking| effort_of(thinking, model)) {
        put(&mut before, "\"effort\":\"", effort, out);
        out.push(b'"');
    }
    if thinking.is_some_and(shows) {
        put(&mut before, "\"summary\":", "\"auto\"", out);
    }
    if before == "," {
        out.push(b'}');
    }
}

fn put(before: &mut &str, name: &str, value: &str, out: &mut Vec<u8>) {
    for piece in [std::mem::replace(before, ","), name, value] {
        out.extend_from_slice(piece.as_bytes());
    }
}

/// Whether the client wants to see what the model thinks. Where it does not say so, a summary is not asked for: OpenAI refuses it to
/// organizations that are not verified (windmill-labs/windmill#10147), and the newest models of Anthropic show none either.
fn shows(thinking: &Thinking<'_>) -> bool {
    match (thinking.kind.as_deref(), thinking.display.as_deref()) {
        (Some("disabled"), _) => false,
        (_, Some(display)) => display == "summarized",
        (kind, None) => kind == Some("enabled"),
    }
}

/// The effort that a client asks for by `thinking` alone.
fn effort_of(thinking: &Thinking<'_>, model: &str) -> Option<&'static str> {
    match thinking.kind.as_deref() {
        // Models that take tools without an effort have the level `none`.
        Some("disabled")
            if has(model, Constraint::ToolsWithoutEffort) && !has(model, Constraint::ResponsesOnly) =>
        {
            Some("none")
        }
        Some("disabled") => None,
        _ => thinking
            .budget_tokens
            .map(|budget| effort_of_budget(model, budget)),
    }
}

/// `response_format` and `verbosity`.
fn write_text(body: &Body<'_>, left_out: &mut LeftOut, out: &mut Vec<u8>) -> Result<(), Untranslatable> {
    let mut before = ",\"text\":{";
    if let Some(format) = &body.response_format {
        left_out.leave_unknown(format.unknown.as_deref(), |name| {
            format!("response_format.{name}")
        })?;
        match format.kind.as_deref() {
            Some("text") => {}
            Some("json_object") => put(&mut before, "\"format\":", "{\"type\":\"json_object\"}", out),
            Some("json_schema") => {
                put(&mut before, "\"format\":", "{\"type\":\"json_schema\"", out);
                write_schema(format, left_out, out)?;
            }
            _ => {
                return Err(Untranslatable::new(
                    "response_format.type",
                    "the types are text, json_object and json_schema",
                ));
            }
        }
    }
    if let Some(verbosity) = body.verbosity {
        put(&mut before, "\"verbosity\":", verbosity.raw(), out);
    }
    if before == "," {
        out.push(b'}');
    }
    Ok(())
}

fn write_schema(
    format: &ResponseFormat<'_>,
    left_out: &mut LeftOut,
    out: &mut Vec<u8>,
) -> Result<(), Untranslatable> {
    let described = format.json_schema.as_ref();
    let schema = described.and_then(|described| Some((described, described.schema?)));
    let (described, schema) = schema.filter(|(_, schema)| is_object(schema)).ok_or_else(|| {
        let path = "response_format.json_schema.schema";
        Untranslatable::new(path, "a schema has to be given, as an object")
    })?;
    left_out.leave_unknown(described.unknown.as_deref(), |name| {
        format!("response_format.json_schema.{name}")
    })?;
    write_field("name", described.name.map(JsonText::raw), out);
    write_field("description", described.description.map(JsonText::raw), out);
    write_field("schema", Some(schema.get()), out);
    let strict = if described.strict == Some(true) {
        "true"
    } else {
        "false"
    };
    write_field("strict", Some(strict), out);
    out.push(b'}');
    Ok(())
}

/// How words are chosen, as far as the model takes it.
fn write_sampling(
    body: &Body<'_>,
    model: &str,
    left_out: &mut LeftOut,
    out: &mut Vec<u8>,
) -> Result<(), Untranslatable> {
    let is_fixed = has(model, Constraint::DefaultSampling);
    for (name, value) in [("temperature", body.temperature), ("top_p", body.top_p)] {
        if is_fixed {
            left_out.leave_value(name, value)?;
        } else {
            write_field(name, value.map(RawValue::get), out);
        }
    }
    write_field("top_logprobs", body.top_logprobs.map(RawValue::get), out);
    Ok(())
}

/// What both APIs have under one name.
fn write_rest(body: &Body<'_>, left_out: &mut LeftOut, out: &mut Vec<u8>) -> Result<(), Untranslatable> {
    for (name, value) in [
        ("metadata", body.metadata),
        ("moderation", body.moderation),
        ("prompt_cache_options", body.prompt_cache_options),
        ("prompt_cache_retention", body.prompt_cache_retention),
    ] {
        write_field(name, value.map(RawValue::get), out);
    }
    for (name, value) in [
        ("user", body.user),
        ("safety_identifier", body.safety_identifier),
        ("prompt_cache_key", body.prompt_cache_key),
        ("service_tier", body.service_tier),
    ] {
        write_field(name, value.map(JsonText::raw), out);
    }
    if body.stream == Some(true) {
        out.extend_from_slice(b",\"stream\":true");
    }
    let Some(options) = &body.stream_options else {
        return Ok(());
    };
    left_out.leave_unknown(options.unknown.as_deref(), |name| {
        format!("stream_options.{name}")
    })?;
    if let Some(obfuscation) = options.include_obfuscation.filter(|_| body.stream == Some(true)) {
        let obfuscation = if obfuscation { "true" } else { "false" };
        out.extend_from_slice(b",\"stream_options\":{\"include_obfuscation\":");
        out.extend_from_slice(obfuscation.as_bytes());
        out.push(b'}');
    }
    Ok(())
}

/// Writes a member whose value is JSON already, a comma before it.
pub(super) fn write_field(name: &str, json: Option<&str>, out: &mut Vec<u8>) {
    if let Some(json) = json {
        for piece in [",\"", name, "\":", json] {
            out.extend_from_slice(piece.as_bytes());
        }
    }
}
