use crate::openai_converse::cache_points::{ttl, write_cache_point};
use proofgate_chat_request::{
    ChatRequest, DroppedFields, Function, NO_ARGUMENTS_SCHEMA, OfferedTool, ToolSelection,
};
use proofgate_dialect::UntranslatableRequest;
use proofgate_dialect::json::{write_all, write_member};
use proofgate_dialect::json_text::JsonText;
use proofgate_dialect::schema::{write_arguments, write_for_claude};

/// The tools of a conversation with tool calls if the request has no tools or forbids calls:
/// Converse requires a tool (its error "The toolConfig field must be defined when using toolUse and
/// toolResult content blocks").
const PLACEHOLDER_TOOL_CONFIG: &str = r#","toolConfig":{"tools":[{"toolSpec":{"name":"no_tool_available","description":"There is no tool to call. Answer without one.","inputSchema":{"json":{"type":"object","properties":{}}}}}]}"#;

/// Writes `toolConfig` if the request has tools or the conversation has tool calls.
pub(super) fn write(
    chat: &ChatRequest<'_>,
    is_claude: bool,
    losses: &mut DroppedFields,
    out: &mut Vec<u8>,
) -> Result<(), UntranslatableRequest> {
    let mut tools = chat.read_tools(losses)?;
    tools.remove_disallowed();
    // Converse has no tool choice that forbids calls, but a request without tools has the same effect.
    if tools.offered.is_empty() || matches!(tools.choice, ToolSelection::None) {
        if chat.has_calls() {
            write_all(out, &[PLACEHOLDER_TOOL_CONFIG]);
        }
        return Ok(());
    }
    let mut before = r#","toolConfig":{"tools":["#;
    for (tool, function) in tools.functions() {
        write_all(out, &[std::mem::replace(&mut before, ",")]);
        write_tool(tool, function, is_claude, out)?;
    }
    out.push(b']');
    match &tools.choice {
        ToolSelection::Required => write_all(out, &[r#","toolChoice":{"any":{}}"#]),
        ToolSelection::Specific(named) => {
            let name = tool_name(&named.name, || "tool_choice.function.name".to_owned())?;
            write_all(out, &[r#","toolChoice":{"tool":{"name":""#, name, "\"}}"]);
        }
        ToolSelection::Unspecified
        | ToolSelection::Auto
        | ToolSelection::None
        | ToolSelection::AllowedTools(..) => {}
    }
    out.push(b'}');
    Ok(())
}

/// Returns the name of a tool, if Converse allows it.
pub(super) fn tool_name(name: &str, path: impl Fn() -> String) -> Result<&str, UntranslatableRequest> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if !(1..=64).contains(&name.len()) || !name.bytes().all(allowed) {
        let reason = "A tool's name must have 1 to 64 letters, digits, underscores and hyphens.";
        return Err(UntranslatableRequest::new(path(), reason));
    }
    Ok(name)
}

fn write_tool(
    tool: &OfferedTool<'_, '_>,
    function: &Function<'_>,
    is_claude: bool,
    out: &mut Vec<u8>,
) -> Result<(), UntranslatableRequest> {
    let name = tool_name(tool.name, || tool.field_path("function.name"))?;
    write_all(out, &[r#"{"toolSpec":{"name":""#, name, "\""]);
    write_member(out, "description", function.description().map(JsonText::raw));
    write_all(out, &[r#","inputSchema":{"json":"#]);
    match function.arguments() {
        None => write_all(out, &[NO_ARGUMENTS_SCHEMA]),
        Some(schema) if function.is_strict() && is_claude => write_for_claude(schema, out),
        Some(schema) => write_arguments(schema, out),
    }
    out.push(b'}');
    write_member(out, "strict", function.is_strict().then_some("true"));
    write_all(out, &["}}"]);
    if tool.cache.is_some() {
        out.push(b',');
        write_cache_point(ttl(tool.cache), out);
    }
    Ok(())
}
