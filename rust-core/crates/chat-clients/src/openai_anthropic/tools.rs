use crate::openai_anthropic::messages::parse_cache_control;
use proofgate_chat_request::{ChatRequest, DroppedFields, NO_ARGUMENTS_SCHEMA, ToolSelection};
use proofgate_dialect::UntranslatableRequest;
use proofgate_dialect::json::{write_all, write_member, write_string};
use proofgate_dialect::json_text::JsonText;
use proofgate_dialect::object::Flag;
use proofgate_dialect::schema::{write_arguments, write_for_claude};

/// Writes the members `tools` and `tool_choice`, each with a comma before it.
pub(super) fn write(
    chat: &ChatRequest<'_>,
    losses: &mut DroppedFields,
    out: &mut Vec<u8>,
) -> Result<(), UntranslatableRequest> {
    let mut tools = chat.read_tools(losses)?;
    if tools.offered.is_empty() {
        return Ok(());
    }
    tools.remove_disallowed();
    write_all(out, &[",\"tools\":["]);
    for (tool, function) in tools.functions() {
        write_all(out, &["{\"name\":"]);
        write_string(out, tool.name);
        write_member(out, "description", function.description.map(JsonText::raw));
        write_all(out, &[",\"input_schema\":"]);
        match function.arguments() {
            None => write_all(out, &[NO_ARGUMENTS_SCHEMA]),
            Some(schema) if function.is_strict() => write_for_claude(schema, out),
            Some(schema) => write_arguments(schema, out),
        }
        write_member(out, "strict", function.strict.map(Flag::json));
        write_member(out, "cache_control", parse_cache_control(tool.cache, losses));
        write_all(out, &["},"]);
    }
    out.pop();
    out.push(b']');
    write_choice(chat, &tools.choice, out);
    Ok(())
}

fn write_choice(chat: &ChatRequest<'_>, choice: &ToolSelection<'_>, out: &mut Vec<u8>) {
    let at_most_one = chat
        .parallel_tool_calls
        .is_some_and(|parallel| !parallel.is_true());
    let kind = match choice {
        ToolSelection::Unspecified if !at_most_one => return,
        ToolSelection::Unspecified | ToolSelection::Auto | ToolSelection::AllowedTools(..) => "auto",
        ToolSelection::Required => "any",
        ToolSelection::None => "none",
        ToolSelection::Specific(_) => "tool",
    };
    write_all(out, &[",\"tool_choice\":{\"type\":\"", kind, "\""]);
    if let ToolSelection::Specific(named) = choice {
        write_all(out, &[",\"name\":"]);
        write_string(out, &named.name);
    }
    if at_most_one && !matches!(choice, ToolSelection::None) {
        write_all(out, &[",\"disable_parallel_tool_use\":true"]);
    }
    out.push(b'}');
}
