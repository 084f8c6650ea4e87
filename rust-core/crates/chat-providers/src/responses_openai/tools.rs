//! The tools of a request, as functions.

use std::borrow::Cow;

use crate::custom_tools::{self, CALL_INSTRUCTIONS, grammar_description};
use crate::responses_openai::tool_names::ToolNames;
use proofgate_dialect::ToolKind;
use proofgate_dialect::UntranslatableRequest;
use proofgate_dialect::field::{DroppedFields, Field, Members as FieldMembers};
use proofgate_dialect::json::write_string;
use proofgate_dialect::schema::can_be_strict;

/// Appends text that is JSON already.
pub(super) fn write_json(out: &mut Vec<u8>, json: &str) {
    out.extend_from_slice(json.as_bytes());
}

/// Returns the contents of a JSON string, without its quotes.
pub(super) fn unquoted(literal: &str) -> &str {
    let literal = literal.strip_prefix('"').unwrap_or(literal);
    literal.strip_suffix('"').unwrap_or(literal)
}

/// Maximum number of tools in a request, including tools of namespaces and tools found by searches.
/// OpenAI's API accepts fewer.
pub(super) const MAX_TOOLS: usize = 1024;

const NO_PARAMETERS: &str = r#"{"type":"object","properties":{}}"#;
const LOCAL_SHELL_SCHEMA: &str = r#"{"type":"object","properties":{"command":{"type":"array","items":{"type":"string"},"description":"The program and its arguments."},"working_directory":{"type":"string"},"timeout_ms":{"type":"integer"},"env":{"type":"object","additionalProperties":{"type":"string"}}},"required":["command"]}"#;
const SHELL_SCHEMA: &str = r#"{"type":"object","properties":{"commands":{"type":"array","items":{"type":"string"},"description":"Command lines, which run at the same time."},"timeout_ms":{"type":"integer"},"max_output_length":{"type":"integer"}},"required":["commands"]}"#;
const APPLY_PATCH_SCHEMA: &str = r#"{"type":"object","properties":{"type":{"type":"string","enum":["create_file","update_file","delete_file"]},"path":{"type":"string"},"diff":{"type":"string","description":"A diff in the V4A format: lines that begin with a blank, + or -, and each hunk after a line of @@. For a new file, each line begins with +. Omit the diff to delete a file."}},"required":["type","path"]}"#;

/// A function for the provider.
struct Definition<'b> {
    provider_name: String,
    /// Descriptions, JSON-escaped and without quotes, to be joined by blank lines.
    descriptions: Vec<Cow<'b, str>>,
    parameters: Cow<'b, str>,
    strict: bool,
}

/// The tools of a request, and their names.
#[derive(Default)]
pub(super) struct Tools<'b> {
    pub(super) names: ToolNames,
    definitions: Vec<Definition<'b>>,
}

/// The members of a tool, by name.
#[derive(Default)]
struct Members<'b, 'p> {
    kind: Cow<'b, str>,
    name: Option<Cow<'b, str>>,
    description: Option<&'b str>,
    parameters: Option<Field<'b, 'p>>,
    strict: bool,
    format: Option<Field<'b, 'p>>,
    tools: Option<Field<'b, 'p>>,
    is_server_executed: bool,
}

impl<'b> Tools<'b> {
    /// Reads an array of tools.
    ///
    /// # Errors
    /// Returns [`UntranslatableRequest`] for a tool that cannot be sent, and for more than 1024 tools.
    pub(super) fn read(
        &mut self,
        field: &Field<'b, '_>,
        losses: &mut DroppedFields,
    ) -> Result<(), UntranslatableRequest> {
        let tools = field.elements()?;
        let mut read = Vec::with_capacity(tools.len());
        for (index, tool) in tools.into_iter().enumerate() {
            let tool = field.element(index, tool);
            read.push((tool, tool.members()?));
        }
        // Tools that the client names itself keep their names, whatever other tools there are.
        let is_named = |members: &FieldMembers<'_>| {
            let is_named = |kind: &str| matches!(kind, "\"function\"" | "\"custom\"");
            members
                .iter()
                .any(|(name, kind)| name == "type" && is_named(kind.get()))
        };
        for of_client in [true, false] {
            for (tool, members) in read.iter().filter(|(_, members)| is_named(members) == of_client) {
                self.read_tool(tool, members, None, losses)?;
                if self.names.len() > MAX_TOOLS {
                    return Err(field.error("There are more than 1024 tools."));
                }
            }
        }
        Ok(())
    }

    fn read_tool(
        &mut self,
        tool: &Field<'b, '_>,
        listed: &FieldMembers<'b>,
        namespace: Option<(&str, &mut Vec<Cow<'b, str>>)>,
        losses: &mut DroppedFields,
    ) -> Result<(), UntranslatableRequest> {
        let mut members = Members::default();
        for (name, value) in listed {
            let member = tool.member(name, value);
            match &**name {
                "type" => members.kind = member.text()?,
                "name" => members.name = Some(member.text()?),
                "description" => members.description = Some(member.literal()?),
                "parameters" => members.parameters = Some(member),
                "strict" => members.strict = member.boolean()?,
                "format" => members.format = Some(member),
                "tools" => members.tools = Some(member),
                "execution" => members.is_server_executed = member.text()? != "client",
                "environment" => check_environment(&member)?,
                "defer_loading" => losses.drop_listed("tools[].defer_loading", &member)?,
                "output_schema" => losses.drop_listed("tools[].output_schema", &member)?,
                "allowed_callers" => losses.drop_listed("tools[].allowed_callers", &member)?,
                "async" => losses.drop_listed("tools[].async", &member)?,
                // A tool that is left out, or a future one: its other members do not matter.
                _ => {}
            }
        }
        let by_server = members.is_server_executed || !listed.iter().any(|(name, _)| name == "execution");
        match (&*members.kind, namespace) {
            ("function", namespace) => {
                self.read_function(tool, members, ToolKind::Function, namespace, losses)
            }
            ("custom", namespace) => self.read_function(tool, members, ToolKind::Custom, namespace, losses),
            ("namespace", None) => self.read_namespace(tool, &members, losses),
            ("local_shell", None) => {
                self.add_openai_tool(
                    ToolKind::LocalShell,
                    "local_shell",
                    "Runs a command.",
                    LOCAL_SHELL_SCHEMA.into(),
                );
                Ok(())
            }
            ("shell", None) => {
                self.add_openai_tool(
                    ToolKind::Shell,
                    "shell",
                    "Runs command lines in a shell.",
                    SHELL_SCHEMA.into(),
                );
                Ok(())
            }
            ("apply_patch", None) => {
                let description = "Creates, changes or deletes a file.";
                self.add_openai_tool(
                    ToolKind::ApplyPatch,
                    "apply_patch",
                    description,
                    APPLY_PATCH_SCHEMA.into(),
                );
                Ok(())
            }
            ("tool_search", None) if !by_server => {
                let parameters = match &members.parameters {
                    Some(parameters) => schema(parameters)?,
                    None => NO_PARAMETERS,
                };
                let description = members.description.map_or("Finds tools to call.", unquoted);
                self.add_openai_tool(
                    ToolKind::ToolSearch,
                    "tool_search",
                    description,
                    parameters.into(),
                );
                Ok(())
            }
            ("computer" | "computer_use_preview", None) => {
                Err(tool
                    .error("The provider of this model has no computer use tool. Use a function instead."))
            }
            // Run by OpenAI, or unknown. All tools that OpenAI's own search would find are sent.
            _ => losses.drop_listed("tools[].type", tool),
        }
    }

    fn read_function(
        &mut self,
        tool: &Field<'b, '_>,
        members: Members<'b, '_>,
        kind: ToolKind,
        namespace: Option<(&str, &mut Vec<Cow<'b, str>>)>,
        losses: &mut DroppedFields,
    ) -> Result<(), UntranslatableRequest> {
        let name = members.name.filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| tool.error("It must have a name."))?;
        let (namespace, mut descriptions) = match namespace {
            Some((namespace, before)) => (Some(namespace), std::mem::take(before)),
            None => (None, Vec::new()),
        };
        let Some(sent) = self.names.add(kind, namespace, &name) else {
            return Ok(());
        };
        let sent = sent.provider_name.to_string();
        let description = members.description.map(unquoted).filter(|text| !text.is_empty());
        descriptions.extend(description.map(Cow::Borrowed));
        let (parameters, strict) = match kind {
            ToolKind::Custom => {
                descriptions.push(CALL_INSTRUCTIONS.into());
                let format = members.format.as_ref();
                let grammar = format.map(|format| grammar(format, losses)).transpose()?;
                (
                    Cow::Owned(custom_tools::parameters_schema(grammar.flatten().as_deref())),
                    false,
                )
            }
            _ => {
                let schema = members.parameters.as_ref().map_or(Ok(NO_PARAMETERS), schema)?;
                (Cow::Borrowed(schema), members.strict && can_be_strict(schema))
            }
        };
        if members.strict && !strict {
            losses.record_field("tools[].strict", tool);
        }
        self.definitions.push(Definition {
            provider_name: sent,
            descriptions,
            parameters,
            strict,
        });
        Ok(())
    }

    /// Reads the functions of a namespace: the namespace's description is put before the
    /// description of its first function.
    fn read_namespace(
        &mut self,
        tool: &Field<'b, '_>,
        members: &Members<'b, '_>,
        losses: &mut DroppedFields,
    ) -> Result<(), UntranslatableRequest> {
        let name = members.name.as_deref().filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| tool.error("It must have a name."))?;
        let description = members.description.map(unquoted).filter(|text| !text.is_empty());
        let mut before: Vec<_> = description.map(Cow::Borrowed).into_iter().collect();
        let Some(tools) = &members.tools else {
            return Ok(());
        };
        for (index, tool) in tools.elements()?.into_iter().enumerate() {
            let tool = tools.element(index, tool);
            self.read_tool(&tool, &tool.members()?, Some((name, &mut before)), losses)?;
        }
        Ok(())
    }

    /// Adds a tool whose parameters OpenAI defines.
    fn add_openai_tool(
        &mut self,
        kind: ToolKind,
        name: &str,
        description: &'b str,
        parameters: Cow<'b, str>,
    ) {
        let Some(tool) = self.names.add(kind, None, name) else {
            return;
        };
        let sent = tool.provider_name.to_string();
        self.definitions.push(Definition {
            provider_name: sent,
            descriptions: vec![description.into()],
            parameters,
            strict: false,
        });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.definitions.is_empty()
    }

    /// Keeps only the tools that have one of these names at the provider.
    pub(super) fn retain(&mut self, names: &[String]) {
        self.definitions
            .retain(|definition| names.contains(&definition.provider_name));
    }

    /// Appends the member `tools`, with a comma before it, if there are any.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let mut before = ",\"tools\":[";
        for definition in &self.definitions {
            write_json(out, std::mem::replace(&mut before, ","));
            write_json(out, r#"{"type":"function","function":{"name":"#);
            write_string(out, &definition.provider_name);
            if !definition.descriptions.is_empty() {
                write_json(out, r#","description":""#);
                write_json(out, &definition.descriptions.join("\\n\\n"));
                out.push(b'"');
            }
            write_json(out, r#","parameters":"#);
            write_json(out, &definition.parameters);
            write_json(
                out,
                if definition.strict {
                    r#","strict":true}}"#
                } else {
                    "}}"
                },
            );
        }
        if !self.definitions.is_empty() {
            out.push(b']');
        }
    }
}

fn schema<'b>(parameters: &Field<'b, '_>) -> Result<&'b str, UntranslatableRequest> {
    match parameters.is_object() {
        true if is_empty_object(parameters.json()) => Ok(NO_PARAMETERS),
        true => Ok(parameters.json()),
        false => Err(parameters.error("It must be an object schema.")),
    }
}

fn is_empty_object(json: &str) -> bool {
    let inside = json.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    inside.is_some_and(|inside| inside.trim_ascii().is_empty())
}

/// Returns the description of a custom tool's grammar, JSON-escaped and without quotes. No provider
/// enforces it, so the model is only informed.
fn grammar(
    format: &Field<'_, '_>,
    losses: &mut DroppedFields,
) -> Result<Option<String>, UntranslatableRequest> {
    let (mut syntax, mut definition) = (Cow::Borrowed("lark"), None);
    for (name, value) in format.members()? {
        let member = format.member(&name, value);
        match &*name {
            "syntax" => syntax = member.text()?,
            "definition" => definition = Some(unquoted(member.literal()?)),
            _ => {}
        }
    }
    if definition.is_some() {
        losses.record_field("tools[].format", format);
    }
    Ok(definition.map(|definition| grammar_description(&syntax, definition)))
}

/// Refuses an environment that is not the client's: containers are OpenAI's.
fn check_environment(environment: &Field<'_, '_>) -> Result<(), UntranslatableRequest> {
    let kind = environment
        .members()?
        .into_iter()
        .find(|(name, _)| name == "type");
    match kind {
        Some((name, kind)) if environment.member(&name, kind).text()? != "local" => {
            Err(environment.error("It must be local: the provider of this model does not run containers."))
        }
        _ => Ok(()),
    }
}
