//! Reads the tools of a request to determine whether the client or the provider runs them.

use std::ops::Range;

use proofgate_json::{Event, equals_ignore_case};
use proofgate_policy::Scope;

use super::integer;
use super::walk::Walk;
use crate::bad_request::{BadRequest, Field};
use crate::dialect::{Dialect, Family};
use crate::field_names::{KeyMeaning, is_free_form, key_meaning};
use crate::hosted_tools::{HostedTool, MAX_HOSTED_TOOLS, is_client_tool};
use crate::passages::PassageStart;

/// The field of Anthropic's tools that limits their calls.
const MAX_USES: &str = "max_uses";

/// A container stored at the provider, by its id, or the settings of a new one (openai-python 2,
/// `types/responses/tool_param.py`).
const CONTAINER: &str = "container";
/// The fields of OpenAI's tools that set where they run; they may refer to content stored at the provider.
const LOCATION_FIELDS: [&str; 2] = [CONTAINER, "environment"];
const STORED_LOCATION_FIELDS: [&str; 2] = ["container_id", "file_ids"];

/// The call limit of a tool.
struct MaxUsesField {
    max: Result<Option<u64>, BadRequest>,
    /// The range of `null`, if that is its value.
    null_range: Option<Range<usize>>,
    /// Whether a name differs from the field only in case.
    is_ambiguous: bool,
}

impl Default for MaxUsesField {
    fn default() -> Self {
        MaxUsesField {
            max: Ok(None),
            null_range: None,
            is_ambiguous: false,
        }
    }
}

impl<'b> Walk<'b, '_, '_> {
    /// Collects the text of tools, and records the hosted ones.
    pub(super) fn read_tools(&mut self, event: Event<'b>) -> Result<(), BadRequest> {
        match event {
            Event::ArrayStart => {}
            // Google's parsers accept a single element in place of an array.
            Event::ObjectStart => return self.read_tool(None),
            _ => return self.collect(event, KeyMeaning::Field),
        }
        for index in 0.. {
            match self.reader.read_event()? {
                Event::ArrayEnd => break,
                Event::ObjectStart => self.read_tool(Some(index))?,
                other => self.collect(other, KeyMeaning::Field)?,
            }
        }
        Ok(())
    }

    fn read_tool(&mut self, index: Option<usize>) -> Result<(), BadRequest> {
        let description = self.text.start_message(Scope::ToolDescription, "tools", index);
        let begin = self.reader.offset() - 1;
        let mut kind = None;
        let mut calls = MaxUsesField::default();
        let (mut hosted_field, mut has_client_field) = (None, false);
        while let Event::Key(key) = self.reader.read_event()? {
            let name = key.decode(&mut self.key_buffer);
            let (meaning, is_type) = (key_meaning(name), name == "type");
            let is_of_calls = name == MAX_USES;
            calls.is_ambiguous |= !is_of_calls && equals_ignore_case(name, MAX_USES);
            let runs_in = LOCATION_FIELDS.into_iter().find(|field| *field == name);
            let is_of_client = self.dialect.is_field_of_client_tools(name);
            let is_free = is_free_form(name);
            let are_many = matches!(name, "functionDeclarations" | "function_declarations");
            if !is_type && equals_ignore_case(name, "type") {
                return Err(BadRequest::AmbiguousName("type"));
            }
            let field = (!is_of_client).then(|| name.to_owned());
            if meaning == KeyMeaning::Unknown {
                self.text.push_key(key);
            }
            let value = self.reader.read_event()?;
            if is_type && let Event::String(said) = value {
                kind = Some(said.decode(&mut self.key_buffer).to_owned());
            }
            if is_of_calls {
                calls.max = integer(value, Field::MaxUses);
                calls.null_range = (value == Event::Null).then(|| self.last_word_range("null"));
            }
            if value != Event::Null {
                has_client_field |= is_of_client;
                hosted_field = hosted_field.or(field);
            }
            self.is_free_form = is_free;
            match (value, runs_in.filter(|_| self.dialect.uses_responses_format())) {
                (_, Some(field)) => self.read_tool_location(field, value, meaning)?,
                (Event::ArrayStart, None) if are_many => self.read_functions(description)?,
                (_, None) => self.collect(value, meaning)?,
            }
            self.is_free_form = false;
        }
        self.note_tool(begin, kind, hosted_field, has_client_field, calls)
    }

    /// Reads where a provider is to run a tool: in a new container or in a stored one with all its
    /// content, and with which stored files.
    fn read_tool_location(
        &mut self,
        field: &'static str,
        value: Event<'b>,
        under: KeyMeaning,
    ) -> Result<(), BadRequest> {
        if value != Event::ObjectStart {
            let kept = (field == CONTAINER && matches!(value, Event::String(_))).then_some(CONTAINER);
            self.note_stored_reference(kept, value)?;
            return self.collect(value, under);
        }
        while let Event::Key(key) = self.reader.read_event()? {
            let name = key.decode(&mut self.key_buffer);
            let meaning = key_meaning(name);
            let kept = STORED_LOCATION_FIELDS
                .into_iter()
                .find(|kept| equals_ignore_case(name, kept));
            if meaning == KeyMeaning::Unknown {
                self.text.push_key(key);
            }
            let value = self.reader.read_event()?;
            if kept.is_none() || value != Event::ArrayStart {
                self.note_stored_reference(kept, value)?;
                self.collect(value, meaning)?;
                continue;
            }
            loop {
                match self.reader.read_event()? {
                    Event::ArrayEnd => break,
                    id => {
                        self.note_stored_reference(kept, id)?;
                        self.collect(id, meaning)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Collects the functions that one of Google's tools declares, after the start of their array; each is its own
    /// message.
    fn read_functions(&mut self, tool: PassageStart) -> Result<(), BadRequest> {
        loop {
            match self.reader.read_event()? {
                Event::ArrayEnd => break,
                function => {
                    self.text.start_nested_message(Scope::ToolDescription, tool);
                    self.collect(function, KeyMeaning::Field)?;
                }
            }
        }
        self.text.resume_message(tool);
        Ok(())
    }

    /// Records who runs a tool that begins at `begin` and ends at the current offset.
    fn note_tool(
        &mut self,
        begin: usize,
        kind: Option<String>,
        hosted_field: Option<String>,
        has_client_field: bool,
        calls: MaxUsesField,
    ) -> Result<(), BadRequest> {
        let range = begin..self.reader.offset();
        let tool = self.body.get(range.clone()).unwrap_or_default();
        let hosted = match (kind, hosted_field) {
            (_, Some(field)) => Some(field),
            (Some(kind), None) => {
                let dialect = match self.dialect.uses_responses_format() {
                    true => Dialect::Responses,
                    false => self.dialect,
                };
                (!is_client_tool(dialect, &kind, tool)).then_some(kind)
            }
            (None, None) => None,
        };
        let Some(hosted) = hosted else {
            self.tools.has_client_tools = true;
            return Ok(());
        };
        // An object that defines both client and hosted tools cannot be removed.
        let is_mixed = has_client_field && self.dialect.family() == Family::Google;
        if is_mixed || self.tools.hosted.len() == MAX_HOSTED_TOOLS {
            return Err(BadRequest::UnsupportedTool);
        }
        let mut tool = HostedTool::new(&hosted, range);
        if self.dialect.family() == Family::Anthropic {
            if calls.is_ambiguous {
                return Err(BadRequest::AmbiguousName(MAX_USES));
            }
            tool = tool.with_max_calls(calls.max?, calls.null_range);
        }
        self.tools.hosted.push(tool);
        Ok(())
    }

    /// Reads a member of the body that begins at `begin` and enables a hosted tool of this kind.
    pub(super) fn note_hosted_tool(
        &mut self,
        kind: &'static str,
        begin: usize,
        event: Event<'b>,
    ) -> Result<(), BadRequest> {
        if event == Event::Null {
            return Ok(());
        }
        self.collect(event, KeyMeaning::Field)?;
        let range = begin..self.reader.offset();
        self.tools.hosted.push(HostedTool::from_member(kind, range));
        Ok(())
    }
}
