//! The tools of a request, and which of them the model may call.

use serde_json::value::RawValue;

use crate::body::{self, AllowedTool, Custom, Function, Tool, ToolChoice};
use crate::losses::{Losses, json};
use crate::request::Chat;
use proofgate_dialect::Untranslatable;
use proofgate_dialect::json_text::JsonText;
use proofgate_dialect::object::{Flag, Object, Word};

/// The schema of a function without arguments.
pub const NO_ARGUMENTS: &str = r#"{"type":"object","properties":{}}"#;

const CHOICE: &str = "tool_choice";

/// The tools that the model may be offered, and its choice among them.
pub struct Tools<'c, 'b> {
    pub offered: Vec<Offered<'c, 'b>>,
    pub choice: Choice<'b>,
}

/// A tool.
pub struct Offered<'c, 'b> {
    pub kind: Kind<'c, 'b>,
    pub name: &'c Word<'b>,
    pub cache: Option<&'b RawValue>,
    /// Where it stands among the tools.
    at: usize,
}

/// What a tool is.
pub enum Kind<'c, 'b> {
    Function(&'c Function<'b>),
    Custom(&'c Custom<'b>),
}

/// Which tools the model may call.
pub enum Choice<'b> {
    /// The client does not say.
    Unsaid,
    Auto,
    None,
    /// One at least.
    Required,
    /// This one.
    One(Named<'b>),
    /// These only, and whether one of them at least.
    Some(Vec<Named<'b>>, bool),
}

/// A tool that is referred to.
pub struct Named<'b> {
    pub is_custom: bool,
    pub name: Word<'b>,
}

/// Whether a `tool_choice` leaves it to the model.
pub(super) fn is_free(choice: &str) -> bool {
    matches!(choice, "\"auto\"" | "\"none\"")
}

impl<'b> Chat<'b> {
    /// Reads `tools` and `tool_choice`; custom tools, where the writer says `tools[].custom`. A choice is of the tools that there are:
    /// others that are allowed are left out and named.
    pub fn offered(&self, losses: &mut Losses) -> Result<Tools<'_, 'b>, Untranslatable> {
        let mut offered = Vec::new();
        for (at, tool) in self.tools.iter().flatten().enumerate() {
            offered.extend(tool.read(at, losses)?);
        }
        let mut choice = match self.tool_choice {
            None => Choice::Unsaid,
            Some(choice) => self.choice(choice, losses)?,
        };
        let missing = |path: &'static str| Err(Untranslatable::new(path, "the request has no such tool"));
        let is_there = |named: &Named<'_>| offered.iter().any(|tool: &Offered<'_, '_>| tool.is(named));
        match &mut choice {
            Choice::Unsaid | Choice::Auto | Choice::None => {}
            _ if offered.is_empty() => return missing(CHOICE),
            Choice::Required => {}
            Choice::One(named) if is_there(named) => {}
            Choice::One(named) if named.is_custom => return missing("tool_choice.custom.name"),
            Choice::One(_) => return missing("tool_choice.function.name"),
            Choice::Some(names, _) => {
                let asked = names.len();
                names.retain(is_there);
                if names.is_empty() {
                    return missing("tool_choice.allowed_tools.tools");
                }
                if names.len() < asked {
                    losses.note(CHOICE, json(self.tool_choice).unwrap_or_default());
                }
            }
        }
        Ok(Tools { offered, choice })
    }

    fn choice(&self, choice: &'b RawValue, losses: &mut Losses) -> Result<Choice<'b>, Untranslatable> {
        match choice.get() {
            "\"auto\"" => return Ok(Choice::Auto),
            "\"none\"" => return Ok(Choice::None),
            "\"required\"" => return Ok(Choice::Required),
            object if object.starts_with('{') => {}
            _ => return Err(unknown_choice(CHOICE)),
        }
        let choice: ToolChoice<'b> = self.parse(choice.get())?;
        losses.unknown(choice.unknown.as_ref());
        let kind = choice.kind.as_deref();
        let Some(allowed) = choice.allowed_tools.filter(|_| kind == Some("allowed_tools")) else {
            let named = named(kind, choice.function, choice.custom, losses);
            return named
                .map(Choice::One)
                .ok_or_else(|| unknown_choice("tool_choice.type"));
        };
        losses.unknown(allowed.unknown.as_ref());
        let is_required = match allowed.mode.as_deref() {
            Some("auto") => false,
            Some("required") => true,
            _ => return Err(unknown_choice("tool_choice.allowed_tools.mode")),
        };
        let mut names = Vec::new();
        for AllowedTool {
            kind,
            function,
            custom,
            unknown,
        } in allowed.tools.into_iter().flatten()
        {
            losses.unknown(unknown.as_ref());
            names.extend(named(kind.as_deref(), function, custom, losses));
        }
        Ok(Choice::Some(names, is_required))
    }
}

fn named<'b>(
    kind: Option<&str>,
    function: Option<body::Named<'b>>,
    custom: Option<body::Named<'b>>,
    losses: &mut Losses,
) -> Option<Named<'b>> {
    let (is_custom, named) = match kind {
        Some("function") => (false, function?),
        Some("custom") => (true, custom?),
        _ => return None,
    };
    losses.unknown(named.unknown.as_ref());
    Some(Named {
        is_custom,
        name: named.name?,
    })
}

fn unknown_choice(path: &'static str) -> Untranslatable {
    let message = "a choice must be auto, none, required, a tool given by type and name, or allowed_tools with such \
                   tools";
    Untranslatable::new(path, message)
}

impl<'b> Tool<'b> {
    /// Reads a tool; `None` is one of a type that is not known, which is left out and named.
    fn read<'c>(&'c self, at: usize, losses: &mut Losses) -> Result<Option<Offered<'c, 'b>>, Untranslatable> {
        let path = |field: &str| format!("tools[{at}].{field}");
        losses.unknown(self.unknown.as_ref());
        let (kind, name, cache) = match (self.kind.as_deref(), &self.function, &self.custom) {
            (Some("function"), Some(function), _) => {
                losses.unknown(function.unknown.as_ref());
                let strict = function.strict.map(Flag::json);
                losses.offer("tools[].function.strict", strict, || path("function.strict"))?;
                let cache = self.cache_control.or(function.cache_control);
                (Kind::Function(function), &function.name, cache)
            }
            (Some("custom"), _, Some(custom)) if losses.says("tools[].custom") => {
                losses.unknown(custom.unknown.as_ref());
                (Kind::Custom(custom), &custom.name, self.cache_control)
            }
            (Some("function" | "custom"), ..) => {
                let message = "the provider of this model does not support tools of this type, or the tool lacks its \
                               field function or custom";
                return Err(Untranslatable::new(path("type"), message));
            }
            (Some(kind), ..) => {
                losses.lose("tools[].type", kind, || path("type"))?;
                return Ok(None);
            }
            (None, ..) => return Err(Untranslatable::new(path("type"), "a tool must have a type")),
        };
        losses.offer("tools[].cache_control", json(cache), || path("cache_control"))?;
        let name = name.as_ref().filter(|name| !name.is_empty()).ok_or_else(|| {
            let kind = self.kind.as_deref().unwrap_or_default();
            Untranslatable::new(path(&format!("{kind}.name")), "a tool must have a name")
        })?;
        Ok(Some(Offered {
            kind,
            name,
            cache,
            at,
        }))
    }
}

impl<'b> Offered<'_, 'b> {
    fn is(&self, named: &Named<'_>) -> bool {
        let is_custom = matches!(self.kind, Kind::Custom(_));
        is_custom == named.is_custom && **self.name == *named.name
    }

    /// The path of a field of it.
    pub fn field(&self, field: &str) -> String {
        format!("tools[{}].{field}", self.at)
    }
}

impl<'c, 'b> Tools<'c, 'b> {
    /// Takes out what the model may not call, for a provider that has no words for that.
    pub fn restrict(&mut self) {
        if let Choice::Some(names, is_required) = &self.choice {
            let (offered, required) = (&mut self.offered, *is_required);
            offered.retain(|tool| names.iter().any(|named| tool.is(named)));
            self.choice = if required { Choice::Required } else { Choice::Auto };
        }
    }

    /// The functions, with their places.
    pub fn functions(&self) -> impl Iterator<Item = (&Offered<'c, 'b>, &'c Function<'b>)> {
        self.offered.iter().filter_map(|tool| match tool.kind {
            Kind::Function(function) => Some((tool, function)),
            Kind::Custom(_) => None,
        })
    }
}

impl<'b> Function<'b> {
    /// The schema of its arguments, if it has any.
    pub fn arguments(&self) -> Option<&'b str> {
        let schema = self.parameters.map(Object::json)?;
        let members = schema.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        let is_empty = members.is_none_or(|members| members.trim_ascii().is_empty());
        (!is_empty).then_some(schema)
    }

    pub fn is_strict(&self) -> bool {
        self.strict.is_some_and(Flag::is_true)
    }

    /// What it is for, unless that is nothing.
    pub fn purpose(&self) -> Option<JsonText<'b>> {
        self.description.filter(|description| !description.is_empty())
    }
}
