use serde_json::value::RawValue;

use crate::Untranslatable;
use crate::chat_place::Place;
use crate::openai_converse::chat::{Message, ToolCall};
use crate::openai_converse::content::{
    Blocks, Conversation, List, Speaker, missing, required, ttl, write_cache_point, write_text,
};
use crate::openai_converse::files::DocumentNames;
use crate::openai_converse::preferences::Preferences;
use crate::openai_converse::settings::is_claude;
use crate::openai_converse::text::{parse_list, write_all};
use crate::openai_converse::tool_ids::tool_use_id;
use crate::openai_converse::tools::tool_name;
use crate::openai_converse::turns::{Turn, Turns};

/// A message, its number in the request, and whose it is.
struct Said<'m, 'b> {
    place: Place,
    message: &'m Message<'b>,
    speaker: Speaker,
}

/// Writes `messages` and, if there are any instructions, `system`.
pub(super) fn write_messages(
    out: &mut Vec<u8>,
    messages: &[Message<'_>],
    model: &str,
    instruction: Option<&str>,
    preferences: &mut Preferences,
) -> Result<(), Untranslatable> {
    let mut all = Vec::with_capacity(messages.len());
    for (number, message) in messages.iter().enumerate() {
        let speaker = speaker(number, message)?;
        let place = Place::message(number);
        all.push(Said {
            place,
            message,
            speaker,
        });
    }
    let mut conversation = Conversation {
        preferences,
        document_names: DocumentNames::default(),
        wants_signatures: is_claude(model),
    };
    conversation.write_turns(&all, out)?;
    conversation.write_system(&all, instruction, out)
}

fn speaker(number: usize, message: &Message<'_>) -> Result<Speaker, Untranslatable> {
    Ok(
        match required(message.role.as_ref(), || format!("messages[{number}].role"))? {
            "system" | "developer" => Speaker::System,
            "user" => Speaker::User,
            "assistant" => Speaker::Assistant,
            "tool" => Speaker::Tool,
            _ => {
                let param = format!("messages[{number}].role");
                return Err(Untranslatable::new(
                    param,
                    "Converse has no counterpart of this role.",
                ));
            }
        },
    )
}

impl Conversation<'_> {
    fn write_turns(&mut self, all: &[Said<'_, '_>], out: &mut Vec<u8>) -> Result<(), Untranslatable> {
        write_all(out, &[r#""messages":["#]);
        let mut turns = Turns { out, speaker: None };
        for run in all.split_inclusive(|said| said.speaker == Speaker::Assistant) {
            // The user's side up to the assistant's next turn: what tools say stands first in it.
            for speaker in [Speaker::Tool, Speaker::User, Speaker::Assistant] {
                let (start, documents) = (turns.out.len(), self.document_names.count());
                for said in run.iter().filter(|said| said.speaker == speaker) {
                    self.write_turn(said, &mut turns)?;
                }
                if speaker == Speaker::User && self.document_names.count() > documents {
                    turns.introduce_documents(start);
                }
            }
        }
        if !turns.end() {
            let reason = "There is no message that says anything to the model.";
            return Err(Untranslatable::new("messages", reason));
        }
        Ok(())
    }

    fn write_system(
        &mut self,
        all: &[Said<'_, '_>],
        instruction: Option<&str>,
        out: &mut Vec<u8>,
    ) -> Result<(), Untranslatable> {
        let begin = out.len();
        write_all(out, &[r#","system":["#]);
        let mut blocks = List::new(out);
        let empty = blocks.length();
        for Said {
            place,
            message,
            speaker,
        } in all
        {
            if *speaker == Speaker::System {
                let before = blocks.length();
                self.check_fields(message, *place, *speaker)?;
                self.write_content(message.content, *place, *speaker, &mut blocks)?;
                if message.cache_control.is_some() && blocks.length() > before {
                    write_cache_point(ttl(message.cache_control.as_ref()), &mut blocks);
                }
            }
        }
        if let Some(instruction) = instruction {
            write_all(blocks.next(), &[r#"{"text":""#, instruction, "\"}"]);
        }
        if blocks.length() == empty {
            out.truncate(begin);
        } else {
            out.push(b']');
        }
        Ok(())
    }

    /// Writes what a message adds to the turn of its side.
    fn write_turn(&mut self, said: &Said<'_, '_>, turns: &mut Turns<'_>) -> Result<(), Untranslatable> {
        let Said {
            place,
            message,
            speaker,
        } = *said;
        self.check_fields(message, place, speaker)?;
        let side = if speaker == Speaker::Assistant {
            speaker
        } else {
            Speaker::User
        };
        let mut turn = Turn { turns, speaker: side };
        let before = turn.length();
        match speaker {
            Speaker::Tool => self.write_result(message, place, &mut turn)?,
            Speaker::Assistant => self.write_assistant(message, place, &mut turn)?,
            Speaker::User | Speaker::System => {
                self.write_content(message.content, place, speaker, &mut turn)?;
                if turn.length() == before {
                    let reason = "The message is blank, which Converse refuses.";
                    return Err(Untranslatable::new(place.field("content"), reason));
                }
            }
        }
        if message.cache_control.is_some() && turn.length() > before {
            write_cache_point(ttl(message.cache_control.as_ref()), &mut turn);
        }
        Ok(())
    }

    /// Looks at what a message has besides what its speaker says.
    fn check_fields(
        &mut self,
        message: &Message<'_>,
        place: Place,
        speaker: Speaker,
    ) -> Result<(), Untranslatable> {
        self.preferences
            .unknown(message.unknown.as_ref(), || place.field(""))?;
        // The name of a tool's message repeats that of its call.
        let name = message.name.filter(|_| speaker != Speaker::Tool);
        let mut without_counterpart = vec![
            (message.audio, "messages[].audio", "audio"),
            (message.function_call, "messages[].function_call", "function_call"),
            (name, "messages[].name", "name"),
            (message.annotations, "messages[].annotations", "annotations"),
            (message.extra_content, "messages[].extra_content", "extra_content"),
            (message.images, "messages[].images", "images"),
        ];
        if speaker != Speaker::Assistant {
            without_counterpart.extend([
                (message.tool_calls, "other fields", "tool_calls"),
                (message.refusal, "other fields", "refusal"),
                (message.reasoning_content, "other fields", "reasoning_content"),
                (message.reasoning, "other fields", "reasoning"),
                (message.reasoning_details, "other fields", "reasoning_details"),
            ]);
        }
        for (value, name, field) in without_counterpart {
            if let Some(value) = value {
                self.preferences.leave_out(name, value, || place.field(field))?;
            }
        }
        Ok(())
    }

    fn write_result(
        &mut self,
        message: &Message<'_>,
        place: Place,
        turn: &mut Turn<'_, '_>,
    ) -> Result<(), Untranslatable> {
        let id = required(message.tool_call_id.as_ref(), || place.field("tool_call_id"))?;
        let out = turn.next();
        write_all(
            out,
            &[
                r#"{"toolResult":{"toolUseId":""#,
                &tool_use_id(id),
                r#"","content":["#,
            ],
        );
        let cache_point = self.write_content(message.content, place, Speaker::Tool, &mut List::new(out))?;
        write_all(out, &["]}}"]);
        if let Some(ttl) = cache_point {
            write_cache_point(ttl, turn);
        }
        Ok(())
    }

    fn write_assistant(
        &mut self,
        message: &Message<'_>,
        place: Place,
        turn: &mut Turn<'_, '_>,
    ) -> Result<(), Untranslatable> {
        self.write_reasoning(message, place, turn)?;
        if message.content.is_some() {
            self.write_content(message.content, place, Speaker::Assistant, turn)?;
        }
        if message.refusal.is_some() {
            write_text(message.refusal, place, "refusal", turn)?;
        }
        let Some(calls) = message.tool_calls else {
            return Ok(());
        };
        let calls: Vec<ToolCall<'_>> = parse_list(calls, || place.field("tool_calls"))?;
        for (number, call) in calls.iter().enumerate() {
            let param = |field: &str| place.field(&format!("tool_calls[{number}]{field}"));
            self.write_call(call, param, turn.next())?;
        }
        Ok(())
    }

    fn write_call(
        &mut self,
        call: &ToolCall<'_>,
        param: impl Fn(&str) -> String,
        out: &mut Vec<u8>,
    ) -> Result<(), Untranslatable> {
        self.preferences.unknown(call.unknown.as_ref(), || param(""))?;
        for (value, name, field) in [
            (call.extra_content, "messages[].extra_content", ".extra_content"),
            (call.cache_control, "cache_control", ".cache_control"),
        ] {
            if let Some(value) = value {
                self.preferences.leave_out(name, value, || param(field))?;
            }
        }
        if call.kind.as_deref().is_some_and(|kind| kind != "function") {
            let reason = "Converse has no counterpart of a call of this type.";
            return Err(Untranslatable::new(param(".type"), reason));
        }
        let id = required(call.id.as_ref(), || param(".id"))?;
        let function = call
            .function
            .as_ref()
            .ok_or_else(|| missing(param(".function")))?;
        self.preferences
            .unknown(function.unknown.as_ref(), || param(".function"))?;
        let name = tool_name(function.name.as_ref(), || param(".function.name"))?;
        let arguments = function.arguments.as_deref().unwrap_or_default();
        let input = object(arguments).ok_or_else(|| {
            Untranslatable::new(
                param(".function.arguments"),
                "The arguments are not a JSON object.",
            )
        })?;
        write_all(
            out,
            &[
                r#"{"toolUse":{"toolUseId":""#,
                &tool_use_id(id),
                r#"","name":""#,
                name,
                r#"","input":"#,
                input,
                "}}",
            ],
        );
        Ok(())
    }
}

/// The JSON object that a text is; no text is an empty one.
fn object(text: &str) -> Option<&str> {
    if text.trim_ascii().is_empty() {
        return Some("{}");
    }
    let value: &RawValue = serde_json::from_str(text).ok()?;
    Some(value.get()).filter(|object| object.starts_with('{'))
}
