//! The tool choice.

use crate::responses_openai::tools::{MAX_TOOLS, Tools, write_json};
use proofgate_dialect::ToolKind;
use proofgate_dialect::UntranslatableRequest;
use proofgate_dialect::field::{DroppedFields, Field};
use proofgate_dialect::json::write_string;

const UNKNOWN_TOOL_ERROR: &str =
    "The provider of this model cannot use this tool: it is not one of the functions in this request.";

/// The content of a `tool_choice`.
#[derive(Debug, Default)]
pub(super) enum ToolChoice {
    #[default]
    Auto,
    None,
    Required,
    /// A function, by its name at the provider.
    Function(String),
    /// Only the tools with these names, and whether one must be called.
    AllowedTools(Vec<String>, bool),
}

impl ToolChoice {
    /// Reads the body's `tool_choice`.
    pub(super) fn read(
        field: &Field<'_, '_>,
        tools: &Tools<'_>,
        losses: &mut DroppedFields,
    ) -> Result<Self, UntranslatableRequest> {
        if field.is_string() {
            return match &*field.text()? {
                "auto" => Ok(ToolChoice::Auto),
                "none" => Ok(ToolChoice::None),
                "required" => Ok(ToolChoice::Required),
                _ => Err(field.error("It must be auto, none, required or an object.")),
            };
        }
        let mut is_required = false;
        let (mut allows, mut listed) = (false, None);
        let members = field.members()?;
        for (name, value) in &members {
            let member = field.member(name, value);
            match &**name {
                "type" => allows = member.text()? == "allowed_tools",
                "mode" => is_required = member.text()? == "required",
                "tools" => listed = Some(member),
                _ => {}
            }
        }
        if !allows {
            let mut names = provider_names(field, tools)?;
            return match (names.pop(), names.is_empty()) {
                (Some(name), true) => Ok(ToolChoice::Function(name)),
                (Some(name), false) => {
                    names.push(name);
                    Ok(ToolChoice::AllowedTools(names, true))
                }
                (None, _) => Err(field.error(UNKNOWN_TOOL_ERROR)),
            };
        }
        let mut names = Vec::new();
        if let Some(listed) = listed {
            let elements = listed.elements()?;
            if elements.len() > MAX_TOOLS {
                return Err(listed.error("There are more than 1024 tools."));
            }
            for (index, tool) in elements.into_iter().enumerate() {
                let tool = listed.element(index, tool);
                let found = provider_names(&tool, tools)?;
                if found.is_empty() {
                    losses.drop_listed("tools[].type", &tool)?;
                }
                names.extend(found);
            }
        }
        // A tool that is named twice allows nothing more.
        names.sort_unstable();
        names.dedup();
        match names.is_empty() {
            true => Err(field.error(UNKNOWN_TOOL_ERROR)),
            false => Ok(ToolChoice::AllowedTools(names, is_required)),
        }
    }

    /// Appends the member, with a comma before it, if it is not the default.
    ///
    /// # Errors
    /// Returns [`UntranslatableRequest`] if a tool must be called and there is none.
    pub(super) fn write(&self, has_tools: bool, out: &mut Vec<u8>) -> Result<(), UntranslatableRequest> {
        if !has_tools {
            return match self {
                ToolChoice::Auto | ToolChoice::None | ToolChoice::AllowedTools(_, false) => Ok(()),
                _ => Err(UntranslatableRequest::new(
                    "tool_choice",
                    "There is no tool to call.",
                )),
            };
        }
        match self {
            ToolChoice::Auto => {}
            ToolChoice::None => write_json(out, r#","tool_choice":"none""#),
            ToolChoice::Required => write_json(out, r#","tool_choice":"required""#),
            ToolChoice::Function(name) => {
                write_json(out, r#","tool_choice":"#);
                write_function(name, out);
            }
            ToolChoice::AllowedTools(names, is_required) => {
                write_json(
                    out,
                    r#","tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"#,
                );
                write_json(out, if *is_required { "\"required\"" } else { "\"auto\"" });
                let mut before = ",\"tools\":[";
                for name in names {
                    write_json(out, std::mem::replace(&mut before, ","));
                    write_function(name, out);
                }
                write_json(out, "]}}");
            }
        }
        Ok(())
    }

    /// Applies the choice by leaving out the other tools, for providers that do not support it.
    pub(super) fn restrict_tools(self, tools: &mut Tools<'_>) -> Self {
        match self {
            ToolChoice::AllowedTools(names, is_required) => {
                tools.retain(&names);
                if is_required {
                    ToolChoice::Required
                } else {
                    ToolChoice::Auto
                }
            }
            choice => choice,
        }
    }
}

fn write_function(name: &str, out: &mut Vec<u8>) {
    write_json(out, r#"{"type":"function","function":{"name":"#);
    write_string(out, name);
    write_json(out, "}}");
}

/// Returns the provider names of the tools that a choice refers to: one, all of a namespace, or none if OpenAI runs the
/// tool.
fn provider_names(tool: &Field<'_, '_>, tools: &Tools<'_>) -> Result<Vec<String>, UntranslatableRequest> {
    let (mut kind, mut name, mut namespace) = (None, None, None);
    for (member_name, value) in tool.members()? {
        let member = tool.member(&member_name, value);
        match &*member_name {
            "type" => kind = Some(member.text()?),
            "name" => name = Some(member.text()?),
            "namespace" => namespace = Some(member.text()?),
            _ => {}
        }
    }
    let name = name.as_deref();
    let (kind, name) = match (kind.as_deref(), name) {
        (Some("function"), Some(name)) => (ToolKind::Function, name),
        (Some("custom"), Some(name)) => (ToolKind::Custom, name),
        (Some("namespace"), Some(name)) => {
            return Ok(tools.names.in_namespace(name).map(str::to_owned).collect());
        }
        (Some("local_shell"), _) => (ToolKind::LocalShell, "local_shell"),
        (Some("shell"), _) => (ToolKind::Shell, "shell"),
        (Some("apply_patch"), _) => (ToolKind::ApplyPatch, "apply_patch"),
        (Some("tool_search"), _) => (ToolKind::ToolSearch, "tool_search"),
        _ => return Ok(Vec::new()),
    };
    let found = tools.names.find(kind, namespace.as_deref(), name);
    Ok(found
        .map(|tool| tool.provider_name.to_string())
        .into_iter()
        .collect())
}
