//! The tools of a request, as far as it matters who runs them.

use std::ops::Range;

use proofgate_json::{Event, equals_but_for_case};
use proofgate_policy::Scope;

use super::integer;
use super::walk::Walk;
use crate::bad_request::{BadRequest, Field};
use crate::dialect::{Dialect, Family};
use crate::field_names::{Meaning, is_free, meaning};
use crate::hosted_tools::{HostedTool, MOST_HOSTED_TOOLS, is_of_client};
use crate::passages::Mark;

/// The field of Anthropic's tools that bounds their calls.
const MAX_USES: &str = "max_uses";

/// A container that the provider keeps, by its id, or how a new one is made (openai-python 2, `types/responses/tool_param.py`).
const CONTAINER: &str = "container";
/// The fields of OpenAI's tools that say where these are run, and what may be named in them of what the provider keeps.
const RUN_IN: [&str; 2] = [CONTAINER, "environment"];
const KEPT_IN_PLACES: [&str; 2] = ["container_id", "file_ids"];

/// What a tool says of how often it may be called.
struct Calls {
    most: Result<Option<u64>, BadRequest>,
    /// Where it says `null`.
    untold: Option<Range<usize>>,
    /// Whether a name is the field's but for its case.
    is_ambiguous: bool,
}

impl Default for Calls {
    fn default() -> Self {
        Calls {
            most: Ok(None),
            untold: None,
            is_ambiguous: false,
        }
    }
}

impl<'b> Walk<'b, '_, '_> {
    /// Takes the text of tools, and notes which of them the provider runs.
    pub(super) fn tools(&mut self, event: Event<'b>) -> Result<(), BadRequest> {
        match event {
            Event::ArrayStart => {}
            // Google's parsers take one element for a list of it.
            Event::ObjectStart => return self.tool(None),
            _ => return self.collect(event, Meaning::Field),
        }
        for index in 0.. {
            match self.reader.read()? {
                Event::ArrayEnd => break,
                Event::ObjectStart => self.tool(Some(index))?,
                other => self.collect(other, Meaning::Field)?,
            }
        }
        Ok(())
    }

    fn tool(&mut self, index: Option<usize>) -> Result<(), BadRequest> {
        let description = self.text.begin_message(Scope::ToolDescription, "tools", index);
        let begin = self.reader.offset() - 1;
        let mut kind = None;
        let mut calls = Calls::default();
        let (mut hosted_field, mut has_client_field) = (None, false);
        while let Event::Key(key) = self.reader.read()? {
            let name = key.decoded(&mut self.name);
            let (meaning, is_type) = (meaning(name), name == "type");
            let is_of_calls = name == MAX_USES;
            calls.is_ambiguous |= !is_of_calls && equals_but_for_case(name, MAX_USES);
            let runs_in = RUN_IN.into_iter().find(|field| *field == name);
            let is_of_client = self.dialect.is_field_of_client_tools(name);
            let is_free = is_free(name);
            let are_many = matches!(name, "functionDeclarations" | "function_declarations");
            if !is_type && equals_but_for_case(name, "type") {
                return Err(BadRequest::AmbiguousName("type"));
            }
            let field = (!is_of_client).then(|| name.to_owned());
            if meaning == Meaning::Unknown {
                self.text.push_key(key);
            }
            let value = self.reader.read()?;
            if is_type && let Event::String(said) = value {
                kind = Some(said.decoded(&mut self.name).to_owned());
            }
            if is_of_calls {
                calls.most = integer(value, Field::MaxUses);
                calls.untold = (value == Event::Null).then(|| self.behind("null"));
            }
            if value != Event::Null {
                has_client_field |= is_of_client;
                hosted_field = hosted_field.or(field);
            }
            self.is_free = is_free;
            match (value, runs_in.filter(|_| self.dialect.asks_as_responses())) {
                (_, Some(field)) => self.place(field, value, meaning)?,
                (Event::ArrayStart, None) if are_many => self.functions(description)?,
                (_, None) => self.collect(value, meaning)?,
            }
            self.is_free = false;
        }
        self.note_tool(begin, kind, hosted_field, has_client_field, calls)
    }

    /// Takes where a provider is to run a tool: in a container of its own, or one that it has kept with what others left in
    /// it, and with which of the files that it keeps.
    fn place(&mut self, field: &'static str, value: Event<'b>, under: Meaning) -> Result<(), BadRequest> {
        if value != Event::ObjectStart {
            let kept = (field == CONTAINER && matches!(value, Event::String(_))).then_some(CONTAINER);
            self.note_kept(kept, value)?;
            return self.collect(value, under);
        }
        while let Event::Key(key) = self.reader.read()? {
            let name = key.decoded(&mut self.name);
            let meaning = meaning(name);
            let kept = KEPT_IN_PLACES
                .into_iter()
                .find(|kept| equals_but_for_case(name, kept));
            if meaning == Meaning::Unknown {
                self.text.push_key(key);
            }
            let value = self.reader.read()?;
            if kept.is_none() || value != Event::ArrayStart {
                self.note_kept(kept, value)?;
                self.collect(value, meaning)?;
                continue;
            }
            loop {
                match self.reader.read()? {
                    Event::ArrayEnd => break,
                    id => {
                        self.note_kept(kept, id)?;
                        self.collect(id, meaning)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes functions that one tool of Google's declares, whose array has begun: each is a message of its own.
    fn functions(&mut self, tool: Mark) -> Result<(), BadRequest> {
        loop {
            match self.reader.read()? {
                Event::ArrayEnd => break,
                function => {
                    self.text.begin_within(Scope::ToolDescription, tool);
                    self.collect(function, Meaning::Field)?;
                }
            }
        }
        self.text.go_on(tool);
        Ok(())
    }

    /// Notes who runs a tool that begins at `begin` and ends where the walk is.
    fn note_tool(
        &mut self,
        begin: usize,
        kind: Option<String>,
        hosted_field: Option<String>,
        has_client_field: bool,
        calls: Calls,
    ) -> Result<(), BadRequest> {
        let range = begin..self.reader.offset();
        let tool = self.body.get(range.clone()).unwrap_or_default();
        let hosted = match (kind, hosted_field) {
            (_, Some(field)) => Some(field),
            (Some(kind), None) => {
                let dialect = match self.dialect.asks_as_responses() {
                    true => Dialect::Responses,
                    false => self.dialect,
                };
                (!is_of_client(dialect, &kind, tool)).then_some(kind)
            }
            (None, None) => None,
        };
        let Some(hosted) = hosted else {
            self.tools.of_client = true;
            return Ok(());
        };
        // One object with tools of both sides cannot be left out.
        let is_mixed = has_client_field && self.dialect.family() == Family::Google;
        if is_mixed || self.tools.hosted.len() == MOST_HOSTED_TOOLS {
            return Err(BadRequest::UnservedTool);
        }
        let mut tool = HostedTool::new(&hosted, range);
        if self.dialect.family() == Family::Anthropic {
            if calls.is_ambiguous {
                return Err(BadRequest::AmbiguousName(MAX_USES));
            }
            tool = tool.with_calls(calls.most?, calls.untold);
        }
        self.tools.hosted.push(tool);
        Ok(())
    }

    /// Takes a member of the body that begins at `begin` and has the provider run a tool of this kind.
    pub(super) fn hosted_member(
        &mut self,
        kind: &'static str,
        begin: usize,
        event: Event<'b>,
    ) -> Result<(), BadRequest> {
        if event == Event::Null {
            return Ok(());
        }
        self.collect(event, Meaning::Field)?;
        let range = begin..self.reader.offset();
        self.tools.hosted.push(HostedTool::of_member(kind, range));
        Ok(())
    }
}
