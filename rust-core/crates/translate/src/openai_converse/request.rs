use crate::openai_converse::chat::{Chat, Message, ResponseFormat, StreamOptions};
use crate::openai_converse::content::missing;
use crate::openai_converse::effort;
use crate::openai_converse::messages::write_messages;
use crate::openai_converse::preferences::Preferences;
use crate::openai_converse::settings::{leave_out, write_inference, write_output};
use crate::openai_converse::text::{Text, parse, parse_list};
use crate::openai_converse::tools::write_tools;
use crate::{Asked, Target, Untranslatable};

/// Appends the body of a request to Converse or ConverseStream, of that of a request for a chat completion.
///
/// # Errors
/// [`Untranslatable`] names the field that cannot be said to Converse; nothing is appended then.
pub fn request(body: &[u8], target: &Target<'_>, out: &mut Vec<u8>) -> Result<Asked, Untranslatable> {
    let begin = out.len();
    write_request(body, target, out).inspect_err(|_| out.truncate(begin))
}

fn write_request(body: &[u8], target: &Target<'_>, out: &mut Vec<u8>) -> Result<Asked, Untranslatable> {
    let body = std::str::from_utf8(body).map_err(|_| Untranslatable::new("", "The body is not in UTF-8."))?;
    let chat: Chat<'_> = serde_json::from_str(body)
        .map_err(|_| Untranslatable::new("", "The body is not a JSON object, or has a field twice."))?;
    let mut preferences = Preferences::new(target.untranslatable);
    let model = chat.model.ok_or_else(|| missing("model".to_owned()))?;
    let model: Text<'_> = parse(model, || "model".to_owned())?;
    let messages = chat.messages.ok_or_else(|| missing("messages".to_owned()))?;
    let messages: Vec<Message<'_>> = parse_list(messages, || "messages".to_owned())?;
    let stream = match chat.stream {
        Some(stream) => parse(stream, || "stream".to_owned())?,
        None => false,
    };
    let mut include_usage = false;
    if let Some(options) = chat.stream_options.filter(|_| stream) {
        let options: StreamOptions<'_> = parse(options, || "stream_options".to_owned())?;
        preferences.unknown(options.unknown.as_ref(), || "stream_options".to_owned())?;
        if let Some(value) = options.include_obfuscation {
            let name = "stream_options.include_obfuscation";
            preferences.leave_out(name, value, || name.to_owned())?;
        }
        include_usage = options.include_usage.unwrap_or(false);
    }
    leave_out(&chat, &mut preferences)?;

    out.push(b'{');
    let instruction = asks_for_json(&chat).then_some(JSON_OBJECT);
    write_messages(out, &messages, target.model, instruction, &mut preferences)?;
    write_inference(out, &chat, target.model, &mut preferences)?;
    let has_calls = messages.iter().any(|message| {
        message.tool_calls.is_some_and(|calls| calls.get() != "[]") || message.tool_call_id.is_some()
    });
    write_tools(out, &chat, target.model, has_calls, &mut preferences)?;
    let effort = effort::write(out, &chat, &messages, target.model, &mut preferences)?;
    write_output(out, &chat, target.model, effort, &mut preferences)?;
    out.push(b'}');
    Ok(Asked {
        model: model.0.into_owned(),
        stream,
        include_usage,
        json_by_tool: false,
        base64: false,
        dropped: preferences.names(),
        response: None,
    })
}

/// What asks for JSON where Converse has no mode for it.
const JSON_OBJECT: &str = "Answer with one JSON object, and with nothing before or behind it.";

fn asks_for_json(chat: &Chat<'_>) -> bool {
    chat.response_format.is_some_and(|format| {
        let format: Result<ResponseFormat<'_>, _> = serde_json::from_str(format.get());
        format.is_ok_and(|format| format.kind.as_deref() == Some("json_object"))
    })
}
