//! The blocks of a streamed Message: one is open at a time, and their indexes have no gaps. A chat stream may mix what
//! belongs to several, so that all but the open one are held.

use std::collections::VecDeque;

use super::arguments::Progress;
use super::block_events::{put_call, put_delta, put_start, put_stop};
use super::chat::{Arguments, Spoken, ToolCall};
use super::json::put;
use super::sealed::Sealed;
use super::stop::Held;
use crate::call_name::join;
use proofgate_dialect::AnswerError;
use proofgate_dialect::json::write_string;

/// Bytes that are held of a stream: names and ids of its calls, and what waits for a block to close.
const MOST_HELD: usize = 1 << 20;

/// Calls of tools in one answer.
const MOST_CALLS: usize = 128;

/// Blocks that wait for others to close.
const MOST_WAITING: usize = 256;

/// What has come of an answer, and which of it has been written.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// Those that are not closed, in their order; the first may be open.
    waiting: VecDeque<Block>,
    calls: Vec<Call>,
    /// Index of the open block, or of the next one.
    index: u64,
    held: usize,
    named: usize,
    said: u64,
    torso: bool,
    refusal: bool,
}

#[derive(Debug)]
struct Block {
    kind: Kind,
    open: bool,
    /// What stands between quotes and has not been written.
    held: String,
    /// The signature of thinking that is over.
    signature: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Thinking,
    Text,
    /// A call, by its number.
    Call(usize),
}

#[derive(Debug, Default)]
struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    progress: Progress,
    closed: bool,
}

impl Call {
    /// Whether the name is all there: what the tool is called with comes after it.
    fn is_named(&self) -> bool {
        !self.name.is_empty() && !self.progress.is_empty()
    }
}

impl Blocks {
    /// Takes a piece of thinking or text.
    pub(super) fn push(&mut self, piece: Spoken<'_>, out: &mut Vec<u8>) -> Result<(), AnswerError> {
        let (kind, text) = match piece {
            Spoken::Thinking(text) => (Kind::Thinking, text),
            Spoken::Text(text) => (Kind::Text, text),
            Spoken::Refusal(text) => {
                self.refusal = true;
                (Kind::Text, text)
            }
            Spoken::Sealed(sealed) => return self.seal(sealed, out),
        };
        let is_over = |last: &Block| last.kind != kind || last.signature.is_some();
        if self.waiting.back().is_none_or(is_over) {
            self.wait(kind);
        }
        if let Some(block) = self.waiting.back_mut() {
            block.held.push_str(text);
            self.hold(text);
        }
        self.advance(out)
    }

    /// Takes a fragment of a call.
    pub(super) fn call(&mut self, fragment: &ToolCall<'_>, out: &mut Vec<u8>) -> Result<(), AnswerError> {
        let arguments = fragment.arguments()?;
        let number = self.number_of(fragment, arguments)?;
        let Some(call) = self.calls.get_mut(number) else {
            return Ok(());
        };
        if let Some(id) = fragment.id().filter(|_| call.id.is_empty() && !call.closed) {
            call.id.push_str(id);
            self.named = self.named.saturating_add(id.len());
        }
        if let Some(name) = fragment.name().filter(|_| !call.is_named()) {
            join(&mut call.name, name);
            self.named = self.named.saturating_add(name.len());
        }
        match arguments {
            Arguments::None => {}
            Arguments::String(text) => self.extend(number, text)?,
            Arguments::Object(json) => {
                let mut quoted = Vec::with_capacity(json.len().saturating_mul(2));
                write_string(&mut quoted, json);
                let quoted = String::from_utf8(quoted).unwrap_or_default();
                self.extend(number, quoted.trim_matches('"'))?;
            }
        }
        self.advance(out)
    }

    /// Which call a fragment belongs to. Most have an index; some providers give all calls the same one, or none.
    fn number_of(&mut self, fragment: &ToolCall<'_>, arguments: Arguments<'_>) -> Result<usize, AnswerError> {
        let latest = match (fragment.index, fragment.id()) {
            (Some(index), _) => self.calls.iter().rposition(|call| call.index == Some(index)),
            (None, Some(id)) => self.calls.iter().rposition(|call| call.id == id),
            (None, None) => self.calls.len().checked_sub(1),
        };
        if let Some(number) = latest
            && let Some(call) = self.calls.get(number)
            && !begins_another(call, fragment, arguments)
        {
            return Ok(number);
        }
        if self.calls.len() >= MOST_CALLS {
            return Err(AnswerError::TooLarge);
        }
        let number = self.calls.len();
        self.calls.push(Call {
            index: fragment.index,
            ..Call::default()
        });
        self.wait(Kind::Call(number));
        Ok(number)
    }

    /// Takes a fragment of arguments.
    fn extend(&mut self, number: usize, text: &str) -> Result<(), AnswerError> {
        let Some(call) = self.calls.get_mut(number) else {
            return Ok(());
        };
        if call.progress.is_empty() && text == "null" {
            return Ok(());
        }
        call.progress.take(text);
        if call.progress.is_broken() {
            return Err(AnswerError::Malformed("the arguments of a tool call are invalid"));
        }
        // Only blanks can follow on a call that is closed.
        if let Some(block) = self
            .waiting
            .iter_mut()
            .find(|block| block.kind == Kind::Call(number))
        {
            block.held.push_str(text);
            self.hold(text);
        }
        Ok(())
    }

    fn hold(&mut self, text: &str) {
        self.held = self.held.saturating_add(text.len());
        self.said = self.said.saturating_add(text.len() as u64);
    }

    fn wait(&mut self, kind: Kind) {
        self.waiting.push_back(Block {
            kind,
            open: false,
            held: String::new(),
            signature: None,
        });
    }

    /// Takes the encrypted reasoning behind what was thought, with which a block of thinking is over.
    fn seal(&mut self, sealed: Sealed<'_>, out: &mut Vec<u8>) -> Result<(), AnswerError> {
        let is_open = |last: &Block| last.kind == Kind::Thinking && last.signature.is_none();
        if !self.waiting.back().is_some_and(is_open) {
            self.wait(Kind::Thinking);
        }
        let signature = sealed.signature();
        self.held = self.held.saturating_add(signature.len());
        if let Some(block) = self.waiting.back_mut() {
            block.signature = Some(signature);
        }
        self.advance(out)
    }

    /// Writes what can be written by now.
    fn advance(&mut self, out: &mut Vec<u8>) -> Result<(), AnswerError> {
        while let Some(block) = self.waiting.front() {
            let (ready, over) = match block.kind {
                Kind::Thinking | Kind::Text => (true, true),
                Kind::Call(number) => self.calls.get(number).map_or((true, true), |call| {
                    (!call.id.is_empty() && call.is_named(), call.progress.is_whole())
                }),
            };
            if !ready {
                break;
            }
            self.write("", out)?;
            if self.waiting.len() == 1 || !over {
                break;
            }
            self.close(out);
        }
        if self.held.saturating_add(self.named) > MOST_HELD || self.waiting.len() > MOST_WAITING {
            return Err(AnswerError::TooLarge);
        }
        Ok(())
    }

    /// Writes all that is left, at the end of the answer, whose id is `answer`. `cut` says whether the last call may be a torso.
    pub(super) fn finish(&mut self, answer: &str, cut: bool, out: &mut Vec<u8>) -> Result<Held, AnswerError> {
        while let Some(block) = self.waiting.front() {
            if let Kind::Call(number) = block.kind
                && let Some(call) = self.calls.get(number)
                && !call.progress.is_whole()
            {
                if !cut && !call.progress.is_empty() {
                    return Err(AnswerError::Malformed("the arguments of a tool call are invalid"));
                }
                // The last call may have been cut off before its first argument.
                self.torso |= cut && (!call.progress.is_empty() || self.waiting.len() == 1);
            }
            self.write(answer, out)?;
            self.close(out);
        }
        Ok(Held {
            calls: !self.calls.is_empty(),
            torso: self.torso,
            refusal: self.refusal,
        })
    }

    /// Writes what is held of the first block, and opens it before.
    fn write(&mut self, answer: &str, out: &mut Vec<u8>) -> Result<(), AnswerError> {
        let index = self.index;
        let Some(block) = self.waiting.front_mut() else {
            return Ok(());
        };
        if !std::mem::replace(&mut block.open, true) {
            match block.kind {
                Kind::Thinking => put_start(index, out, |out| {
                    put(
                        out,
                        "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}",
                    );
                }),
                Kind::Text => put_start(index, out, |out| put(out, "{\"type\":\"text\",\"text\":\"\"}")),
                Kind::Call(number) => {
                    let call = self.calls.get(number).filter(|call| !call.name.is_empty());
                    let call = call.ok_or(AnswerError::Malformed("a tool call without a name"))?;
                    put_start(index, out, |out| {
                        put_call([&call.id, &call.name], answer, number, out)
                    });
                }
            }
        }
        if !block.held.is_empty() {
            let (kind, field) = match block.kind {
                Kind::Thinking => ("thinking_delta", "thinking"),
                Kind::Text => ("text_delta", "text"),
                Kind::Call(_) => ("input_json_delta", "partial_json"),
            };
            put_delta(index, [kind, field, &block.held], out);
            self.held = self.held.saturating_sub(block.held.len());
            block.held.clear();
        }
        Ok(())
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        if let Some(block) = self.waiting.pop_front() {
            if let Kind::Call(number) = block.kind
                && let Some(call) = self.calls.get_mut(number)
            {
                call.closed = true;
            }
            if let Some(signature) = &block.signature {
                put_delta(self.index, ["signature_delta", "signature", signature], out);
                self.held = self.held.saturating_sub(signature.len());
            }
            put_stop(self.index, out);
            self.index = self.index.saturating_add(1);
        }
    }

    /// About how many tokens have come: one for every four bytes.
    pub(super) fn estimated_tokens(&self) -> u64 {
        self.said.div_ceil(4)
    }

    /// Whether nothing has come.
    pub(super) fn is_empty(&self) -> bool {
        self.said == 0 && self.calls.is_empty()
    }

    /// Whether something waits for a block to close.
    pub(super) fn holds(&self) -> bool {
        self.held > 0
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
