//! Events of ConverseStream that have a counterpart. Source: botocore 1.44.5, shape `ConverseStreamOutput`.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::openai_converse::usage::TokenUsage;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BlockStart<'b> {
    pub(super) content_block_index: u64,
    #[serde(borrow)]
    pub(super) start: Start<'b>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Start<'b> {
    #[serde(borrow)]
    pub(super) tool_use: Option<ToolUseStart<'b>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolUseStart<'b> {
    #[serde(borrow)]
    pub(super) tool_use_id: &'b RawValue,
    #[serde(borrow)]
    pub(super) name: &'b RawValue,
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<&'b RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BlockDelta<'b> {
    pub(super) content_block_index: u64,
    #[serde(borrow)]
    pub(super) delta: Delta<'b>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Delta<'b> {
    #[serde(borrow)]
    pub(super) text: Option<&'b RawValue>,
    #[serde(borrow)]
    pub(super) tool_use: Option<ToolUseDelta<'b>>,
    #[serde(borrow)]
    pub(super) reasoning_content: Option<ReasoningDelta<'b>>,
}

#[derive(Deserialize)]
pub(super) struct ToolUseDelta<'b> {
    #[serde(borrow)]
    pub(super) input: &'b RawValue,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReasoningDelta<'b> {
    #[serde(borrow)]
    pub(super) text: Option<&'b RawValue>,
    #[serde(borrow)]
    pub(super) signature: Option<&'b RawValue>,
    #[serde(borrow)]
    pub(super) redacted_content: Option<&'b RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BlockStop {
    pub(super) content_block_index: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MessageStop<'b> {
    #[serde(borrow)]
    pub(super) stop_reason: &'b RawValue,
}

#[derive(Deserialize)]
pub(super) struct Metadata {
    pub(super) usage: TokenUsage,
}
