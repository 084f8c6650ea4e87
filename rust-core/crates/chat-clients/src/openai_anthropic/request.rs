use crate::openai_anthropic::messages::{self, parse_cache_control};
use crate::openai_anthropic::tools;
use proofgate_chat_request::{
    ChatRequest, DroppedFields, JSON_OBJECT_INSTRUCTION, OutputFormat, ThinkingSetting, raw_json,
    thinking_setting, translate,
};
use proofgate_dialect::constraints::{Constraint, has_constraint};
use proofgate_dialect::json::{write_all, write_member, write_number, write_string};
use proofgate_dialect::json_text::JsonText;
use proofgate_dialect::object::Object;
use proofgate_dialect::schema::write_for_claude;
use proofgate_dialect::{RequestContext, Target, UntranslatableRequest};

/// The fields that Anthropic supports, in addition to the fields that every provider supports.
const SUPPORTED_FIELDS: &[&str] = &[
    "user",
    "safety_identifier",
    "service_tier",
    "stop",
    "top_k",
    "thinking",
    "parallel_tool_calls",
    "cache_control",
    "messages[].cache_control",
    "messages[].content[].cache_control",
    "messages[].content[].file.filename",
    "messages[].tool_calls[].cache_control",
    "tools[].cache_control",
    "tools[].function.strict",
];

/// Writes the Messages request for a chat-completions request.
///
/// `out` receives the JSON body; it is unchanged if the request is refused.
///
/// # Errors
/// Returns [`UntranslatableRequest`] if the body is not such a request, if it asks for a feature
/// that Anthropic does not have and whose omission would change the request, or if
/// [`Target::untranslatable`] refuses a field without a counterpart.
pub fn translate_request(
    body: &[u8],
    target: &Target<'_>,
    out: &mut Vec<u8>,
) -> Result<RequestContext, UntranslatableRequest> {
    translate(body, target, out, SUPPORTED_FIELDS, |chat, losses, out| {
        write(chat, target, losses, out)
    })
}

fn write(
    chat: &ChatRequest<'_>,
    target: &Target<'_>,
    losses: &mut DroppedFields,
    out: &mut Vec<u8>,
) -> Result<(), UntranslatableRequest> {
    write_all(out, &["{\"model\":"]);
    write_string(out, target.model);
    write_all(out, &[",\"max_tokens\":"]);
    let most = chat
        .max_tokens(losses)?
        .map_or(target.max_output_tokens, |(_, _, most)| most);
    write_number(out, most);
    let mut system = Vec::new();
    messages::write(chat, losses, &mut system, out)?;
    let effort = write_thinking(chat, target.model, most, losses, out)?;
    write_output_config(chat, effort, losses, &mut system, out)?;
    // Each block is followed by a comma.
    if system.pop().is_some() {
        write_all(out, &[",\"system\":["]);
        out.append(&mut system);
        out.push(b']');
    }
    tools::write(chat, losses, out)?;
    let sampling = chat.sampling(target.model, 1.0, losses)?;
    write_member(out, "temperature", sampling.temperature);
    write_member(out, "top_p", sampling.top_p);
    write_member(out, "top_k", sampling.top_k);
    write_stop_sequences(chat, losses, out)?;
    write_rest(chat, losses, out)?;
    if chat.stream == Some(true) {
        write_all(out, &[",\"stream\":true"]);
    }
    out.push(b'}');
    Ok(())
}

/// Writes the member `thinking` and returns the effort that the request names. Below the lowest effort, thinking is
/// disabled.
fn write_thinking<'b>(
    chat: &ChatRequest<'b>,
    model: &str,
    most: u64,
    losses: &mut DroppedFields,
    out: &mut Vec<u8>,
) -> Result<Option<&'b str>, UntranslatableRequest> {
    write_member(out, "thinking", chat.thinking.map(Object::json));
    let has_thinking = chat.thinking.is_some();
    match thinking_setting(chat, model, most, has_thinking, losses)? {
        ThinkingSetting::Level(level) => return Ok(Some(level)),
        ThinkingSetting::Off if has_thinking => {
            let message = "reasoning_effort and thinking contradict each other";
            return Err(UntranslatableRequest::new("reasoning_effort", message));
        }
        ThinkingSetting::Off if !has_constraint(model, Constraint::NoThinking) => {
            write_all(out, &[",\"thinking\":{\"type\":\"disabled\"}"]);
        }
        ThinkingSetting::Budget(tokens) => {
            write_all(out, &[",\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":"]);
            write_number(out, tokens);
            out.push(b'}');
        }
        ThinkingSetting::Unspecified | ThinkingSetting::Off => {}
    }
    Ok(None)
}

/// Writes the effort and `response_format`, whose mode without a schema becomes an instruction.
fn write_output_config(
    chat: &ChatRequest<'_>,
    effort: Option<&str>,
    losses: &mut DroppedFields,
    system: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<(), UntranslatableRequest> {
    let mut before = ",\"output_config\":{";
    if let Some(effort) = effort {
        write_all(out, &[before, "\"effort\":\"", effort, "\""]);
        before = ",";
    }
    match chat.output_format(losses)? {
        OutputFormat::Text => {}
        OutputFormat::Json => {
            write_all(
                system,
                &["{\"type\":\"text\",\"text\":\"", JSON_OBJECT_INSTRUCTION, "\"},"],
            );
        }
        OutputFormat::Schema(_, schema) => {
            write_all(out, &[before, "\"format\":{\"type\":\"json_schema\",\"schema\":"]);
            write_for_claude(schema.json(), out);
            out.push(b'}');
            before = ",";
        }
    }
    if before == "," {
        out.push(b'}');
    }
    Ok(())
}

fn write_stop_sequences(
    chat: &ChatRequest<'_>,
    losses: &mut DroppedFields,
    out: &mut Vec<u8>,
) -> Result<(), UntranslatableRequest> {
    let mut before = ",\"stop_sequences\":[";
    for stop in chat.stop_sequences(usize::MAX, |stop| !stop.is_blank(), losses)? {
        write_all(out, &[before, stop.raw()]);
        before = ",";
    }
    if before == "," {
        out.push(b']');
    }
    Ok(())
}

/// Writes the user, the service tier and the request's own cache mark.
fn write_rest(
    chat: &ChatRequest<'_>,
    losses: &mut DroppedFields,
    out: &mut Vec<u8>,
) -> Result<(), UntranslatableRequest> {
    let mut written: Option<&str> = None;
    // `safety_identifier` replaces `user`, which is kept for older clients.
    for (name, value) in [("safety_identifier", chat.safety_identifier), ("user", chat.user)] {
        let Some(value) = value else { continue };
        match JsonText::from_raw(value) {
            Some(user) if written.is_none() => {
                write_all(out, &[",\"metadata\":{\"user_id\":", user.raw(), "}"]);
                written = Some(user.raw());
            }
            Some(user) if written == Some(user.raw()) => {}
            _ => losses.drop_body_field(name, value.get())?,
        }
    }
    match raw_json(chat.service_tier) {
        None => {}
        Some("\"auto\"") => write_member(out, "service_tier", Some("\"auto\"")),
        Some("\"default\"") => write_member(out, "service_tier", Some("\"standard_only\"")),
        Some(tier) => losses.drop_body_field("service_tier", tier)?,
    }
    write_member(
        out,
        "cache_control",
        parse_cache_control(chat.cache_control, losses),
    );
    Ok(())
}
