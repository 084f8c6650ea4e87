//! Tools of a request that its provider runs itself.

use std::ops::Range;

use serde::Deserialize;

use crate::dialect::Dialect;

/// More of them in one request are refused.
pub(crate) const MOST_HOSTED_TOOLS: usize = 128;

/// What stands for a kind that is no plain name.
const NO_NAME: &str = "unknown";

/// A tool that the provider runs itself: it reaches the network, costs what no token counts, or keeps state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostedTool {
    /// Its type, or the field that it stands in (Gemini, `web_search_options`), such as `web_search_20250305` or
    /// `googleSearch`: at most 64 letters, digits, `_`, `-` and `.`, or `unknown`.
    pub kind: Box<str>,
    /// How often it may be called, as it says (Anthropic's `max_uses`).
    pub most_calls: Option<u64>,
    /// Where it stands in the body: an element of an array, or a member of the body with its name.
    range: Range<usize>,
    is_member: bool,
    /// Where its `max_uses` says `null`.
    untold_calls: Option<Range<usize>>,
}

impl HostedTool {
    pub(crate) fn new(kind: &str, range: Range<usize>) -> Self {
        let is_name = (1..=64).contains(&kind.len())
            && kind
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
        HostedTool {
            kind: if is_name { kind } else { NO_NAME }.into(),
            most_calls: None,
            range,
            is_member: false,
            untold_calls: None,
        }
    }

    /// The same as a member of the body.
    pub(crate) fn of_member(kind: &str, range: Range<usize>) -> Self {
        HostedTool {
            is_member: true,
            ..HostedTool::new(kind, range)
        }
    }

    /// The same with what it says of its calls: their number, or where `null` stands.
    pub(crate) fn with_calls(self, most_calls: Option<u64>, untold_calls: Option<Range<usize>>) -> Self {
        HostedTool {
            most_calls,
            untold_calls,
            ..self
        }
    }

    /// Its kind without the date behind it (`web_search`).
    #[must_use]
    pub fn undated(&self) -> &str {
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
            .any(|name| *name == *self.kind || name == self.undated())
    }

    /// Whether it is offered by a field of the request besides its tools, which has sense without it.
    #[must_use]
    pub fn is_besides(&self) -> bool {
        self.is_member
    }

    /// Whether it has a field that bounds its calls (anthropic 2.12.0, `types/beta/*_tool_*_param.py`).
    #[must_use]
    pub fn has_max_uses(&self) -> bool {
        matches!(self.undated(), "web_search" | "web_fetch" | "advisor")
    }
}

/// What of a request bounds how often a provider calls the tools that it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallBound {
    /// `max_uses` of each tool that [has it](HostedTool::has_max_uses) (Anthropic).
    OfEach,
    /// `max_tool_calls` of the request, of all together (OpenAI's Responses).
    OfAll,
    /// Nothing.
    Nothing,
}

impl Dialect {
    /// What bounds the calls of hosted tools.
    #[must_use]
    pub fn call_bound(self) -> CallBound {
        match self {
            Dialect::Messages => CallBound::OfEach,
            Dialect::Responses => CallBound::OfAll,
            _ => CallBound::Nothing,
        }
    }
}

/// The tools of a request.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tools {
    /// Those that the provider runs, in the order of the body.
    pub hosted: Vec<HostedTool>,
    /// Whether there are others, which the client describes or runs.
    pub of_client: bool,
    /// How often those that the provider runs may be called together, as the request says (`max_tool_calls`).
    pub most_calls: Option<u64>,
    /// Where that says `null`.
    pub(crate) untold_calls: Option<Range<usize>>,
}

/// A change of a body.
enum Change {
    /// What is written in the place of a range.
    Write(String),
    /// The range is left out, and one comma beside it.
    LeaveOut,
}

impl Tools {
    /// Whether the request names no bound of the calls of a tool that stays in it.
    #[must_use]
    pub fn needs_bound(&self, bound: CallBound, is_left_out: impl Fn(&HostedTool) -> bool) -> bool {
        let mut staying = self.hosted.iter().filter(|tool| !is_left_out(tool));
        match bound {
            CallBound::OfEach => staying.any(|tool| tool.has_max_uses() && tool.most_calls.is_none()),
            CallBound::OfAll => self.most_calls.is_none() && staying.next().is_some(),
            CallBound::Nothing => false,
        }
    }

    /// Copies `body`, from which the request was read, without the tools that `is_left_out` names. `calls`: where the request
    /// names no bound of the calls of one that stays, it is `bound` to so many.
    pub fn write(
        &self,
        body: &[u8],
        is_left_out: impl Fn(&HostedTool) -> bool,
        calls: Option<(CallBound, u64)>,
        out: &mut Vec<u8>,
    ) {
        let mut changes: Vec<(Range<usize>, Change)> = Vec::new();
        let behind = |brace: usize| brace + 1..brace + 1;
        if let Some((CallBound::OfAll, most)) = calls
            && self.needs_bound(CallBound::OfAll, &is_left_out)
        {
            changes.push(match &self.untold_calls {
                Some(null) => (null.clone(), Change::Write(most.to_string())),
                None => {
                    let brace = body.iter().position(|byte| *byte == b'{').unwrap_or(0);
                    (
                        behind(brace),
                        Change::Write(format!("\"max_tool_calls\":{most},")),
                    )
                }
            });
        }
        for tool in &self.hosted {
            if is_left_out(tool) {
                changes.push((tool.range.clone(), Change::LeaveOut));
            } else if let Some((CallBound::OfEach, most)) = calls
                && tool.has_max_uses()
                && tool.most_calls.is_none()
            {
                changes.push(match &tool.untold_calls {
                    Some(null) => (null.clone(), Change::Write(most.to_string())),
                    None => (
                        behind(tool.range.start),
                        Change::Write(format!("\"max_uses\":{most},")),
                    ),
                });
            }
        }
        changes.sort_by_key(|(range, _)| range.start);
        apply(body, &changes, out);
    }
}

/// Copies `body` with changes, which come in order.
fn apply(body: &[u8], changes: &[(Range<usize>, Change)], out: &mut Vec<u8>) {
    let mut copied = 0;
    for (range, change) in changes {
        out.extend_from_slice(body.get(copied..range.start).unwrap_or_default());
        copied = range.end;
        match change {
            Change::Write(text) => out.extend_from_slice(text.as_bytes()),
            Change::LeaveOut => {
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
struct Described {
    #[serde(default)]
    r#type: String,
    environment: Option<Environment>,
    #[serde(default)]
    tools: Vec<Described>,
}

#[derive(Deserialize)]
struct Environment {
    #[serde(default)]
    r#type: String,
}

impl Described {
    fn is_of_client(&self) -> bool {
        match self.r#type.as_str() {
            // A group of tools is what its members are.
            "namespace" => self.tools.iter().all(Described::is_of_client),
            // `container_auto` and `container_reference` are containers of the provider.
            "shell" => (self.environment.as_ref()).is_some_and(|environment| environment.r#type == "local"),
            kind => Dialect::Responses.is_tool_of_the_client(kind),
        }
    }
}

/// Whether the client runs or describes a tool of this type; `tool` is its JSON (OpenAI, "Tools" of the Responses API).
pub(crate) fn is_of_client(dialect: Dialect, kind: &str, tool: &str) -> bool {
    match (dialect, kind) {
        (Dialect::Responses, "namespace" | "shell") => {
            serde_json::from_str::<Described>(tool).is_ok_and(|described| described.is_of_client())
        }
        _ => dialect.is_tool_of_the_client(kind),
    }
}
