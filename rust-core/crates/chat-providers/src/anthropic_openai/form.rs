//! How much work an answer is worth, what is thought for it, and which form it has.

use super::body::{Body, Format, OutputConfig, Thinking};
use super::json::{Text, put, put_field};
use super::left_out::{LeftOut, Place};
use super::way::Way;
use crate::gemini_thoughts::show_thoughts;
use proofgate_dialect::Untranslatable;
use proofgate_dialect::constraints::{Effort, effort, effort_of_budget};
use proofgate_dialect::json::write_string;
use proofgate_dialect::schema::can_be_strict;

/// How much work an answer is worth and which form it has.
pub(super) fn put_form(
    body: &Body<'_>,
    model: &str,
    way: Way,
    left_out: &mut LeftOut,
    out: &mut Vec<u8>,
) -> Result<(), Untranslatable> {
    let config_place = &Place::Body.field("output_config");
    let none = OutputConfig::default();
    let config = body.output_config.as_ref().unwrap_or(&none);
    left_out.unknown(config_place, config.unknown.as_deref())?;
    let has_tools = body.has_tools();
    let thinking = body.thinking.as_ref();
    if way.forbids_effort(model, has_tools) {
        put(out, ",\"reasoning_effort\":\"none\"");
        if config.effort.is_some() {
            left_out.preference(&config_place.field("effort"), "output_config.effort")?;
        }
    } else if let Some(effort) = &config.effort {
        put_effort(&config_place.field("effort"), &effort.0, model, left_out, out)?;
    } else if let Some(thinking) = thinking
        && way != Way::Responses
        && way.says(thinking, model, has_tools)
    {
        put_budget(thinking, model, out);
    }
    match thinking {
        Some(thinking) if way == Way::Responses => put_thinking(thinking, left_out, out)?,
        Some(thinking) if way == Way::Gemini => put_for_gemini(thinking, config.effort.is_some(), model, out),
        _ => {}
    }
    match (&config.format, &body.output_format) {
        (Some(_), Some(_)) => Err(Place::Body
            .field("output_format")
            .refused("output_config.format sets this already.")),
        (Some(format), None) => put_format(&config_place.field("format"), format, left_out, out),
        // The name that the field had in a beta.
        (None, Some(format)) => put_format(&Place::Body.field("output_format"), format, left_out, out),
        (None, None) => Ok(()),
    }
}

/// A budget of thinking as the effort that costs no more.
fn put_budget(thinking: &Thinking<'_>, model: &str, out: &mut Vec<u8>) {
    let budget = thinking.budget_tokens.and_then(|budget| budget.0.parse().ok());
    if let Some(budget) = budget {
        put(out, ",\"reasoning_effort\":");
        write_string(out, effort_of_budget(model, budget));
    }
}

/// That thoughts are to be shown, where the client wants to see them.
fn put_for_gemini(thinking: &Thinking<'_>, has_effort: bool, model: &str, out: &mut Vec<u8>) {
    let is = |text: &Option<Text<'_>>, value| text.as_ref().is_some_and(|text| text.0 == value);
    if !is(&thinking.kind, "disabled") && !is(&thinking.display, "omitted") {
        show_thoughts(model, has_effort || thinking.budget_tokens.is_some(), out);
    }
}

/// What is thought, in Anthropic's words: whether it is to be seen, and how much there may be of it.
fn put_thinking(
    thinking: &Thinking<'_>,
    left_out: &mut LeftOut,
    out: &mut Vec<u8>,
) -> Result<(), Untranslatable> {
    left_out.unknown(&Place::Body.field("thinking"), thinking.unknown.as_deref())?;
    put(out, ",\"thinking\":{\"type\":");
    write_string(out, thinking.kind.as_ref().map_or("enabled", |kind| &kind.0));
    put_field(
        "budget_tokens",
        thinking.budget_tokens.map(|budget| budget.0),
        out,
    );
    if let Some(display) = &thinking.display {
        put(out, ",\"display\":");
        write_string(out, &display.0);
    }
    out.push(b'}');
    Ok(())
}

/// The effort, or the highest below it that the model has. A level that is not known passes.
fn put_effort(
    place: &Place<'_>,
    level: &str,
    model: &str,
    left_out: &mut LeftOut,
    out: &mut Vec<u8>,
) -> Result<(), Untranslatable> {
    let said = match effort(model, level) {
        Some(Effort::Nothing) => return left_out.preference(place, "output_config.effort"),
        Some(Effort::Level(said)) => said,
        Some(Effort::Budget(_)) | None => level,
    };
    if said != level {
        left_out.note("output_config.effort");
    }
    put(out, ",\"reasoning_effort\":");
    write_string(out, said);
    Ok(())
}

fn put_format(
    place: &Place<'_>,
    format: &Format<'_>,
    left_out: &mut LeftOut,
    out: &mut Vec<u8>,
) -> Result<(), Untranslatable> {
    left_out.unknown(place, format.unknown.as_deref())?;
    if format.kind.as_ref().is_none_or(|kind| kind.0 != "json_schema") {
        return Err(place.field("type").refused("The type must be json_schema."));
    }
    let schema = format
        .schema
        .as_ref()
        .ok_or_else(|| place.field("schema").required())?;
    put(
        out,
        ",\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"answer\",",
    );
    // Anthropic's answers always keep to the schema, OpenAI's only if it is strict, which not every schema can be; the name is
    // demanded.
    if can_be_strict(schema.0) {
        put(out, "\"strict\":true,");
    }
    put(out, "\"schema\":");
    put(out, schema.0);
    put(out, "}}");
    Ok(())
}
