//! What the parts of a conversation are, by the words of each dialect.

use proofgate_policy::Scope;

use crate::dialect::{Dialect, Family};

/// What a message of a role is. A role that is not known is a user's: nothing is overlooked for a word.
pub(crate) fn role_scope(role: &str) -> Scope {
    match role {
        "system" | "developer" => Scope::Instructions,
        "assistant" | "model" => Scope::Assistant,
        "tool" | "function" => Scope::ToolResult,
        _ => Scope::User,
    }
}

impl Dialect {
    /// What an item of a conversation is by its type; `None` where its role says it.
    pub(crate) fn item_scope(self, kind: &str) -> Option<Scope> {
        if !self.uses_responses_format() {
            return None;
        }
        match kind {
            "reasoning" | "compaction" => Some(Scope::Assistant),
            "mcp_list_tools" => Some(Scope::ToolDescription),
            // They hold what was found as well as what was asked for.
            "mcp_call" | "file_search_call" | "web_search_call" | "code_interpreter_call" => {
                Some(Scope::ToolResult)
            }
            "mcp_approval_request" => Some(Scope::ToolArguments),
            _ if kind.ends_with("_output") => Some(Scope::ToolResult),
            _ if kind.ends_with("_call") => Some(Scope::ToolArguments),
            _ => None,
        }
    }

    /// What a block of a message's content is by its type; `None` for a part of the message.
    pub(crate) fn block_scope(self, kind: &str) -> Option<Scope> {
        match self.family() {
            Family::Anthropic if kind.ends_with("tool_result") || kind == "search_result" => {
                Some(Scope::ToolResult)
            }
            Family::Anthropic if kind.ends_with("tool_use") => Some(Scope::ToolArguments),
            _ => None,
        }
    }

    /// What the value of a field is in a part of a message's content; `None` for a part of the message.
    pub(crate) fn part_scope(self, field: &str) -> Option<Scope> {
        match (self.family(), field) {
            (Family::Google, "functionCall" | "function_call" | "executableCode" | "executable_code") => {
                Some(Scope::ToolArguments)
            }
            (
                Family::Google,
                "functionResponse" | "function_response" | "codeExecutionResult" | "code_execution_result",
            ) => Some(Scope::ToolResult),
            _ => None,
        }
    }

    /// Whether a field of a message holds calls of tools, each of which is a message of its own.
    pub(crate) fn contains_tool_calls(self, field: &str) -> bool {
        self == Dialect::Chat && matches!(field, "tool_calls" | "function_call")
    }
}
