//! The effort, the thinking and the format of an answer.

use super::body::{Body, Format, OutputConfig, Thinking};
use super::destination::Destination;
use super::dropped_fields::{DroppedFields, JsonPath};
use super::json::{Text, write_field, write_json};
use crate::gemini_thoughts::write_include_thoughts;
use proofgate_dialect::UntranslatableRequest;
use proofgate_dialect::constraints::{Effort, effort_for_budget, effort_for_level};
use proofgate_dialect::json::write_string;
use proofgate_dialect::schema::can_be_strict;

/// Writes the effort and the format of the answer.
pub(super) fn write_output_options(
    body: &Body<'_>,
    model: &str,
    way: Destination,
    left_out: &mut DroppedFields,
    out: &mut Vec<u8>,
) -> Result<(), UntranslatableRequest> {
    let config_place = &JsonPath::Body.field("output_config");
    let none = OutputConfig::default();
    let config = body.output_config.as_ref().unwrap_or(&none);
    left_out.drop_unknown(config_place, config.unknown.as_deref())?;
    let has_tools = body.has_tools();
    let thinking = body.thinking.as_ref();
    if way.rejects_effort(model, has_tools) {
        write_json(out, ",\"reasoning_effort\":\"none\"");
        if config.effort.is_some() {
            left_out.drop_preference(&config_place.field("effort"), "output_config.effort")?;
        }
    } else if let Some(effort) = &config.effort {
        write_effort(&config_place.field("effort"), &effort.0, model, left_out, out)?;
    } else if let Some(thinking) = thinking
        && way != Destination::Responses
        && way.can_express_thinking(thinking, model, has_tools)
    {
        write_budget_as_effort(thinking, model, out);
    }
    match thinking {
        Some(thinking) if way == Destination::Responses => write_thinking(thinking, left_out, out)?,
        Some(thinking) if way == Destination::Gemini => {
            write_gemini_thoughts(thinking, config.effort.is_some(), model, out)
        }
        _ => {}
    }
    match (&config.format, &body.output_format) {
        (Some(_), Some(_)) => Err(JsonPath::Body
            .field("output_format")
            .error("output_config.format sets this already.")),
        (Some(format), None) => write_format(&config_place.field("format"), format, left_out, out),
        // The field's name in a beta.
        (None, Some(format)) => write_format(&JsonPath::Body.field("output_format"), format, left_out, out),
        (None, None) => Ok(()),
    }
}

/// Writes a thinking budget as the highest effort that costs no more.
fn write_budget_as_effort(thinking: &Thinking<'_>, model: &str, out: &mut Vec<u8>) {
    let budget = thinking.budget_tokens.and_then(|budget| budget.0.parse().ok());
    if let Some(budget) = budget {
        write_json(out, ",\"reasoning_effort\":");
        write_string(out, effort_for_budget(model, budget));
    }
}

/// Writes the request to show thoughts, if the client wants to see them.
fn write_gemini_thoughts(thinking: &Thinking<'_>, has_effort: bool, model: &str, out: &mut Vec<u8>) {
    let is = |text: &Option<Text<'_>>, value| text.as_ref().is_some_and(|text| text.0 == value);
    if !is(&thinking.kind, "disabled") && !is(&thinking.display, "omitted") {
        write_include_thoughts(model, has_effort || thinking.budget_tokens.is_some(), out);
    }
}

/// Writes `thinking` in Anthropic's form: whether it is visible, and how much of it is allowed.
fn write_thinking(
    thinking: &Thinking<'_>,
    left_out: &mut DroppedFields,
    out: &mut Vec<u8>,
) -> Result<(), UntranslatableRequest> {
    left_out.drop_unknown(&JsonPath::Body.field("thinking"), thinking.unknown.as_deref())?;
    write_json(out, ",\"thinking\":{\"type\":");
    write_string(out, thinking.kind.as_ref().map_or("enabled", |kind| &kind.0));
    write_field(
        "budget_tokens",
        thinking.budget_tokens.map(|budget| budget.0),
        out,
    );
    if let Some(display) = &thinking.display {
        write_json(out, ",\"display\":");
        write_string(out, &display.0);
    }
    out.push(b'}');
    Ok(())
}

/// Writes the effort, or the highest one below it that the model has. An unknown level is kept.
fn write_effort(
    place: &JsonPath<'_>,
    level: &str,
    model: &str,
    left_out: &mut DroppedFields,
    out: &mut Vec<u8>,
) -> Result<(), UntranslatableRequest> {
    let said = match effort_for_level(model, level) {
        Some(Effort::Unsupported) => return left_out.drop_preference(place, "output_config.effort"),
        Some(Effort::Level(said)) => said,
        Some(Effort::Budget(_)) | None => level,
    };
    if said != level {
        left_out.record_field("output_config.effort");
    }
    write_json(out, ",\"reasoning_effort\":");
    write_string(out, said);
    Ok(())
}

fn write_format(
    place: &JsonPath<'_>,
    format: &Format<'_>,
    left_out: &mut DroppedFields,
    out: &mut Vec<u8>,
) -> Result<(), UntranslatableRequest> {
    left_out.drop_unknown(place, format.unknown.as_deref())?;
    if format.kind.as_ref().is_none_or(|kind| kind.0 != "json_schema") {
        return Err(place.field("type").error("The type must be json_schema."));
    }
    let schema = format
        .schema
        .as_ref()
        .ok_or_else(|| place.field("schema").missing_error())?;
    write_json(
        out,
        ",\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"answer\",",
    );
    // Anthropic's answers always follow the schema, OpenAI's only if it is strict, which not every schema can be. The name
    // is required.
    if can_be_strict(schema.0) {
        write_json(out, "\"strict\":true,");
    }
    write_json(out, "\"schema\":");
    write_json(out, schema.0);
    write_json(out, "}}");
    Ok(())
}
