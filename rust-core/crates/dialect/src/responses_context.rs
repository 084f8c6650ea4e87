/// The state of a Responses request that is needed to translate the response. It is bounded: an echo of at most 64
/// KiB, and the names of at most 1024 tools that were sent in another form.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResponsesContext {
    /// Members of a Response that repeat the request, as JSON with a comma before each.
    pub echo: String,
    /// Tools that are not plain functions, or have another name at the provider.
    pub tools: Vec<ToolMapping>,
}

/// The client's type of a tool that is a function at the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolKind {
    /// A function.
    Function,
    /// A custom tool, whose input is text.
    Custom,
    /// The shell of the client's machine.
    LocalShell,
    /// A shell that accepts several commands.
    Shell,
    /// The tool that edits files.
    ApplyPatch,
    /// A tool search that the client runs.
    ToolSearch,
}

/// The mapping between a client's tool and the provider's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolMapping {
    /// The client's tool type.
    pub kind: ToolKind,
    /// The client's namespace, if it has one.
    pub namespace: Option<Box<str>>,
    /// The client's name.
    pub name: Box<str>,
    /// The provider's name.
    pub provider_name: Box<str>,
}

impl ToolMapping {
    /// Whether it is a plain function with the same name for the client and the provider.
    #[must_use]
    pub fn is_passthrough(&self) -> bool {
        self.kind == ToolKind::Function && self.namespace.is_none() && self.name == self.provider_name
    }
}
