use serde_json::value::RawValue;

use crate::json::{write_number, write_string};
use crate::openai_anthropic::body::{Body, ResponseFormat};
use crate::openai_anthropic::effort;
use crate::openai_anthropic::json_text::{JsonText, is_object};
use crate::openai_anthropic::left_out::LeftOut;
use crate::openai_anthropic::messages;
use crate::openai_anthropic::preferences::{in_order, leave_out};
use crate::openai_anthropic::sampling;
use crate::openai_anthropic::tools::Tools;
use crate::openai_anthropic::unreadable::unreadable;
use crate::schema::write_for_claude;
use crate::{Asked, Target, Untranslatable};

/// What asks for JSON where Anthropic has no mode for it. A forced tool would exclude the client's own tools and, on some
/// models, thinking; and a model that may fill in any object likes to leave it empty.
const JSON_OBJECT: &str = "Answer with one JSON object, and with nothing before or behind it.";

/// Writes the Messages request that means what a chat-completions request means.
///
/// `out` gets the JSON body; it is as it was when the request is refused.
///
/// # Errors
/// [`Untranslatable`] when the body is not such a request, when it asks for something that Anthropic does not have and that
/// cannot be left out without asking for something else, or when [`Target::untranslatable`] refuses what it has no counterpart for.
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
    let tools = Tools::read(
        text,
        body.tools.as_deref(),
        body.tool_choice,
        body.parallel_tool_calls,
    )?;

    out.reserve(text.len() + 256);
    out.extend_from_slice(b"{\"model\":");
    write_string(out, target.model);
    out.extend_from_slice(b",\"max_tokens\":");
    let max_tokens = max_tokens(body)?.unwrap_or(target.max_output_tokens);
    write_number(out, max_tokens);
    let mut system = Vec::new();
    let said = body.messages.as_deref().unwrap_or_default();
    messages::write(text, said, &mut left_out, &mut system, out)?;
    let effort = effort::write(body, target.model, max_tokens, &mut left_out, out)?;
    write_output_config(body, effort, &mut left_out, &mut system, out)?;
    if !system.is_empty() {
        out.extend_from_slice(b",\"system\":[");
        // Each block has a comma behind it.
        system.pop();
        out.append(&mut system);
        out.push(b']');
    }
    tools.write(&mut left_out, out)?;
    sampling::write(body, target.model, &mut left_out, out)?;
    write_stop(body.stop, out)?;
    write_rest(body, &mut left_out, out)?;
    if body.stream == Some(true) {
        out.extend_from_slice(b",\"stream\":true");
    }
    out.push(b'}');

    let options = body.stream_options.as_ref();
    Ok(Asked {
        model: model.to_owned(),
        stream: body.stream == Some(true),
        include_usage: options.and_then(|options| options.include_usage) == Some(true),
        json_by_tool: false,
        base64: false,
        dropped: in_order(left_out.into_names(), text),
        response: None,
    })
}

fn max_tokens(body: &Body<'_>) -> Result<Option<u64>, Untranslatable> {
    let count = |name: &'static str, value: Option<&RawValue>| match value {
        None => Ok(None),
        Some(value) => match value.get().parse::<u64>() {
            Ok(count) if count > 0 => Ok(Some(count)),
            _ => Err(Untranslatable::new(
                name,
                format!("{name} has to be an integer above 0"),
            )),
        },
    };
    let older = count("max_tokens", body.max_tokens)?;
    let newer = count("max_completion_tokens", body.max_completion_tokens)?;
    match (older, newer) {
        (Some(older), Some(newer)) if older != newer => Err(Untranslatable::new(
            "max_tokens",
            "max_tokens and max_completion_tokens say different things",
        )),
        _ => Ok(newer.or(older)),
    }
}

/// `response_format`, whose mode without a schema becomes an instruction, and the effort.
fn write_output_config(
    body: &Body<'_>,
    effort: Option<&str>,
    left_out: &mut LeftOut,
    system: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<(), Untranslatable> {
    let schema = schema(body.response_format.as_ref(), left_out, system)?;
    if effort.is_none() && schema.is_none() {
        return Ok(());
    }
    out.extend_from_slice(b",\"output_config\":{");
    if let Some(effort) = effort {
        out.extend_from_slice(b"\"effort\":");
        write_string(out, effort);
    }
    if let Some(schema) = schema {
        if effort.is_some() {
            out.push(b',');
        }
        out.extend_from_slice(b"\"format\":{\"type\":\"json_schema\",\"schema\":");
        write_for_claude(schema.get(), out);
        out.push(b'}');
    }
    out.push(b'}');
    Ok(())
}

fn schema<'b>(
    format: Option<&ResponseFormat<'b>>,
    left_out: &mut LeftOut,
    system: &mut Vec<u8>,
) -> Result<Option<&'b RawValue>, Untranslatable> {
    let Some(format) = format else { return Ok(None) };
    left_out.leave_unknown(format.unknown.as_deref(), |name| {
        format!("response_format.{name}")
    })?;
    match format.kind.as_deref() {
        Some("text") => Ok(None),
        Some("json_object") => {
            messages::write_text_block(system, |out| write_string(out, JSON_OBJECT), None);
            Ok(None)
        }
        Some("json_schema") => {
            let described = format.json_schema.as_ref();
            let unknown = described.and_then(|described| described.unknown.as_deref());
            left_out.leave_unknown(unknown, |name| format!("response_format.json_schema.{name}"))?;
            if described.is_some_and(|described| described.description.is_some()) {
                let name = "response_format.json_schema.description";
                left_out.leave(name, || name.to_owned())?;
            }
            let schema = described.and_then(|described| described.schema);
            let schema = schema.filter(|schema| is_object(schema)).ok_or_else(|| {
                let path = "response_format.json_schema.schema";
                Untranslatable::new(path, "a schema has to be given, as an object")
            })?;
            Ok(Some(schema))
        }
        _ => Err(Untranslatable::new(
            "response_format.type",
            "the provider has the types text, json_object and json_schema only",
        )),
    }
}

fn write_stop(stop: Option<&RawValue>, out: &mut Vec<u8>) -> Result<(), Untranslatable> {
    let Some(stop) = stop else { return Ok(()) };
    let sequences = match JsonText::of(stop) {
        Some(one) => vec![one],
        None => serde_json::from_str::<Vec<JsonText<'_>>>(stop.get())
            .map_err(|_| Untranslatable::new("stop", "stop has to be a string or an array of strings"))?,
    };
    if sequences.is_empty() {
        return Ok(());
    }
    out.extend_from_slice(b",\"stop_sequences\":[");
    for (at, sequence) in sequences.into_iter().enumerate() {
        if sequence.is_blank() {
            let message = "the provider stops at no sequence that is only white space";
            return Err(Untranslatable::new(format!("stop[{at}]"), message));
        }
        out.extend_from_slice(sequence.raw().as_bytes());
        out.push(b',');
    }
    out.pop();
    out.push(b']');
    Ok(())
}

/// Who asks, at which service, and the provider's own place for a cache.
fn write_rest(body: &Body<'_>, left_out: &mut LeftOut, out: &mut Vec<u8>) -> Result<(), Untranslatable> {
    // `safety_identifier` has taken the place of `user`, which is kept for older clients.
    if let Some(user) = body.safety_identifier.or(body.user) {
        if body.user.is_some_and(|other| other != user) {
            left_out.leave("user", || "user".to_owned())?;
        }
        out.extend_from_slice(b",\"metadata\":{\"user_id\":");
        out.extend_from_slice(user.raw().as_bytes());
        out.push(b'}');
    }
    match body.service_tier.as_deref() {
        None => {}
        Some("auto") => out.extend_from_slice(b",\"service_tier\":\"auto\""),
        Some("default") => out.extend_from_slice(b",\"service_tier\":\"standard_only\""),
        Some(_) => left_out.leave("service_tier", || "service_tier".to_owned())?,
    }
    if let Some(cache) = body.cache_control {
        if !is_object(cache) {
            return Err(Untranslatable::new(
                "cache_control",
                "cache_control has to be an object",
            ));
        }
        out.extend_from_slice(b",\"cache_control\":");
        out.extend_from_slice(cache.get().as_bytes());
    }
    Ok(())
}
