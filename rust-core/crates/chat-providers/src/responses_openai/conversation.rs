//! The messages of a chat request, put together of items: what the assistant said and called between two of the user's is one
//! message, and the results of its calls stand right behind it, as chat demands.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::responses_openai::content::{self, Part};
use crate::responses_openai::thoughts::Thoughts;
use crate::responses_openai::tools::put;
use proofgate_dialect::json::write_string;

/// What a tool's result says of what only the user can show.
const SHOWN: &str = "\"The result is in the next user message.\"";

/// A call of a function, as it is sent.
pub(super) struct Call<'b> {
    pub(super) id: Cow<'b, str>,
    /// The function's name at the provider.
    pub(super) name: String,
    /// A JSON string.
    pub(super) arguments: Cow<'b, str>,
}

/// What the assistant says in one turn.
#[derive(Default)]
struct Turn<'b> {
    begun: bool,
    /// Insides of strings.
    text: String,
    refusal: String,
    has_text: bool,
    calls: Vec<Call<'b>>,
    thoughts: Thoughts,
}

/// The messages so far.
pub(super) struct Conversation<'b> {
    /// Instructions, and what the system says before all others: insides of a string.
    system: String,
    messages: Vec<u8>,
    turn: Turn<'b>,
    /// Ids of the calls whose results have not come.
    open: HashSet<Cow<'b, str>>,
    /// Messages that stand behind them.
    behind: Vec<u8>,
    /// Pictures and files of results, which the user shows, if only text is taken in results.
    shown: Vec<Part<'b>>,
    results_are_texts: bool,
}

/// Appends the comma before another element, if there is one before it.
fn next(out: &mut Vec<u8>) {
    if !out.is_empty() {
        out.push(b',');
    }
}

impl<'b> Conversation<'b> {
    /// One without a message. `results_are_texts`: whether a tool's result can be nothing else.
    pub(super) fn new(results_are_texts: bool) -> Self {
        Conversation {
            system: String::new(),
            messages: Vec::new(),
            turn: Turn::default(),
            open: HashSet::new(),
            behind: Vec::new(),
            shown: Vec::new(),
            results_are_texts,
        }
    }

    /// The system speaks. Some models take it only before all others, and once.
    pub(super) fn system(&mut self, parts: &[Part<'_>]) {
        let mut text = Vec::new();
        content::write_texts(parts, &mut text);
        let text = String::from_utf8(text).unwrap_or_default();
        let inside = super::tools::inside(&text);
        if inside.is_empty() {
            return;
        }
        if self.messages.is_empty() && self.behind.is_empty() && !self.turn.begun {
            if !self.system.is_empty() {
                self.system.push_str("\\n\\n");
            }
            self.system.push_str(inside);
            return;
        }
        let out = self.other();
        put(out, "{\"role\":\"system\",\"content\":");
        put(out, &text);
        out.push(b'}');
    }

    pub(super) fn user(&mut self, parts: &[Part<'_>]) {
        let out = self.other();
        put(out, "{\"role\":\"user\",\"content\":");
        content::write(parts, out);
        out.push(b'}');
    }

    /// Where a message goes that is not the assistant's: behind the results of its calls.
    fn other(&mut self) -> &mut Vec<u8> {
        self.end_turn();
        let out = if self.open.is_empty() {
            &mut self.messages
        } else {
            &mut self.behind
        };
        next(out);
        out
    }

    /// The assistant's turn, which begins if it is not its own.
    fn turn(&mut self) -> &mut Turn<'b> {
        if !self.turn.begun {
            self.settle();
            self.turn.begun = true;
        }
        &mut self.turn
    }

    /// The assistant says something.
    pub(super) fn assistant(&mut self, parts: &[Part<'_>]) {
        let turn = self.turn();
        let mut is_first = true;
        for part in parts {
            match part {
                Part::Refusal(text) => turn.refusal.push_str(text),
                part => {
                    let Some(text) = part.text() else { continue };
                    if std::mem::take(&mut is_first) && !turn.text.is_empty() && !text.is_empty() {
                        turn.text.push_str("\\n\\n");
                    }
                    turn.text.push_str(text);
                    turn.has_text = true;
                }
            }
        }
    }

    pub(super) fn thoughts(&mut self) -> &mut Thoughts {
        &mut self.turn().thoughts
    }

    pub(super) fn call(&mut self, call: Call<'b>) {
        self.turn().calls.push(call);
    }

    /// A call has this result.
    pub(super) fn result(&mut self, id: &str, parts: Vec<Part<'b>>) {
        self.end_turn();
        let out = &mut self.messages;
        next(out);
        put(out, "{\"role\":\"tool\",\"tool_call_id\":");
        write_string(out, id);
        put(out, ",\"content\":");
        let is_text = |part: &Part<'_>| !matches!(part, Part::Media(_));
        if parts.iter().all(is_text) {
            content::write_texts(&parts, out);
        } else if self.results_are_texts {
            let (texts, shown): (Vec<_>, Vec<_>) = parts.into_iter().partition(is_text);
            match texts.is_empty() {
                true => put(out, SHOWN),
                false => content::write_texts(&texts, out),
            }
            self.shown.extend(shown);
        } else {
            content::write(&parts, out);
        }
        out.push(b'}');
        self.open.remove(id);
        if self.open.is_empty() {
            self.settle();
        }
    }

    /// No more results come: what stands behind them follows.
    fn settle(&mut self) {
        self.open.clear();
        let shown = std::mem::take(&mut self.shown);
        if !shown.is_empty() {
            next(&mut self.messages);
            put(&mut self.messages, "{\"role\":\"user\",\"content\":");
            // One picture is an array of parts, too.
            content::write(&shown, &mut self.messages);
            self.messages.push(b'}');
        }
        if !self.behind.is_empty() {
            next(&mut self.messages);
            self.messages.append(&mut self.behind);
        }
    }

    fn end_turn(&mut self) {
        if !self.turn.begun {
            return;
        }
        let turn = std::mem::take(&mut self.turn);
        // Thoughts alone are no turn.
        if !turn.has_text && turn.refusal.is_empty() && turn.calls.is_empty() {
            return;
        }
        next(&mut self.messages);
        turn.write(&mut self.messages);
        self.open.extend(turn.calls.into_iter().map(|call| call.id));
    }

    /// Appends the member `messages`, a comma before it.
    pub(super) fn write(&mut self, out: &mut Vec<u8>) {
        self.end_turn();
        self.settle();
        put(out, ",\"messages\":[");
        if !self.system.is_empty() {
            for piece in ["{\"role\":\"system\",\"content\":\"", &self.system, "\"}"] {
                put(out, piece);
            }
            if !self.messages.is_empty() {
                out.push(b',');
            }
        }
        out.append(&mut self.messages);
        out.push(b']');
    }
}

impl Turn<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        put(out, "{\"role\":\"assistant\",\"content\":");
        match self.has_text {
            true => {
                for piece in ["\"", &self.text, "\""] {
                    put(out, piece);
                }
            }
            false => put(out, "null"),
        }
        if !self.refusal.is_empty() {
            for piece in [",\"refusal\":\"", &self.refusal, "\""] {
                put(out, piece);
            }
        }
        self.thoughts.write(out);
        let mut before = ",\"tool_calls\":[";
        for call in &self.calls {
            put(out, std::mem::replace(&mut before, ","));
            put(out, "{\"id\":");
            let id = out.len();
            write_string(out, &call.id);
            let id = String::from_utf8_lossy(out.get(id..).unwrap_or_default()).into_owned();
            put(out, ",\"type\":\"function\",\"function\":{\"name\":");
            write_string(out, &call.name);
            put(out, ",\"arguments\":");
            put(out, &call.arguments);
            out.push(b'}');
            self.thoughts.write_of_call(&id, out);
            out.push(b'}');
        }
        put(out, if self.calls.is_empty() { "}" } else { "]}" });
    }
}
