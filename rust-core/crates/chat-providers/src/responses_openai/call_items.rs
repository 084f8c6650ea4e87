//! Tool calls as the items that a client knows.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::custom_tools::members;
use crate::responses_openai::response::write_compact;
use crate::responses_openai::tools::write_json;
use proofgate_dialect::json::write_string;
use proofgate_dialect::{ToolKind, ToolMapping};

/// A call for the client.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallItem<'c> {
    pub(super) kind: ToolKind,
    pub(super) tool: Option<&'c ToolMapping>,
    /// The item's id, the call's id, and the name at the provider, JSON-escaped and without quotes.
    pub(super) id: &'c str,
    pub(super) call_id: &'c str,
    pub(super) name: &'c str,
}

/// Returns the prefix of the ids of such items.
pub(super) fn id_prefix(kind: ToolKind) -> &'static str {
    match kind {
        ToolKind::Function => "fc",
        ToolKind::Custom => "ctc",
        ToolKind::LocalShell => "lsh",
        ToolKind::Shell => "sh",
        ToolKind::ApplyPatch => "apc",
        ToolKind::ToolSearch => "tsc",
    }
}

impl CallItem<'_> {
    /// Returns the item. `members` are the members of its kind, each with a comma before it.
    pub(super) fn write(&self, status: &str, members: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(members.len() + 256);
        let kind = match self.kind {
            ToolKind::Function => "function_call",
            ToolKind::Custom => "custom_tool_call",
            ToolKind::LocalShell => "local_shell_call",
            ToolKind::Shell => "shell_call",
            ToolKind::ApplyPatch => "apply_patch_call",
            ToolKind::ToolSearch => "tool_search_call",
        };
        for piece in ["{\"id\":\"", self.id, "\",\"type\":\"", kind] {
            write_json(&mut out, piece);
        }
        for piece in [
            "\",\"status\":\"",
            status,
            "\",\"call_id\":\"",
            self.call_id,
            "\"",
        ] {
            write_json(&mut out, piece);
        }
        if matches!(self.kind, ToolKind::Function | ToolKind::Custom) {
            write_json(&mut out, ",\"name\":");
            match self.tool {
                Some(tool) => write_string(&mut out, &tool.name),
                None => {
                    for piece in ["\"", self.name, "\""] {
                        write_json(&mut out, piece);
                    }
                }
            }
            if let Some(namespace) = self.tool.and_then(|tool| tool.namespace.as_deref()) {
                write_json(&mut out, ",\"namespace\":");
                write_string(&mut out, namespace);
            }
        }
        out.extend_from_slice(members);
        out.push(b'}');
        out
    }
}

/// Returns the members of a call of an OpenAI tool, each with a comma before it; `None` if the arguments do not fit such a
/// call.
pub(super) fn openai_members(kind: ToolKind, arguments: &str) -> Option<Vec<u8>> {
    let members = members(arguments)?;
    let mut out = Vec::new();
    match kind {
        ToolKind::Function | ToolKind::Custom => return None,
        ToolKind::LocalShell => {
            let command = members
                .get("command")
                .filter(|command| is_string_array(command))?;
            write_json(&mut out, ",\"action\":{\"type\":\"exec\",\"command\":");
            write_compact(command.get(), &mut out);
            write_json(&mut out, ",\"env\":");
            write_compact(members.get("env").map_or("{}", |env| env.get()), &mut out);
            for name in ["timeout_ms", "user", "working_directory"] {
                write_nullable_member(name, members.get(name), &mut out);
            }
            out.push(b'}');
        }
        ToolKind::Shell => {
            let commands = members
                .get("commands")
                .filter(|commands| is_string_array(commands))?;
            write_json(&mut out, ",\"action\":{\"commands\":");
            write_compact(commands.get(), &mut out);
            for name in ["timeout_ms", "max_output_length"] {
                write_nullable_member(name, members.get(name), &mut out);
            }
            write_json(&mut out, "},\"environment\":{\"type\":\"local\"}");
        }
        ToolKind::ApplyPatch => {
            let is_string = |name: &str| {
                members
                    .get(name)
                    .is_some_and(|value| value.get().starts_with('"'))
            };
            let needs_diff = members
                .get("type")
                .is_some_and(|kind| kind.get() != "\"delete_file\"");
            if !is_string("type") || !is_string("path") || (needs_diff && !is_string("diff")) {
                return None;
            }
            let mut before = ",\"operation\":{\"";
            for name in ["type", "path", "diff"] {
                let Some(value) = members.get(name) else { continue };
                for piece in [std::mem::replace(&mut before, ",\""), name, "\":", value.get()] {
                    write_json(&mut out, piece);
                }
            }
            out.push(b'}');
        }
        ToolKind::ToolSearch => {
            write_json(&mut out, ",\"execution\":\"client\",\"arguments\":");
            write_compact(arguments, &mut out);
        }
    }
    Some(out)
}

fn is_string_array(value: &RawValue) -> bool {
    serde_json::from_str::<Vec<Cow<'_, str>>>(value.get()).is_ok()
}

/// Appends a member or `null`, with a comma before it.
fn write_nullable_member(name: &str, value: Option<&&RawValue>, out: &mut Vec<u8>) {
    for piece in [",\"", name, "\":"] {
        write_json(out, piece);
    }
    write_compact(value.map_or("null", |value| value.get()), out);
}
