//! Tools, and which of them the model may or must use.

use super::body::{Tool, ToolChoice};
use super::json::put;
use super::left_out::{LeftOut, Place};
use proofgate_dialect::Untranslatable;
use proofgate_dialect::json::write_string;
use proofgate_dialect::schema::can_be_strict;

/// What the types of tools that Anthropic defines begin with; a date follows.
const ANTHROPICS: [&str; 11] = [
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

/// Writes `tools` and what goes with them; nothing when there are none.
pub(super) fn put_tools(
    tools: &[Tool<'_>],
    choice: Option<&ToolChoice<'_>>,
    left_out: &mut LeftOut,
    out: &mut Vec<u8>,
) -> Result<(), Untranslatable> {
    let place = &Place::Body.field("tools");
    let mut before = ",\"tools\":[";
    for (at, tool) in tools.iter().enumerate() {
        put(out, std::mem::replace(&mut before, ","));
        put_tool(&place.item(at), tool, left_out, out)?;
    }
    if !tools.is_empty() {
        out.push(b']');
    }
    choice.map_or(Ok(()), |choice| {
        put_choice(choice, tools.is_empty(), left_out, out)
    })
}

fn put_tool(
    place: &Place<'_>,
    tool: &Tool<'_>,
    left_out: &mut LeftOut,
    out: &mut Vec<u8>,
) -> Result<(), Untranslatable> {
    if let Some(kind) = tool.kind.as_ref().filter(|kind| kind.0 != "custom") {
        return Err(tool_refused(place, &kind.0));
    }
    let required = |name| move || place.field(name).required();
    let name = tool.name.as_ref().ok_or_else(required("name"))?;
    let schema = tool.input_schema.as_ref().ok_or_else(required("input_schema"))?;
    put(out, "{\"type\":\"function\",\"function\":{\"name\":");
    write_string(out, &name.0);
    if let Some(description) = &tool.description {
        put(out, ",\"description\":");
        write_string(out, &description.0);
    }
    put(out, ",\"parameters\":");
    put(out, schema.0);
    match tool.strict {
        // OpenAI refuses a schema that leaves something open, which Anthropic's may.
        Some(true) if !can_be_strict(schema.0) => left_out.note("strict"),
        Some(true) => put(out, ",\"strict\":true"),
        Some(false) => put(out, ",\"strict\":false"),
        None => {}
    }
    put(out, "}}");
    // Fields that ask for what is done without them anyway.
    let is_default = |name: &&str| match *name {
        "defer_loading" => tool.defer_loading == Some(false),
        "eager_input_streaming" => tool.eager_input_streaming == Some(false),
        _ => false,
    };
    let read = ["type", "name", "description", "input_schema", "strict"];
    let given = tool.given().filter(|name| !is_default(name));
    left_out.others(place, given, &read, tool.unknown.as_deref())
}

fn tool_refused(place: &Place<'_>, kind: &str) -> Untranslatable {
    let family = ANTHROPICS.iter().find(|family| kind.starts_with(**family));
    let message = match family {
        Some(family) => {
            format!("The provider of this model does not have the Anthropic tool {family}.")
        }
        None => "A tool of this type cannot be sent to the provider of this model.".to_owned(),
    };
    place.field("type").refused(message)
}

fn put_choice(
    choice: &ToolChoice<'_>,
    no_tools: bool,
    left_out: &mut LeftOut,
    out: &mut Vec<u8>,
) -> Result<(), Untranslatable> {
    let place = &Place::Body.field("tool_choice");
    left_out.unknown(place, choice.unknown.as_deref())?;
    let kind = choice
        .kind
        .as_ref()
        .ok_or_else(|| place.field("type").required())?;
    match (&*kind.0, no_tools) {
        // Without tools chat completions refuse the field, and nothing can be chosen anyway.
        ("auto" | "none", true) => return Ok(()),
        ("any" | "tool", true) => {
            return Err(place.refused("The choice requires a tool, but the request has no tools."));
        }
        ("auto", false) => put(out, ",\"tool_choice\":\"auto\""),
        ("none", false) => put(out, ",\"tool_choice\":\"none\""),
        ("any", false) => put(out, ",\"tool_choice\":\"required\""),
        ("tool", false) => {
            let name = choice
                .name
                .as_ref()
                .ok_or_else(|| place.field("name").required())?;
            put(
                out,
                ",\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":",
            );
            write_string(out, &name.0);
            put(out, "}}");
        }
        _ => {
            return Err(place
                .field("type")
                .refused("The type must be auto, any, tool or none."));
        }
    }
    // Several at once is what happens anyway, and some models refuse the field.
    if choice.disable_parallel_tool_use == Some(true) {
        put(out, ",\"parallel_tool_calls\":false");
    }
    Ok(())
}
