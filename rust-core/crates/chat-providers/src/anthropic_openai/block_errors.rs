//! Refused blocks: blocks without a counterpart in chat completions, and blocks at an invalid
//! position.

use std::borrow::Cow;

use super::body::Block;
use super::dropped_fields::JsonPath;
use super::json::Text;
use proofgate_dialect::UntranslatableRequest;

/// Types of blocks without a counterpart in chat completions (anthropic-py 2.12.0,
/// `types/beta/beta_content_block_param.py`).
const UNSUPPORTED_BLOCK_TYPES: [&str; 19] = [
    "server_tool_use",
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result",
    "tool_search_tool_result",
    "advisor_tool_result",
    "mcp_tool_use",
    "mcp_tool_result",
    "mcp_tool_listing",
    "tool_addition",
    "tool_removal",
    "tool_reference",
    "container_upload",
    "compaction",
    "fallback",
    "search_result",
    "browser_state",
];

/// Returns the error for a block type without a counterpart, if it is one.
pub(super) fn unsupported_block_error(
    place: &JsonPath<'_>,
    kind: Option<Text<'_>>,
) -> Option<UntranslatableRequest> {
    let kind = kind?;
    let name = UNSUPPORTED_BLOCK_TYPES.iter().find(|name| **name == kind.0)?;
    let message = format!("A block of type {name} has no counterpart at the provider of this model.");
    Some(place.field("type").error(message))
}

/// Returns the error for a block at a position where its type is not allowed.
pub(super) fn misplaced_block_error(place: &JsonPath<'_>, block: &Block<'_>) -> UntranslatableRequest {
    let Some(kind) = &block.kind else {
        return place.field("type").missing_error();
    };
    let kind = Some(Text(Cow::Borrowed(&*kind.0)));
    unsupported_block_error(place, kind).unwrap_or_else(|| {
        place
            .field("type")
            .error("A block of this type cannot be sent here to the provider of this model.")
    })
}
