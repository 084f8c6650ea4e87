use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::custom_tools::{CALL_INSTRUCTIONS, grammar_description, parameters_schema};
use crate::edits::Edits;
use proofgate_chat_request::{Call, Custom, Tool, ToolChoice};
use proofgate_dialect::droppable_fields::OTHER_FIELDS;
use proofgate_dialect::json::{write_all, write_member, write_string};
use proofgate_dialect::json_text::{JsonText, unquoted};
use proofgate_dialect::{RequestContext, UntranslatableRequest};

const CUSTOM: &str = "custom";

#[derive(Deserialize)]
struct Body<'b> {
    stream: Option<bool>,
    #[serde(borrow)]
    tools: Option<Vec<&'b RawValue>>,
    #[serde(borrow)]
    tool_choice: Option<&'b RawValue>,
    #[serde(borrow)]
    messages: Option<Vec<Message<'b>>>,
}

#[derive(Deserialize)]
struct Message<'b> {
    #[serde(borrow)]
    tool_calls: Option<Vec<&'b RawValue>>,
}

#[derive(Deserialize)]
struct Grammar<'b> {
    #[serde(borrow)]
    syntax: Option<Cow<'b, str>>,
    #[serde(borrow)]
    definition: Option<&'b RawValue>,
}

/// The changes to a request.
#[derive(Default)]
struct RequestRewrite {
    edits: Edits,
    custom_tools: Vec<String>,
    dropped: Vec<&'static str>,
}

/// Appends a chat-completions request with functions instead of its custom tools.
///
/// # Errors
/// Returns [`UntranslatableRequest`] if a custom tool and a function have the same name, because
/// their calls could not be distinguished.
pub fn translate_request(body: &[u8], out: &mut Vec<u8>) -> Result<RequestContext, UntranslatableRequest> {
    let read = std::str::from_utf8(body).ok();
    let read = read.and_then(|text| Some((text, serde_json::from_str::<Body<'_>>(text).ok()?)));
    let Some((text, request)) = read else {
        out.extend_from_slice(body);
        return Ok(RequestContext::default());
    };
    let mut rewritten = RequestRewrite::default();
    rewritten.rewrite_tools(text, request.tools.as_deref().unwrap_or_default())?;
    let calls = request.messages.iter().flatten();
    for call in calls.flat_map(|message| message.tool_calls.iter().flatten()) {
        rewritten.rewrite_call(text, call);
    }
    if let Some(choice) = request.tool_choice {
        rewritten.rewrite_choice(text, choice);
    }
    let start = out.len();
    if rewritten.edits.write(text, out).is_none() {
        out.truncate(start);
        out.extend_from_slice(body);
    }
    Ok(RequestContext {
        stream: request.stream == Some(true),
        custom_tools: rewritten.custom_tools,
        dropped_fields: rewritten.dropped,
        ..RequestContext::default()
    })
}

impl RequestRewrite {
    fn rewrite_tools(&mut self, text: &str, tools: &[&RawValue]) -> Result<(), UntranslatableRequest> {
        let read: Vec<Option<Tool<'_>>> = tools
            .iter()
            .map(|tool| serde_json::from_str(tool.get()).ok())
            .collect();
        let functions: Vec<&str> = read
            .iter()
            .flatten()
            .filter_map(|tool| tool.function.as_ref()?.name.as_deref())
            .collect();
        for (at, (raw, tool)) in tools.iter().zip(&read).enumerate() {
            let Some(tool) = tool.as_ref().filter(|tool| tool.kind.as_deref() == Some(CUSTOM)) else {
                continue;
            };
            let Some((custom, name)) = tool
                .custom
                .as_ref()
                .and_then(|custom| Some((custom, custom.name.as_deref()?)))
            else {
                continue;
            };
            if functions.contains(&name) {
                let message = "A function already has this name, and the provider of this model supports functions \
                               only.";
                return Err(UntranslatableRequest::new(
                    format!("tools[{at}].custom.name"),
                    message,
                ));
            }
            if tool.unknown.is_some() || custom.unknown.is_some() {
                self.note_dropped(OTHER_FIELDS);
            }
            let function = self.custom_as_function(custom, name, tool.cache_control);
            self.edits.replace(text, raw, function);
            self.custom_tools.push(name.to_owned());
        }
        Ok(())
    }

    fn custom_as_function(&mut self, custom: &Custom<'_>, name: &str, cache: Option<&RawValue>) -> String {
        let mut out = b"{\"type\":\"function\",\"function\":{\"name\":".to_vec();
        write_string(&mut out, name);
        let described = custom.description.filter(|description| !description.is_empty());
        let (description, between) = described.map_or(("", ""), |text| (text.inner(), "\\n\\n"));
        write_all(
            &mut out,
            &[",\"description\":\"", description, between, CALL_INSTRUCTIONS],
        );
        let grammar = custom.format.as_ref().and_then(|format| format.grammar);
        let grammar = grammar.and_then(|grammar| serde_json::from_str::<Grammar<'_>>(grammar.json()).ok());
        let grammar = grammar.and_then(|grammar| {
            let definition = grammar.definition.and_then(unquoted)?;
            Some(grammar_description(
                grammar.syntax.as_deref().unwrap_or_default(),
                definition,
            ))
        });
        if grammar.is_some() {
            self.note_dropped("tools[].custom.format");
        }
        write_all(
            &mut out,
            &["\",\"parameters\":", &parameters_schema(grammar.as_deref()), "}"],
        );
        write_member(&mut out, "cache_control", cache.map(RawValue::get));
        out.push(b'}');
        into_text(out)
    }

    /// Rewrites a call of the conversation so far.
    fn rewrite_call(&mut self, text: &str, raw: &RawValue) {
        let Ok(call) = serde_json::from_str::<Call<'_>>(raw.get()) else {
            return;
        };
        let Some(custom) = call.custom.filter(|_| call.kind.as_deref() == Some(CUSTOM)) else {
            return;
        };
        if call.unknown.is_some() || custom.unknown.is_some() {
            self.note_dropped(OTHER_FIELDS);
        }
        let input = custom.input.map_or("\"\"", JsonText::raw);
        let mut out = b"{\"type\":\"function\",\"function\":{\"arguments\":".to_vec();
        write_string(&mut out, &["{\"input\":", input, "}"].concat());
        if let Some(name) = &custom.name {
            write_all(&mut out, &[",\"name\":"]);
            write_string(&mut out, name);
        }
        out.push(b'}');
        if let Some(id) = &call.id {
            write_all(&mut out, &[",\"id\":"]);
            write_string(&mut out, id);
        }
        for (name, value) in [
            ("cache_control", call.cache_control),
            ("extra_content", call.extra_content),
        ] {
            write_member(&mut out, name, value.map(RawValue::get));
        }
        out.push(b'}');
        self.edits.replace(text, raw, into_text(out));
    }

    /// Rewrites the choice of a custom tool, or of several tools that include custom tools.
    fn rewrite_choice(&mut self, text: &str, raw: &RawValue) {
        let Ok(choice) = serde_json::from_str::<ToolChoice<'_>>(raw.get()) else {
            return;
        };
        let function = |name: &str| {
            let mut out = b"{\"type\":\"function\",\"function\":{\"name\":".to_vec();
            write_string(&mut out, name);
            out.extend_from_slice(b"}}");
            into_text(out)
        };
        let chosen = choice.custom.as_ref().and_then(|named| named.name.as_deref());
        if let Some(name) = chosen.filter(|_| choice.kind.as_deref() == Some(CUSTOM)) {
            self.edits.replace(text, raw, function(name));
        }
        let Some(allowed) = choice
            .allowed_tools
            .filter(|_| choice.kind.as_deref() == Some("allowed_tools"))
        else {
            return;
        };
        let names = allowed.tools.iter().flatten().filter_map(|tool| {
            let named = match tool.kind.as_deref() {
                Some(CUSTOM) => tool.custom.as_ref(),
                _ => tool.function.as_ref(),
            };
            named?.name.as_deref()
        });
        let names: Vec<String> = names.map(function).collect();
        let mode = allowed.mode.as_deref().unwrap_or_default();
        let mut out = b"{\"type\":\"allowed_tools\",\"allowed_tools\":{\"mode\":".to_vec();
        write_string(&mut out, mode);
        write_all(&mut out, &[",\"tools\":[", &names.join(","), "]}}"]);
        self.edits.replace(text, raw, into_text(out));
    }

    fn note_dropped(&mut self, name: &'static str) {
        if !self.dropped.contains(&name) {
            self.dropped.push(name);
        }
    }
}

/// Returns the written text.
fn into_text(written: Vec<u8>) -> String {
    String::from_utf8(written).unwrap_or_default()
}
