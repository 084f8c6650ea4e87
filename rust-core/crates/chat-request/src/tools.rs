//! Reads the tools of a request and its tool choice.

use serde_json::value::RawValue;

use crate::body::{self, AllowedTool, Custom, Function, Tool, ToolChoice};
use crate::dropped_fields::{DroppedFields, raw_json};
use crate::request::ChatRequest;
use proofgate_dialect::UntranslatableRequest;
use proofgate_dialect::json_text::JsonText;
use proofgate_dialect::object::{Flag, Object, UnescapedString};

/// The schema of a function without arguments.
pub const NO_ARGUMENTS_SCHEMA: &str = r#"{"type":"object","properties":{}}"#;

const CHOICE: &str = "tool_choice";

/// The tools offered to the model, and the tool choice.
pub struct Tools<'c, 'b> {
    pub offered: Vec<OfferedTool<'c, 'b>>,
    pub choice: ToolSelection<'b>,
}

/// A tool.
pub struct OfferedTool<'c, 'b> {
    pub kind: OfferedToolKind<'c, 'b>,
    pub name: &'c UnescapedString<'b>,
    /// `cache_control`; `None` if the client sends none.
    pub cache: Option<&'b RawValue>,
    /// Its index among the tools.
    index: usize,
}

/// The kind of a tool.
pub enum OfferedToolKind<'c, 'b> {
    Function(&'c Function<'b>),
    Custom(&'c Custom<'b>),
}

/// The tools that the model may call.
pub enum ToolSelection<'b> {
    /// The client sends no tool choice.
    Unspecified,
    Auto,
    None,
    /// At least one tool.
    Required,
    /// This tool.
    Specific(ToolReference<'b>),
    /// Only these tools, and whether at least one of them is required.
    AllowedTools(Vec<ToolReference<'b>>, bool),
}

/// A reference to a tool.
pub struct ToolReference<'b> {
    pub is_custom: bool,
    pub name: UnescapedString<'b>,
}

/// Whether a `tool_choice` leaves the decision to the model.
pub(super) fn is_unrestricted_choice(choice: &str) -> bool {
    matches!(choice, "\"auto\"" | "\"none\"")
}

impl<'b> ChatRequest<'b> {
    /// Reads `tools` and `tool_choice`. Custom tools are accepted if the writer handles `tools[].custom`. A choice
    /// may only name offered tools: other allowed tools are dropped and reported.
    pub fn read_tools(&self, losses: &mut DroppedFields) -> Result<Tools<'_, 'b>, UntranslatableRequest> {
        let mut offered = Vec::new();
        for (at, tool) in self.tools.iter().flatten().enumerate() {
            offered.extend(tool.read(at, losses)?);
        }
        let mut choice = match self.tool_choice {
            None => ToolSelection::Unspecified,
            Some(choice) => self.choice(choice, losses)?,
        };
        let missing =
            |path: &'static str| Err(UntranslatableRequest::new(path, "the request has no such tool"));
        let is_there = |named: &ToolReference<'_>| {
            offered
                .iter()
                .any(|tool: &OfferedTool<'_, '_>| tool.matches(named))
        };
        match &mut choice {
            ToolSelection::Unspecified | ToolSelection::Auto | ToolSelection::None => {}
            _ if offered.is_empty() => return missing(CHOICE),
            ToolSelection::Required => {}
            ToolSelection::Specific(named) if is_there(named) => {}
            ToolSelection::Specific(named) if named.is_custom => return missing("tool_choice.custom.name"),
            ToolSelection::Specific(_) => return missing("tool_choice.function.name"),
            ToolSelection::AllowedTools(names, _) => {
                let asked = names.len();
                names.retain(is_there);
                if names.is_empty() {
                    return missing("tool_choice.allowed_tools.tools");
                }
                if names.len() < asked {
                    losses.record_field(CHOICE, raw_json(self.tool_choice).unwrap_or_default());
                }
            }
        }
        Ok(Tools { offered, choice })
    }

    fn choice(
        &self,
        choice: &'b RawValue,
        losses: &mut DroppedFields,
    ) -> Result<ToolSelection<'b>, UntranslatableRequest> {
        match choice.get() {
            "\"auto\"" => return Ok(ToolSelection::Auto),
            "\"none\"" => return Ok(ToolSelection::None),
            "\"required\"" => return Ok(ToolSelection::Required),
            object if object.starts_with('{') => {}
            _ => return Err(unknown_choice_error(CHOICE)),
        }
        let choice: ToolChoice<'b> = self.parse(choice.get())?;
        losses.drop_unknown(choice.unknown.as_ref());
        let kind = choice.kind.as_deref();
        let Some(allowed) = choice.allowed_tools.filter(|_| kind == Some("allowed_tools")) else {
            let named = read_tool_reference(kind, choice.function, choice.custom, losses);
            return named
                .map(ToolSelection::Specific)
                .ok_or_else(|| unknown_choice_error("tool_choice.type"));
        };
        losses.drop_unknown(allowed.unknown.as_ref());
        let is_required = match allowed.mode.as_deref() {
            Some("auto") => false,
            Some("required") => true,
            _ => return Err(unknown_choice_error("tool_choice.allowed_tools.mode")),
        };
        let mut names = Vec::new();
        for AllowedTool {
            kind,
            function,
            custom,
            unknown,
        } in allowed.tools.into_iter().flatten()
        {
            losses.drop_unknown(unknown.as_ref());
            names.extend(read_tool_reference(kind.as_deref(), function, custom, losses));
        }
        Ok(ToolSelection::AllowedTools(names, is_required))
    }
}

fn read_tool_reference<'b>(
    kind: Option<&str>,
    function: Option<body::Named<'b>>,
    custom: Option<body::Named<'b>>,
    losses: &mut DroppedFields,
) -> Option<ToolReference<'b>> {
    let (is_custom, named) = match kind {
        Some("function") => (false, function?),
        Some("custom") => (true, custom?),
        _ => return None,
    };
    losses.drop_unknown(named.unknown.as_ref());
    Some(ToolReference {
        is_custom,
        name: named.name?,
    })
}

fn unknown_choice_error(path: &'static str) -> UntranslatableRequest {
    let message = "a choice must be auto, none, required, one tool with its type and name, or allowed_tools with a list \
                   of tools, each with its type and name";
    UntranslatableRequest::new(path, message)
}

impl<'b> Tool<'b> {
    /// Reads a tool; returns `None` for a tool of an unknown type, which is dropped and reported.
    fn read<'c>(
        &'c self,
        at: usize,
        losses: &mut DroppedFields,
    ) -> Result<Option<OfferedTool<'c, 'b>>, UntranslatableRequest> {
        let path = |field: &str| format!("tools[{at}].{field}");
        losses.drop_unknown(self.unknown.as_ref());
        let (kind, name, cache) = match (self.kind.as_deref(), &self.function, &self.custom) {
            (Some("function"), Some(function), _) => {
                losses.drop_unknown(function.unknown.as_ref());
                let strict = function.strict.map(Flag::json);
                losses.drop_unless_handled("tools[].function.strict", strict, || path("function.strict"))?;
                let cache = self.cache_control.or(function.cache_control);
                (OfferedToolKind::Function(function), &function.name, cache)
            }
            (Some("custom"), _, Some(custom)) if losses.is_handled("tools[].custom") => {
                losses.drop_unknown(custom.unknown.as_ref());
                (OfferedToolKind::Custom(custom), &custom.name, self.cache_control)
            }
            (Some("function" | "custom"), ..) => {
                let message = "the provider of this model does not support tools of this type, or the tool lacks its \
                               field function or custom";
                return Err(UntranslatableRequest::new(path("type"), message));
            }
            (Some(kind), ..) => {
                losses.drop_listed("tools[].type", kind, || path("type"))?;
                return Ok(None);
            }
            (None, ..) => {
                return Err(UntranslatableRequest::new(
                    path("type"),
                    "a tool must have a type",
                ));
            }
        };
        losses.drop_unless_handled("tools[].cache_control", raw_json(cache), || path("cache_control"))?;
        let name = name.as_ref().filter(|name| !name.is_empty()).ok_or_else(|| {
            let kind = self.kind.as_deref().unwrap_or_default();
            UntranslatableRequest::new(path(&format!("{kind}.name")), "a tool must have a name")
        })?;
        Ok(Some(OfferedTool {
            kind,
            name,
            cache,
            index: at,
        }))
    }
}

impl<'b> OfferedTool<'_, 'b> {
    fn matches(&self, named: &ToolReference<'_>) -> bool {
        let is_custom = matches!(self.kind, OfferedToolKind::Custom(_));
        is_custom == named.is_custom && **self.name == *named.name
    }

    /// Returns the path of a field of the tool.
    pub fn field_path(&self, field: &str) -> String {
        format!("tools[{}].{field}", self.index)
    }
}

impl<'c, 'b> Tools<'c, 'b> {
    /// Removes tools that the model may not call, for a provider without a counterpart of allowed tools.
    pub fn remove_disallowed(&mut self) {
        if let ToolSelection::AllowedTools(names, is_required) = &self.choice {
            let (offered, required) = (&mut self.offered, *is_required);
            offered.retain(|tool| names.iter().any(|named| tool.matches(named)));
            self.choice = if required {
                ToolSelection::Required
            } else {
                ToolSelection::Auto
            };
        }
    }

    /// Returns the functions, each with its tool.
    pub fn functions(&self) -> impl Iterator<Item = (&OfferedTool<'c, 'b>, &'c Function<'b>)> {
        self.offered.iter().filter_map(|tool| match tool.kind {
            OfferedToolKind::Function(function) => Some((tool, function)),
            OfferedToolKind::Custom(_) => None,
        })
    }
}

impl<'b> Function<'b> {
    /// Returns the schema of its arguments, if it has any.
    pub fn arguments(&self) -> Option<&'b str> {
        let schema = self.parameters.map(Object::json)?;
        let members = schema.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        let is_empty = members.is_none_or(|members| members.trim_ascii().is_empty());
        (!is_empty).then_some(schema)
    }

    pub fn is_strict(&self) -> bool {
        self.strict.is_some_and(Flag::is_true)
    }

    /// Returns its description, unless that is empty.
    pub fn description(&self) -> Option<JsonText<'b>> {
        self.description.filter(|description| !description.is_empty())
    }
}
