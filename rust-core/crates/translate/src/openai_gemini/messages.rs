use std::borrow::Cow;
use std::collections::HashMap;

use crate::Untranslatable;
use crate::constraints::{Constraint, has};
use crate::field::{Field, Losses};
use crate::openai_gemini::parts::{self, Kinds, next, write_text};

/// Who speaks in a turn of Gemini's; what tools return is the user's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speaker {
    User,
    Model,
}

/// The messages of a request as Gemini takes them: instructions apart, and turns that alternate.
#[derive(Debug, Default)]
pub(super) struct Conversation<'b> {
    /// The parts of `systemInstruction`, joined by commas.
    pub instructions: Vec<u8>,
    /// The turns that have ended, joined by commas.
    pub contents: Vec<u8>,
    /// Who speaks in the turn at hand, and its parts. Results of functions come first among them: Gemini wants them right
    /// behind the calls.
    speaker: Option<Speaker>,
    results: Vec<u8>,
    parts: Vec<u8>,
    /// Names of the functions that were called, as JSON, by the ids of the calls: Gemini wants the name again with the result.
    called: HashMap<Cow<'b, str>, &'b str>,
    /// Whether the model refuses calls without a signature.
    needs_signatures: bool,
}

/// What Google documents for calls that have no signature, because another model made them or a client lost it
/// (ai.google.dev, Thought signatures, FAQ).
const NO_SIGNATURE: &str = r#""skip_thought_signature_validator""#;

/// The members of a message.
#[derive(Default)]
struct Message<'b, 'p> {
    role: Option<Cow<'b, str>>,
    content: Option<Field<'b, 'p>>,
    refusal: Option<&'b str>,
    reasoning: Option<&'b str>,
    calls: Option<Field<'b, 'p>>,
    answers: Option<Field<'b, 'p>>,
    signature: Option<&'b str>,
    images: Option<Field<'b, 'p>>,
}

impl<'b> Conversation<'b> {
    /// One that has not begun, with this model.
    pub fn new(model: &str) -> Self {
        Conversation {
            needs_signatures: has(model, Constraint::SignedCalls),
            ..Conversation::default()
        }
    }

    /// Takes the body's `messages`.
    pub fn read(&mut self, field: &Field<'b, '_>, losses: &mut Losses) -> Result<(), Untranslatable> {
        for (index, message) in field.elements()?.into_iter().enumerate() {
            self.message(&field.element(index, message), losses)?;
        }
        Ok(())
    }

    fn message(&mut self, field: &Field<'b, '_>, losses: &mut Losses) -> Result<(), Untranslatable> {
        let members = field.members()?;
        let mut message = Message::default();
        let is_of_a_tool = members
            .iter()
            .any(|(name, value)| name == "role" && value.get() == r#""tool""#);
        for (name, value) in &members {
            let member = field.member(name, value);
            match &**name {
                "role" => message.role = Some(member.text()?),
                "content" => message.content = Some(member),
                "refusal" => message.refusal = Some(member.literal()?),
                "reasoning_content" => message.reasoning = Some(member.literal()?),
                "tool_calls" => message.calls = Some(member),
                "extra_content" => message.signature = signature(&member, losses)?,
                "tool_call_id" => message.answers = Some(member),
                "images" => message.images = Some(member),
                // The name of a tool is known from the call that its result answers.
                "name" if is_of_a_tool => {}
                "name" => losses.lose("messages[].name", &member)?,
                "annotations" => losses.lose("messages[].annotations", &member)?,
                "audio" => losses.lose("messages[].audio", &member)?,
                "function_call" => losses.lose("messages[].function_call", &member)?,
                // The same again as `reasoning_content`, or what another provider thought.
                "reasoning" => losses.lose("messages[].reasoning", &member)?,
                "reasoning_details" => losses.lose("messages[].reasoning_details", &member)?,
                "cache_control" => losses.lose("cache_control", &member)?,
                _ => losses.unknown(&member)?,
            }
        }
        for (name, value) in &members {
            let speaker = match &**name {
                "refusal" | "reasoning_content" | "tool_calls" | "extra_content" | "images" => "assistant",
                "tool_call_id" => "tool",
                _ => continue,
            };
            if message.role.as_deref() != Some(speaker) {
                return Err(field
                    .member(name, value)
                    .refuse("A message of this role cannot have it."));
            }
        }
        match message.role.as_deref() {
            Some("system" | "developer") => match message.content {
                Some(content) => parts::write(&content, Kinds::TEXT, losses, &mut self.instructions),
                None => Ok(()),
            },
            Some("user") => {
                let mut said = Vec::new();
                if let Some(content) = message.content {
                    parts::write(&content, Kinds::USER, losses, &mut said)?;
                }
                self.say(Speaker::User, &said);
                Ok(())
            }
            Some("assistant") => self.assistant(&message, losses),
            Some("tool") => self.result(field, &message, losses),
            Some("function") => Err(field.refuse("Send a function's result with the role tool.")),
            _ => Err(field.refuse("Its role must be system, developer, user, assistant or tool.")),
        }
    }

    fn assistant(&mut self, message: &Message<'b, '_>, losses: &mut Losses) -> Result<(), Untranslatable> {
        let mut said = Vec::new();
        if let Some(reasoning) = message.reasoning.filter(|text| *text != "\"\"") {
            write_text(&mut said, reasoning);
            add_member(&mut said, "thought", "true");
        }
        let before = said.len();
        if let Some(content) = message.content {
            parts::write(&content, Kinds::ASSISTANT, losses, &mut said)?;
        }
        if let Some(refusal) = message.refusal.filter(|text| *text != "\"\"") {
            write_text(&mut said, refusal);
        }
        if let Some(images) = message.images {
            parts::write(&images, Kinds::USER, losses, &mut said)?;
        }
        if let Some(signature) = message.signature {
            // Gemini itself sends a signature that has no text to stand on with an empty one.
            if said.len() == before {
                write_text(&mut said, "\"\"");
            }
            add_member(&mut said, "thoughtSignature", signature);
        }
        if let Some(calls) = message.calls {
            for (index, call) in calls.elements()?.into_iter().enumerate() {
                self.call(&calls.element(index, call), index == 0, losses, &mut said)?;
            }
        }
        self.say(Speaker::Model, &said);
        Ok(())
    }

    fn call(
        &mut self,
        call: &Field<'b, '_>,
        is_first: bool,
        losses: &mut Losses,
        out: &mut Vec<u8>,
    ) -> Result<(), Untranslatable> {
        let members = call.members()?;
        let (mut id, mut function, mut signed) = (None, None, None);
        for (name, value) in &members {
            let member = call.member(name, value);
            match &**name {
                "id" => id = Some(member),
                "type" if member.json() == r#""function""# => {}
                "type" => return Err(member.refuse("The provider has no tools but functions.")),
                "function" => function = Some(member),
                "extra_content" => signed = signature(&member, losses)?,
                // Where it stood in a stream; some clients send it back.
                "index" => {}
                "cache_control" => losses.lose("cache_control", &member)?,
                _ => losses.unknown(&member)?,
            }
        }
        let id = id.ok_or_else(|| call.refuse("It must have an id."))?;
        let function = function.ok_or_else(|| call.refuse("It must have a function."))?;
        let (mut function_name, mut arguments) = (None, Cow::Borrowed(""));
        for (name, value) in function.members()? {
            let member = function.member(&name, value);
            match &*name {
                "name" => function_name = Some(member.literal()?),
                "arguments" => arguments = object(&member)?,
                _ => losses.unknown(&member)?,
            }
        }
        let name = function_name.ok_or_else(|| function.refuse("It must have a name."))?;
        next(out);
        out.extend_from_slice(br#"{"functionCall":{"id":"#);
        out.extend_from_slice(id.literal()?.as_bytes());
        out.extend_from_slice(br#","name":"#);
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(br#","args":"#);
        out.extend_from_slice(if arguments.is_empty() {
            b"{}"
        } else {
            arguments.as_bytes()
        });
        out.extend_from_slice(b"}}");
        // Of parallel calls the first alone is signed.
        let stand_in = (is_first && self.needs_signatures).then_some(NO_SIGNATURE);
        if let Some(signature) = signed.or(stand_in) {
            add_member(out, "thoughtSignature", signature);
        }
        self.called.insert(id.text()?, name);
        Ok(())
    }

    fn result(
        &mut self,
        field: &Field<'b, '_>,
        message: &Message<'b, '_>,
        losses: &mut Losses,
    ) -> Result<(), Untranslatable> {
        let id = message
            .answers
            .ok_or_else(|| field.refuse("It must have a tool_call_id."))?;
        let Some(&name) = self.called.get(&*id.text()?) else {
            return Err(id.refuse("No tool call before it has this id."));
        };
        let mut result = br#"{"functionResponse":{"id":"#.to_vec();
        result.extend_from_slice(id.literal()?.as_bytes());
        result.extend_from_slice(br#","name":"#);
        result.extend_from_slice(name.as_bytes());
        result.extend_from_slice(br#","response":{"output":"#);
        let mut media = Vec::new();
        match message.content {
            Some(content) => parts::write_result(&content, losses, &mut result, &mut media)?,
            None => result.extend_from_slice(b"\"\""),
        }
        result.extend_from_slice(b"}}}");
        self.turn_of(Speaker::User);
        next(&mut self.results);
        self.results.extend_from_slice(&result);
        if !media.is_empty() {
            next(&mut self.parts);
            self.parts.append(&mut media);
        }
        Ok(())
    }

    /// Adds these parts to the turn of a speaker; a message without parts begins none.
    fn say(&mut self, speaker: Speaker, parts: &[u8]) {
        if !parts.is_empty() {
            self.turn_of(speaker);
            next(&mut self.parts);
            self.parts.extend_from_slice(parts);
        }
    }

    fn turn_of(&mut self, speaker: Speaker) {
        if self.speaker != Some(speaker) {
            self.end_turn();
            self.speaker = Some(speaker);
        }
    }

    /// Ends the turn at hand, if there is one.
    pub fn end_turn(&mut self) {
        let Some(speaker) = self.speaker.take() else {
            return;
        };
        next(&mut self.contents);
        self.contents.extend_from_slice(match speaker {
            Speaker::User => br#"{"role":"user","parts":["#,
            Speaker::Model => br#"{"role":"model","parts":["#,
        });
        if !self.parts.is_empty() {
            next(&mut self.results);
        }
        self.contents.append(&mut self.results);
        self.contents.append(&mut self.parts);
        self.contents.extend_from_slice(b"]}");
    }
}

/// Adds a member to the object that `out` ends with.
fn add_member(out: &mut Vec<u8>, name: &str, json: &str) {
    if out.pop().is_some() {
        out.extend_from_slice(b",\"");
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\":");
        out.extend_from_slice(json.as_bytes());
        out.push(b'}');
    }
}

/// The object that a string holds as JSON, empty if the string is.
fn object<'b>(arguments: &Field<'b, '_>) -> Result<Cow<'b, str>, Untranslatable> {
    let text = arguments.text()?;
    let is_object =
        text.trim_start().starts_with('{') && serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
    if is_object || text.is_empty() {
        return Ok(text);
    }
    Err(arguments.refuse("It must be a JSON object in a string."))
}

/// The signature in an `extra_content`, as JSON.
fn signature<'b>(field: &Field<'b, '_>, losses: &mut Losses) -> Result<Option<&'b str>, Untranslatable> {
    let mut signature = None;
    for (name, value) in field.members()? {
        let vendor = field.member(&name, value);
        if !matches!(&*name, "google" | "vertex") {
            losses.unknown(&vendor)?;
            continue;
        }
        for (name, value) in vendor.members()? {
            let member = vendor.member(&name, value);
            match &*name {
                "thought_signature" => signature = Some(member.literal()?),
                _ => losses.unknown(&member)?,
            }
        }
    }
    Ok(signature)
}
