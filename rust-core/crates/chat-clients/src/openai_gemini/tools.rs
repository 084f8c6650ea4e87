use proofgate_chat_request::{ChatRequest, DroppedFields, ToolReference, ToolSelection};
use proofgate_dialect::UntranslatableRequest;
use proofgate_dialect::json::{write_all, write_member, write_string};
use proofgate_dialect::json_text::JsonText;

/// Writes the tools and the tool choice, each with a comma before it.
pub(super) fn write(
    chat: &ChatRequest<'_>,
    losses: &mut DroppedFields,
    out: &mut Vec<u8>,
) -> Result<(), UntranslatableRequest> {
    let tools = chat.read_tools(losses)?;
    if tools.offered.is_empty() {
        return Ok(());
    }
    let mut before = r#","tools":[{"functionDeclarations":["#;
    for (tool, function) in tools.functions() {
        write_all(out, &[std::mem::replace(&mut before, ","), r#"{"name":"#]);
        write_string(out, tool.name);
        write_member(out, "description", function.description.map(JsonText::raw));
        // `parameters` would accept only a subset of OpenAPI schemas: no `$ref`, no `additionalProperties`, no list of
        // types.
        write_member(out, "parametersJsonSchema", function.arguments());
        out.push(b'}');
    }
    write_all(out, &["]}]"]);
    match &tools.choice {
        ToolSelection::Unspecified => {}
        ToolSelection::Auto => write_choice("AUTO", &[], out),
        ToolSelection::None => write_choice("NONE", &[], out),
        ToolSelection::Required => write_choice("ANY", &[], out),
        ToolSelection::Specific(named) => write_choice("ANY", std::slice::from_ref(named), out),
        ToolSelection::AllowedTools(names, true) => write_choice("ANY", names, out),
        // `AUTO` accepts no names; this mode also lets the model answer with text.
        ToolSelection::AllowedTools(names, false) => write_choice("VALIDATED", names, out),
    }
    Ok(())
}

fn write_choice(mode: &str, names: &[ToolReference<'_>], out: &mut Vec<u8>) {
    let head = [r#","toolConfig":{"functionCallingConfig":{"mode":""#, mode, "\""];
    write_all(out, &head);
    let mut before = r#","allowedFunctionNames":["#;
    for named in names {
        write_all(out, &[std::mem::replace(&mut before, ",")]);
        write_string(out, &named.name);
    }
    write_all(out, &[if names.is_empty() { "}}" } else { "]}}" }]);
}
