//! The fields of a request other than its messages and tools.

use serde_json::value::RawValue;

use crate::body::JsonSchema;
use crate::dropped_fields::{DroppedFields, raw_json};
use crate::request::ChatRequest;
use crate::tools;
use proofgate_dialect::UntranslatableRequest;
use proofgate_dialect::constraints::{Constraint, has_constraint};
use proofgate_dialect::droppable_fields::OTHER_FIELDS;
use proofgate_dialect::json_text::JsonText;
use proofgate_dialect::object::{Flag, Number, Object};

/// The instruction to return JSON, for a provider without a JSON mode. A forced tool would exclude the client's own
/// tools and, on some models, thinking; and a model that may fill in any object tends to leave it empty.
pub const JSON_OBJECT_INSTRUCTION: &str = "Answer with one JSON object, and with nothing before or after it.";

/// The requested format of the response.
pub enum OutputFormat<'c, 'b> {
    Text,
    /// Any JSON object.
    Json,
    /// JSON that matches a schema.
    Schema(&'c JsonSchema<'b>, Object<'b>),
}

/// The sampling settings that the model supports, as JSON numbers.
pub struct Sampling<'b> {
    pub temperature: Option<&'b str>,
    pub top_p: Option<&'b str>,
    pub top_k: Option<&'b str>,
}

impl<'b> ChatRequest<'b> {
    /// Drops the fields that the writer does not handle itself.
    pub(super) fn drop_unhandled_settings(
        &self,
        losses: &mut DroppedFields,
    ) -> Result<(), UntranslatableRequest> {
        let number = |value: Option<Number<'b>>| value.map(Number::json);
        let flag = |value: Option<Flag<'b>>| value.map(Flag::json);
        // Without tools, there are no parallel calls.
        let parallel = self.parallel_tool_calls.filter(|_| self.has_tools());
        for (name, value) in [
            ("n", number(self.n)),
            ("functions", raw_json(self.functions)),
            ("function_call", raw_json(self.function_call)),
            ("modalities", raw_json(self.modalities)),
            ("audio", raw_json(self.audio)),
            ("web_search_options", raw_json(self.web_search_options)),
            ("moderation", raw_json(self.moderation)),
            ("parallel_tool_calls", flag(parallel)),
            ("stop", raw_json(self.stop)),
            ("seed", number(self.seed)),
            ("frequency_penalty", number(self.frequency_penalty)),
            ("presence_penalty", number(self.presence_penalty)),
            ("logit_bias", raw_json(self.logit_bias)),
            ("logprobs", flag(self.logprobs)),
            ("top_logprobs", number(self.top_logprobs)),
            ("verbosity", raw_json(self.verbosity)),
            ("top_k", number(self.top_k)),
            ("thinking", self.thinking.map(Object::json)),
            ("service_tier", raw_json(self.service_tier)),
            ("prediction", raw_json(self.prediction)),
            ("user", raw_json(self.user)),
            ("safety_identifier", raw_json(self.safety_identifier)),
            ("store", raw_json(self.store)),
            ("metadata", raw_json(self.metadata)),
            ("prompt_cache_key", raw_json(self.prompt_cache_key)),
            ("prompt_cache_options", raw_json(self.prompt_cache_options)),
            ("prompt_cache_retention", raw_json(self.prompt_cache_retention)),
            ("cache_control", raw_json(self.cache_control)),
        ] {
            losses.drop_unless_handled(name, value, || name.to_owned())?;
        }
        if let Some(extra) = self.extra_body.filter(|_| !losses.is_handled("extra_body")) {
            losses.record_field(OTHER_FIELDS, extra.get());
        }
        losses.drop_unknown(self.unknown.as_ref());
        let Some(options) = self.stream_options.as_ref().filter(|_| self.stream == Some(true)) else {
            return Ok(());
        };
        losses.drop_unknown(options.unknown.as_ref());
        let name = "stream_options.include_obfuscation";
        losses.drop_unless_handled(name, raw_json(options.include_obfuscation), || name.to_owned())
    }

    /// Whether the request offers any tools.
    pub(super) fn has_tools(&self) -> bool {
        self.tools.as_ref().is_some_and(|tools| !tools.is_empty())
    }

    /// Returns the token limit of the response, with the name and the value of its field: the newer field takes
    /// precedence, as at OpenAI.
    pub fn max_tokens(
        &self,
        losses: &mut DroppedFields,
    ) -> Result<Option<(&'static str, &'b str, u64)>, UntranslatableRequest> {
        let count = |name: &'static str, value: Option<&'b RawValue>| match value {
            None => Ok(None),
            Some(value) => match value.get().parse() {
                Ok(count) if count > 0 => Ok(Some((name, value.get(), count))),
                _ => Err(UntranslatableRequest::new(
                    name,
                    format!("{name} must be an integer greater than 0"),
                )),
            },
        };
        let older = count("max_tokens", self.max_tokens)?;
        let newer = count("max_completion_tokens", self.max_completion_tokens)?;
        if let (Some((name, value, older)), Some((_, _, newer))) = (older, newer)
            && older != newer
        {
            losses.record_field(name, value);
        }
        Ok(newer.or(older))
    }

    /// Returns the stop sequences, without the sequences that the provider does not support and the
    /// sequences beyond its maximum number.
    pub fn stop_sequences(
        &self,
        most: usize,
        is_taken: impl Fn(&JsonText<'b>) -> bool,
        losses: &mut DroppedFields,
    ) -> Result<Vec<JsonText<'b>>, UntranslatableRequest> {
        let Some(stop) = self.stop else {
            return Ok(Vec::new());
        };
        let mut stops = match JsonText::from_raw(stop) {
            Some(one) => vec![one],
            None => {
                let listed: Vec<&RawValue> = serde_json::from_str(stop.get()).map_err(|_| {
                    UntranslatableRequest::new("stop", "it must be a string or an array of strings")
                })?;
                let texts = listed.into_iter().enumerate().map(|(at, text)| {
                    JsonText::from_raw(text).ok_or_else(|| {
                        UntranslatableRequest::new(format!("stop[{at}]"), "it must be a string")
                    })
                });
                texts.collect::<Result<_, _>>()?
            }
        };
        if let Some(at) = stops.iter().position(|stop| !is_taken(stop)) {
            losses.drop_listed("stop", stop.get(), || format!("stop[{at}]"))?;
            stops.retain(is_taken);
        }
        if stops.len() > most {
            losses.drop_body_field("stop", stop.get())?;
            stops.truncate(most);
        }
        Ok(stops)
    }

    /// Returns the requested sampling settings that the model supports; `warmest` is the provider's highest
    /// temperature.
    pub fn sampling(
        &self,
        model: &str,
        warmest: f64,
        losses: &mut DroppedFields,
    ) -> Result<Sampling<'b>, UntranslatableRequest> {
        let mut sampling = Sampling {
            temperature: self.temperature.map(Number::json),
            top_p: self.top_p.map(Number::json),
            top_k: self
                .top_k
                .map(Number::json)
                .filter(|_| losses.is_handled("top_k")),
        };
        let is_default = has_constraint(model, Constraint::DefaultSampling);
        let one_of_two =
            sampling.temperature.is_some() && has_constraint(model, Constraint::OneOfTemperatureAndTopP);
        for (name, value, is_taken) in [
            ("temperature", &mut sampling.temperature, !is_default),
            ("top_p", &mut sampling.top_p, !is_default && !one_of_two),
            ("top_k", &mut sampling.top_k, !is_default),
        ] {
            if let Some(lost) = value.take_if(|_| !is_taken) {
                losses.drop_body_field(name, lost)?;
            }
        }
        if let Some(temperature) = self
            .temperature
            .filter(|temperature| temperature.value() > warmest)
            && sampling.temperature.is_some()
        {
            let reason = "The provider of this model does not accept a temperature this high.";
            losses.drop_with_reason(reason, "temperature", temperature.json())?;
            sampling.temperature = Some("1");
        }
        Ok(sampling)
    }

    /// Returns the requested response format. The name of a schema is a label that does not affect the model.
    pub fn output_format(
        &self,
        losses: &mut DroppedFields,
    ) -> Result<OutputFormat<'_, 'b>, UntranslatableRequest> {
        let Some(format) = &self.response_format else {
            return Ok(OutputFormat::Text);
        };
        losses.drop_unknown(format.unknown.as_ref());
        match format.kind.as_deref() {
            Some("text") => return Ok(OutputFormat::Text),
            Some("json_object") => return Ok(OutputFormat::Json),
            Some("json_schema") => {}
            _ => {
                return Err(UntranslatableRequest::new(
                    "response_format.type",
                    "the type must be text, json_object or json_schema",
                ));
            }
        }
        let described = format
            .json_schema
            .as_ref()
            .and_then(|described| Some((described, described.schema?)));
        let (described, schema) = described.ok_or_else(|| {
            let path = "response_format.json_schema.schema";
            UntranslatableRequest::new(path, "a schema is required, as an object")
        })?;
        losses.drop_unknown(described.unknown.as_ref());
        let name = "response_format.json_schema.description";
        losses.drop_unless_handled(name, described.description.map(JsonText::raw), || name.to_owned())?;
        Ok(OutputFormat::Schema(described, schema))
    }

    /// Whether the model must call a tool.
    pub(super) fn requires_tool_call(&self) -> bool {
        self.tool_choice
            .is_some_and(|choice| !tools::is_unrestricted_choice(choice.get()))
    }
}
