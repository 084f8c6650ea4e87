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
    /// Its type, or the field that it stands in (Gemini), such as `web_search_20250305` or `googleSearch`: at most 64
    /// letters, digits, `_`, `-` and `.`, or `unknown`.
    pub kind: Box<str>,
    /// Where it stands in the body.
    range: Range<usize>,
}

impl HostedTool {
    pub(crate) fn new(kind: &str, range: Range<usize>) -> Self {
        let is_name = (1..=64).contains(&kind.len())
            && kind
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
        HostedTool {
            kind: if is_name { kind } else { NO_NAME }.into(),
            range,
        }
    }

    /// Whether one of the names allows it: its kind, or its kind without the date behind it (`web_search`).
    pub fn is_allowed(&self, names: &[String]) -> bool {
        let is_date = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let mut undated = &*self.kind;
        while let Some((rest, part)) = undated.rsplit_once('_')
            && is_date(part)
        {
            undated = rest;
        }
        names.iter().any(|name| *name == *self.kind || name == undated)
    }
}

/// The tools of a request.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tools {
    /// Those that the provider runs, in the order of the body.
    pub hosted: Vec<HostedTool>,
    /// Whether there are others, which the client describes or runs.
    pub of_client: bool,
}

impl Tools {
    /// Copies `body`, from which the request was read, without the tools that `is_left_out` names; they stand in an array.
    pub fn leave_out(&self, body: &[u8], is_left_out: impl Fn(&HostedTool) -> bool, out: &mut Vec<u8>) {
        let mut copied = 0;
        for tool in self.hosted.iter().filter(|tool| is_left_out(tool)) {
            out.extend_from_slice(body.get(copied..tool.range.start).unwrap_or_default());
            let behind = body.get(tool.range.end..).unwrap_or_default();
            let blank = behind.len() - behind.trim_ascii_start().len();
            copied = tool.range.end;
            if behind.get(blank) == Some(&b',') {
                copied += blank + 1;
            } else {
                out.truncate(out.trim_ascii_end().len());
                if out.last() == Some(&b',') {
                    out.pop();
                }
            }
        }
        out.extend_from_slice(body.get(copied..).unwrap_or_default());
    }
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
