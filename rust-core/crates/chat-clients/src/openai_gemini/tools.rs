use proofgate_chat_request::{Chat, Choice, Losses, Named};
use proofgate_dialect::Untranslatable;
use proofgate_dialect::json::{write_all, write_member, write_string};
use proofgate_dialect::json_text::JsonText;

/// Writes the tools, and which of them the model may call, a comma before each.
pub(super) fn write(chat: &Chat<'_>, losses: &mut Losses, out: &mut Vec<u8>) -> Result<(), Untranslatable> {
    let tools = chat.offered(losses)?;
    if tools.offered.is_empty() {
        return Ok(());
    }
    let mut before = r#","tools":[{"functionDeclarations":["#;
    for (tool, function) in tools.functions() {
        write_all(out, &[std::mem::replace(&mut before, ","), r#"{"name":"#]);
        write_string(out, tool.name);
        write_member(out, "description", function.description.map(JsonText::raw));
        // `parameters` would take a part of OpenAPI's schemas only: no `$ref`, no `additionalProperties`, no list of types.
        write_member(out, "parametersJsonSchema", function.arguments());
        out.push(b'}');
    }
    write_all(out, &["]}]"]);
    match &tools.choice {
        Choice::Unsaid => {}
        Choice::Auto => write_choice("AUTO", &[], out),
        Choice::None => write_choice("NONE", &[], out),
        Choice::Required => write_choice("ANY", &[], out),
        Choice::One(named) => write_choice("ANY", std::slice::from_ref(named), out),
        Choice::Some(names, true) => write_choice("ANY", names, out),
        // Its AUTO takes no names; this one is free to answer with text likewise.
        Choice::Some(names, false) => write_choice("VALIDATED", names, out),
    }
    Ok(())
}

fn write_choice(mode: &str, names: &[Named<'_>], out: &mut Vec<u8>) {
    let head = [r#","toolConfig":{"functionCallingConfig":{"mode":""#, mode, "\""];
    write_all(out, &head);
    let mut before = r#","allowedFunctionNames":["#;
    for named in names {
        write_all(out, &[std::mem::replace(&mut before, ",")]);
        write_string(out, &named.name);
    }
    write_all(out, &[if names.is_empty() { "}}" } else { "]}}" }]);
}
