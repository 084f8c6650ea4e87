use serde_json::value::RawValue;

use crate::Untranslatable;
use crate::constraints::{Constraint, has};
use crate::json::write_string;
use crate::openai_converse::chat::{Chat, ResponseFormat};
use crate::openai_converse::content::missing;
use crate::openai_converse::preferences::Preferences;
use crate::openai_converse::text::{inner, parse, parse_list, write_all, wrong_type};
use crate::schema::write_for_claude;

/// Leaves out, or refuses, what Converse does not know.
pub(super) fn leave_out(chat: &Chat<'_>, preferences: &mut Preferences) -> Result<(), Untranslatable> {
    for (name, value) in [
        ("n", chat.n),
        ("audio", chat.audio),
        ("modalities", chat.modalities),
        ("web_search_options", chat.web_search_options),
        ("functions", chat.functions),
        ("function_call", chat.function_call),
        ("moderation", chat.moderation),
        ("parallel_tool_calls", chat.parallel_tool_calls),
        ("seed", chat.seed),
        ("frequency_penalty", chat.frequency_penalty),
        ("presence_penalty", chat.presence_penalty),
        ("logit_bias", chat.logit_bias),
        ("logprobs", chat.logprobs),
        ("top_logprobs", chat.top_logprobs),
        ("top_k", chat.top_k),
        ("thinking", chat.thinking),
        ("user", chat.user),
        ("safety_identifier", chat.safety_identifier),
        ("metadata", chat.metadata),
        ("store", chat.store),
        ("verbosity", chat.verbosity),
        ("prediction", chat.prediction),
        ("cache_control", chat.cache_control),
        ("prompt_cache_key", chat.prompt_cache_key),
        ("prompt_cache_options", chat.prompt_cache_options),
        ("prompt_cache_retention", chat.prompt_cache_retention),
    ] {
        if let Some(value) = value {
            preferences.leave_out(name, value, || name.to_owned())?;
        }
    }
    preferences.unknown(chat.unknown.as_ref(), String::new)
}

/// The fields of an object, and the object itself only if it has any.
struct Fields<'o> {
    out: &'o mut Vec<u8>,
    name: &'static str,
    begun: bool,
}

impl<'o> Fields<'o> {
    fn of(name: &'static str, out: &'o mut Vec<u8>) -> Self {
        Fields {
            out,
            name,
            begun: false,
        }
    }

    fn field(&mut self, name: &str) -> &mut Vec<u8> {
        match self.begun {
            true => write_all(self.out, &[",\"", name, "\":"]),
            false => write_all(self.out, &[",\"", self.name, "\":{\"", name, "\":"]),
        }
        self.begun = true;
        self.out
    }

    fn end(self) {
        if self.begun {
            self.out.push(b'}');
        }
    }
}

/// Writes `inferenceConfig` if there is any.
pub(super) fn write_inference(
    out: &mut Vec<u8>,
    chat: &Chat<'_>,
    model: &str,
    preferences: &mut Preferences,
) -> Result<(), Untranslatable> {
    let mut fields = Fields::of("inferenceConfig", out);
    // The newer name rules, as at OpenAI.
    let most = [
        (chat.max_completion_tokens, "max_completion_tokens"),
        (chat.max_tokens, "max_tokens"),
    ];
    if let Some((most, name)) = most
        .iter()
        .find_map(|(value, name)| value.map(|value| (value, *name)))
    {
        if !most.get().bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(wrong_type(name));
        }
        write_all(fields.field("maxTokens"), &[most.get()]);
    }
    let samples = !has(model, Constraint::DefaultSampling);
    if let Some(temperature) = chat.temperature.filter(|_| !samples) {
        number(temperature, "temperature")?;
        preferences.leave_out("temperature", temperature, || "temperature".to_owned())?;
    }
    if let Some(temperature) = chat.temperature.filter(|_| samples) {
        let mut written = temperature.get();
        if number(temperature, "temperature")? > 1.0 {
            let reason = "Converse takes a temperature of at most 1.";
            preferences.leave_out_for(reason, "temperature", temperature, || "temperature".to_owned())?;
            written = "1";
        }
        write_all(fields.field("temperature"), &[written]);
    }
    if let Some(top_p) = chat.top_p {
        number(top_p, "top_p")?;
        let both = chat.temperature.is_some() && has(model, Constraint::OneOfTemperatureAndTopP);
        if both || !samples {
            preferences.leave_out("top_p", top_p, || "top_p".to_owned())?;
        } else {
            write_all(fields.field("topP"), &[top_p.get()]);
        }
    }
    if let Some(stop) = chat.stop {
        let stops: Vec<&RawValue> = match inner(stop) {
            Some(_) => vec![stop],
            None => parse_list(stop, || "stop".to_owned())?,
        };
        for (number, stop) in stops.iter().enumerate() {
            let text = inner(stop).ok_or_else(|| wrong_type("stop"))?;
            if text.is_empty() {
                return Err(Untranslatable::new(
                    "stop",
                    "Converse takes no empty text to stop at.",
                ));
            }
            let before = if number == 0 { "[" } else { "," };
            let out = if number == 0 {
                fields.field("stopSequences")
            } else {
                &mut *fields.out
            };
            write_all(out, &[before, stop.get()]);
        }
        if !stops.is_empty() {
            fields.out.push(b']');
        }
    }
    fields.end();
    Ok(())
}

fn number(value: &RawValue, name: &'static str) -> Result<f64, Untranslatable> {
    parse(value, || name.to_owned())
}

/// Writes `serviceTier` and `outputConfig` if there are any.
pub(super) fn write_output(
    out: &mut Vec<u8>,
    chat: &Chat<'_>,
    model: &str,
    effort: Option<&str>,
    preferences: &mut Preferences,
) -> Result<(), Untranslatable> {
    if let Some(tier) = chat.service_tier {
        match inner(tier) {
            Some("auto") => {}
            Some("default" | "flex" | "priority") => {
                write_all(out, &[r#","serviceTier":{"type":"#, tier.get(), "}"]);
            }
            _ => preferences.leave_out("service_tier", tier, || "service_tier".to_owned())?,
        }
    }
    let mut fields = Fields::of("outputConfig", out);
    if let Some(format) = chat.response_format {
        write_format(
            &parse(format, || "response_format".to_owned())?,
            model,
            &mut fields,
            preferences,
        )?;
    }
    if let Some(level) = effort {
        write_all(fields.field("effort"), &["\"", level, "\""]);
    }
    fields.end();
    Ok(())
}

fn write_format(
    format: &ResponseFormat<'_>,
    model: &str,
    fields: &mut Fields<'_>,
    preferences: &mut Preferences,
) -> Result<(), Untranslatable> {
    let param = |field: &str| format!("response_format{field}");
    preferences.unknown(format.unknown.as_ref(), || param(""))?;
    match format.kind.as_deref() {
        // An instruction asks for JSON without a schema.
        Some("text" | "json_object") => return Ok(()),
        Some("json_schema") => {}
        _ => {
            let reason = "The types are text, json_object and json_schema.";
            return Err(Untranslatable::new(param(".type"), reason));
        }
    }
    let said = format
        .json_schema
        .as_ref()
        .ok_or_else(|| missing(param(".json_schema")))?;
    preferences.unknown(said.unknown.as_ref(), || param(".json_schema"))?;
    let schema = said.schema.ok_or_else(|| missing(param(".json_schema.schema")))?;
    if !schema.get().starts_with('{') {
        return Err(wrong_type(param(".json_schema.schema")));
    }
    let out = fields.field("textFormat");
    write_all(
        out,
        &[r#"{"type":"json_schema","structure":{"jsonSchema":{"schema":"#],
    );
    let mut taken = Vec::new();
    if is_claude(model) {
        write_for_claude(schema.get(), &mut taken);
    }
    let taken = String::from_utf8(taken).unwrap_or_default();
    write_string(out, if taken.is_empty() { schema.get() } else { &taken });
    for (value, name) in [(said.name, "name"), (said.description, "description")] {
        if let Some(value) = value {
            inner(value).ok_or_else(|| wrong_type(param(&format!(".json_schema.{name}"))))?;
            write_all(out, &[",\"", name, "\":", value.get()]);
        }
    }
    write_all(out, &["}}}"]);
    Ok(())
}

/// Whether a model is known to be one of Anthropic's.
pub(super) fn is_claude(model: &str) -> bool {
    model.contains("anthropic.") || model.contains("claude")
}
