//! Translation of a Responses request to a chat request.

use crate::responses_openai::content;
use crate::responses_openai::conversation::Conversation;
use crate::responses_openai::input;
use crate::responses_openai::response;
use crate::responses_openai::settings::Settings;
use crate::responses_openai::tool_choice::ToolChoice;
use crate::responses_openai::tools::{Tools, write_json};
use proofgate_dialect::ResponsesContext;
use proofgate_dialect::droppable_fields::OTHER_FIELDS;
use proofgate_dialect::droppable_fields::is_listed_field;
use proofgate_dialect::field::{DroppedFields, Field};
use proofgate_dialect::json::write_string;
use proofgate_dialect::{RequestContext, Target, UntranslatableRequest};

/// Appends the chat request for a body of `POST /v1/responses`, for another module to translate for its provider.
///
/// A streamed answer is requested with its usage. `target.max_output_tokens` is not used. `out` is unchanged if the request
/// is refused.
///
/// # Errors
/// Returns [`UntranslatableRequest`] if the body is not such a request; if it refers to content stored at OpenAI
/// (`item_reference`, compaction items, `file_id`, `previous_response_id`, `conversation`, `prompt`, `background`); if it
/// needs features that only OpenAI has (a computer, a container); or, if `target.untranslatable` refuses it, for a field
/// without a counterpart in chat completions. Unknown fields, items and parts are left out and named.
///
/// Source: OpenAI's API reference, Responses and Chat Completions.
pub fn translate_request(
    body: &[u8],
    target: &Target<'_>,
    out: &mut Vec<u8>,
) -> Result<RequestContext, UntranslatableRequest> {
    write_or_roll_back(body, target, None, false, out)
}

/// Like [`translate_request`], for `openai_gemini::translate_request`: Gemini shows its thoughts
/// only on request, and `reasoning.summary` is that request.
///
/// # Errors
/// As for [`translate_request`].
pub fn translate_for_gemini(
    body: &[u8],
    target: &Target<'_>,
    out: &mut Vec<u8>,
) -> Result<RequestContext, UntranslatableRequest> {
    write_or_roll_back(body, target, None, true, out)
}

/// Like [`translate_request`], for a provider that uses chat completions itself.
///
/// Tool results are texts; their images and files follow in a user message. Tools that the model
/// may not choose are left out, and fields that only OpenAI's own models support are left out and
/// named. The token limit has the name that the model accepts.
///
/// # Errors
/// As for [`translate_request`].
pub fn translate_for_chat(
    body: &[u8],
    target: &Target<'_>,
    out: &mut Vec<u8>,
) -> Result<RequestContext, UntranslatableRequest> {
    write_or_roll_back(body, target, Some(target.model), false, out)
}

fn write_or_roll_back(
    body: &[u8],
    target: &Target<'_>,
    to_chat: Option<&str>,
    to_gemini: bool,
    out: &mut Vec<u8>,
) -> Result<RequestContext, UntranslatableRequest> {
    let start = out.len();
    let asked = write(body, target, to_chat, to_gemini, out);
    if asked.is_err() {
        out.truncate(start);
    }
    asked
}

/// Fields that are read in a fixed order, whatever their order in the body.
#[derive(Default)]
struct Fields<'b, 'p> {
    model: Option<Field<'b, 'p>>,
    input: Option<Field<'b, 'p>>,
    instructions: Option<Field<'b, 'p>>,
    tools: Option<Field<'b, 'p>>,
    tool_choice: Option<Field<'b, 'p>>,
    reasoning: Option<Field<'b, 'p>>,
    stream: bool,
}

fn write(
    body: &[u8],
    target: &Target<'_>,
    to_chat: Option<&str>,
    to_gemini: bool,
    out: &mut Vec<u8>,
) -> Result<RequestContext, UntranslatableRequest> {
    let body = Field::body(body)?;
    let mut losses = DroppedFields::new(target.untranslatable);
    let mut settings = Settings::default();
    let mut fields = Fields::default();
    let members = body.members()?;
    for (name, value) in &members {
        let field = body.member(name, value);
        match &**name {
            "model" => fields.model = Some(field),
            "input" => fields.input = Some(field),
            "instructions" => fields.instructions = Some(field),
            "tools" => fields.tools = Some(field),
            "reasoning" => fields.reasoning = Some(field),
            "tool_choice" => fields.tool_choice = Some(field),
            "stream" => fields.stream = field.boolean()?,
            _ => {
                if settings.read(name, &field, to_chat, &mut losses)? {
                    continue;
                }
                match is_listed_field(name) {
                    true => losses.drop_listed(name, &field)?,
                    // New clients send new fields: they are no reason to refuse the request.
                    false => losses.record_field(OTHER_FIELDS, &field),
                }
            }
        }
    }
    let model = fields
        .model
        .ok_or_else(|| UntranslatableRequest::new("model", "A model is required."))?;
    let input = fields
        .input
        .ok_or_else(|| UntranslatableRequest::new("input", "An input is required."))?;
    let mut tools = Tools::default();
    if let Some(field) = &fields.tools {
        tools.read(field, &mut losses)?;
    }
    input::read_tools(&input, &mut tools, &mut losses)?;
    let mut choice = ToolChoice::default();
    if let Some(field) = &fields.tool_choice {
        choice = ToolChoice::read(field, &tools, &mut losses)?;
    }
    if to_chat.is_some() {
        choice = choice.restrict_tools(&mut tools);
    }
    if let Some(field) = &fields.reasoning {
        let shown = to_gemini.then_some(target.model);
        settings.read_reasoning(field, to_chat, shown, !tools.is_empty(), &mut losses)?;
    }

    write_json(out, "{\"model\":");
    write_string(out, target.model);
    let mut conversation = Conversation::new(to_chat.is_some());
    if let Some(instructions) = &fields.instructions {
        conversation.push_system(&content::read(instructions, &mut losses)?);
    }
    input::read(&input, &tools, &mut conversation, &mut losses)?;
    conversation.write(out);
    tools.write(out);
    choice.write(!tools.is_empty(), out)?;
    settings.write(to_chat, !tools.is_empty(), out);
    if fields.stream {
        write_json(
            out,
            ",\"stream\":true,\"stream_options\":{\"include_usage\":true}",
        );
    }
    out.push(b'}');
    Ok(RequestContext {
        model: model.text()?.into_owned(),
        stream: fields.stream,
        include_usage: fields.stream,
        dropped_fields: losses.into_names(),
        responses_context: Some(Box::new(ResponsesContext {
            echo: response::echo(&members),
            tools: tools.names.into_mappings(),
        })),
        ..RequestContext::default()
    })
}
