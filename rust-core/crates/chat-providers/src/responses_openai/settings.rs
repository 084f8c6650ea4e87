//! The settings of a request: the format, length and cost of its answer.

use crate::gemini_thoughts::write_include_thoughts;
use crate::responses_openai::tools::write_json;
use proofgate_dialect::UntranslatableRequest;
use proofgate_dialect::constraints::{Constraint, Effort, effort_for_level, has_constraint};
use proofgate_dialect::droppable_fields::OTHER_FIELDS;
use proofgate_dialect::field::{DroppedFields, Field};
use proofgate_dialect::json::write_string;
use proofgate_dialect::schema::can_be_strict;

/// Members of a chat request, each with a comma before it.
#[derive(Debug, Default)]
pub(super) struct Settings {
    pub(super) members: Vec<u8>,
    pub(super) parallel_tool_calls: Option<bool>,
    logprobs: bool,
}

impl Settings {
    fn push_member(&mut self, name: &str, json: &str) {
        for piece in [",\"", name, "\":", json] {
            write_json(&mut self.members, piece);
        }
    }

    /// Reads a field of the body if it is a setting; returns whether it is. `to_chat` is set if a provider of chat
    /// completions reads the request.
    pub(super) fn read(
        &mut self,
        name: &str,
        field: &Field<'_, '_>,
        to_chat: Option<&str>,
        losses: &mut DroppedFields,
    ) -> Result<bool, UntranslatableRequest> {
        match name {
            "max_output_tokens" => {
                let number = field.number()?;
                let is_old =
                    to_chat.is_some_and(|model| !has_constraint(model, Constraint::MaxCompletionTokens));
                self.push_member(
                    if is_old {
                        "max_tokens"
                    } else {
                        "max_completion_tokens"
                    },
                    number,
                );
            }
            "temperature" | "top_p" => {
                let number = field.number()?;
                match to_chat.is_some_and(|model| has_constraint(model, Constraint::DefaultSampling)) {
                    true => losses.drop_listed(name, field)?,
                    false => self.push_member(name, number),
                }
            }
            "top_logprobs" => {
                if field.number()? != "0" {
                    self.logprobs = true;
                    self.push_member(name, field.json());
                }
            }
            "include" => self.read_include(field, losses)?,
            "text" => self.read_text(field, losses)?,
            "parallel_tool_calls" => self.parallel_tool_calls = Some(field.boolean()?),
            "service_tier" => {
                if field.text()? != "auto" {
                    self.push_member(name, field.literal()?);
                }
            }
            "user" => self.push_member(name, field.literal()?),
            // Providers other than OpenAI may refuse fields that they do not know.
            "safety_identifier" | "prompt_cache_key" if to_chat.is_some() => {
                losses.drop_listed(name, field)?
            }
            "safety_identifier" | "prompt_cache_key" => self.push_member(name, field.literal()?),
            "stream_options" => {
                for (name, value) in field.members()? {
                    let option = field.member(&name, value);
                    match &*name {
                        "include_obfuscation" => {
                            losses.drop_listed("stream_options.include_obfuscation", &option)?
                        }
                        _ => losses.record_field(OTHER_FIELDS, &option),
                    }
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn read_include(
        &mut self,
        field: &Field<'_, '_>,
        losses: &mut DroppedFields,
    ) -> Result<(), UntranslatableRequest> {
        for (index, part) in field.elements()?.into_iter().enumerate() {
            match part.get() {
                // It is always returned.
                "\"reasoning.encrypted_content\"" => {}
                "\"message.output_text.logprobs\"" => self.logprobs = true,
                _ => losses.drop_listed("include", &field.element(index, part))?,
            }
        }
        Ok(())
    }

    /// Reads the body's `reasoning`. `to_chat` is as for [`read`](Settings::read); `shown` is the model, if it is one of
    /// Gemini's, which shows thoughts on request.
    pub(super) fn read_reasoning(
        &mut self,
        field: &Field<'_, '_>,
        to_chat: Option<&str>,
        shown: Option<&str>,
        has_tools: bool,
        losses: &mut DroppedFields,
    ) -> Result<(), UntranslatableRequest> {
        let shown = shown.filter(|model| !has_constraint(model, Constraint::NoThinking));
        let (mut level, mut shows) = (None, false);
        for (name, value) in field.members()? {
            let member = field.member(&name, value);
            match &*name {
                "effort" => {
                    self.read_effort(&member, to_chat, has_tools, losses)?;
                    level = Some(member.text()?);
                }
                "summary" if shown.is_some() => shows = true,
                "summary" => losses.drop_listed("reasoning.summary", &member)?,
                "generate_summary" => losses.drop_listed("reasoning.generate_summary", &member)?,
                "context" => losses.drop_listed("reasoning.context", &member)?,
                "mode" => losses.drop_listed("reasoning.mode", &member)?,
                _ => losses.record_field(OTHER_FIELDS, &member),
            }
        }
        if let Some(model) = shown.filter(|_| shows && level.as_deref() != Some("none")) {
            write_include_thoughts(model, level.is_some(), &mut self.members);
        }
        Ok(())
    }

    /// Reads the effort; a provider of chat completions receives an effort that its model has.
    fn read_effort(
        &mut self,
        field: &Field<'_, '_>,
        to_chat: Option<&str>,
        has_tools: bool,
        losses: &mut DroppedFields,
    ) -> Result<(), UntranslatableRequest> {
        let level = field.text()?;
        if to_chat.is_some_and(|model| rejects_effort(model, has_tools)) {
            return losses.drop_listed("reasoning_effort", field);
        }
        let said = match to_chat.and_then(|model| effort_for_level(model, &level)) {
            Some(Effort::Unsupported) => return losses.drop_listed("reasoning_effort", field),
            Some(Effort::Level(said)) => said,
            Some(Effort::Budget(_)) | None => &*level,
        };
        if said != level {
            losses.record_field("reasoning_effort", field);
        }
        write_json(&mut self.members, ",\"reasoning_effort\":");
        write_string(&mut self.members, said);
        Ok(())
    }

    fn read_text(
        &mut self,
        field: &Field<'_, '_>,
        losses: &mut DroppedFields,
    ) -> Result<(), UntranslatableRequest> {
        for (name, value) in field.members()? {
            let member = field.member(&name, value);
            match &*name {
                "format" => self.read_format(&member, losses)?,
                "verbosity" => losses.drop_listed("text.verbosity", &member)?,
                _ => losses.record_field(OTHER_FIELDS, &member),
            }
        }
        Ok(())
    }

    fn read_format(
        &mut self,
        format: &Field<'_, '_>,
        losses: &mut DroppedFields,
    ) -> Result<(), UntranslatableRequest> {
        let (mut kind, mut schema, mut strict) = (None, None, false);
        let mut members = Vec::new();
        for (name, value) in format.members()? {
            let member = format.member(&name, value);
            match &*name {
                "type" => kind = Some(member.text()?),
                "schema" if member.is_object() => schema = Some(member.json()),
                "schema" => return Err(member.error("It must be an object.")),
                "strict" => strict = member.boolean()?,
                "name" | "description" => {
                    for piece in ["\"", &*name, "\":", member.literal()?, ","] {
                        write_json(&mut members, piece);
                    }
                }
                _ => losses.record_field(OTHER_FIELDS, &member),
            }
        }
        match (kind.as_deref(), schema) {
            (Some("text"), _) => {}
            (Some("json_object"), _) => self.push_member("response_format", r#"{"type":"json_object"}"#),
            (Some("json_schema"), Some(schema)) => {
                self.push_member("response_format", r#"{"type":"json_schema","json_schema":{"#);
                self.members.append(&mut members);
                if strict && can_be_strict(schema) {
                    write_json(&mut self.members, "\"strict\":true,");
                }
                for piece in ["\"schema\":", schema, "}}"] {
                    write_json(&mut self.members, piece);
                }
            }
            (Some("json_schema"), None) => return Err(format.error("It must have a schema.")),
            _ => return Err(format.error("Its type must be text, json_object or json_schema.")),
        }
        Ok(())
    }

    /// Appends the members. `to_chat` is as for [`read`](Settings::read).
    pub(super) fn write(&mut self, to_chat: Option<&str>, has_tools: bool, out: &mut Vec<u8>) {
        if self.logprobs {
            self.push_member("logprobs", "true");
        }
        if to_chat.is_some_and(|model| rejects_effort(model, has_tools)) {
            self.push_member("reasoning_effort", "\"none\"");
        }
        // Parallel calls are the default, and some models refuse the field.
        if has_tools && self.parallel_tool_calls == Some(false) {
            self.push_member("parallel_tool_calls", "false");
        }
        out.append(&mut self.members);
    }
}

/// Returns whether a model accepts tools in chat completions only without an effort.
fn rejects_effort(model: &str, has_tools: bool) -> bool {
    has_tools && has_constraint(model, Constraint::ToolsWithoutEffort)
}
