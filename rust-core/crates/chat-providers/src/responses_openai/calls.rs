//! The calls of an answer, which may come in fragments and one beside another.

use crate::anthropic_openai::arguments::Progress;
use crate::anthropic_openai::chat::{Arguments, ToolCall};
use crate::call_name::join;
use crate::custom_tools::input_of;
use crate::responses_openai::call_items::{CallItem, own_members, prefix};
use crate::responses_openai::events::{Items, Of};
use crate::responses_openai::tools::{inside, put};
use proofgate_dialect::AnswerError;
use proofgate_dialect::json::write_string;
use proofgate_dialect::{SentTool, ToolKind};

/// Calls of tools in one answer.
const MOST_CALLS: usize = 128;

const CUT: AnswerError = AnswerError::Malformed("the arguments of a tool call are invalid");

/// Those so far.
#[derive(Debug, Default)]
pub(super) struct Calls {
    calls: Vec<Call>,
    tools: Vec<SentTool>,
}

#[derive(Debug, Default)]
struct Call {
    /// The provider's number of it.
    index: Option<u64>,
    /// Insides of strings.
    id: String,
    name: String,
    arguments: String,
    /// How much of the arguments the client has been told.
    told: usize,
    /// Its tool among those that are no plain functions, once its name is known.
    tool: Option<usize>,
    progress: Progress,
    /// Its item's index and id, once that has begun.
    item: Option<(usize, String)>,
    is_done: bool,
}

impl Calls {
    pub(super) fn new(tools: Vec<SentTool>) -> Self {
        Calls {
            calls: Vec::new(),
            tools,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Takes a fragment: the number of its call, and whether it begins that.
    pub(super) fn number_of(
        &mut self,
        fragment: &ToolCall<'_>,
        items: &mut Items,
        out: &mut Vec<u8>,
    ) -> Result<(usize, bool), AnswerError> {
        let latest = match (fragment.index, fragment.id()) {
            (Some(index), _) => self.calls.iter().rposition(|call| call.index == Some(index)),
            (None, Some(id)) => self.calls.iter().rposition(|call| call.id == id),
            (None, None) => self.calls.len().checked_sub(1),
        };
        let arguments = fragment.arguments()?;
        if let Some(number) = latest
            && let Some(call) = self.calls.get(number)
            && !begins_another(call, fragment, arguments)
        {
            return Ok((number, false));
        }
        if self.calls.len() >= MOST_CALLS {
            return Err(AnswerError::TooLarge);
        }
        self.settle(items, out)?;
        self.calls.push(Call {
            index: fragment.index,
            ..Call::default()
        });
        Ok((self.calls.len() - 1, true))
    }

    /// Takes what a fragment says of its call.
    pub(super) fn take(
        &mut self,
        number: usize,
        fragment: &ToolCall<'_>,
        items: &mut Items,
        out: &mut Vec<u8>,
    ) -> Result<(), AnswerError> {
        let Some(call) = self.calls.get_mut(number) else {
            return Ok(());
        };
        if call.is_done {
            return Ok(());
        }
        if let Some(id) = fragment.id().filter(|_| call.id.is_empty()) {
            call.id.push_str(id);
            items.keep(id.len())?;
        }
        if let Some(name) = fragment.name().filter(|_| !call.is_named()) {
            join(&mut call.name, name);
            items.keep(name.len())?;
            call.tool = self.tools.iter().position(|tool| *tool.sent == *call.name);
        }
        match fragment.arguments()? {
            Arguments::None => {}
            Arguments::String(text) => call.extend(text, items)?,
            Arguments::Object(json) => {
                let mut quoted = Vec::with_capacity(json.len().saturating_mul(2));
                write_string(&mut quoted, json);
                let quoted = String::from_utf8(quoted).unwrap_or_default();
                call.extend(inside(&quoted), items)?;
            }
        }
        if call.id.is_empty() || !call.is_named() {
            return Ok(());
        }
        let tool = call.tool.and_then(|tool| self.tools.get(tool));
        call.advance(tool, items, out)
    }

    /// Tells what can be told of the latest call before another item begins: items are told in their order.
    pub(super) fn settle(&mut self, items: &mut Items, out: &mut Vec<u8>) -> Result<(), AnswerError> {
        let Some(call) = self.calls.last_mut() else {
            return Ok(());
        };
        let tool = call.tool.and_then(|tool| self.tools.get(tool));
        let is_function = tool.is_none_or(|tool| tool.kind == ToolKind::Function);
        if is_function && !call.is_done && call.item.is_none() && !call.id.is_empty() && !call.name.is_empty()
        {
            call.tell(tool, items, out)?;
        }
        Ok(())
    }

    /// Ends all that are open. `cut` says whether the last may be a torso, which only a function's call is told as.
    pub(super) fn finish(
        &mut self,
        cut: bool,
        items: &mut Items,
        out: &mut Vec<u8>,
    ) -> Result<(), AnswerError> {
        for (number, call) in self
            .calls
            .iter_mut()
            .enumerate()
            .filter(|(_, call)| !call.is_done)
        {
            if call.name.is_empty() {
                return Err(AnswerError::Malformed("a tool call without a name"));
            }
            if call.id.is_empty() {
                call.id = format!("call_{}_{number}", items.core());
            }
            let tool = call.tool.and_then(|tool| self.tools.get(tool));
            let kind = tool.map_or(ToolKind::Function, |tool| tool.kind);
            match kind {
                _ if call.progress.is_whole() || call.progress.is_empty() => {}
                ToolKind::Custom if !cut => {}
                _ if !cut => return Err(CUT),
                ToolKind::Function => {
                    call.tell(tool, items, out)?;
                    call.end("incomplete", tool, items, out);
                    continue;
                }
                _ => continue,
            }
            if call.progress.is_empty() && kind != ToolKind::Custom {
                call.arguments = "{}".to_owned();
                call.told = 0;
            }
            call.complete(tool, items, out)?;
        }
        Ok(())
    }
}

impl Call {
    /// Whether the name is all there: what the tool is called with comes after it, or the client knows the name.
    fn is_named(&self) -> bool {
        !self.name.is_empty() && (!self.progress.is_empty() || self.item.is_some())
    }

    fn extend(&mut self, text: &str, items: &mut Items) -> Result<(), AnswerError> {
        if self.progress.is_empty() && text == "null" {
            return Ok(());
        }
        self.progress.take(text);
        self.arguments.push_str(text);
        items.keep(text.len())
    }

    /// Tells the client what can be told by now.
    fn advance(
        &mut self,
        tool: Option<&SentTool>,
        items: &mut Items,
        out: &mut Vec<u8>,
    ) -> Result<(), AnswerError> {
        let kind = tool.map_or(ToolKind::Function, |tool| tool.kind);
        if self.progress.is_broken() && kind != ToolKind::Custom {
            return Err(CUT);
        }
        if kind == ToolKind::Function {
            self.tell(tool, items, out)?;
        }
        if self.progress.is_whole() {
            return self.complete(tool, items, out);
        }
        Ok(())
    }

    fn item<'c>(&'c self, id: &'c str, kind: ToolKind, tool: Option<&'c SentTool>) -> CallItem<'c> {
        CallItem {
            kind,
            tool,
            id,
            call_id: &self.id,
            name: &self.name,
        }
    }

    /// Tells what has come of a function's arguments.
    fn tell(
        &mut self,
        tool: Option<&SentTool>,
        items: &mut Items,
        out: &mut Vec<u8>,
    ) -> Result<(), AnswerError> {
        if self.item.is_none() {
            let index = items.open()?;
            let id = items.id(prefix(ToolKind::Function), index);
            let item = self.item(&id, ToolKind::Function, tool);
            items.added(index, &item.write("in_progress", b",\"arguments\":\"\""), out);
            self.item = Some((index, id));
        }
        let (Some((index, id)), Some(news)) = (&self.item, self.arguments.get(self.told..)) else {
            return Ok(());
        };
        if !news.is_empty() {
            let of = Of {
                id,
                index: *index,
                part: None,
            };
            items.event_of("response.function_call_arguments.delta", of, out, |out| {
                put_string("delta", news, out)
            });
        }
        self.told = self.arguments.len();
        Ok(())
    }

    /// Ends a function's call.
    fn end(&mut self, status: &str, tool: Option<&SentTool>, items: &mut Items, out: &mut Vec<u8>) {
        self.is_done = true;
        let Some((index, id)) = self.item.take() else {
            return;
        };
        let arguments = std::mem::take(&mut self.arguments);
        let of = Of {
            id: &id,
            index,
            part: None,
        };
        items.event_of("response.function_call_arguments.done", of, out, |out| {
            put_string("arguments", &arguments, out);
        });
        let mut members = Vec::with_capacity(arguments.len() + 16);
        put_string("arguments", &arguments, &mut members);
        let item = self.item(&id, ToolKind::Function, tool).write(status, &members);
        items.finish(index, item, out);
    }

    /// A call is whole: tells the rest of it, or all.
    fn complete(
        &mut self,
        tool: Option<&SentTool>,
        items: &mut Items,
        out: &mut Vec<u8>,
    ) -> Result<(), AnswerError> {
        let kind = tool.map_or(ToolKind::Function, |tool| tool.kind);
        let decoded = match kind {
            ToolKind::Function => None,
            _ => {
                let quoted = ["\"", &self.arguments, "\""].concat();
                Some(serde_json::from_str::<String>(&quoted).map_err(|_| CUT)?)
            }
        };
        let members = match (kind, &decoded) {
            (ToolKind::Custom, Some(arguments)) => {
                let mut members = b",\"input\":".to_vec();
                write_string(&mut members, &input_of(arguments));
                Some(members)
            }
            (_, Some(arguments)) => own_members(kind, arguments),
            _ => None,
        };
        // What is no call of such a tool is told as the call of a function that the model made.
        let Some(members) = members else {
            self.tell(tool, items, out)?;
            self.end("completed", tool, items, out);
            return Ok(());
        };
        let index = items.open()?;
        let id = items.id(prefix(kind), index);
        items.keep(members.len())?;
        self.is_done = true;
        self.arguments = String::new();
        let item = self.item(&id, kind, tool);
        if kind == ToolKind::Custom {
            items.added(index, &item.write("in_progress", b",\"input\":\"\""), out);
            let input = members.get(",\"input\":".len()..).unwrap_or_default();
            let of = Of {
                id: &id,
                index,
                part: None,
            };
            for (event, name) in [
                ("response.custom_tool_call_input.delta", ",\"delta\":"),
                ("response.custom_tool_call_input.done", ",\"input\":"),
            ] {
                items.event_of(event, of, out, |out| {
                    put(out, name);
                    out.extend_from_slice(input);
                });
            }
        } else {
            items.added(index, &item.write("in_progress", &members), out);
        }
        items.finish(index, item.write("completed", &members), out);
        Ok(())
    }
}

/// Appends a member that is a string, of which the inside is given, a comma before it.
pub(super) fn put_string(name: &str, inside: &str, out: &mut Vec<u8>) {
    for piece in [",\"", name, "\":\"", inside, "\""] {
        put(out, piece);
    }
}

/// Whether a fragment begins another call than the latest one of its index: it has another id, or it has arguments again
/// where those of the latest are whole.
fn begins_another(call: &Call, fragment: &ToolCall<'_>, arguments: Arguments<'_>) -> bool {
    if fragment.name().is_none() {
        return false;
    }
    match fragment.id() {
        Some(id) if !call.id.is_empty() => id != call.id,
        _ => call.progress.is_whole() && !matches!(arguments, Arguments::None),
    }
}
