use crate::openai_converse::messages;
use crate::openai_converse::tools;
use proofgate_chat_request::{
    ChatRequest, DroppedFields, JSON_OBJECT_INSTRUCTION, OutputFormat, ThinkingSetting, raw_json,
    thinking_setting, thinks_only_on_request, translate,
};
use proofgate_dialect::json::{write_all, write_member, write_number, write_string};
use proofgate_dialect::json_text::JsonText;
use proofgate_dialect::schema::write_for_claude;
use proofgate_dialect::{RequestContext, Target, UntranslatableRequest};

/// The fields that Converse supports, in addition to the fields that every provider supports.
const SUPPORTED_FIELDS: &[&str] = &[
    "stop",
    "service_tier",
    "response_format.json_schema.description",
    "messages[].cache_control",
    "messages[].content[].cache_control",
    "messages[].content[].prompt_cache_breakpoint",
    "messages[].content[].file.filename",
    "tools[].cache_control",
    "tools[].function.strict",
];

/// Appends the body of a Converse or ConverseStream request for a chat-completions request.
///
/// # Errors
/// Returns [`UntranslatableRequest`] with the field that Converse cannot express; nothing is appended then.
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
    out.push(b'{');
    let format = chat.output_format(losses)?;
    let mut system = Vec::new();
    messages::write(chat, is_claude(model), losses, &mut system, out)?;
    if matches!(format, OutputFormat::Json) {
        write_all(&mut system, &[r#"{"text":""#, JSON_OBJECT_INSTRUCTION, "\"},"]);
    }
    // Each block is followed by a comma.
    if system.pop().is_some() {
        write_all(out, &[r#","system":["#]);
        out.append(&mut system);
        out.push(b']');
    }
    write_inference(chat, model, losses, out)?;
    tools::write(chat, is_claude(model), losses, out)?;
    let effort = write_thinking(chat, model, losses, out)?;
    write_tier(chat, losses, out)?;
    write_output(&format, model, effort, out);
    out.push(b'}');
    Ok(())
}

/// Writes the fields of an object; does not write an object without fields.
struct Fields<'o> {
    out: &'o mut Vec<u8>,
    name: &'static str,
    started: bool,
}

impl<'o> Fields<'o> {
    fn new(name: &'static str, out: &'o mut Vec<u8>) -> Self {
        Fields {
            out,
            name,
            started: false,
        }
    }

    fn start_field(&mut self, name: &str) -> &mut Vec<u8> {
        match self.started {
            true => write_all(self.out, &[",\"", name, "\":"]),
            false => write_all(self.out, &[",\"", self.name, "\":{\"", name, "\":"]),
        }
        self.started = true;
        self.out
    }

    fn close(self) {
        if self.started {
            self.out.push(b'}');
        }
    }
}

/// Writes `inferenceConfig` unless it is empty.
fn write_inference(
    chat: &ChatRequest<'_>,
    model: &str,
    losses: &mut DroppedFields,
    out: &mut Vec<u8>,
) -> Result<(), UntranslatableRequest> {
    let mut fields = Fields::new("inferenceConfig", out);
    if let Some((_, _, most)) = chat.max_tokens(losses)? {
        write_number(fields.start_field("maxTokens"), most);
    }
    let sampling = chat.sampling(model, 1.0, losses)?;
    for (name, value) in [("temperature", sampling.temperature), ("topP", sampling.top_p)] {
        if let Some(value) = value {
            write_all(fields.start_field(name), &[value]);
        }
    }
    let stops = chat.stop_sequences(usize::MAX, |stop| !stop.is_empty(), losses)?;
    if !stops.is_empty() {
        let texts: Vec<&str> = stops.into_iter().map(JsonText::raw).collect();
        write_all(fields.start_field("stopSequences"), &["[", &texts.join(","), "]"]);
    }
    fields.close();
    Ok(())
}

/// Writes a thinking budget as `additionalModelRequestFields`, with a comma before it, for a model that takes a budget.
/// Returns the effort for a model that takes an effort.
fn write_thinking<'b>(
    chat: &ChatRequest<'b>,
    model: &str,
    losses: &mut DroppedFields,
    out: &mut Vec<u8>,
) -> Result<Option<&'b str>, UntranslatableRequest> {
    // Without a limit from the client the model uses its own, which is above every budget.
    let most = chat.max_tokens(losses)?.map_or(u64::MAX, |(_, _, most)| most);
    match thinking_setting(chat, model, most, false, losses)? {
        ThinkingSetting::Level(level) => return Ok(Some(level)),
        ThinkingSetting::Budget(tokens) => {
            let before = r#","additionalModelRequestFields":{"thinking":{"type":"enabled","budget_tokens":"#;
            write_all(out, &[before]);
            write_number(out, tokens);
            write_all(out, &["}}"]);
        }
        ThinkingSetting::Off if !thinks_only_on_request(model) => {
            let effort = chat.reasoning_effort.map(JsonText::raw);
            losses.drop_body_field("reasoning_effort", effort.unwrap_or_default())?;
        }
        ThinkingSetting::Off | ThinkingSetting::Unspecified => {}
    }
    Ok(None)
}

fn write_tier(
    chat: &ChatRequest<'_>,
    losses: &mut DroppedFields,
    out: &mut Vec<u8>,
) -> Result<(), UntranslatableRequest> {
    match raw_json(chat.service_tier) {
        Some(tier @ ("\"default\"" | "\"flex\"" | "\"priority\"")) => {
            write_all(out, &[r#","serviceTier":{"type":"#, tier, "}"]);
            Ok(())
        }
        Some(tier) => losses.drop_body_field("service_tier", tier),
        None => Ok(()),
    }
}

/// Writes `outputConfig` unless it is empty. JSON without a schema is requested by an instruction.
fn write_output(format: &OutputFormat<'_, '_>, model: &str, effort: Option<&str>, out: &mut Vec<u8>) {
    let mut fields = Fields::new("outputConfig", out);
    if let OutputFormat::Schema(described, schema) = format {
        let out = fields.start_field("textFormat");
        write_all(
            out,
            &[r#"{"type":"json_schema","structure":{"jsonSchema":{"schema":"#],
        );
        let mut taken = Vec::new();
        if is_claude(model) {
            write_for_claude(schema.json(), &mut taken);
        }
        let taken = String::from_utf8(taken).unwrap_or_default();
        write_string(out, if taken.is_empty() { schema.json() } else { &taken });
        write_member(out, "name", described.name.map(JsonText::raw));
        write_member(out, "description", described.description.map(JsonText::raw));
        write_all(out, &["}}}"]);
    }
    if let Some(level) = effort {
        write_all(fields.start_field("effort"), &["\"", level, "\""]);
    }
    fields.close();
}

/// Returns whether a model is known to be one of Anthropic's.
fn is_claude(model: &str) -> bool {
    model.contains("anthropic.") || model.contains("claude")
}
