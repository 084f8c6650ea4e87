use crate::responses_openai::tool_names::SentTool;

/// What the way back to a client of Responses has to know of its request. It is bounded: an echo of at most 64 KiB, and the names
/// of those tools, of 1024 at most, that were sent as something else than they are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AskedResponse {
    /// Members of a Response that repeat the request, as JSON with a comma before each.
    pub(super) echo: String,
    /// Tools that are no plain functions, or have another name at the provider.
    pub(super) tools: Vec<SentTool>,
}
