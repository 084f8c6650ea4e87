//! The `generationConfig` of a request.

use serde_json::value::RawValue;

use proofgate_chat_request::{ChatRequest, DroppedFields, OutputFormat};
use proofgate_dialect::UntranslatableRequest;
use proofgate_dialect::constraints::{Constraint, effort_levels, has_constraint, nearest_level};
use proofgate_dialect::json_text::JsonText;
use proofgate_dialect::object::{Flag, Number, object};

/// Maximum number of stop sequences.
const MAX_STOP_SEQUENCES: usize = 5;

const EFFORT: &str = "reasoning_effort";

object! {
    /// The extra fields that Google's endpoint for OpenAI's clients accepts.
    ExtraBody { google: Google<'b> }
}

object! {
    Google { thinking_config: ThinkingConfig<'b>, cached_content: &'b RawValue }
}

object! {
    ThinkingConfig {
        include_thoughts: Flag<'b>,
        thinking_budget: Number<'b>,
        thinking_level: JsonText<'b>,
    }
}

/// The members of an object, written as JSON, each followed by a comma.
struct Members(Vec<u8>);

impl Members {
    fn add(&mut self, name: &str, json: Option<&str>) {
        if let Some(json) = json {
            proofgate_dialect::json::write_all(&mut self.0, &["\"", name, "\":", json, ","]);
        }
    }

    /// Returns the object, if it has members.
    fn into_object(mut self) -> Option<String> {
        self.0.pop()?;
        let members = String::from_utf8(self.0).ok()?;
        Some(["{", &members, "}"].concat())
    }
}

/// Writes the settings of an answer, with a comma before them, if there are any.
pub(super) fn write(
    chat: &ChatRequest<'_>,
    model: &str,
    losses: &mut DroppedFields,
    out: &mut Vec<u8>,
) -> Result<(), UntranslatableRequest> {
    let mut config = Members(Vec::new());
    let most = chat.max_tokens(losses)?;
    config.add("maxOutputTokens", most.map(|(_, json, _)| json));
    let sampling = chat.sampling(model, 2.0, losses)?;
    config.add("temperature", sampling.temperature);
    config.add("topP", sampling.top_p);
    config.add("topK", sampling.top_k);
    let stops: Vec<&str> = chat
        .stop_sequences(MAX_STOP_SEQUENCES, |stop| !stop.is_empty(), losses)?
        .into_iter()
        .map(JsonText::raw)
        .collect();
    let stops = (!stops.is_empty()).then(|| ["[", &stops.join(","), "]"].concat());
    config.add("stopSequences", stops.as_deref());
    write_candidates(chat, model, losses, &mut config)?;
    config.add("responseModalities", modalities(chat, losses)?.as_deref());
    match chat.output_format(losses)? {
        OutputFormat::Text => {}
        OutputFormat::Json => config.add("responseMimeType", Some(r#""application/json""#)),
        OutputFormat::Schema(_, schema) => {
            config.add("responseJsonSchema", Some(schema.json()));
            config.add("responseMimeType", Some(r#""application/json""#));
        }
    }
    config.add("thinkingConfig", thinking_config(chat, model, losses)?.as_deref());
    proofgate_dialect::json::write_member(out, "generationConfig", config.into_object().as_deref());
    Ok(())
}

/// Writes the number of candidates, the penalties and the seed, and whether log probabilities are returned.
fn write_candidates(
    chat: &ChatRequest<'_>,
    model: &str,
    losses: &mut DroppedFields,
    config: &mut Members,
) -> Result<(), UntranslatableRequest> {
    let several = chat.n.map(Number::json).filter(|n| *n != "1");
    config.add("candidateCount", several);
    for (name, own, value) in [
        ("presence_penalty", "presencePenalty", chat.presence_penalty),
        ("frequency_penalty", "frequencyPenalty", chat.frequency_penalty),
    ] {
        let Some(value) = value.map(Number::json) else {
            continue;
        };
        if has_constraint(model, Constraint::NoPenalties) {
            losses.drop_body_field(name, value)?;
        } else {
            config.add(own, Some(value));
        }
    }
    match chat.seed.map(Number::json) {
        // Gemini's seed has 32 bits.
        Some(seed) if seed.parse::<i32>().is_err() => losses.drop_body_field("seed", seed)?,
        seed => config.add("seed", seed),
    }
    let logprobs = chat.logprobs.is_some_and(Flag::is_true);
    config.add("responseLogprobs", logprobs.then_some("true"));
    config.add("logprobs", chat.top_logprobs.map(Number::json));
    Ok(())
}

/// Returns the requested modalities. Text is the default; images can also be requested from a model
/// that generates them.
fn modalities(
    chat: &ChatRequest<'_>,
    losses: &mut DroppedFields,
) -> Result<Option<String>, UntranslatableRequest> {
    let Some(asked) = chat.modalities else {
        return Ok(None);
    };
    let listed: Vec<JsonText<'_>> = chat.parse(asked.get())?;
    if listed.iter().all(|modality| modality.inner() == "text") {
        return Ok(None);
    }
    let mut modalities = Vec::new();
    for modality in listed {
        modalities.push(match modality.inner() {
            "text" => r#""TEXT""#,
            "image" => r#""IMAGE""#,
            _ => {
                losses.drop_body_field("modalities", asked.get())?;
                return Ok(None);
            }
        });
    }
    Ok(Some(["[", &modalities.join(","), "]"].concat()))
}

/// Returns the `thinkingConfig`: the client's own settings, and the counterpart of its effort.
fn thinking_config(
    chat: &ChatRequest<'_>,
    model: &str,
    losses: &mut DroppedFields,
) -> Result<Option<String>, UntranslatableRequest> {
    let own = match chat.extra_body {
        Some(extra) => client_thinking_config(chat, extra, losses)?,
        None => ThinkingConfig::default(),
    };
    let mut config = Members(Vec::new());
    config.add("includeThoughts", own.include_thoughts.map(Flag::json));
    config.add("thinkingBudget", own.thinking_budget.map(Number::json));
    config.add("thinkingLevel", own.thinking_level.map(JsonText::raw));
    let has_measure = own.thinking_budget.is_some() || own.thinking_level.is_some();
    match effort(chat, model, losses)? {
        Some(_) if has_measure => {
            let why = "this field and `extra_body.google.thinking_config` both set the amount of thinking";
            return Err(UntranslatableRequest::new(EFFORT, why));
        }
        Some((name, value)) => config.add(name, Some(value)),
        None => {}
    }
    Ok(config.into_object())
}

fn client_thinking_config<'b>(
    chat: &ChatRequest<'b>,
    extra: &'b RawValue,
    losses: &mut DroppedFields,
) -> Result<ThinkingConfig<'b>, UntranslatableRequest> {
    let extra: ExtraBody<'b> = chat.parse(extra.get())?;
    losses.drop_unknown(extra.unknown.as_ref());
    let google = extra.google.unwrap_or_default();
    losses.drop_unknown(google.unknown.as_ref());
    if google.cached_content.is_some() {
        let why = "content stored at the provider cannot be used";
        return Err(UntranslatableRequest::new(
            "extra_body.google.cached_content",
            why,
        ));
    }
    let config = google.thinking_config.unwrap_or_default();
    losses.drop_unknown(config.unknown.as_ref());
    Ok(config)
}

/// Returns the member for `reasoning_effort` and its value. The levels and token budgets are the
/// same as in Google's endpoint for OpenAI's clients (ai.google.dev, "OpenAI compatibility");
/// Gemini 2 takes a token budget.
fn effort(
    chat: &ChatRequest<'_>,
    model: &str,
    losses: &mut DroppedFields,
) -> Result<Option<(&'static str, &'static str)>, UntranslatableRequest> {
    let Some(value) = chat.reasoning_effort else {
        return Ok(None);
    };
    let asked = value.inner();
    let budget = match asked {
        "none" => "0",
        "minimal" | "low" => "1024",
        "medium" => "8192",
        "high" | "xhigh" | "max" => "24576",
        _ => {
            losses.drop_body_field(EFFORT, value.raw())?;
            return Ok(None);
        }
    };
    if has_constraint(model, Constraint::NoThinking) {
        if asked != "none" {
            losses.record_field(EFFORT, value.raw());
        }
        return Ok(None);
    }
    if has_constraint(model, Constraint::ThinkingBudget) {
        return Ok(Some(("thinkingBudget", budget)));
    }
    if asked == "none" {
        // Thinking cannot be disabled for these models.
        losses.drop_body_field(EFFORT, value.raw())?;
        return Ok(None);
    }
    let said = effort_levels(model).map_or(asked, |levels| nearest_level(levels, asked));
    if said != asked {
        losses.record_field(EFFORT, value.raw());
    }
    let level = match said {
        "minimal" => "\"MINIMAL\"",
        "low" => "\"LOW\"",
        "medium" => "\"MEDIUM\"",
        "high" => "\"HIGH\"",
        _ => "\"XHIGH\"",
    };
    Ok(Some(("thinkingLevel", level)))
}
