//! Tools of a request that its provider runs itself.

use std::ops::Range;

use serde::Deserialize;

use crate::dialect::Dialect;

/// More of them in one request are refused.
pub(crate) const MAX_HOSTED_TOOLS: usize = 128;

/// What stands for a kind that is no plain name.
const UNKNOWN_KIND: &str = "unknown";

/// A tool that the provider runs itself: it reaches the network, costs what no token counts, or keeps state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostedTool {
    /// Its type, or the field that it stands in (Gemini, `web_search_options`), such as `web_search_20250305` or
    /// `googleSearch`: at most 64 letters, digits, `_`, `-` and `.`, or `unknown`.
    pub kind: Box<str>,
    /// How often it may be called, as it says (Anthropic's `max_uses`).
    pub max_calls: Option<u64>,
    /// Where it stands in the body: an element of an array, or a member of the body with its name.
    range: Range<usize>,
    is_body_member: bool,
    /// Where its `max_uses` says `null`.
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

    /// The same as a member of the body.
    pub(crate) fn from_member(kind: &str, range: Range<usize>) -> Self {
        HostedTool {
            is_body_member: true,
            ..HostedTool::new(kind, range)
        }
    }

    /// The same with what it says of its calls: their number, or where `null` stands.
    pub(crate) fn with_max_calls(self, most_calls: Option<u64>, untold_calls: Option<Range<usize>>) -> Self {
        HostedTool {
            max_calls: most_calls,
            null_max_calls_range: untold_calls,
            ..self
        }
    }

    /// Its kind without the date behind it (`web_search`).
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

    /// Whether one of the names allows it: its kind, or its kind without the date behind it.
    #[must_use]
    pub fn is_allowed(&self, names: &[String]) -> bool {
        names
            .iter()
            .any(|name| *name == *self.kind || name == self.kind_without_date())
    }

    /// Whether it is offered by a field of the request besides its tools, which has sense without it.
    #[must_use]
    pub fn is_optional_field(&self) -> bool {
        self.is_body_member
    }

    /// Whether it has a field that bounds its calls (anthropic 2.12.0, `types/beta/*_tool_*_param.py`).
    #[must_use]
    pub fn has_max_uses(&self) -> bool {
        matches!(self.kind_without_date(), "web_search" | "web_fetch" | "advisor")
    }
}

/// What of a request bounds how often a provider calls the tools that it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallLimit {
    /// `max_uses` of each tool that [has it](HostedTool::has_max_uses) (Anthropic).
    PerTool,
    /// `max_tool_calls` of the request, of all together (OpenAI's Responses).
    PerRequest,
    /// Nothing.
    Unsupported,
}

impl Dialect {
    /// What bounds the calls of hosted tools.
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
    /// Those that the provider runs, in the order of the body.
    pub hosted: Vec<HostedTool>,
    /// Whether there are others, which the client describes or runs.
    pub has_client_tools: bool,
    /// How often those that the provider runs may be called together, as the request says (`max_tool_calls`).
    pub max_calls: Option<u64>,
    /// Where that says `null`.
    pub(crate) null_max_calls_range: Option<Range<usize>>,
}

/// A change of a body.
enum BodyChange {
    /// What is written in the place of a range.
    Replace(String),
    /// The range is left out, and one comma beside it.
    Remove,
}

impl Tools {
    /// Whether the request names no bound of the calls of a tool that stays in it.
    #[must_use]
    pub fn needs_call_limit(&self, bound: CallLimit, is_left_out: impl Fn(&HostedTool) -> bool) -> bool {
        let mut staying = self.hosted.iter().filter(|tool| !is_left_out(tool));
        match bound {
            CallLimit::PerTool => staying.any(|tool| tool.has_max_uses() && tool.max_calls.is_none()),
            CallLimit::PerRequest => self.max_calls.is_none() && staying.next().is_some(),
            CallLimit::Unsupported => false,
        }
    }

    /// Copies `body`, from which the request was read, without the tools that `is_left_out` names. `calls`: where the request
    /// names no bound of the calls of one that stays, it is `bound` to so many.
    pub fn write_without(
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

/// Copies `body` with changes, which come in order.
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

/// What decides who runs a tool of OpenAI's Responses, besides its type.
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
            // A group of tools is what its members are.
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
