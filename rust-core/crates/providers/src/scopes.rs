//! Maps the roles and types of each dialect to scopes.

use proofgate_policy::Scope;

use crate::dialect::{Dialect, Family};

/// Returns the scope of a message by its role. An unknown role counts as the user's, so that its text is scanned.
pub(crate) fn role_scope(role: &str) -> Scope {
    match role {
        "system" | "developer" => Scope::Instructions,
        "assistant" | "model" => Scope::Assistant,
        "tool" | "function" => Scope::ToolResult,
        _ => Scope::User,
    }
}

impl Dialect {
    /// Returns the scope of an item by its type; `None` if its role decides.
    pub(crate) fn item_scope(self, kind: &str) -> Option<Scope> {
        if !self.uses_responses_format() {
            return None;
        }
        match kind {
            "reasoning" | "compaction" => Some(Scope::Assistant),
            "mcp_list_tools" => Some(Scope::ToolDescription),
            // They contain results as well as queries.
            "mcp_call" | "file_search_call" | "web_search_call" | "code_interpreter_call" => {
                Some(Scope::ToolResult)
            }
            "mcp_approval_request" => Some(Scope::ToolArguments),
            _ if kind.ends_with("_output") => Some(Scope::ToolResult),
            _ if kind.ends_with("_call") => Some(Scope::ToolArguments),
            _ => None,
        }
    }

    /// Returns the scope of a content block by its type; `None` if it is part of its message.
    pub(crate) fn block_scope(self, kind: &str) -> Option<Scope> {
        match self.family() {
            Family::Anthropic if kind.ends_with("tool_result") || kind == "search_result" => {
                Some(Scope::ToolResult)
            }
            Family::Anthropic if kind.ends_with("tool_use") => Some(Scope::ToolArguments),
            _ => None,
        }
    }

    /// Returns the scope of a field in a content part; `None` if it is part of its message.
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

    /// Whether a field of a message contains tool calls, each of which counts as its own message.
    pub(crate) fn contains_tool_calls(self, field: &str) -> bool {
        self == Dialect::Chat && matches!(field, "tool_calls" | "function_call")
    }
}
