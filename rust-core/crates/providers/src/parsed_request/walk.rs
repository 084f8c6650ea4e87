//! Reads a body and collects its text in one pass.

use std::ops::Range;

use proofgate_json::{Event, Reader, Str, Workspace, equals_ignore_case};
use proofgate_policy::Scope;

use crate::bad_request::BadRequest;
use crate::body_text::BodyText;
use crate::client_ids::{ClientIds, IdObject};
use crate::dialect::{Dialect, Family};
use crate::field_names::{KeyMeaning, is_api_word, is_free_form, is_schema_type, key_meaning};
use crate::hosted_tools::Tools;
use crate::passages::PassageStart;
use crate::prompt_size::{AttachmentKind, MAX_ATTACHMENT_ESTIMATE_BYTES, PromptSize, is_web_address};
use crate::request_fields::is_short_retention;
use crate::scopes::role_scope;
use crate::segment::SegmentKind;
use crate::sibling_hint::SiblingHint;
use crate::stored_item::{ItemMember, ItemSummary};

/// An earlier audio response of the assistant, by its id (openai-python 2,
/// `types/chat/chat_completion_assistant_message_param.py`).
const AUDIO: &str = "audio";

/// The state of one pass over a body.
pub(super) struct Walk<'b, 'w, 't> {
    pub(super) reader: Reader<'b, 'w>,
    pub(super) dialect: Dialect,
    /// Whether ids of content stored at the provider are refused at the current position.
    pub(super) refuses_stored_ids: bool,
    pub(super) text: &'t mut BodyText,
    pub(super) body: &'b str,
    /// A buffer for unescaping a key.
    pub(super) key_buffer: String,
    /// Whether the field names at the current position are not those of the API.
    pub(super) is_free_form: bool,
    /// Bytes that count in an estimate but are not in the text.
    pub(super) uncollected_bytes: usize,
    pub(super) tools: Tools,
    pub(super) stored_reference: Option<&'static str>,
    pub(super) client_ids: ClientIds<'b>,
    /// The kind of the current object, if its members are ids.
    id_object: Option<IdObject>,
    pub(super) is_long_cache_requested: bool,
    pub(super) prompt_size: PromptSize,
    /// The message to which the next object belongs as a content part.
    current_message: Option<PassageStart>,
}

impl<'b, 'w, 't> Walk<'b, 'w, 't> {
    /// Starts with the object of a body.
    pub(super) fn start(
        dialect: Dialect,
        body: &'b str,
        workspace: &'w mut Workspace,
        text: &'t mut BodyText,
    ) -> Result<Self, BadRequest> {
        text.clear();
        let mut walk = Walk {
            reader: Reader::from_text(body, workspace)?,
            dialect,
            refuses_stored_ids: false,
            text,
            body,
            key_buffer: String::new(),
            is_free_form: false,
            uncollected_bytes: 0,
            tools: Tools::default(),
            stored_reference: None,
            client_ids: ClientIds::default(),
            id_object: None,
            is_long_cache_requested: false,
            prompt_size: PromptSize::from_body(body.len()),
            current_message: None,
        };
        match walk.reader.read_event()? {
            Event::ObjectStart => Ok(walk),
            _ => Err(BadRequest::NotAnObject),
        }
    }

    /// Returns the range of the word that was read last.
    pub(super) fn last_word_range(&self, word: &str) -> Range<usize> {
        let end = self.reader.offset();
        end - word.len()..end
    }

    /// Collects the text of a conversation and returns the number of messages or items.
    pub(super) fn read_messages(&mut self, event: Event<'b>, field: &str) -> Result<usize, BadRequest> {
        self.refuses_stored_ids = self.dialect.refuses_stored_ids();
        let mut turns = 0;
        if event == Event::ArrayStart {
            loop {
                match self.reader.read_event()? {
                    Event::ArrayEnd => break,
                    turn => self.turn(turn, field, Some(turns))?,
                }
                turns += 1;
            }
        } else {
            self.turn(event, field, None)?;
            turns = 1;
        }
        self.refuses_stored_ids = false;
        Ok(turns)
    }

    /// Collects the text of a message or an item, and sets its scope.
    fn turn(&mut self, event: Event<'b>, field: &str, index: Option<usize>) -> Result<(), BadRequest> {
        let turn = self.text.start_message(Scope::User, field, index);
        let Event::ObjectStart = event else {
            return self.collect(event, KeyMeaning::Field);
        };
        let first = self.text.last_passage();
        let (mut by_role, mut by_type) = (Scope::User, None);
        let mut item = ItemSummary::default();
        while let Event::Key(key) = self.reader.read_event()? {
            let name = key.decode(&mut self.key_buffer);
            let (meaning, is_role) = (key_meaning(name), name == "role");
            let kept = stored_field_name(self.dialect, self.refuses_stored_ids, name).or_else(|| {
                let is_audio = self.dialect == Dialect::Chat && equals_ignore_case(name, AUDIO);
                is_audio.then_some(AUDIO)
            });
            let member = ItemMember::from_name(name);
            let is_type = name == "type";
            let (is_content, are_calls) = (
                matches!(name, "content" | "parts"),
                self.dialect.contains_tool_calls(name),
            );
            let is_text = is_text_field(name);
            self.is_free_form = is_free_form(name);
            if meaning == KeyMeaning::Unknown {
                self.text.push_key(key);
            }
            let value = self.reader.read_event()?;
            if let Event::String(word) = value {
                if is_role {
                    by_role = role_scope(word.decode(&mut self.key_buffer));
                } else if is_type {
                    by_type = self.dialect.item_scope(word.decode(&mut self.key_buffer));
                }
            }
            item.note(member, value, &mut self.key_buffer);
            self.note_stored_reference(kept, value)?;
            match value {
                Event::ArrayStart if is_content => self.read_content_parts(turn)?,
                Event::ArrayStart if are_calls => self.read_tool_calls(turn)?,
                Event::ObjectStart if are_calls => {
                    self.text.start_nested_message(Scope::ToolArguments, turn);
                    self.collect(value, meaning)?;
                    self.text.resume_message(turn);
                }
                _ => self.collect(value, value_meaning(value, meaning, is_text))?,
            }
            self.is_free_form = false;
        }
        if self.dialect.uses_responses_format() && self.stored_reference.is_none() {
            self.stored_reference = item.stored_reference();
        }
        self.text.set_scope(first, turn, by_type.unwrap_or(by_role));
        Ok(())
    }

    /// Collects the content of a message, after the start of its array.
    fn read_content_parts(&mut self, turn: PassageStart) -> Result<(), BadRequest> {
        loop {
            match self.reader.read_event()? {
                Event::ArrayEnd => return Ok(()),
                part => {
                    self.current_message = (part == Event::ObjectStart).then_some(turn);
                    self.collect(part, KeyMeaning::Field)?;
                }
            }
        }
    }

    /// Collects tool calls, after the start of their array.
    fn read_tool_calls(&mut self, turn: PassageStart) -> Result<(), BadRequest> {
        loop {
            match self.reader.read_event()? {
                Event::ArrayEnd => break,
                call => {
                    self.text.start_nested_message(Scope::ToolArguments, turn);
                    self.collect(call, KeyMeaning::Field)?;
                }
            }
        }
        self.text.resume_message(turn);
        Ok(())
    }

    /// Collects the descriptions of tools, each of which is its own message.
    pub(super) fn read_tool_descriptions(&mut self, event: Event<'b>, field: &str) -> Result<(), BadRequest> {
        self.text.start_message(Scope::ToolDescription, field, None);
        if event != Event::ArrayStart {
            return self.collect(event, KeyMeaning::Field);
        }
        for index in 0.. {
            match self.reader.read_event()? {
                Event::ArrayEnd => break,
                tool => {
                    self.text
                        .start_message(Scope::ToolDescription, field, Some(index));
                    self.collect(tool, KeyMeaning::Field)?;
                }
            }
        }
        Ok(())
    }

    /// Collects the instructions for the model.
    pub(super) fn read_instructions(&mut self, event: Event<'b>, field: &str) -> Result<(), BadRequest> {
        self.text.start_message(Scope::Instructions, field, None);
        // Gemini's instructions have the same parts as its conversation.
        self.refuses_stored_ids = self.dialect == Dialect::Gemini;
        self.collect(event, KeyMeaning::Field)?;
        self.refuses_stored_ids = false;
        Ok(())
    }

    /// Collects a text, several texts, or token ids. Returns whether there are token ids, and the number of texts in an
    /// array; token ids directly in the array belong to one text.
    pub(super) fn read_text_or_tokens(
        &mut self,
        event: Event<'b>,
        field: &str,
    ) -> Result<(bool, usize), BadRequest> {
        match event {
            Event::Number(_) => {
                // Four bytes count as one token.
                self.uncollected_bytes += 4;
                Ok((true, 0))
            }
            Event::ArrayStart => {
                let (mut has_tokens, mut texts) = (false, 0);
                loop {
                    match self.reader.read_event()? {
                        Event::ArrayEnd => return Ok((has_tokens, texts)),
                        element => {
                            if matches!(element, Event::String(_)) {
                                self.text.start_message(Scope::User, field, Some(texts));
                            }
                            texts += usize::from(!matches!(element, Event::Number(_)));
                            has_tokens |= self.read_text_or_tokens(element, field)?.0;
                        }
                    }
                }
            }
            other => self.collect(other, KeyMeaning::Field).map(|()| (false, 0)),
        }
    }
    /// Reads the value of an unsupported field, which must be empty.
    pub(super) fn require_empty(&mut self, event: Event<'b>, field: &'static str) -> Result<(), BadRequest> {
        match event {
            Event::Null | Event::Bool(false) => Ok(()),
            Event::ArrayStart if self.reader.read_event()? == Event::ArrayEnd => Ok(()),
            _ => Err(BadRequest::UnsupportedField(field)),
        }
    }

    /// Records a reference to content stored at the provider, or refuses it in dialects other than OpenAI's.
    pub(super) fn note_stored_reference(
        &mut self,
        kept: Option<&'static str>,
        value: Event<'_>,
    ) -> Result<(), BadRequest> {
        let Some(name) = kept.filter(|_| value != Event::Null) else {
            return Ok(());
        };
        if self.dialect.family() != Family::OpenAi {
            return Err(BadRequest::UnsupportedField(name));
        }
        self.stored_reference.get_or_insert(name);
        Ok(())
    }

    /// Collects the text of an object whose members name a session or an end user, and records these ids.
    pub(super) fn collect_ids(
        &mut self,
        object: IdObject,
        event: Event<'b>,
        under: KeyMeaning,
    ) -> Result<(), BadRequest> {
        self.id_object = Some(object);
        self.collect(event, under)?;
        self.id_object = None;
        Ok(())
    }

    /// Collects the text of the value that starts with `event`; `under` is the meaning of its key. The depth limit of
    /// the reader bounds the recursion.
    pub(super) fn collect(&mut self, event: Event<'b>, under: KeyMeaning) -> Result<(), BadRequest> {
        match event {
            Event::String(string) => self.push_string(string, under, SiblingHint::Data, false),
            Event::ArrayStart => loop {
                // In arrays, the API has neither words nor attachments; only schemas have types in
                // arrays.
                let under = match under {
                    KeyMeaning::Unknown => KeyMeaning::Unknown,
                    _ if self.is_free_form => under,
                    _ => KeyMeaning::Field,
                };
                match self.reader.read_event()? {
                    Event::ArrayEnd => break,
                    element => self.collect(element, under)?,
                }
            },
            Event::ObjectStart => {
                let (turn, start) = (self.current_message.take(), self.text.next_start());
                let mut block = None;
                let (mut beside, mut is_redacted) = (SiblingHint::Data, false);
                while let Event::Key(key) = self.reader.read_event()? {
                    let name = key.decode(&mut self.key_buffer);
                    let (meaning, kept) = (
                        key_meaning(name),
                        stored_field_name(self.dialect, self.refuses_stored_ids, name),
                    );
                    let (refuses_ids, was_free) = (self.refuses_stored_ids, self.is_free_form);
                    self.refuses_stored_ids &= !self.dialect.is_tool_data_field(name);
                    self.is_free_form |= is_free_form(name);
                    let holds = matches!(under, KeyMeaning::Attachment | KeyMeaning::AttachmentContainer);
                    let is_address = matches!(name, "image_url" | "file_url") || holds && name == "url";
                    let is_address = is_address && !self.is_free_form;
                    let (kind, is_data) = (
                        SiblingHint::hint_field_name(name),
                        matches!(name, "data" | "file_data"),
                    );
                    let is_image = name == "image_url" || under == KeyMeaning::Attachment;
                    let (is_ttl, is_text) = (name == "ttl", is_text_field(name));
                    let id = self.id_object.and_then(|object| object.member_field(name));
                    let apart = turn.and_then(|turn| Some((turn, self.dialect.part_scope(name)?)));
                    let is_type = turn.is_some() && name == "type";
                    // Data that a provider has signed or encrypted: it has at most one token per
                    // byte.
                    let is_sealed =
                        meaning == KeyMeaning::Attachment && !is_data && !is_address && name != "url";
                    if meaning == KeyMeaning::Unknown {
                        self.text.push_key(key);
                    }
                    let value = self.reader.read_event()?;
                    self.note_stored_reference(kept, value)?;
                    if let Some((turn, scope)) = apart {
                        self.text.start_nested_message(scope, turn);
                    }
                    if let Event::String(string) = value {
                        if is_type {
                            block = self.dialect.block_scope(string.decode(&mut self.key_buffer));
                        }
                        if let Some(id) = id {
                            self.client_ids.note(id, string);
                        }
                        if let Some(kind) = kind {
                            let word = string.decode(&mut self.key_buffer);
                            is_redacted |= kind == "type" && word == "redacted_thinking";
                            beside = beside.max(SiblingHint::from_field(kind, word));
                        }
                        is_redacted |= is_data && self.is_followed_by_redaction(string);
                        let beside = match is_data {
                            true => beside.max(self.following_hint(string)),
                            false => SiblingHint::Data,
                        };
                        self.is_long_cache_requested |= is_ttl && !is_short_retention(string.raw());
                        if is_address && is_web_address(string.raw()) {
                            self.uncollected_bytes += MAX_ATTACHMENT_ESTIMATE_BYTES;
                            self.prompt_size.add_attachment(is_image, 0);
                        }
                        self.push_string(string, meaning, beside, is_sealed || is_redacted);
                    } else {
                        self.collect(value, value_meaning(value, meaning, is_text))?;
                    }
                    if let Some((turn, _)) = apart {
                        self.text.resume_message(turn);
                    }
                    (self.refuses_stored_ids, self.is_free_form) = (refuses_ids, was_free);
                }
                if let (Some(turn), Some(scope)) = (turn, block) {
                    self.text.mark_nested_message(start, scope, turn);
                }
            }
            Event::Number(number) => {
                let is_data = self.is_free_form || under == KeyMeaning::Unknown;
                let kind = if is_data {
                    SegmentKind::Number
                } else {
                    SegmentKind::ApiNumber
                };
                self.text.push_number(number, self.reader.offset(), kind);
            }
            _ => {}
        }
        Ok(())
    }

    /// Collects a string. `beside`: the hint of its siblings. `is_sealed`: whether it has at most
    /// one token per byte even if it is not text.
    pub(super) fn push_string(
        &mut self,
        string: Str<'b>,
        under: KeyMeaning,
        beside: SiblingHint,
        is_sealed: bool,
    ) {
        match under {
            KeyMeaning::Word if self.is_free_form && is_schema_type(string.raw()) => {}
            KeyMeaning::Word if !self.is_free_form && is_api_word(string.raw()) => {}
            KeyMeaning::Attachment if !self.is_free_form && beside != SiblingHint::Text => {
                let says_text = beside == SiblingHint::EncodedText;
                let attached = AttachmentKind::detect(string.raw(), says_text).filter(|_| !is_sealed);
                let mut bytes = 0;
                if !self.text.push_unless_attachment(string, says_text) {
                    bytes = string.raw().len();
                    self.uncollected_bytes += bytes.min(MAX_ATTACHMENT_ESTIMATE_BYTES);
                }
                if let Some(attached) = attached {
                    self.prompt_size
                        .add_attachment(attached == AttachmentKind::Image, bytes);
                }
            }
            _ => self.text.push(string),
        }
    }

    /// Whether the members after `string` show that it is thinking encrypted by its provider.
    pub(super) fn is_followed_by_redaction(&self, string: Str<'b>) -> bool {
        let rest = self.body.get(string.range().end + 1..).unwrap_or_default();
        let mut parts = rest.splitn(5, '"');
        let mut next = || parts.next().map(str::trim_ascii);
        (next(), next(), next(), next()) == (Some(","), Some("type"), Some(":"), Some("redacted_thinking"))
    }

    /// Returns the hint of the members after `string` in its object.
    pub(super) fn following_hint(&self, string: Str<'b>) -> SiblingHint {
        SiblingHint::from_following_members(self.body.get(string.range().end + 1..).unwrap_or_default())
    }
}

/// Whether a field contains one or more texts. In such a field, some clients send a number.
fn is_text_field(name: &str) -> bool {
    matches!(name, "content" | "text" | "output" | "result")
}

/// Returns the meaning of a value's key; a number in place of a text is treated like a text.
fn value_meaning(value: Event<'_>, meaning: KeyMeaning, is_text: bool) -> KeyMeaning {
    match value {
        Event::Number(_) if is_text => KeyMeaning::Unknown,
        _ => meaning,
    }
}

/// Returns the name of a field that refers to stored content, where such references are refused.
fn stored_field_name(dialect: Dialect, refuses: bool, name: &str) -> Option<&'static str> {
    refuses.then(|| dialect.stored_field_name(name)).flatten()
}
