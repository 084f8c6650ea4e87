use serde_json::value::RawValue;

use crate::Untranslatable;
use crate::openai_converse::chat::{Chat, Tool, ToolChoice};
use crate::openai_converse::content::{List, missing, required, ttl, write_cache_point};
use crate::openai_converse::preferences::Preferences;
use crate::openai_converse::settings::is_claude;
use crate::openai_converse::text::{Text, inner, parse, parse_list, write_all, wrong_type};
use crate::schema::{write_arguments, write_for_claude};

/// What a client says of the tools that the model is to use.
enum Choice<'b> {
    Auto,
    None,
    Required,
    One(Text<'b>),
    /// Of these only, and whether of these one at least.
    Some(Vec<Tool<'b>>, bool),
}

/// What stands for the tools that a conversation with tool calls had, in a request that has none: Converse demands one (its
/// error "The toolConfig field must be defined when using toolUse and toolResult content blocks").
const NOT_TO_BE_CALLED: &str = r#","toolConfig":{"tools":[{"toolSpec":{"name":"no_tool_available","description":"There is no tool to call. Answer without one.","inputSchema":{"json":{"type":"object","properties":{}}}}}]}"#;

/// Writes `toolConfig` if there are tools, or were any.
pub(super) fn write_tools(
    out: &mut Vec<u8>,
    chat: &Chat<'_>,
    model: &str,
    has_calls: bool,
    preferences: &mut Preferences,
) -> Result<(), Untranslatable> {
    let mut tools: Vec<Tool<'_>> = match chat.tools {
        Some(tools) => parse_list(tools, || "tools".to_owned())?,
        None => Vec::new(),
    };
    for (number, tool) in tools.iter().enumerate() {
        check(tool, number, preferences)?;
    }
    let choice = match chat.tool_choice {
        Some(choice) => read_choice(choice, preferences)?,
        None => Choice::Auto,
    };
    let chosen = match choice {
        Choice::Auto => String::new(),
        Choice::Required => r#","toolChoice":{"any":{}}"#.to_owned(),
        Choice::None => match chat.tool_choice {
            // Converse refuses a conversation with tool calls if no tools are defined.
            Some(choice) if has_calls && !tools.is_empty() => {
                let reason = "Converse cannot forbid the use of tools where the conversation has tool calls.";
                let param = || "tool_choice".to_owned();
                preferences.leave_out_for(reason, "tool_choice", choice, param)?;
                String::new()
            }
            _ if has_calls => String::new(),
            _ => return Ok(()),
        },
        Choice::One(name) => {
            let name = tool_name(Some(&name), || "tool_choice.function.name".to_owned())?;
            let chosen = format!(r#","toolChoice":{{"tool":{{"name":"{name}"}}}}"#);
            if tools.iter().all(|tool| name_of(tool) != Some(name)) {
                return Err(no_such_tool("tool_choice.function.name"));
            }
            chosen
        }
        Choice::Some(allowed, required) => {
            let known = |name: &Tool<'_>| tools.iter().any(|tool| name_of(tool) == name_of(name));
            if !allowed.iter().all(known) {
                return Err(no_such_tool("tool_choice.allowed_tools.tools"));
            }
            tools.retain(|tool| allowed.iter().any(|name| name_of(tool) == name_of(name)));
            if required {
                r#","toolChoice":{"any":{}}"#.to_owned()
            } else {
                String::new()
            }
        }
    };
    if tools.is_empty() {
        if !chosen.is_empty() {
            return Err(no_such_tool("tool_choice"));
        }
        if has_calls {
            write_all(out, &[NOT_TO_BE_CALLED]);
        }
        return Ok(());
    }
    write_all(out, &[r#","toolConfig":{"tools":["#]);
    let mut blocks = List::new(out);
    for (number, tool) in tools.iter().enumerate() {
        write_tool(tool, number, model, &mut blocks)?;
    }
    write_all(out, &["]", &chosen, "}"]);
    Ok(())
}

fn no_such_tool(param: &'static str) -> Untranslatable {
    Untranslatable::new(param, "There is no such tool in the request.")
}

fn name_of<'t>(tool: &'t Tool<'_>) -> Option<&'t str> {
    tool.function.as_ref()?.name.as_deref()
}

/// The name of a tool, if Converse allows it.
pub(super) fn tool_name<'t>(
    name: Option<&'t Text<'_>>,
    param: impl Fn() -> String,
) -> Result<&'t str, Untranslatable> {
    let name = required(name, &param)?;
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if !(1..=64).contains(&name.len()) || !name.bytes().all(allowed) {
        let reason = "A tool's name has 1 to 64 letters, digits, underscores and hyphens.";
        return Err(Untranslatable::new(param(), reason));
    }
    Ok(name)
}

fn check(tool: &Tool<'_>, number: usize, preferences: &mut Preferences) -> Result<(), Untranslatable> {
    preferences.unknown(tool.unknown.as_ref(), || format!("tools[{number}]"))?;
    if tool.kind.as_deref() != Some("function") {
        let reason = "Converse has no counterpart of a tool of this type.";
        return Err(Untranslatable::new(format!("tools[{number}].type"), reason));
    }
    let function = tool
        .function
        .as_ref()
        .ok_or_else(|| missing(format!("tools[{number}].function")))?;
    preferences.unknown(function.unknown.as_ref(), || format!("tools[{number}].function"))
}

fn write_tool(
    tool: &Tool<'_>,
    number: usize,
    model: &str,
    blocks: &mut List<'_>,
) -> Result<(), Untranslatable> {
    use crate::openai_converse::content::Blocks as _;

    let param = |field: &str| format!("tools[{number}].function{field}");
    let function = tool.function.as_ref().ok_or_else(|| missing(param("")))?;
    let name = tool_name(function.name.as_ref(), || param(".name"))?;
    let out = blocks.next();
    write_all(out, &[r#"{"toolSpec":{"name":""#, name, "\""]);
    if let Some(description) = function.description {
        let text = inner(description).ok_or_else(|| wrong_type(param(".description")))?;
        if !text.is_empty() {
            write_all(out, &[r#","description":"#, description.get()]);
        }
    }
    write_all(out, &[r#","inputSchema":{"json":"#]);
    let schema = schema(function.parameters, || param(".parameters"))?;
    if function.strict == Some(true) && is_claude(model) {
        write_for_claude(schema, out);
    } else {
        write_arguments(schema, out);
    }
    out.push(b'}');
    if function.strict == Some(true) {
        write_all(out, &[r#","strict":true"#]);
    }
    write_all(out, &["}}"]);
    if let Some(control) = tool.cache_control.as_ref().or(function.cache_control.as_ref()) {
        write_cache_point(ttl(Some(control)), blocks);
    }
    Ok(())
}

/// The schema of a tool's arguments, as it is; of a tool without any, that of an object without fields.
fn schema(parameters: Option<&RawValue>, param: impl Fn() -> String) -> Result<&str, Untranslatable> {
    let schema = parameters.map_or("{}", RawValue::get);
    match schema.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
        Some(fields) if fields.trim_ascii().is_empty() => Ok(r#"{"type":"object","properties":{}}"#),
        Some(_) => Ok(schema),
        None => Err(wrong_type(param())),
    }
}

fn read_choice<'b>(
    choice: &'b RawValue,
    preferences: &mut Preferences,
) -> Result<Choice<'b>, Untranslatable> {
    let param = |field: &str| format!("tool_choice{field}");
    match inner(choice) {
        Some("auto") => return Ok(Choice::Auto),
        Some("none") => return Ok(Choice::None),
        Some("required") => return Ok(Choice::Required),
        _ => {}
    }
    let choice: ToolChoice<'_> = parse(choice, || param(""))?;
    preferences.unknown(choice.unknown.as_ref(), || param(""))?;
    match choice.kind.as_deref() {
        Some("function") => {
            let name = choice.function.and_then(|function| function.name);
            name.map(Choice::One)
                .ok_or_else(|| missing(param(".function.name")))
        }
        Some("allowed_tools") => {
            let allowed = choice
                .allowed_tools
                .ok_or_else(|| missing(param(".allowed_tools")))?;
            preferences.unknown(allowed.unknown.as_ref(), || param(".allowed_tools"))?;
            let required = match allowed.mode.as_deref() {
                Some("auto") => false,
                Some("required") => true,
                _ => return Err(wrong_type(param(".allowed_tools.mode"))),
            };
            let tools = allowed.tools.unwrap_or_default();
            Ok(Choice::Some(tools, required))
        }
        _ => Err(Untranslatable::new(
            param(".type"),
            "Converse has no counterpart of such a choice.",
        )),
    }
}
