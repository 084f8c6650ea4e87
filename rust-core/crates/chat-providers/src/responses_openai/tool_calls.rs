//! Calls of earlier turns as function calls, and their results.

use std::borrow::Cow;

use crate::responses_openai::content::{self, Part, required_member};
use crate::responses_openai::conversation::Call;
use crate::responses_openai::item::Item;
use crate::responses_openai::response::write_compact;
use crate::responses_openai::tool_names::ToolNames;
use crate::responses_openai::tools::{unquoted, write_json};
use proofgate_dialect::ToolKind;
use proofgate_dialect::UntranslatableRequest;
use proofgate_dialect::field::{DroppedFields, Field};
use proofgate_dialect::json::write_string;

/// Returns the id shared by a call and its result.
fn call_id<'b>(field: &Field<'b, '_>, item: &Item<'b, '_>) -> Result<Cow<'b, str>, UntranslatableRequest> {
    let id = item.call_id.as_ref().or(item.id.as_ref());
    required_member(field, id, "It must have a call_id.")?.text()
}

/// Returns JSON as a JSON string, without white space between tokens.
fn json_as_string(json: &str) -> Cow<'static, str> {
    let (mut compact, mut out) = (
        Vec::with_capacity(json.len()),
        Vec::with_capacity(json.len() + 16),
    );
    write_compact(json, &mut compact);
    write_string(&mut out, std::str::from_utf8(&compact).unwrap_or_default());
    Cow::Owned(String::from_utf8(out).unwrap_or_default())
}

/// Reads a call of this kind of tool.
pub(super) fn read_call<'b>(
    kind: ToolKind,
    field: &Field<'b, '_>,
    item: &Item<'b, '_>,
    names: &ToolNames,
) -> Result<Call<'b>, UntranslatableRequest> {
    let namespace = item.namespace.as_ref().map(Field::text).transpose()?;
    let named = || -> Result<Cow<'b, str>, UntranslatableRequest> {
        required_member(field, item.name.as_ref(), "It must have a name.")?.text()
    };
    let action = || required_member(field, item.action.as_ref(), "It must have an action.");
    let (name, arguments) = match kind {
        ToolKind::Function => {
            let arguments = required_member(field, item.arguments.as_ref(), "It must have arguments.")?;
            (named()?, function_arguments(arguments)?)
        }
        ToolKind::Custom => {
            let input = required_member(field, item.input.as_ref(), "It must have an input.")?;
            let object = ["{\"input\":", input.literal()?, "}"].concat();
            (named()?, json_as_string(&object))
        }
        ToolKind::LocalShell => (
            "local_shell".into(),
            json_as_string(&command_without_type(action()?)?),
        ),
        ToolKind::Shell => ("shell".into(), json_as_string(action()?.json())),
        ToolKind::ApplyPatch => {
            let operation = required_member(field, item.operation.as_ref(), "It must have an operation.")?;
            ("apply_patch".into(), json_as_string(operation.json()))
        }
        ToolKind::ToolSearch => {
            let arguments = required_member(field, item.arguments.as_ref(), "It must have arguments.")?;
            ("tool_search".into(), function_arguments(arguments)?)
        }
    };
    Ok(Call {
        id: call_id(field, item)?,
        name: names.provider_name(kind, namespace.as_deref(), &name),
        arguments,
    })
}

/// Returns the arguments as a JSON string, whether they are a string or the object itself.
fn function_arguments<'b>(arguments: &Field<'b, '_>) -> Result<Cow<'b, str>, UntranslatableRequest> {
    match arguments.is_object() {
        true => Ok(json_as_string(arguments.json())),
        false => arguments.literal().map(Cow::Borrowed),
    }
}

/// Returns the command to run, without its type.
fn command_without_type(action: &Field<'_, '_>) -> Result<String, UntranslatableRequest> {
    let mut out = Vec::new();
    let mut before = "{";
    for (name, value) in action.members()?.into_iter().filter(|(name, _)| name != "type") {
        write_json(&mut out, std::mem::replace(&mut before, ","));
        write_string(&mut out, &name);
        out.push(b':');
        write_json(&mut out, value.get());
    }
    write_json(&mut out, if before == "{" { "{}" } else { "}" });
    Ok(String::from_utf8(out).unwrap_or_default())
}

/// Reads the result of a call: its id and its content.
pub(super) fn read_result<'b>(
    kind: ToolKind,
    field: &Field<'b, '_>,
    item: &Item<'b, '_>,
    losses: &mut DroppedFields,
) -> Result<(Cow<'b, str>, Vec<Part<'b>>), UntranslatableRequest> {
    let id = call_id(field, item)?;
    let output = item.output.as_ref();
    let parts = match (kind, output) {
        // The output of its two streams, and the exit status of each command.
        (ToolKind::Shell, Some(output)) if !output.is_string() => {
            let text = json_as_string(output.json()).into_owned();
            vec![Part::OwnedText(unquoted(&text).to_owned())]
        }
        (ToolKind::ApplyPatch, output) => {
            let status = item.status.as_ref().map(Field::text).transpose()?;
            let mut parts = Vec::new();
            if status.as_deref() == Some("failed") {
                parts.push(Part::Text("The patch failed."));
            }
            match output {
                Some(output) => parts.extend(content::read(output, losses)?),
                None if parts.is_empty() => parts.push(Part::Text("The patch was applied.")),
                None => {}
            }
            parts
        }
        (_, Some(output)) => content::read(output, losses)?,
        (_, None) => return Err(field.error("It must have an output.")),
    };
    Ok((id, parts))
}
