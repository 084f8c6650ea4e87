//! Translation of a Messages request to a chat request.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::body::{Body, Metadata, Thinking};
use super::destination::Destination;
use super::dropped_fields::{DroppedFields, JsonPath};
use super::json::{Number, unquoted, write_field, write_json};
use super::message_writer::MessageWriter;
use super::mismatch::find_mismatch;
use super::output_options::write_output_options;
use super::tools::write_tools;
use proofgate_dialect::constraints::{Constraint, has_constraint};
use proofgate_dialect::json::write_string;
use proofgate_dialect::{RequestContext, Target, UntranslatableRequest};

/// The maximum length of `user` at OpenAI, in characters (its error `string_above_max_length`).
const MAX_USER_CHARS: usize = 64;

/// Appends the chat request for a Messages request to `out`.
///
/// A streamed answer is requested with its usage. `out` is unchanged if the request is refused.
///
/// # Errors
/// Returns [`UntranslatableRequest`] with the field that is malformed or has no counterpart at the
/// provider. Unknown fields and preferences without a counterpart (`top_k`, `thinking`,
/// `cache_control`, citations, a `user_id` of more than 64 characters …) are refused or left out as
/// [`Target::untranslatable`] determines. A field whose loss would change the meaning of the
/// request is always refused.
///
/// Source: Anthropic's API reference, Messages; OpenAI's API reference, Chat Completions.
pub fn translate_request(
    body: &[u8],
    target: &Target<'_>,
    out: &mut Vec<u8>,
) -> Result<RequestContext, UntranslatableRequest> {
    translate(body, target, Destination::Chat, out)
}

/// Appends the chat request that `openai_responses::translate_request` translates for Responses to `out`.
///
/// Unlike the chat request of [`translate_request`], it has features that Responses accepts and
/// chat completions do not: an effort together with tools, `thinking`, images and documents in tool
/// results, documents by URL, and encrypted reasoning. `stop_sequences` are a preference without a
/// counterpart.
///
/// # Errors
/// As for [`translate_request`].
pub fn translate_for_responses(
    body: &[u8],
    target: &Target<'_>,
    out: &mut Vec<u8>,
) -> Result<RequestContext, UntranslatableRequest> {
    translate(body, target, Destination::Responses, out)
}

/// Appends the chat request that a writer of the crate `chat-clients` translates for its provider to `out`.
///
/// Unlike the chat request of [`translate_request`], it has features that those writers read and
/// providers of chat completions do not: images and documents in tool results, documents by URL,
/// and encrypted reasoning. A thinking budget becomes an effort.
///
/// # Errors
/// As for [`translate_request`].
pub fn translate_for_other_apis(
    body: &[u8],
    target: &Target<'_>,
    out: &mut Vec<u8>,
) -> Result<RequestContext, UntranslatableRequest> {
    translate(body, target, Destination::Other, out)
}

/// Appends the chat request that `openai_gemini::translate_request` translates for Gemini to `out`.
///
/// Unlike the chat request of [`translate_for_other_apis`], it requests visible thinking: Gemini
/// shows its thoughts only on request.
///
/// # Errors
/// As for [`translate_request`].
pub fn translate_for_gemini(
    body: &[u8],
    target: &Target<'_>,
    out: &mut Vec<u8>,
) -> Result<RequestContext, UntranslatableRequest> {
    translate(body, target, Destination::Gemini, out)
}

fn translate(
    body: &[u8],
    target: &Target<'_>,
    way: Destination,
    out: &mut Vec<u8>,
) -> Result<RequestContext, UntranslatableRequest> {
    let start = out.len();
    let asked = match serde_json::from_slice(body) {
        Ok(body) => write_request(&body, target, way, out),
        Err(_) => Err(find_mismatch(body)),
    };
    if asked.is_err() {
        out.truncate(start);
    }
    asked
}

fn write_request(
    body: &Body<'_>,
    target: &Target<'_>,
    way: Destination,
    out: &mut Vec<u8>,
) -> Result<RequestContext, UntranslatableRequest> {
    let mut left_out = DroppedFields::new(target.untranslatable);
    let model = body
        .model
        .as_ref()
        .ok_or_else(|| JsonPath::Body.field("model").missing_error())?;
    write_json(out, "{\"model\":");
    write_string(out, target.model);
    write_json(out, ",\"messages\":[");
    let mut turns = MessageWriter::new(target.model, way, &mut left_out, out);
    if let Some(system) = &body.system {
        turns.write_system(system)?;
    }
    let messages = body.messages.as_ref();
    turns.write_conversation(messages.ok_or_else(|| JsonPath::Body.field("messages").missing_error())?)?;
    out.push(b']');
    write_max_tokens(body.max_tokens, target.model, out)?;
    write_tools(
        body.tools.as_deref().unwrap_or_default(),
        body.tool_choice.as_ref(),
        &mut left_out,
        out,
    )?;
    write_sampling(body, target.model, way, &mut left_out, out)?;
    write_output_options(body, target.model, way, &mut left_out, out)?;
    if let Some(metadata) = &body.metadata {
        write_user(metadata, &mut left_out, out)?;
    }
    check_supported(body)?;
    drop_preferences(body, target.model, way, &mut left_out)?;
    let stream = body.stream == Some(true);
    if stream {
        write_json(
            out,
            ",\"stream\":true,\"stream_options\":{\"include_usage\":true}",
        );
    }
    out.push(b'}');
    Ok(RequestContext {
        model: model.0.clone().into_owned(),
        stream,
        include_usage: stream,
        uses_json_tool: false,
        returns_base64: false,
        dropped_fields: left_out.into_names(),
        custom_tools: Vec::new(),
        returns_signatures: way == Destination::Gemini
            && body.thinking.as_ref().is_some_and(is_thinking_enabled),
        responses_context: None,
    })
}

fn write_max_tokens(
    limit: Option<Number<'_>>,
    model: &str,
    out: &mut Vec<u8>,
) -> Result<(), UntranslatableRequest> {
    let place = &JsonPath::Body.field("max_tokens");
    let limit = limit.ok_or_else(|| place.missing_error())?;
    match limit.0.parse::<u64>() {
        Ok(0) => Err(place.error("Cache warming has no counterpart at the provider of this model.")),
        Ok(_) => {
            let name = if has_constraint(model, Constraint::MaxCompletionTokens) {
                "max_completion_tokens"
            } else {
                "max_tokens"
            };
            write_field(name, Some(limit.0), out);
            Ok(())
        }
        Err(_) => Err(place.error("A whole number of at least 1 is expected here.")),
    }
}

/// Writes the sampling parameters and stop sequences that the model accepts.
fn write_sampling(
    body: &Body<'_>,
    model: &str,
    way: Destination,
    left_out: &mut DroppedFields,
    out: &mut Vec<u8>,
) -> Result<(), UntranslatableRequest> {
    let is_fixed = has_constraint(model, Constraint::DefaultSampling);
    for (name, value) in [("temperature", body.temperature), ("top_p", body.top_p)] {
        let Some(value) = value else { continue };
        if !is_fixed {
            write_field(name, Some(value.0), out);
        } else if value.0.parse() != Ok(1.0) {
            left_out.drop_preference(&JsonPath::Body.field(name), name)?;
        }
    }
    if way.supports_top_k() {
        // Not a field of chat completions, but the modules that read this request support it.
        write_field("top_k", body.top_k.map(|top_k| top_k.0), out);
    }
    let stops = body
        .stop_sequences
        .as_ref()
        .is_some_and(|stops| !stops.is_empty());
    if stops && (way == Destination::Responses || has_constraint(model, Constraint::NoStop)) {
        return left_out.drop_preference(&JsonPath::Body.field("stop_sequences"), "stop_sequences");
    }
    write_stop(body, out);
    Ok(())
}

fn write_stop(body: &Body<'_>, out: &mut Vec<u8>) {
    let mut before = ",\"stop\":[";
    let sequences = body.stop_sequences.as_deref().unwrap_or_default();
    for sequence in sequences {
        write_json(out, std::mem::replace(&mut before, ","));
        write_string(out, &sequence.0);
    }
    if !sequences.is_empty() {
        out.push(b']');
    }
}

fn write_user(
    metadata: &Metadata<'_>,
    left_out: &mut DroppedFields,
    out: &mut Vec<u8>,
) -> Result<(), UntranslatableRequest> {
    let place = &JsonPath::Body.field("metadata");
    left_out.drop_unknown(place, metadata.unknown.as_deref())?;
    match &metadata.user_id {
        Some(user) if user.0.chars().nth(MAX_USER_CHARS).is_some() => {
            left_out.drop_preference(&place.field("user_id"), "metadata.user_id")
        }
        Some(user) => {
            write_json(out, ",\"user\":");
            write_string(out, &user.0);
            Ok(())
        }
        None => Ok(()),
    }
}

/// Refuses fields whose loss would change the meaning of the request: tools on other servers, state stored at Anthropic, and
/// where data may be processed.
fn check_supported(body: &Body<'_>) -> Result<(), UntranslatableRequest> {
    let refused = [
        (
            "mcp_servers",
            body.mcp_servers
                .as_ref()
                .is_some_and(|servers| !servers.is_empty()),
        ),
        ("container", body.container.is_some()),
        ("thread", body.thread.is_some()),
        ("inference_geo", body.inference_geo.is_some()),
    ];
    match refused.into_iter().find(|(_, given)| *given) {
        Some((name, _)) => {
            let place = JsonPath::Body.field(name);
            Err(place.error(
                "This field has no counterpart at the provider of this model, and it cannot be omitted.",
            ))
        }
        None => Ok(()),
    }
}

/// Drops preferences that ask for something other than the default.
fn drop_preferences(
    body: &Body<'_>,
    model: &str,
    way: Destination,
    left_out: &mut DroppedFields,
) -> Result<(), UntranslatableRequest> {
    let has_tools = body.has_tools();
    let is = |text: &Option<super::json::Text<'_>>, value| text.as_ref().is_some_and(|text| text.0 == value);
    let preferences = [
        (
            "thinking",
            body.thinking.as_ref().is_some_and(|thinking| {
                is_thinking_enabled(thinking) && !way.can_express_thinking(thinking, model, has_tools)
            }),
        ),
        (
            "service_tier",
            body.service_tier.is_some()
                && !is(&body.service_tier, "auto")
                && !is(&body.service_tier, "standard_only"),
        ),
        ("speed", body.speed.is_some() && !is(&body.speed, "standard")),
        ("top_k", !way.supports_top_k() && body.top_k.is_some()),
        ("cache_control", body.cache_control.is_some()),
        (
            "context_management",
            body.context_management
                .is_some_and(|edits| !retains_all_thinking(edits)),
        ),
        ("compaction", body.compaction.is_some()),
        ("fallbacks", body.fallbacks.is_some()),
        ("diagnostics", body.diagnostics.is_some()),
    ];
    for (name, given) in preferences {
        if given {
            left_out.drop_preference(&JsonPath::Body.field(name), name)?;
        }
    }
    left_out.drop_unknown(&JsonPath::Body, body.unknown.as_deref())
}

fn is_thinking_enabled(thinking: &Thinking<'_>) -> bool {
    thinking.kind.as_ref().is_none_or(|kind| kind.0 != "disabled")
}

/// Returns whether a context management changes nothing: Claude Code asks to keep all thinking, which is the default.
fn retains_all_thinking(management: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct Management<'a> {
        #[serde(borrow)]
        edits: Option<Vec<Edit<'a>>>,
    }
    #[derive(Deserialize)]
    struct Edit<'a> {
        #[serde(borrow, rename = "type")]
        kind: Option<&'a RawValue>,
        #[serde(borrow)]
        keep: Option<&'a RawValue>,
    }
    let keeps = |edit: &Edit<'_>| {
        unquoted(edit.kind).is_some_and(|kind| kind.starts_with("clear_thinking_"))
            && edit.keep.is_some_and(|keep| keep.get() == "\"all\"")
    };
    let management: Result<Management<'_>, _> = serde_json::from_str(management.get());
    let edits = management.ok().and_then(|management| management.edits);
    edits.is_some_and(|edits| !edits.is_empty() && edits.iter().all(keeps))
}
