//! Which tools the model may or must call.

use crate::responses_openai::tools::{MOST_TOOLS, Tools, put};
use proofgate_dialect::ToolKind;
use proofgate_dialect::Untranslatable;
use proofgate_dialect::field::{Field, Losses};
use proofgate_dialect::json::write_string;

const OF_OPENAI: &str =
    "The provider of this model cannot call it: it is not one of the functions in this request.";

/// What a `tool_choice` says.
#[derive(Debug, Default)]
pub(super) enum Choice {
    #[default]
    Auto,
    None,
    Required,
    /// A function, by its name at the provider.
    One(String),
    /// Those of these names alone, and whether one has to be called.
    Among(Vec<String>, bool),
}

impl Choice {
    /// Reads the body's `tool_choice`.
    pub(super) fn read(
        field: &Field<'_, '_>,
        tools: &Tools<'_>,
        losses: &mut Losses,
    ) -> Result<Self, Untranslatable> {
        if field.is_string() {
            return match &*field.text()? {
                "auto" => Ok(Choice::Auto),
                "none" => Ok(Choice::None),
                "required" => Ok(Choice::Required),
                _ => Err(field.refuse("It must be auto, none, required or an object.")),
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
            let mut names = names_of(field, tools)?;
            return match (names.pop(), names.is_empty()) {
                (Some(name), true) => Ok(Choice::One(name)),
                (Some(name), false) => {
                    names.push(name);
                    Ok(Choice::Among(names, true))
                }
                (None, _) => Err(field.refuse(OF_OPENAI)),
            };
        }
        let mut names = Vec::new();
        if let Some(listed) = listed {
            let elements = listed.elements()?;
            if elements.len() > MOST_TOOLS {
                return Err(listed.refuse("There are more than 1024 tools."));
            }
            for (index, tool) in elements.into_iter().enumerate() {
                let tool = listed.element(index, tool);
                let found = names_of(&tool, tools)?;
                if found.is_empty() {
                    losses.lose("tools[].type", &tool)?;
                }
                names.extend(found);
            }
        }
        // A tool that is named again allows nothing more.
        names.sort_unstable();
        names.dedup();
        match names.is_empty() {
            true => Err(field.refuse(OF_OPENAI)),
            false => Ok(Choice::Among(names, is_required)),
        }
    }

    /// Appends the member, a comma before it, if it asks for anything.
    ///
    /// # Errors
    /// [`Untranslatable`] where a tool has to be called and there is none.
    pub(super) fn write(&self, has_tools: bool, out: &mut Vec<u8>) -> Result<(), Untranslatable> {
        if !has_tools {
            return match self {
                Choice::Auto | Choice::None | Choice::Among(_, false) => Ok(()),
                _ => Err(Untranslatable::new("tool_choice", "There is no tool to call.")),
            };
        }
        match self {
            Choice::Auto => {}
            Choice::None => put(out, r#","tool_choice":"none""#),
            Choice::Required => put(out, r#","tool_choice":"required""#),
            Choice::One(name) => {
                put(out, r#","tool_choice":"#);
                write_function(name, out);
            }
            Choice::Among(names, is_required) => {
                put(
                    out,
                    r#","tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"#,
                );
                put(out, if *is_required { "\"required\"" } else { "\"auto\"" });
                let mut before = ",\"tools\":[";
                for name in names {
                    put(out, std::mem::replace(&mut before, ","));
                    write_function(name, out);
                }
                put(out, "]}}");
            }
        }
        Ok(())
    }

    /// Makes the choice among the tools by leaving out the others, for providers that have no such choice.
    pub(super) fn narrow(self, tools: &mut Tools<'_>) -> Self {
        match self {
            Choice::Among(names, is_required) => {
                tools.keep(&names);
                if is_required {
                    Choice::Required
                } else {
                    Choice::Auto
                }
            }
            choice => choice,
        }
    }
}

fn write_function(name: &str, out: &mut Vec<u8>) {
    put(out, r#"{"type":"function","function":{"name":"#);
    write_string(out, name);
    put(out, "}}");
}

/// The names at the provider of what a choice refers to: one, all of a namespace, or none where OpenAI runs it.
fn names_of(tool: &Field<'_, '_>, tools: &Tools<'_>) -> Result<Vec<String>, Untranslatable> {
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
            return Ok(tools.names.of_namespace(name).map(str::to_owned).collect());
        }
        (Some("local_shell"), _) => (ToolKind::LocalShell, "local_shell"),
        (Some("shell"), _) => (ToolKind::Shell, "shell"),
        (Some("apply_patch"), _) => (ToolKind::ApplyPatch, "apply_patch"),
        (Some("tool_search"), _) => (ToolKind::ToolSearch, "tool_search"),
        _ => return Ok(Vec::new()),
    };
    let found = tools.names.find(kind, namespace.as_deref(), name);
    Ok(found.map(|tool| tool.sent.to_string()).into_iter().collect())
}
