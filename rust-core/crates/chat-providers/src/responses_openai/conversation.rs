//! Builds the messages of a chat request from items. The assistant's texts and calls between two user messages are one
//! message, directly followed by the results of its calls, as chat completions require.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::responses_openai::content::{self, Part};
use crate::responses_openai::tools::write_json;
use crate::responses_openai::turn_reasoning::TurnReasoning;
use proofgate_dialect::json::write_string;

/// The text of a tool result whose content is in a user message.
const RESULT_IN_USER_MESSAGE: &str = "\"The result is in the next user message.\"";

/// A function call in the form that is sent.
pub(super) struct Call<'b> {
    pub(super) id: Cow<'b, str>,
    /// The function's name at the provider.
    pub(super) name: String,
    /// A JSON string.
    pub(super) arguments: Cow<'b, str>,
}

/// The assistant's content in one turn.
#[derive(Default)]
struct AssistantTurn<'b> {
    has_started: bool,
    /// The text. This and the refusal are JSON-escaped and without quotes.
    text: String,
    refusal: String,
    has_text: bool,
    calls: Vec<Call<'b>>,
    reasoning: TurnReasoning,
}

/// The messages so far.
pub(super) struct Conversation<'b> {
    /// Instructions, and system messages before all others, JSON-escaped and without quotes.
    system: String,
    messages: Vec<u8>,
    turn: AssistantTurn<'b>,
    /// Ids of the calls without a result so far.
    pending_calls: HashSet<Cow<'b, str>>,
    /// Messages that follow the results.
    deferred_messages: Vec<u8>,
    /// Images and files of results, for a user message if results can only be text.
    pending_media: Vec<Part<'b>>,
    text_only_results: bool,
}

/// Appends the comma before another element, unless it is the first.
fn write_separator(out: &mut Vec<u8>) {
    if !out.is_empty() {
        out.push(b',');
    }
}

impl<'b> Conversation<'b> {
    /// Creates an empty conversation. `results_are_texts` is whether a tool result can only be text.
    pub(super) fn new(results_are_texts: bool) -> Self {
        Conversation {
            system: String::new(),
            messages: Vec::new(),
            turn: AssistantTurn::default(),
            pending_calls: HashSet::new(),
            deferred_messages: Vec::new(),
            pending_media: Vec::new(),
            text_only_results: results_are_texts,
        }
    }

    /// Adds a system message. Some models accept only one system message, before all other
    /// messages.
    pub(super) fn push_system(&mut self, parts: &[Part<'_>]) {
        let mut text = Vec::new();
        content::write_texts(parts, &mut text);
        let text = String::from_utf8(text).unwrap_or_default();
        let inside = super::tools::unquoted(&text);
        if inside.is_empty() {
            return;
        }
        if self.messages.is_empty() && self.deferred_messages.is_empty() && !self.turn.has_started {
            if !self.system.is_empty() {
                self.system.push_str("\\n\\n");
            }
            self.system.push_str(inside);
            return;
        }
        let out = self.message_buffer();
        write_json(out, "{\"role\":\"system\",\"content\":");
        write_json(out, &text);
        out.push(b'}');
    }

    pub(super) fn push_user(&mut self, parts: &[Part<'_>]) {
        let out = self.message_buffer();
        write_json(out, "{\"role\":\"user\",\"content\":");
        content::write(parts, out);
        out.push(b'}');
    }

    /// Returns the buffer for a message that is not the assistant's: it follows the results of the assistant's calls.
    fn message_buffer(&mut self) -> &mut Vec<u8> {
        self.close_turn();
        let out = if self.pending_calls.is_empty() {
            &mut self.messages
        } else {
            &mut self.deferred_messages
        };
        write_separator(out);
        out
    }

    /// Returns the assistant's turn, and begins one if necessary.
    fn assistant_turn(&mut self) -> &mut AssistantTurn<'b> {
        if !self.turn.has_started {
            self.flush_deferred();
            self.turn.has_started = true;
        }
        &mut self.turn
    }

    /// Adds content of the assistant.
    pub(super) fn push_assistant(&mut self, parts: &[Part<'_>]) {
        let turn = self.assistant_turn();
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

    pub(super) fn reasoning(&mut self) -> &mut TurnReasoning {
        &mut self.assistant_turn().reasoning
    }

    pub(super) fn push_call(&mut self, call: Call<'b>) {
        self.assistant_turn().calls.push(call);
    }

    /// Adds the result of a call.
    pub(super) fn push_result(&mut self, id: &str, parts: Vec<Part<'b>>) {
        self.close_turn();
        let out = &mut self.messages;
        write_separator(out);
        write_json(out, "{\"role\":\"tool\",\"tool_call_id\":");
        write_string(out, id);
        write_json(out, ",\"content\":");
        let is_text = |part: &Part<'_>| !matches!(part, Part::Media(_));
        if parts.iter().all(is_text) {
            content::write_texts(&parts, out);
        } else if self.text_only_results {
            let (texts, shown): (Vec<_>, Vec<_>) = parts.into_iter().partition(is_text);
            match texts.is_empty() {
                true => write_json(out, RESULT_IN_USER_MESSAGE),
                false => content::write_texts(&texts, out),
            }
            self.pending_media.extend(shown);
        } else {
            content::write(&parts, out);
        }
        out.push(b'}');
        self.pending_calls.remove(id);
        if self.pending_calls.is_empty() {
            self.flush_deferred();
        }
    }

    /// Ends the results, and writes the messages that follow them.
    fn flush_deferred(&mut self) {
        self.pending_calls.clear();
        let shown = std::mem::take(&mut self.pending_media);
        if !shown.is_empty() {
            write_separator(&mut self.messages);
            write_json(&mut self.messages, "{\"role\":\"user\",\"content\":");
            // A single image is an array of parts too.
            content::write(&shown, &mut self.messages);
            self.messages.push(b'}');
        }
        if !self.deferred_messages.is_empty() {
            write_separator(&mut self.messages);
            self.messages.append(&mut self.deferred_messages);
        }
    }

    fn close_turn(&mut self) {
        if !self.turn.has_started {
            return;
        }
        let turn = std::mem::take(&mut self.turn);
        // Reasoning alone is not a turn.
        if !turn.has_text && turn.refusal.is_empty() && turn.calls.is_empty() {
            return;
        }
        write_separator(&mut self.messages);
        turn.write(&mut self.messages);
        self.pending_calls
            .extend(turn.calls.into_iter().map(|call| call.id));
    }

    /// Appends the member `messages`, with a comma before it.
    pub(super) fn write(&mut self, out: &mut Vec<u8>) {
        self.close_turn();
        self.flush_deferred();
        write_json(out, ",\"messages\":[");
        if !self.system.is_empty() {
            for piece in ["{\"role\":\"system\",\"content\":\"", &self.system, "\"}"] {
                write_json(out, piece);
            }
            if !self.messages.is_empty() {
                out.push(b',');
            }
        }
        out.append(&mut self.messages);
        out.push(b']');
    }
}

impl AssistantTurn<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        write_json(out, "{\"role\":\"assistant\",\"content\":");
        match self.has_text {
            true => {
                for piece in ["\"", &self.text, "\""] {
                    write_json(out, piece);
                }
            }
            false => write_json(out, "null"),
        }
        if !self.refusal.is_empty() {
            for piece in [",\"refusal\":\"", &self.refusal, "\""] {
                write_json(out, piece);
            }
        }
        self.reasoning.write(out);
        let mut before = ",\"tool_calls\":[";
        for call in &self.calls {
            write_json(out, std::mem::replace(&mut before, ","));
            write_json(out, "{\"id\":");
            let id = out.len();
            write_string(out, &call.id);
            let id = String::from_utf8_lossy(out.get(id..).unwrap_or_default()).into_owned();
            write_json(out, ",\"type\":\"function\",\"function\":{\"name\":");
            write_string(out, &call.name);
            write_json(out, ",\"arguments\":");
            write_json(out, &call.arguments);
            out.push(b'}');
            self.reasoning.write_call_member(&id, out);
            out.push(b'}');
        }
        write_json(out, if self.calls.is_empty() { "}" } else { "]}" });
    }
}
