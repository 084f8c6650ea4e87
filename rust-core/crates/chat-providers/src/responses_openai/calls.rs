//! The calls of an answer, which may arrive in fragments and interleaved.

use crate::anthropic_openai::arguments::ArgumentScanner;
use crate::anthropic_openai::chat::{Arguments, ToolCall};
use crate::call_name::append_name;
use crate::custom_tools::custom_input;
use crate::responses_openai::call_items::{CallItem, id_prefix, openai_members};
use crate::responses_openai::events::{EventTarget, OutputItems};
use crate::responses_openai::tools::{unquoted, write_json};
use proofgate_dialect::ResponseError;
use proofgate_dialect::json::write_string;
use proofgate_dialect::{ToolKind, ToolMapping};

/// Maximum number of tool calls in one answer.
const MAX_CALLS: usize = 128;

const INVALID_ARGUMENTS: ResponseError = ResponseError::Malformed("the arguments of a tool call are invalid");

/// The calls so far.
#[derive(Debug, Default)]
pub(super) struct OutputCalls {
    calls: Vec<Call>,
    tools: Vec<ToolMapping>,
}

#[derive(Debug, Default)]
struct Call {
    /// The provider's index of the call.
    index: Option<u64>,
    /// The id. This and the other strings are JSON-escaped and without quotes.
    id: String,
    name: String,
    arguments: String,
    /// The number of bytes of the arguments that were sent to the client.
    sent_len: usize,
    /// The index of its tool among the tools that are not plain functions, once the name is
    /// complete.
    tool: Option<usize>,
    progress: ArgumentScanner,
    /// The index and id of its item, once that has begun.
    item: Option<(usize, String)>,
    is_done: bool,
}

impl OutputCalls {
    pub(super) fn new(tools: Vec<ToolMapping>) -> Self {
        OutputCalls {
            calls: Vec::new(),
            tools,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Finds the call of a fragment, or adds it; returns its number and whether the fragment begins it.
    pub(super) fn find_or_add(
        &mut self,
        fragment: &ToolCall<'_>,
        items: &mut OutputItems,
        out: &mut Vec<u8>,
    ) -> Result<(usize, bool), ResponseError> {
        let latest = match (fragment.index, fragment.id()) {
            (Some(index), _) => self.calls.iter().rposition(|call| call.index == Some(index)),
            (None, Some(id)) => self.calls.iter().rposition(|call| call.id == id),
            (None, None) => self.calls.len().checked_sub(1),
        };
        let arguments = fragment.arguments()?;
        if let Some(number) = latest
            && let Some(call) = self.calls.get(number)
            && !starts_new_call(call, fragment, arguments)
        {
            return Ok((number, false));
        }
        if self.calls.len() >= MAX_CALLS {
            return Err(ResponseError::TooLarge);
        }
        self.flush_latest(items, out)?;
        self.calls.push(Call {
            index: fragment.index,
            ..Call::default()
        });
        Ok((self.calls.len() - 1, true))
    }

    /// Adds a fragment to its call.
    pub(super) fn push_fragment(
        &mut self,
        number: usize,
        fragment: &ToolCall<'_>,
        items: &mut OutputItems,
        out: &mut Vec<u8>,
    ) -> Result<(), ResponseError> {
        let Some(call) = self.calls.get_mut(number) else {
            return Ok(());
        };
        if call.is_done {
            return Ok(());
        }
        if let Some(id) = fragment.id().filter(|_| call.id.is_empty()) {
            call.id.push_str(id);
            items.count_retained(id.len())?;
        }
        if let Some(name) = fragment.name().filter(|_| !call.has_complete_name()) {
            append_name(&mut call.name, name);
            items.count_retained(name.len())?;
            call.tool = self
                .tools
                .iter()
                .position(|tool| *tool.provider_name == *call.name);
        }
        match fragment.arguments()? {
            Arguments::None => {}
            Arguments::String(text) => call.extend_arguments(text, items)?,
            Arguments::Object(json) => {
                let mut quoted = Vec::with_capacity(json.len().saturating_mul(2));
                write_string(&mut quoted, json);
                let quoted = String::from_utf8(quoted).unwrap_or_default();
                call.extend_arguments(unquoted(&quoted), items)?;
            }
        }
        if call.id.is_empty() || !call.has_complete_name() {
            return Ok(());
        }
        let tool = call.tool.and_then(|tool| self.tools.get(tool));
        call.write_available(tool, items, out)
    }

    /// Writes the available part of the latest call before another item begins, because items are
    /// sent in order.
    pub(super) fn flush_latest(
        &mut self,
        items: &mut OutputItems,
        out: &mut Vec<u8>,
    ) -> Result<(), ResponseError> {
        let Some(call) = self.calls.last_mut() else {
            return Ok(());
        };
        let tool = call.tool.and_then(|tool| self.tools.get(tool));
        let is_function = tool.is_none_or(|tool| tool.kind == ToolKind::Function);
        if is_function && !call.is_done && call.item.is_none() && !call.id.is_empty() && !call.name.is_empty()
        {
            call.write_arguments_delta(tool, items, out)?;
        }
        Ok(())
    }

    /// Ends all open calls. `cut` is whether the last one may be truncated; only a function's call is sent truncated.
    pub(super) fn finish(
        &mut self,
        cut: bool,
        items: &mut OutputItems,
        out: &mut Vec<u8>,
    ) -> Result<(), ResponseError> {
        for (number, call) in self
            .calls
            .iter_mut()
            .enumerate()
            .filter(|(_, call)| !call.is_done)
        {
            if call.name.is_empty() {
                return Err(ResponseError::Malformed("a tool call without a name"));
            }
            if call.id.is_empty() {
                call.id = format!("call_{}_{number}", items.id_stem());
            }
            let tool = call.tool.and_then(|tool| self.tools.get(tool));
            let kind = tool.map_or(ToolKind::Function, |tool| tool.kind);
            match kind {
                _ if call.progress.is_complete() || call.progress.is_empty() => {}
                ToolKind::Custom if !cut => {}
                _ if !cut => return Err(INVALID_ARGUMENTS),
                ToolKind::Function => {
                    call.write_arguments_delta(tool, items, out)?;
                    call.finish_function("incomplete", tool, items, out);
                    continue;
                }
                _ => continue,
            }
            if call.progress.is_empty() && kind != ToolKind::Custom {
                call.arguments = "{}".to_owned();
                call.sent_len = 0;
            }
            call.write_complete_call(tool, items, out)?;
        }
        Ok(())
    }
}

impl Call {
    /// Returns whether the name is complete: the arguments come after it, or the client knows the name.
    fn has_complete_name(&self) -> bool {
        !self.name.is_empty() && (!self.progress.is_empty() || self.item.is_some())
    }

    fn extend_arguments(&mut self, text: &str, items: &mut OutputItems) -> Result<(), ResponseError> {
        if self.progress.is_empty() && text == "null" {
            return Ok(());
        }
        self.progress.push(text);
        self.arguments.push_str(text);
        items.count_retained(text.len())
    }

    /// Writes all available content of a call to the client.
    fn write_available(
        &mut self,
        tool: Option<&ToolMapping>,
        items: &mut OutputItems,
        out: &mut Vec<u8>,
    ) -> Result<(), ResponseError> {
        let kind = tool.map_or(ToolKind::Function, |tool| tool.kind);
        if self.progress.is_invalid() && kind != ToolKind::Custom {
            return Err(INVALID_ARGUMENTS);
        }
        if kind == ToolKind::Function {
            self.write_arguments_delta(tool, items, out)?;
        }
        if self.progress.is_complete() {
            return self.write_complete_call(tool, items, out);
        }
        Ok(())
    }

    fn item<'c>(&'c self, id: &'c str, kind: ToolKind, tool: Option<&'c ToolMapping>) -> CallItem<'c> {
        CallItem {
            kind,
            tool,
            id,
            call_id: &self.id,
            name: &self.name,
        }
    }

    /// Writes the new part of a function's arguments.
    fn write_arguments_delta(
        &mut self,
        tool: Option<&ToolMapping>,
        items: &mut OutputItems,
        out: &mut Vec<u8>,
    ) -> Result<(), ResponseError> {
        if self.item.is_none() {
            let index = items.next_index()?;
            let id = items.item_id(id_prefix(ToolKind::Function), index);
            let item = self.item(&id, ToolKind::Function, tool);
            items.write_added(index, &item.write("in_progress", b",\"arguments\":\"\""), out);
            self.item = Some((index, id));
        }
        let (Some((index, id)), Some(news)) = (&self.item, self.arguments.get(self.sent_len..)) else {
            return Ok(());
        };
        if !news.is_empty() {
            let of = EventTarget {
                id,
                index: *index,
                part: None,
            };
            items.write_targeted_event("response.function_call_arguments.delta", of, out, |out| {
                write_string_member("delta", news, out)
            });
        }
        self.sent_len = self.arguments.len();
        Ok(())
    }

    /// Ends a function's call.
    fn finish_function(
        &mut self,
        status: &str,
        tool: Option<&ToolMapping>,
        items: &mut OutputItems,
        out: &mut Vec<u8>,
    ) {
        self.is_done = true;
        let Some((index, id)) = self.item.take() else {
            return;
        };
        let arguments = std::mem::take(&mut self.arguments);
        let of = EventTarget {
            id: &id,
            index,
            part: None,
        };
        items.write_targeted_event("response.function_call_arguments.done", of, out, |out| {
            write_string_member("arguments", &arguments, out);
        });
        let mut members = Vec::with_capacity(arguments.len() + 16);
        write_string_member("arguments", &arguments, &mut members);
        let item = self.item(&id, ToolKind::Function, tool).write(status, &members);
        items.finish_item(index, item, out);
    }

    /// Writes the rest of a complete call, or all of it.
    fn write_complete_call(
        &mut self,
        tool: Option<&ToolMapping>,
        items: &mut OutputItems,
        out: &mut Vec<u8>,
    ) -> Result<(), ResponseError> {
        let kind = tool.map_or(ToolKind::Function, |tool| tool.kind);
        let decoded = match kind {
            ToolKind::Function => None,
            _ => {
                let quoted = ["\"", &self.arguments, "\""].concat();
                Some(serde_json::from_str::<String>(&quoted).map_err(|_| INVALID_ARGUMENTS)?)
            }
        };
        let members = match (kind, &decoded) {
            (ToolKind::Custom, Some(arguments)) => {
                let mut members = b",\"input\":".to_vec();
                write_string(&mut members, &custom_input(arguments));
                Some(members)
            }
            (_, Some(arguments)) => openai_members(kind, arguments),
            _ => None,
        };
        // A call that does not fit its tool is sent as a call of a function.
        let Some(members) = members else {
            self.write_arguments_delta(tool, items, out)?;
            self.finish_function("completed", tool, items, out);
            return Ok(());
        };
        let index = items.next_index()?;
        let id = items.item_id(id_prefix(kind), index);
        items.count_retained(members.len())?;
        self.is_done = true;
        self.arguments = String::new();
        let item = self.item(&id, kind, tool);
        if kind == ToolKind::Custom {
            items.write_added(index, &item.write("in_progress", b",\"input\":\"\""), out);
            let input = members.get(",\"input\":".len()..).unwrap_or_default();
            let of = EventTarget {
                id: &id,
                index,
                part: None,
            };
            for (event, name) in [
                ("response.custom_tool_call_input.delta", ",\"delta\":"),
                ("response.custom_tool_call_input.done", ",\"input\":"),
            ] {
                items.write_targeted_event(event, of, out, |out| {
                    write_json(out, name);
                    out.extend_from_slice(input);
                });
            }
        } else {
            items.write_added(index, &item.write("in_progress", &members), out);
        }
        items.finish_item(index, item.write("completed", &members), out);
        Ok(())
    }
}

/// Appends a string member with a comma before it. `inside` is JSON-escaped and without quotes.
pub(super) fn write_string_member(name: &str, inside: &str, out: &mut Vec<u8>) {
    for piece in [",\"", name, "\":\"", inside, "\""] {
        write_json(out, piece);
    }
}

/// Returns whether a fragment begins another call than the latest one with its index: it has
/// another id, or has arguments although the latest call's arguments are complete.
fn starts_new_call(call: &Call, fragment: &ToolCall<'_>, arguments: Arguments<'_>) -> bool {
    if fragment.name().is_none() {
        return false;
    }
    match fragment.id() {
        Some(id) if !call.id.is_empty() => id != call.id,
        _ => call.progress.is_complete() && !matches!(arguments, Arguments::None),
    }
}
