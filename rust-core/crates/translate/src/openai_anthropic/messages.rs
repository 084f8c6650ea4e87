use serde_json::value::RawValue;

use crate::Untranslatable;
use crate::chat_place::Place;
use crate::losses::has_effect;
use crate::openai_anthropic::json_text::{JsonText, is_object};
use crate::openai_anthropic::left_out::LeftOut;
use crate::openai_anthropic::object::{Word, object};
use crate::openai_anthropic::parts::Content;
use crate::openai_anthropic::reasoning;
use crate::openai_anthropic::turns::Turns;

object! {
    /// A message of any role.
    Message {
        role: Word<'b>,
        content: &'b RawValue,
        name: &'b RawValue,
        tool_calls: Vec<ToolCall<'b>>,
        tool_call_id: Word<'b>,
        refusal: JsonText<'b>,
        audio: &'b RawValue,
        function_call: &'b RawValue,
        annotations: &'b RawValue,
        reasoning: &'b RawValue,
        reasoning_content: &'b RawValue,
        reasoning_details: &'b RawValue,
        cache_control: &'b RawValue,
        extra_content: &'b RawValue,
        images: &'b RawValue,
    }
}

object! {
    ToolCall {
        id: Word<'b>,
        kind("type"): Word<'b>,
        function: Called<'b>,
        cache_control: &'b RawValue,
        extra_content: &'b RawValue,
        // Where it stood in a stream; some clients send it back.
        index: &'b RawValue,
    }
}

object! {
    Called { name: JsonText<'b>, arguments: JsonText<'b> }
}

/// Writes the member `messages`, with a comma before it; what system and developer messages say goes to `system` as
/// blocks, a comma behind each.
pub(super) fn write(
    body: &str,
    messages: &[Message<'_>],
    left_out: &mut LeftOut,
    system: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<(), Untranslatable> {
    out.extend_from_slice(b",\"messages\":[");
    let mut turns = Turns {
        out,
        role: None,
        results_end: 0,
    };
    for (at, message) in messages.iter().enumerate() {
        let place = Place::message(at);
        let content = Content::read(body, message.content, place)?;
        leave_out(message, place, left_out)?;
        match message.role.as_deref() {
            Some("system" | "developer") => write_system(message, &content, place, left_out, system)?,
            Some("user") => write_user(message, &content, place, left_out, &mut turns)?,
            Some("assistant") => write_assistant(message, &content, place, left_out, &mut turns)?,
            Some("tool") => write_result(message, &content, place, left_out, &mut turns)?,
            _ => {
                let message = "the roles are system, developer, user, assistant and tool";
                return Err(Untranslatable::new(place.field("role"), message));
            }
        }
    }
    if turns.role.is_none() {
        let message = "there has to be a message besides those of the system, and one that is not blank";
        return Err(Untranslatable::new("messages", message));
    }
    turns.end();
    out.pop();
    out.push(b']');
    Ok(())
}

/// What a message has and a turn has not.
fn leave_out(message: &Message<'_>, place: Place, left_out: &mut LeftOut) -> Result<(), Untranslatable> {
    // The name of a tool is known from the call that its result answers.
    let name = message.name.filter(|_| message.role.as_deref() != Some("tool"));
    for (loss, field, value) in [
        ("messages[].audio", "audio", message.audio),
        ("messages[].function_call", "function_call", message.function_call),
        ("messages[].name", "name", name),
        ("messages[].annotations", "annotations", message.annotations),
        ("messages[].extra_content", "extra_content", message.extra_content),
        ("messages[].images", "images", message.images),
    ] {
        if value.is_some_and(|value| has_effect(loss, value.get())) {
            left_out.leave(loss, || place.field(field))?;
        }
    }
    left_out.leave_unknown(message.unknown.as_deref(), |name| place.field(name))
}

fn write_system(
    message: &Message<'_>,
    content: &Content<'_>,
    place: Place,
    left_out: &mut LeftOut,
    system: &mut Vec<u8>,
) -> Result<(), Untranslatable> {
    let cache = cache_control(message.cache_control, place)?;
    for part in content.said(cache) {
        part.expect_text(place)?;
        part.write(place, left_out, system)?;
    }
    Ok(())
}

fn write_user(
    message: &Message<'_>,
    content: &Content<'_>,
    place: Place,
    left_out: &mut LeftOut,
    turns: &mut Turns<'_>,
) -> Result<(), Untranslatable> {
    let cache = cache_control(message.cache_control, place)?;
    for part in content.said(cache) {
        part.write(place, left_out, turns.of("user"))?;
    }
    Ok(())
}

fn write_assistant(
    message: &Message<'_>,
    content: &Content<'_>,
    place: Place,
    left_out: &mut LeftOut,
    turns: &mut Turns<'_>,
) -> Result<(), Untranslatable> {
    let details = reasoning::details(message.reasoning_details, place, left_out)?;
    if details.is_empty() {
        for (name, path, text) in [
            ("messages[].reasoning", "reasoning", message.reasoning),
            (
                "messages[].reasoning_content",
                "reasoning_content",
                message.reasoning_content,
            ),
        ] {
            if text.is_some_and(|text| has_effect(name, text.get())) {
                left_out.leave(name, || place.field(path))?;
            }
        }
    }
    for block in &details {
        block.write(turns.of("assistant"));
    }
    let mut cache = cache_control(message.cache_control, place)?;
    let calls = message.tool_calls.as_deref().unwrap_or_default();
    let refusal = message.refusal.filter(|refusal| !refusal.is_blank());
    let last_cache = if calls.is_empty() && refusal.is_none() {
        cache.take()
    } else {
        None
    };
    for part in content.said(last_cache) {
        part.expect_text(place)?;
        part.write(place, left_out, turns.of("assistant"))?;
    }
    if let Some(refusal) = refusal {
        let cache = if calls.is_empty() { cache.take() } else { None };
        write_text_block(
            turns.of("assistant"),
            |out| out.extend_from_slice(refusal.raw().as_bytes()),
            cache,
        );
    }
    for (at, call) in calls.iter().enumerate() {
        let path = |field: &str| place.field(&format!("tool_calls[{at}].{field}"));
        let function = call
            .function
            .as_ref()
            .and_then(|function| function.unknown.as_deref());
        left_out.leave_unknown(call.unknown.as_deref(), path)?;
        if call.extra_content.is_some() {
            left_out.leave("messages[].extra_content", || path("extra_content"))?;
        }
        left_out.leave_unknown(function, |name| path(&format!("function.{name}")))?;
        let own = cache_control(call.cache_control, place)?;
        let cache = own.or(if at + 1 == calls.len() { cache } else { None });
        write_call(call, path, cache, turns.of("assistant"))?;
    }
    Ok(())
}

fn write_call(
    call: &ToolCall<'_>,
    path: impl Fn(&str) -> String,
    cache: Option<&RawValue>,
    out: &mut Vec<u8>,
) -> Result<(), Untranslatable> {
    if call.kind.as_deref().is_some_and(|kind| kind != "function") {
        return Err(Untranslatable::new(
            path("type"),
            "the provider has calls of functions only",
        ));
    }
    let named = call
        .function
        .as_ref()
        .and_then(|function| Some((function, function.name?)));
    let (Some(id), Some((function, name))) = (call.id.as_deref(), named) else {
        return Err(Untranslatable::new(
            path("function"),
            "a call has to have an id and a function's name",
        ));
    };
    let invalid = || Untranslatable::new(path("function.arguments"), "arguments have to be a JSON object");
    let arguments = match function.arguments {
        Some(arguments) if !arguments.is_blank() => arguments.decoded().ok_or_else(invalid)?,
        _ => "{}".into(),
    };
    let input: &RawValue = serde_json::from_str(&arguments).map_err(|_| invalid())?;
    if !is_object(input) {
        return Err(invalid());
    }
    out.extend_from_slice(b"{\"type\":\"tool_use\",\"id\":");
    write_id(id, || path("id"), out)?;
    out.extend_from_slice(b",\"name\":");
    out.extend_from_slice(name.raw().as_bytes());
    out.extend_from_slice(b",\"input\":");
    out.extend_from_slice(input.get().as_bytes());
    end_block(cache, out);
    Ok(())
}

fn write_result(
    message: &Message<'_>,
    content: &Content<'_>,
    place: Place,
    left_out: &mut LeftOut,
    turns: &mut Turns<'_>,
) -> Result<(), Untranslatable> {
    let path = || place.field("tool_call_id");
    let id = message.tool_call_id.as_deref().unwrap_or_default();
    let out = turns.of("user");
    let start = out.len();
    out.extend_from_slice(b"{\"type\":\"tool_result\",\"tool_use_id\":");
    write_id(id, path, out)?;
    // A place for the cache inside of a result is one behind it.
    let mut cache = cache_control(message.cache_control, place)?;
    let mut begun = false;
    for mut part in content.said(None) {
        cache = part.take_cache_control().or(cache);
        if !begun {
            out.extend_from_slice(b",\"content\":[");
            begun = true;
        }
        part.write(place, left_out, out)?;
    }
    if begun {
        out.pop();
        out.push(b']');
    }
    end_block(cache, out);
    turns.is_result(start);
    Ok(())
}

/// Writes the id of a call with Anthropic's characters only; the same id becomes the same one in the call and in its result.
fn write_id(id: &str, path: impl Fn() -> String, out: &mut Vec<u8>) -> Result<(), Untranslatable> {
    if id.is_empty() {
        return Err(Untranslatable::new(path(), "the id of a call is missing"));
    }
    out.push(b'"');
    for byte in id.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') {
            out.push(byte);
        } else {
            out.extend_from_slice(format!("_{byte:02x}").as_bytes());
        }
    }
    out.push(b'"');
    Ok(())
}

/// Writes a block of text, and a comma behind it.
pub(super) fn write_text_block(out: &mut Vec<u8>, text: impl FnOnce(&mut Vec<u8>), cache: Option<&RawValue>) {
    out.extend_from_slice(b"{\"type\":\"text\",\"text\":");
    text(out);
    end_block(cache, out);
}

/// Ends a block, and writes a comma behind it.
pub(super) fn end_block(cache: Option<&RawValue>, out: &mut Vec<u8>) {
    if let Some(cache) = cache {
        out.extend_from_slice(b",\"cache_control\":");
        out.extend_from_slice(cache.get().as_bytes());
    }
    out.extend_from_slice(b"},");
}

/// Anthropic's mark for its cache, which OpenAI's clients send as an extra field.
pub(super) fn cache_control(
    value: Option<&RawValue>,
    place: Place,
) -> Result<Option<&RawValue>, Untranslatable> {
    if value.is_some_and(|value| !is_object(value)) {
        return Err(Untranslatable::new(
            place.field("cache_control"),
            "cache_control has to be an object",
        ));
    }
    Ok(value)
}
