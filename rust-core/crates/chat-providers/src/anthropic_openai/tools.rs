//! Tools and the tool choice.

use super::body::{Tool, ToolChoice};
use super::dropped_fields::{DroppedFields, JsonPath};
use super::json::write_json;
use proofgate_dialect::UntranslatableRequest;
use proofgate_dialect::json::write_string;
use proofgate_dialect::schema::can_be_strict;

/// The prefixes of the types of tools that Anthropic defines; a date follows.
const ANTHROPIC_TOOL_PREFIXES: [&str; 11] = [
    "web_search",
    "web_fetch",
    "code_execution",
    "tool_search",
    "advisor",
    "bash",
    "text_editor",
    "memory",
    "computer",
    "browser",
    "mcp_toolset",
];

/// Writes `tools` and the related fields; nothing if there are none.
pub(super) fn write_tools(
    tools: &[Tool<'_>],
    choice: Option<&ToolChoice<'_>>,
    left_out: &mut DroppedFields,
    out: &mut Vec<u8>,
) -> Result<(), UntranslatableRequest> {
    let place = &JsonPath::Body.field("tools");
    let mut before = ",\"tools\":[";
    for (at, tool) in tools.iter().enumerate() {
        write_json(out, std::mem::replace(&mut before, ","));
        write_tool(&place.element(at), tool, left_out, out)?;
    }
    if !tools.is_empty() {
        out.push(b']');
    }
    choice.map_or(Ok(()), |choice| {
        write_tool_choice(choice, tools.is_empty(), left_out, out)
    })
}

fn write_tool(
    place: &JsonPath<'_>,
    tool: &Tool<'_>,
    left_out: &mut DroppedFields,
    out: &mut Vec<u8>,
) -> Result<(), UntranslatableRequest> {
    if let Some(kind) = tool.kind.as_ref().filter(|kind| kind.0 != "custom") {
        return Err(unsupported_tool_error(place, &kind.0));
    }
    let required = |name| move || place.field(name).missing_error();
    let name = tool.name.as_ref().ok_or_else(required("name"))?;
    let schema = tool.input_schema.as_ref().ok_or_else(required("input_schema"))?;
    write_json(out, "{\"type\":\"function\",\"function\":{\"name\":");
    write_string(out, &name.0);
    if let Some(description) = &tool.description {
        write_json(out, ",\"description\":");
        write_string(out, &description.0);
    }
    write_json(out, ",\"parameters\":");
    write_json(out, schema.0);
    match tool.strict {
        // Anthropic's strict schemas may have open objects, which OpenAI refuses.
        Some(true) if !can_be_strict(schema.0) => left_out.record_field("strict"),
        Some(true) => write_json(out, ",\"strict\":true"),
        Some(false) => write_json(out, ",\"strict\":false"),
        None => {}
    }
    write_json(out, "}}");
    // Fields that ask for the default.
    let is_default = |name: &&str| match *name {
        "defer_loading" => tool.defer_loading == Some(false),
        "eager_input_streaming" => tool.eager_input_streaming == Some(false),
        _ => false,
    };
    let read = ["type", "name", "description", "input_schema", "strict"];
    let given = tool.present_fields().filter(|name| !is_default(name));
    left_out.drop_unread_fields(place, given, &read, tool.unknown.as_deref())
}

fn unsupported_tool_error(place: &JsonPath<'_>, kind: &str) -> UntranslatableRequest {
    let family = ANTHROPIC_TOOL_PREFIXES
        .iter()
        .find(|family| kind.starts_with(**family));
    let message = match family {
        Some(family) => {
            format!("The provider of this model does not have the Anthropic tool {family}.")
        }
        None => "A tool of this type cannot be sent to the provider of this model.".to_owned(),
    };
    place.field("type").error(message)
}

fn write_tool_choice(
    choice: &ToolChoice<'_>,
    no_tools: bool,
    left_out: &mut DroppedFields,
    out: &mut Vec<u8>,
) -> Result<(), UntranslatableRequest> {
    let place = &JsonPath::Body.field("tool_choice");
    left_out.drop_unknown(place, choice.unknown.as_deref())?;
    let kind = choice
        .kind
        .as_ref()
        .ok_or_else(|| place.field("type").missing_error())?;
    match (&*kind.0, no_tools) {
        // Without tools chat completions refuse the field, and there is nothing to choose.
        ("auto" | "none", true) => return Ok(()),
        ("any" | "tool", true) => {
            return Err(place.error("The choice requires a tool, but the request has no tools."));
        }
        ("auto", false) => write_json(out, ",\"tool_choice\":\"auto\""),
        ("none", false) => write_json(out, ",\"tool_choice\":\"none\""),
        ("any", false) => write_json(out, ",\"tool_choice\":\"required\""),
        ("tool", false) => {
            let name = choice
                .name
                .as_ref()
                .ok_or_else(|| place.field("name").missing_error())?;
            write_json(
                out,
                ",\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":",
            );
            write_string(out, &name.0);
            write_json(out, "}}");
        }
        _ => {
            return Err(place
                .field("type")
                .error("The type must be auto, any, tool or none."));
        }
    }
    // Parallel calls are the default, and some models refuse the field.
    if choice.disable_parallel_tool_use == Some(true) {
        write_json(out, ",\"parallel_tool_calls\":false");
    }
    Ok(())
}
