//! Tools, and which of them the model is to call.

use serde_json::value::RawValue;

use crate::Untranslatable;
use crate::openai_anthropic::json_text::{JsonText, is_object};
use crate::openai_anthropic::left_out::LeftOut;
use crate::openai_anthropic::unreadable::unreadable;
use crate::openai_responses::body::{AllowedTool, Body, Custom, Function, Named, Tool, ToolChoice};
use crate::openai_responses::input::note_cache;
use crate::openai_responses::request::write_field;

const CHOICE: &str = "tool_choice";

/// Writes `tools`, `tool_choice` and `parallel_tool_calls`, a comma before each. Without tools the last two ask for nothing.
pub(super) fn write(
    text: &str,
    body: &Body<'_>,
    left_out: &mut LeftOut,
    out: &mut Vec<u8>,
) -> Result<(), Untranslatable> {
    let tools = body.tools.as_deref().unwrap_or_default();
    if tools.is_empty() {
        let asks = |choice: &RawValue| !matches!(choice.get(), "\"auto\"" | "\"none\"");
        return match body.tool_choice.filter(|choice| asks(choice)) {
            None => Ok(()),
            Some(_) => Err(Untranslatable::new(CHOICE, "there is no tool to choose")),
        };
    }
    out.extend_from_slice(b",\"tools\":[");
    for (at, tool) in tools.iter().enumerate() {
        write_tool(tool, at, left_out, out)?;
        out.push(b',');
    }
    out.pop();
    out.push(b']');
    if let Some(choice) = body.tool_choice {
        out.extend_from_slice(b",\"tool_choice\":");
        write_choice(text, choice, out)?;
    }
    let parallel = body
        .parallel_tool_calls
        .map(|parallel| if parallel { "true" } else { "false" });
    write_field("parallel_tool_calls", parallel, out);
    Ok(())
}

fn write_tool(
    tool: &Tool<'_>,
    at: usize,
    left_out: &mut LeftOut,
    out: &mut Vec<u8>,
) -> Result<(), Untranslatable> {
    let path = |field: &str| format!("tools[{at}].{field}");
    left_out.leave_unknown(tool.unknown.as_deref(), path)?;
    note_cache(tool.cache_control, left_out);
    match (tool.kind.as_deref(), &tool.function, &tool.custom) {
        (Some("function"), Some(function), _) => write_function(function, path, left_out, out),
        (Some("custom"), _, Some(custom)) => write_custom(custom, path, left_out, out),
        _ => Err(Untranslatable::new(
            path("type"),
            "the provider is given tools of the types function and custom only",
        )),
    }
}

fn write_function(
    function: &Function<'_>,
    path: impl Fn(&str) -> String,
    left_out: &mut LeftOut,
    out: &mut Vec<u8>,
) -> Result<(), Untranslatable> {
    note_cache(function.cache_control, left_out);
    left_out.leave_unknown(function.unknown.as_deref(), |name| {
        path(&format!("function.{name}"))
    })?;
    let name = function
        .name
        .ok_or_else(|| Untranslatable::new(path("function.name"), "a function has a name"))?;
    out.extend_from_slice(b"{\"type\":\"function\"");
    write_field("name", Some(name.raw()), out);
    write_field("description", function.description.map(JsonText::raw), out);
    let parameters = function.parameters.map(RawValue::get);
    let parameters = parameters.filter(|parameters| *parameters != "{}");
    write_field(
        "parameters",
        parameters.or(Some("{\"type\":\"object\",\"properties\":{}}")),
        out,
    );
    let strict = if function.strict == Some(true) {
        "true"
    } else {
        "false"
    };
    write_field("strict", Some(strict), out);
    out.push(b'}');
    Ok(())
}

fn write_custom(
    custom: &Custom<'_>,
    path: impl Fn(&str) -> String,
    left_out: &mut LeftOut,
    out: &mut Vec<u8>,
) -> Result<(), Untranslatable> {
    left_out.leave_unknown(custom.unknown.as_deref(), |name| path(&format!("custom.{name}")))?;
    let name = custom
        .name
        .ok_or_else(|| Untranslatable::new(path("custom.name"), "a tool has a name"))?;
    out.extend_from_slice(b"{\"type\":\"custom\"");
    write_field("name", Some(name.raw()), out);
    write_field("description", custom.description.map(JsonText::raw), out);
    if let Some(format) = &custom.format {
        left_out.leave_unknown(format.unknown.as_deref(), |name| {
            path(&format!("custom.format.{name}"))
        })?;
        match (format.kind.as_deref(), format.grammar) {
            (Some("text"), _) => write_field("format", Some("{\"type\":\"text\"}"), out),
            (Some("grammar"), Some(grammar)) if is_object(grammar) => {
                out.extend_from_slice(b",\"format\":{\"type\":\"grammar\"");
                write_members(grammar, out);
            }
            _ => {
                let message = "a format is text, or a grammar with a definition and a syntax";
                return Err(Untranslatable::new(path("custom.format"), message));
            }
        }
    }
    out.push(b'}');
    Ok(())
}

/// Writes the members of an object, and its end, behind other members.
fn write_members(object: &RawValue, out: &mut Vec<u8>) {
    let members = object.get().strip_prefix('{').unwrap_or("}");
    if members.trim_start() != "}" {
        out.push(b',');
    }
    out.extend_from_slice(members.as_bytes());
}

fn write_choice(text: &str, choice: &RawValue, out: &mut Vec<u8>) -> Result<(), Untranslatable> {
    let raw = choice.get();
    if matches!(raw, "\"auto\"" | "\"none\"" | "\"required\"") {
        out.extend_from_slice(raw.as_bytes());
        return Ok(());
    }
    if !is_object(choice) {
        return Err(unknown_choice());
    }
    let choice: ToolChoice<'_> = serde_json::from_str(raw).map_err(|error| unreadable(text, raw, &error))?;
    if choice.unknown.is_some() {
        return Err(unknown_choice());
    }
    let kind = choice.kind.as_deref();
    let Some(allowed) = choice.allowed_tools.filter(|_| kind == Some("allowed_tools")) else {
        return write_named(kind, choice.function.as_ref(), choice.custom.as_ref(), out);
    };
    let mode = allowed.mode.ok_or_else(unknown_choice)?;
    out.extend_from_slice(b"{\"type\":\"allowed_tools\",\"mode\":");
    out.extend_from_slice(mode.raw().as_bytes());
    out.extend_from_slice(b",\"tools\":[");
    for (at, tool) in allowed.tools.iter().flatten().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        let AllowedTool {
            kind,
            function,
            custom,
            ..
        } = tool;
        write_named(kind.as_deref(), function.as_ref(), custom.as_ref(), out)?;
    }
    out.extend_from_slice(b"]}");
    Ok(())
}

/// Writes a tool by its name.
fn write_named(
    kind: Option<&str>,
    function: Option<&Named<'_>>,
    custom: Option<&Named<'_>>,
    out: &mut Vec<u8>,
) -> Result<(), Untranslatable> {
    let (kind, named) = match (kind, function, custom) {
        (Some("function"), Some(named), _) => ("function", named),
        (Some("custom"), _, Some(named)) => ("custom", named),
        _ => return Err(unknown_choice()),
    };
    let name = named.name.ok_or_else(unknown_choice)?;
    for piece in ["{\"type\":\"", kind, "\",\"name\":", name.raw(), "}"] {
        out.extend_from_slice(piece.as_bytes());
    }
    Ok(())
}

fn unknown_choice() -> Untranslatable {
    let message =
        "tool_choice has to be auto, required, none, a function, a custom tool or allowed_tools of these";
    Untranslatable::new(CHOICE, message)
}
