//! Tools of a request that the provider runs itself.

use std::ops::Range;

use serde::Deserialize;

use crate::dialect::Dialect;

/// Maximum number of hosted tools in one request.
pub(crate) const MAX_HOSTED_TOOLS: usize = 128;

/// Replaces a kind that is not a plain name.
const UNKNOWN_KIND: &str = "unknown";

/// A tool that the provider runs itself: it reaches the network, costs something not counted in tokens, or keeps
/// state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostedTool {
    /// The tool's type, or the field that contains it (Gemini, `web_search_options`), such as `web_search_20250305`
    /// or `googleSearch`: at most 64 letters, digits, `_`, `-` and `.`, or `unknown`.
    pub kind: Box<str>,
    /// Maximum number of calls that the tool sets (Anthropic's `max_uses`).
    pub max_calls: Option<u64>,
    /// The range in the body: an element of an array, or a member of the body including its name.
    range: Range<usize>,
    is_body_member: bool,
    /// The range of `null` if its `max_uses` is `null`.
    null_max_calls_range: Option<Range<usize>>,
}

impl HostedTool {
    pub(crate) fn new(kind: &str, range: Range<usize>) -> Self {
        let is_name = (1..=64).contains(&kind.len())
            && kind
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
        HostedTool {
            kind: if is_name { kind } else { UNKNOWN_KIND }.into(),
            max_calls: None,
            range,
            is_body_member: false,
            null_max_calls_range: None,
        }
    }

    /// Creates a tool that is a member of the body.
    pub(crate) fn from_member(kind: &str, range: Range<usize>) -> Self {
        HostedTool {
            is_body_member: true,
            ..HostedTool::new(kind, range)
        }
    }

    /// Sets the tool's call limit, or the range of `null` in its place.
    pub(crate) fn with_max_calls(self, most_calls: Option<u64>, untold_calls: Option<Range<usize>>) -> Self {
        HostedTool {
            max_calls: most_calls,
            null_max_calls_range: untold_calls,
            ..self
        }
    }

    /// Returns the kind without its date suffix (`web_search`).
    #[must_use]
    pub fn kind_without_date(&self) -> &str {
        let is_date = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let mut undated = &*self.kind;
        while let Some((rest, part)) = undated.rsplit_once('_')
            && is_date(part)
        {
            undated = rest;
        }
        undated
    }

    /// Whether one of `names` is the tool's kind, with or without the date suffix.
    #[must_use]
    pub fn is_allowed(&self, names: &[String]) -> bool {
        names
            .iter()
            .any(|name| *name == *self.kind || name == self.kind_without_date())
    }

    /// Whether it is enabled by a field of the request outside `tools`, so that the request is valid without it.
    #[must_use]
    pub fn is_optional_field(&self) -> bool {
        self.is_body_member
    }

    /// Whether it has a field that limits its calls (anthropic 2.12.0, `types/beta/*_tool_*_param.py`).
    #[must_use]
    pub fn has_max_uses(&self) -> bool {
        matches!(self.kind_without_date(), "web_search" | "web_fetch" | "advisor")
    }
}

/// The way in which a request can limit the provider's calls of hosted tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallLimit {
    /// `max_uses` of each tool that [has it](HostedTool::has_max_uses) (Anthropic).
    PerTool,
    /// `max_tool_calls` of the request, for all tools together (OpenAI's Responses).
    PerRequest,
    /// There is no such limit.
    Unsupported,
}

impl Dialect {
    /// Returns how calls of hosted tools are limited.
    #[must_use]
    pub fn call_limit(self) -> CallLimit {
        match self {
            Dialect::Messages => CallLimit::PerTool,
            Dialect::Responses => CallLimit::PerRequest,
            _ => CallLimit::Unsupported,
        }
    }
}

/// The tools of a request.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tools {
    /// Hosted tools, in the order of the body.
    pub hosted: Vec<HostedTool>,
    /// Whether there are client tools.
    pub has_client_tools: bool,
    /// Maximum number of calls of all hosted tools together (`max_tool_calls`), if set.
    pub max_calls: Option<u64>,
    /// The range of the value of `max_tool_calls` if it is `null`.
    pub(crate) null_max_calls_range: Option<Range<usize>>,
}

/// A change of a body.
enum BodyChange {
    /// The range is replaced with this text.
    Replace(String),
    /// The range is removed, with one adjacent comma.
    Remove,
}

impl Tools {
    /// Whether a hosted tool that remains in the request has no call limit.
    #[must_use]
    pub fn needs_call_limit(&self, bound: CallLimit, is_left_out: impl Fn(&HostedTool) -> bool) -> bool {
        let mut staying = self.hosted.iter().filter(|tool| !is_left_out(tool));
        match bound {
            CallLimit::PerTool => staying.any(|tool| tool.has_max_uses() && tool.max_calls.is_none()),
            CallLimit::PerRequest => self.max_calls.is_none() && staying.next().is_some(),
            CallLimit::Unsupported => false,
        }
    }

    /// Copies `body`, from which the request was read, without the tools for which `is_left_out` is true. `calls`:
    /// the limit (`bound`) and its value, written where a remaining tool has no call limit.
    pub fn write_body_without_tools(
        &self,
        body: &[u8],
        is_left_out: impl Fn(&HostedTool) -> bool,
        calls: Option<(CallLimit, u64)>,
        out: &mut Vec<u8>,
    ) {
        let mut changes: Vec<(Range<usize>, BodyChange)> = Vec::new();
        let behind = |brace: usize| brace + 1..brace + 1;
        if let Some((CallLimit::PerRequest, most)) = calls
            && self.needs_call_limit(CallLimit::PerRequest, &is_left_out)
        {
            changes.push(match &self.null_max_calls_range {
                Some(null) => (null.clone(), BodyChange::Replace(most.to_string())),
                None => {
                    let brace = body.iter().position(|byte| *byte == b'{').unwrap_or(0);
                    (
                        behind(brace),
                        BodyChange::Replace(format!("\"max_tool_calls\":{most},")),
                    )
                }
            });
        }
        for tool in &self.hosted {
            if is_left_out(tool) {
                changes.push((tool.range.clone(), BodyChange::Remove));
            } else if let Some((CallLimit::PerTool, most)) = calls
                && tool.has_max_uses()
                && tool.max_calls.is_none()
            {
                changes.push(match &tool.null_max_calls_range {
                    Some(null) => (null.clone(), BodyChange::Replace(most.to_string())),
                    None => (
                        behind(tool.range.start),
                        BodyChange::Replace(format!("\"max_uses\":{most},")),
                    ),
                });
            }
        }
        changes.sort_by_key(|(range, _)| range.start);
        apply_changes(body, &changes, out);
    }
}

/// Copies `body` with changes, which must be in order.
fn apply_changes(body: &[u8], changes: &[(Range<usize>, BodyChange)], out: &mut Vec<u8>) {
    let mut copied = 0;
    for (range, change) in changes {
        out.extend_from_slice(body.get(copied..range.start).unwrap_or_default());
        copied = range.end;
        match change {
            BodyChange::Replace(text) => out.extend_from_slice(text.as_bytes()),
            BodyChange::Remove => {
                let behind = body.get(range.end..).unwrap_or_default();
                let blank = behind.len() - behind.trim_ascii_start().len();
                if behind.get(blank) == Some(&b',') {
                    copied += blank + 1;
                } else {
                    out.truncate(out.trim_ascii_end().len());
                    if out.last() == Some(&b',') {
                        out.pop();
                    }
                }
            }
        }
    }
    out.extend_from_slice(body.get(copied..).unwrap_or_default());
}

/// The fields, besides the type, that decide who runs a tool of OpenAI's Responses.
#[derive(Deserialize)]
struct ToolDescription {
    #[serde(default)]
    r#type: String,
    environment: Option<Environment>,
    #[serde(default)]
    tools: Vec<ToolDescription>,
}

#[derive(Deserialize)]
struct Environment {
    #[serde(default)]
    r#type: String,
}

impl ToolDescription {
    fn is_client_tool(&self) -> bool {
        match self.r#type.as_str() {
            // A group of tools is a client tool if all its members are.
            "namespace" => self.tools.iter().all(ToolDescription::is_client_tool),
            // `container_auto` and `container_reference` are containers of the provider.
            "shell" => (self.environment.as_ref()).is_some_and(|environment| environment.r#type == "local"),
            kind => Dialect::Responses.is_client_tool(kind),
        }
    }
}

/// Whether the client runs or describes a tool of this type; `tool` is its JSON (OpenAI, "Tools" of the Responses API).
pub(crate) fn is_client_tool(dialect: Dialect, kind: &str, tool: &str) -> bool {
    match (dialect, kind) {
        (Dialect::Responses, "namespace" | "shell") => {
            serde_json::from_str::<ToolDescription>(tool).is_ok_and(|described| described.is_client_tool())
        }
        _ => dialect.is_client_tool(kind),
    }
}
