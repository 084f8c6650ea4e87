use crate::openai_anthropic::messages::mark;
use proofgate_chat_request::{Chat, Choice, Losses, NO_ARGUMENTS};
use proofgate_dialect::Untranslatable;
use proofgate_dialect::json::{write_all, write_member, write_string};
use proofgate_dialect::json_text::JsonText;
use proofgate_dialect::object::Flag;
use proofgate_dialect::schema::{write_arguments, write_for_claude};

/// Writes the members `tools` and `tool_choice`, a comma before each.
pub(super) fn write(chat: &Chat<'_>, losses: &mut Losses, out: &mut Vec<u8>) -> Result<(), Untranslatable> {
    let mut tools = chat.offered(losses)?;
    if tools.offered.is_empty() {
        return Ok(());
    }
    tools.restrict();
    write_all(out, &[",\"tools\":["]);
    for (tool, function) in tools.functions() {
        write_all(out, &["{\"name\":"]);
        write_string(out, tool.name);
        write_member(out, "description", function.description.map(JsonText::raw));
        write_all(out, &[",\"input_schema\":"]);
        match function.arguments() {
            None => write_all(out, &[NO_ARGUMENTS]),
            Some(schema) if function.is_strict() => write_for_claude(schema, out),
            Some(schema) => write_arguments(schema, out),
        }
        write_member(out, "strict", function.strict.map(Flag::json));
        write_member(out, "cache_control", mark(tool.cache, losses));
        write_all(out, &["},"]);
    }
    out.pop();
    out.push(b']');
    write_choice(chat, &tools.choice, out);
    Ok(())
}

fn write_choice(chat: &Chat<'_>, choice: &Choice<'_>, out: &mut Vec<u8>) {
    let at_most_one = chat
        .parallel_tool_calls
        .is_some_and(|parallel| !parallel.is_true());
    let kind = match choice {
        Choice::Unsaid if !at_most_one => return,
        Choice::Unsaid | Choice::Auto | Choice::Some(..) => "auto",
        Choice::Required => "any",
        Choice::None => "none",
        Choice::One(_) => "tool",
    };
    write_all(out, &[",\"tool_choice\":{\"type\":\"", kind, "\""]);
    if let Choice::One(named) = choice {
        write_all(out, &[",\"name\":"]);
        write_string(out, &named.name);
    }
    if at_most_one && !matches!(choice, Choice::None) {
        write_all(out, &[",\"disable_parallel_tool_use\":true"]);
    }
    out.push(b'}');
}
