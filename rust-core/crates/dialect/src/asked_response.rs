/// What the way back to a client of Responses has to know of its request. It is bounded: an echo of at most 64 KiB, and the names
/// of those tools, of 1024 at most, that were sent as something else than they are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResponsesContext {
    /// Members of a Response that repeat the request, as JSON with a comma before each.
    pub echo: String,
    /// Tools that are no plain functions, or have another name at the provider.
    pub tools: Vec<ToolMapping>,
}

/// What a function at the provider is to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolKind {
    /// A function as well.
    Function,
    /// A custom tool, which takes a text.
    Custom,
    /// The shell of the client's own machine.
    LocalShell,
    /// A shell that takes several commands.
    Shell,
    /// The tool that edits files.
    ApplyPatch,
    /// A search for tools that the client runs.
    ToolSearch,
}

/// A tool by its names, the client's and the provider's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolMapping {
    /// What it is to the client.
    pub kind: ToolKind,
    /// Its namespace at the client, if it has one.
    pub namespace: Option<Box<str>>,
    /// Its name at the client.
    pub name: Box<str>,
    /// Its name at the provider.
    pub provider_name: Box<str>,
}

impl ToolMapping {
    /// Whether the client knows it as the provider does.
    #[must_use]
    pub fn is_passthrough(&self) -> bool {
        self.kind == ToolKind::Function && self.namespace.is_none() && self.name == self.provider_name
    }
}
