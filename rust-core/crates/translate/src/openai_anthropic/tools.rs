use serde_json::value::RawValue;

use crate::Untranslatable;
use crate::json::write_string;
use crate::openai_anthropic::json_text::{JsonText, is_object};
use crate::openai_anthropic::left_out::LeftOut;
use crate::openai_anthropic::object::{Word, object};
use crate::openai_anthropic::unreadable::unreadable;
use crate::schema::{write_arguments, write_for_claude};

object! {
    /// A tool that the model may call.
    Tool { kind("type"): Word<'b>, function: Function<'b>, cache_control: &'b RawValue }
}

object! {
    Function {
        name: Word<'b>,
        description: JsonText<'b>,
        parameters: &'b RawValue,
        strict: bool,
        cache_control: &'b RawValue,
    }
}

object! {
    ToolChoice { kind("type"): Word<'b>, function: Named<'b>, allowed_tools: AllowedTools<'b> }
}

object! {
    AllowedTools { mode: Word<'b>, tools: Vec<AllowedTool<'b>> }
}

object! {
    AllowedTool { kind("type"): Word<'b>, function: Named<'b> }
}

object! {
    Named { name: Word<'b> }
}

/// The tools of a request, and which of them the model is to call.
pub(super) struct Tools<'t, 'b> {
    tools: &'t [Tool<'b>],
    /// The only ones that it may call.
    allowed: Option<Vec<Word<'b>>>,
    choice: Option<Choice<'b>>,
    at_most_one: bool,
}

enum Choice<'b> {
    Auto,
    Any,
    None,
    Tool(Word<'b>),
}

const CHOICE: &str = "tool_choice";

impl<'t, 'b> Tools<'t, 'b> {
    /// Reads `tools`, `tool_choice` and `parallel_tool_calls`.
    pub(super) fn read(
        body: &str,
        tools: Option<&'t [Tool<'b>]>,
        choice: Option<&'b RawValue>,
        parallel: Option<bool>,
    ) -> Result<Self, Untranslatable> {
        let mut read = Tools {
            tools: tools.unwrap_or_default(),
            allowed: None,
            choice: None,
            at_most_one: parallel == Some(false),
        };
        let Some(choice) = choice else { return Ok(read) };
        let text = choice.get();
        read.choice = Some(if is_object(choice) {
            let choice = serde_json::from_str(text).map_err(|error| unreadable(body, text, &error))?;
            read.choose(choice)?
        } else {
            match text {
                "\"auto\"" => Choice::Auto,
                "\"required\"" => Choice::Any,
                "\"none\"" => Choice::None,
                _ => return Err(unknown_choice()),
            }
        });
        Ok(read)
    }

    fn choose(&mut self, choice: ToolChoice<'b>) -> Result<Choice<'b>, Untranslatable> {
        if choice.unknown.is_some() {
            return Err(unknown_choice());
        }
        match (choice.kind.as_deref(), choice.function, choice.allowed_tools) {
            (Some("function"), Some(Named { name: Some(name), .. }), _) => Ok(Choice::Tool(name)),
            (Some("allowed_tools"), _, Some(allowed)) => {
                let tools = allowed.tools.unwrap_or_default();
                let is_function = |tool: &AllowedTool<'_>| tool.kind.as_deref() == Some("function");
                if !tools.iter().all(is_function) {
                    let path = "tool_choice.allowed_tools.tools";
                    return Err(Untranslatable::new(path, "the provider has functions only"));
                }
                let names = tools.into_iter().filter_map(|tool| tool.function?.name);
                self.allowed = Some(names.collect());
                match allowed.mode.as_deref() {
                    Some("auto") => Ok(Choice::Auto),
                    Some("required") => Ok(Choice::Any),
                    _ => Err(unknown_choice()),
                }
            }
            _ => Err(unknown_choice()),
        }
    }

    /// Writes the members `tools` and `tool_choice`, a comma before each.
    pub(super) fn write(&self, left_out: &mut LeftOut, out: &mut Vec<u8>) -> Result<(), Untranslatable> {
        if self.tools.is_empty() {
            return match self.choice {
                None | Some(Choice::Auto | Choice::None) => Ok(()),
                Some(_) => Err(Untranslatable::new(CHOICE, "there is no tool to choose")),
            };
        }
        out.extend_from_slice(b",\"tools\":[");
        let mut empty = true;
        for (at, tool) in self.tools.iter().enumerate() {
            empty &= !self.write_tool(tool, at, left_out, out)?;
        }
        if empty {
            return Err(Untranslatable::new(CHOICE, "no tool of the request is allowed"));
        }
        out.pop();
        out.push(b']');
        self.write_choice(out);
        Ok(())
    }

    /// Writes a tool and a comma behind it, unless it is not allowed.
    fn write_tool(
        &self,
        tool: &Tool<'_>,
        at: usize,
        left_out: &mut LeftOut,
        out: &mut Vec<u8>,
    ) -> Result<bool, Untranslatable> {
        let path = |field: &str| format!("tools[{at}].{field}");
        let function = match (tool.kind.as_deref(), &tool.function) {
            (Some("function"), Some(function)) => function,
            _ => {
                return Err(Untranslatable::new(
                    path("type"),
                    "the provider is given functions only",
                ));
            }
        };
        let name = function.name.as_ref().filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| Untranslatable::new(path("function.name"), "a function has a name"))?;
        left_out.leave_unknown(tool.unknown.as_deref(), path)?;
        left_out.leave_unknown(function.unknown.as_deref(), |name| {
            path(&format!("function.{name}"))
        })?;
        if self
            .allowed
            .as_ref()
            .is_some_and(|allowed| !allowed.contains(name))
        {
            return Ok(false);
        }
        out.extend_from_slice(b"{\"name\":");
        write_string(out, name);
        if let Some(description) = function.description {
            out.extend_from_slice(b",\"description\":");
            out.extend_from_slice(description.raw().as_bytes());
        }
        out.extend_from_slice(b",\"input_schema\":");
        match function.parameters.map(RawValue::get) {
            None | Some("{}") => out.extend_from_slice(b"{\"type\":\"object\",\"properties\":{}}"),
            Some(schema) if schema.starts_with('{') && function.strict == Some(true) => {
                write_for_claude(schema, out);
            }
            Some(schema) if schema.starts_with('{') => write_arguments(schema, out),
            Some(_) => {
                let path = path("function.parameters");
                return Err(Untranslatable::new(
                    path,
                    "parameters have to be a schema of an object",
                ));
            }
        }
        if let Some(strict) = function.strict {
            out.extend_from_slice(if strict {
                b",\"strict\":true"
            } else {
                b",\"strict\":false"
            });
        }
        if let Some(cache) = tool.cache_control.or(function.cache_control) {
            if !is_object(cache) {
                let message = "cache_control has to be an object";
                return Err(Untranslatable::new(path("cache_control"), message));
            }
            out.extend_from_slice(b",\"cache_control\":");
            out.extend_from_slice(cache.get().as_bytes());
        }
        out.extend_from_slice(b"},");
        Ok(true)
    }

    fn write_choice(&self, out: &mut Vec<u8>) {
        let kind: &[u8] = match &self.choice {
            None if !self.at_most_one => return,
            None | Some(Choice::Auto) => b"auto",
            Some(Choice::Any) => b"any",
            Some(Choice::None) => b"none",
            Some(Choice::Tool(_)) => b"tool",
        };
        out.extend_from_slice(b",\"tool_choice\":{\"type\":\"");
        out.extend_from_slice(kind);
        out.push(b'"');
        if let Some(Choice::Tool(name)) = &self.choice {
            out.extend_from_slice(b",\"name\":");
            write_string(out, name);
        }
        if self.at_most_one && !matches!(self.choice, Some(Choice::None)) {
            out.extend_from_slice(b",\"disable_parallel_tool_use\":true");
        }
        out.push(b'}');
    }
}

fn unknown_choice() -> Untranslatable {
    let message = "tool_choice has to be auto, required, none, a function or allowed_tools of functions";
    Untranslatable::new(CHOICE, message)
}
