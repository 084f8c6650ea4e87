//! Tools and the tool choice.

use proofgate_chat_request::{
    ChatRequest, Custom, DroppedFields, Function, NO_ARGUMENTS_SCHEMA, OfferedTool, OfferedToolKind,
    ToolReference, ToolSelection,
};
use proofgate_dialect::UntranslatableRequest;
use proofgate_dialect::json::{bool_literal, write_all, write_member, write_string};
use proofgate_dialect::json_text::JsonText;
use proofgate_dialect::object::{Flag, Object};

/// Writes `tools`, `tool_choice` and `parallel_tool_calls`, each with a comma before it. Without tools the last two have no
/// effect.
pub(super) fn write(
    chat: &ChatRequest<'_>,
    losses: &mut DroppedFields,
    out: &mut Vec<u8>,
) -> Result<(), UntranslatableRequest> {
    let tools = chat.read_tools(losses)?;
    if tools.offered.is_empty() {
        return Ok(());
    }
    let mut before = ",\"tools\":[";
    for tool in &tools.offered {
        write_all(out, &[std::mem::replace(&mut before, ",")]);
        write_tool(tool, losses, out)?;
    }
    out.push(b']');
    write_choice(&tools.choice, out);
    write_member(
        out,
        "parallel_tool_calls",
        chat.parallel_tool_calls.map(Flag::json),
    );
    Ok(())
}

fn write_tool(
    tool: &OfferedTool<'_, '_>,
    losses: &mut DroppedFields,
    out: &mut Vec<u8>,
) -> Result<(), UntranslatableRequest> {
    let (kind, description) = match tool.kind {
        OfferedToolKind::Function(function) => ("function", function.description),
        OfferedToolKind::Custom(custom) => ("custom", custom.description),
    };
    write_all(out, &["{\"type\":\"", kind, "\",\"name\":"]);
    write_string(out, tool.name);
    write_member(out, "description", description.map(JsonText::raw));
    match tool.kind {
        OfferedToolKind::Function(function) => write_function(function, out),
        OfferedToolKind::Custom(custom) => write_format(custom, tool, losses, out)?,
    }
    out.push(b'}');
    Ok(())
}

fn write_function(function: &Function<'_>, out: &mut Vec<u8>) {
    write_member(
        out,
        "parameters",
        function.arguments().or(Some(NO_ARGUMENTS_SCHEMA)),
    );
    write_member(out, "strict", Some(bool_literal(function.is_strict())));
}

fn write_format(
    custom: &Custom<'_>,
    tool: &OfferedTool<'_, '_>,
    losses: &mut DroppedFields,
    out: &mut Vec<u8>,
) -> Result<(), UntranslatableRequest> {
    let Some(format) = &custom.format else {
        return Ok(());
    };
    losses.drop_unknown(format.unknown.as_ref());
    match (format.kind.as_deref(), format.grammar.map(Object::json)) {
        (Some("text"), _) => write_member(out, "format", Some("{\"type\":\"text\"}")),
        (Some("grammar"), Some(grammar)) => {
            let members = grammar.strip_prefix('{').unwrap_or("}");
            let before = if members.trim_start() == "}" { "" } else { "," };
            write_all(out, &[",\"format\":{\"type\":\"grammar\"", before, members]);
        }
        _ => {
            let message = "a format must be text, or a grammar with a definition and a syntax";
            return Err(UntranslatableRequest::new(
                tool.field_path("custom.format"),
                message,
            ));
        }
    }
    Ok(())
}

fn write_choice(choice: &ToolSelection<'_>, out: &mut Vec<u8>) {
    let word = match choice {
        ToolSelection::Unspecified => return,
        ToolSelection::Auto => "\"auto\"",
        ToolSelection::None => "\"none\"",
        ToolSelection::Required => "\"required\"",
        ToolSelection::Specific(named) => {
            write_all(out, &[",\"tool_choice\":"]);
            return write_tool_by_name(named, out);
        }
        ToolSelection::AllowedTools(names, is_required) => {
            let mode = if *is_required { "required" } else { "auto" };
            write_all(
                out,
                &[",\"tool_choice\":{\"type\":\"allowed_tools\",\"mode\":\"", mode],
            );
            let mut before = "\",\"tools\":[";
            for named in names {
                write_all(out, &[std::mem::replace(&mut before, ",")]);
                write_tool_by_name(named, out);
            }
            return write_all(out, &["]}"]);
        }
    };
    write_member(out, "tool_choice", Some(word));
}

/// Writes a tool by its name.
fn write_tool_by_name(named: &ToolReference<'_>, out: &mut Vec<u8>) {
    let kind = if named.is_custom { "custom" } else { "function" };
    write_all(out, &["{\"type\":\"", kind, "\",\"name\":"]);
    write_string(out, &named.name);
    out.push(b'}');
}
