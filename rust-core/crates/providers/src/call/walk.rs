//! One pass over a body: what counts of it, and its text.

use std::ops::Range;

use proofgate_json::{Event, Reader, Str, Workspace, equals_but_for_case};
use proofgate_policy::Scope;

use crate::bad_request::BadRequest;
use crate::beside::Beside;
use crate::body_text::BodyText;
use crate::call_fields::is_short;
use crate::client_ids::{ClientIds, IdObject};
use crate::dialect::{Dialect, Family};
use crate::field_names::{Meaning, is_free, is_schema_type, is_word, meaning};
use crate::hosted_tools::Tools;
use crate::kept_item::{Item, Member};
use crate::passages::Mark;
use crate::prompt_size::{ATTACHMENT, Attached, PromptSize, is_web_address};
use crate::scopes::scope_of_role;
use crate::segment::Kind;

/// What an assistant has said before, by its id (openai-python 2, `types/chat/chat_completion_assistant_message_param.py`).
const AUDIO: &str = "audio";

/// One pass over a body.
pub(super) struct Walk<'b, 'w, 't> {
    pub(super) reader: Reader<'b, 'w>,
    pub(super) dialect: Dialect,
    /// Whether ids of what the provider keeps are refused where the walk is.
    pub(super) refuses_ids: bool,
    pub(super) text: &'t mut BodyText,
    pub(super) body: &'b str,
    /// Room for a key that has to be unescaped.
    pub(super) name: String,
    /// Whether the names where the walk is are not the API's.
    pub(super) is_free: bool,
    /// Bytes that count in an estimate and are not in the text.
    pub(super) left_out: usize,
    pub(super) tools: Tools,
    pub(super) kept: Option<&'static str>,
    pub(super) ids: ClientIds<'b>,
    /// What the object says of them where the walk is.
    id_object: Option<IdObject>,
    pub(super) is_kept_longer: bool,
    pub(super) size: PromptSize,
    /// The message of whose content the next object is a part.
    turn: Option<Mark>,
}

impl<'b, 'w, 't> Walk<'b, 'w, 't> {
    /// Begins with the object that a body is.
    pub(super) fn begin(
        dialect: Dialect,
        body: &'b str,
        workspace: &'w mut Workspace,
        text: &'t mut BodyText,
    ) -> Result<Self, BadRequest> {
        text.clear();
        let mut walk = Walk {
            reader: Reader::of_text(body, workspace)?,
            dialect,
            refuses_ids: false,
            text,
            body,
            name: String::new(),
            is_free: false,
            left_out: 0,
            tools: Tools::default(),
            kept: None,
            ids: ClientIds::default(),
            id_object: None,
            is_kept_longer: false,
            size: PromptSize::of_body(body.len()),
            turn: None,
        };
        match walk.reader.read()? {
            Event::ObjectStart => Ok(walk),
            _ => Err(BadRequest::NotAnObject),
        }
    }

    /// Where the word that was just read stands.
    pub(super) fn behind(&self, word: &str) -> Range<usize> {
        let end = self.reader.offset();
        end - word.len()..end
    }

    /// Takes the text of a conversation and says how many messages or items it has.
    pub(super) fn turns(&mut self, event: Event<'b>, field: &str) -> Result<usize, BadRequest> {
        self.refuses_ids = self.dialect.refuses_ids();
        let mut turns = 0;
        if event == Event::ArrayStart {
            loop {
                match self.reader.read()? {
                    Event::ArrayEnd => break,
                    turn => self.turn(turn, field, Some(turns))?,
                }
                turns += 1;
            }
        } else {
            self.turn(event, field, None)?;
            turns = 1;
        }
        self.refuses_ids = false;
        Ok(turns)
    }

    /// Takes the text of a message or an item, and notes what it is.
    fn turn(&mut self, event: Event<'b>, field: &str, index: Option<usize>) -> Result<(), BadRequest> {
        let turn = self.text.begin_message(Scope::User, field, index);
        let Event::ObjectStart = event else {
            return self.collect(event, Meaning::Field);
        };
        let first = self.text.last_passage();
        let (mut by_role, mut by_type) = (Scope::User, None);
        let mut item = Item::default();
        while let Event::Key(key) = self.reader.read()? {
            let name = key.decoded(&mut self.name);
            let (meaning, is_role) = (meaning(name), name == "role");
            let kept = kept(self.dialect, self.refuses_ids, name).or_else(|| {
                let is_audio = self.dialect == Dialect::Chat && equals_but_for_case(name, AUDIO);
                is_audio.then_some(AUDIO)
            });
            let member = Member::of(name);
            let is_type = name == "type";
            let (is_content, are_calls) = (
                matches!(name, "content" | "parts"),
                self.dialect.holds_calls(name),
            );
            let is_text = is_text(name);
            self.is_free = is_free(name);
            if meaning == Meaning::Unknown {
                self.text.push_key(key);
            }
            let value = self.reader.read()?;
            if let Event::String(word) = value {
                if is_role {
                    by_role = scope_of_role(word.decoded(&mut self.name));
                } else if is_type {
                    by_type = self.dialect.scope_of_item(word.decoded(&mut self.name));
                }
            }
            item.note(member, value, &mut self.name);
            self.note_kept(kept, value)?;
            match value {
                Event::ArrayStart if is_content => self.parts(turn)?,
                Event::ArrayStart if are_calls => self.calls(turn)?,
                Event::ObjectStart if are_calls => {
                    self.text.begin_within(Scope::ToolArguments, turn);
                    self.collect(value, meaning)?;
                    self.text.go_on(turn);
                }
                _ => self.collect(value, meaning_of(value, meaning, is_text))?,
            }
            self.is_free = false;
        }
        if self.dialect.asks_as_responses() && self.kept.is_none() {
            self.kept = item.kept();
        }
        self.text.set_scope(first, turn, by_type.unwrap_or(by_role));
        Ok(())
    }

    /// Takes the content of a message, whose array has begun.
    fn parts(&mut self, turn: Mark) -> Result<(), BadRequest> {
        loop {
            match self.reader.read()? {
                Event::ArrayEnd => return Ok(()),
                part => {
                    self.turn = (part == Event::ObjectStart).then_some(turn);
                    self.collect(part, Meaning::Field)?;
                }
            }
        }
    }

    /// Takes calls of tools, whose array has begun.
    fn calls(&mut self, turn: Mark) -> Result<(), BadRequest> {
        loop {
            match self.reader.read()? {
                Event::ArrayEnd => break,
                call => {
                    self.text.begin_within(Scope::ToolArguments, turn);
                    self.collect(call, Meaning::Field)?;
                }
            }
        }
        self.text.go_on(turn);
        Ok(())
    }

    /// Takes descriptions of tools, each of which is a message of its own.
    pub(super) fn descriptions(&mut self, event: Event<'b>, field: &str) -> Result<(), BadRequest> {
        self.text.begin_message(Scope::ToolDescription, field, None);
        if event != Event::ArrayStart {
            return self.collect(event, Meaning::Field);
        }
        for index in 0.. {
            match self.reader.read()? {
                Event::ArrayEnd => break,
                tool => {
                    self.text
                        .begin_message(Scope::ToolDescription, field, Some(index));
                    self.collect(tool, Meaning::Field)?;
                }
            }
        }
        Ok(())
    }

    /// Takes what the model takes for its instructions.
    pub(super) fn instructions(&mut self, event: Event<'b>, field: &str) -> Result<(), BadRequest> {
        self.text.begin_message(Scope::Instructions, field, None);
        // In Gemini's stand the same parts as in a conversation.
        self.refuses_ids = self.dialect == Dialect::Gemini;
        self.collect(event, Meaning::Field)?;
        self.refuses_ids = false;
        Ok(())
    }

    /// Takes a text, texts, or the numbers of their tokens; says whether there are any of these, and how many texts an
    /// array has: numbers that stand in it are those of one.
    pub(super) fn text_or_tokens(
        &mut self,
        event: Event<'b>,
        field: &str,
    ) -> Result<(bool, usize), BadRequest> {
        match event {
            Event::Number(_) => {
                // Four bytes count as one token.
                self.left_out += 4;
                Ok((true, 0))
            }
            Event::ArrayStart => {
                let (mut has_tokens, mut texts) = (false, 0);
                loop {
                    match self.reader.read()? {
                        Event::ArrayEnd => return Ok((has_tokens, texts)),
                        element => {
                            if matches!(element, Event::String(_)) {
                                self.text.begin_message(Scope::User, field, Some(texts));
                            }
                            texts += usize::from(!matches!(element, Event::Number(_)));
                            has_tokens |= self.text_or_tokens(element, field)?.0;
                        }
                    }
                }
            }
            other => self.collect(other, Meaning::Field).map(|()| (false, 0)),
        }
    }
    /// Takes the value of a field that is not served, which must say nothing.
    pub(super) fn nothing(&mut self, event: Event<'b>, field: &'static str) -> Result<(), BadRequest> {
        match event {
            Event::Null | Event::Bool(false) => Ok(()),
            Event::ArrayStart if self.reader.read()? == Event::ArrayEnd => Ok(()),
            _ => Err(BadRequest::UnservedField(field)),
        }
    }

    /// Notes a value that names what the provider keeps, or refuses it where no account is a tenant's alone.
    pub(super) fn note_kept(
        &mut self,
        kept: Option<&'static str>,
        value: Event<'_>,
    ) -> Result<(), BadRequest> {
        let Some(name) = kept.filter(|_| value != Event::Null) else {
            return Ok(());
        };
        if self.dialect.family() != Family::OpenAi {
            return Err(BadRequest::UnservedField(name));
        }
        self.kept.get_or_insert(name);
        Ok(())
    }

    /// Takes the text of an object whose members name a session or an end user, and notes these.
    pub(super) fn collect_ids(
        &mut self,
        object: IdObject,
        event: Event<'b>,
        under: Meaning,
    ) -> Result<(), BadRequest> {
        self.id_object = Some(object);
        self.collect(event, under)?;
        self.id_object = None;
        Ok(())
    }

    /// Takes the text of the value that `event` begins; `under` is what its key says. The depth limit of the reader bounds
    /// the recursion.
    pub(super) fn collect(&mut self, event: Event<'b>, under: Meaning) -> Result<(), BadRequest> {
        match event {
            Event::String(string) => self.string(string, under, Beside::Data, false),
            Event::ArrayStart => loop {
                // The API has neither words nor attachments in lists, only schemas have types there.
                let under = match under {
                    Meaning::Unknown => Meaning::Unknown,
                    _ if self.is_free => under,
                    _ => Meaning::Field,
                };
                match self.reader.read()? {
                    Event::ArrayEnd => break,
                    element => self.collect(element, under)?,
                }
            },
            Event::ObjectStart => {
                let (turn, start) = (self.turn.take(), self.text.next_start());
                let mut block = None;
                let (mut beside, mut is_redacted) = (Beside::Data, false);
                while let Event::Key(key) = self.reader.read()? {
                    let name = key.decoded(&mut self.name);
                    let (meaning, kept) = (meaning(name), kept(self.dialect, self.refuses_ids, name));
                    let (refuses_ids, was_free) = (self.refuses_ids, self.is_free);
                    self.refuses_ids &= !self.dialect.is_of_a_tool(name);
                    self.is_free |= is_free(name);
                    let holds = matches!(under, Meaning::Attachment | Meaning::Holder);
                    let is_address = matches!(name, "image_url" | "file_url") || holds && name == "url";
                    let is_address = is_address && !self.is_free;
                    let (kind, is_data) = (Beside::said_by(name), matches!(name, "data" | "file_data"));
                    let is_image = name == "image_url" || under == Meaning::Attachment;
                    let (is_ttl, is_text) = (name == "ttl", is_text(name));
                    let id = self.id_object.and_then(|object| object.member(name));
                    let apart = turn.and_then(|turn| Some((turn, self.dialect.scope_of_part(name)?)));
                    let is_type = turn.is_some() && name == "type";
                    // What a provider has signed or encrypted of a conversation: its bytes bound its tokens.
                    let is_sealed =
                        meaning == Meaning::Attachment && !is_data && !is_address && name != "url";
                    if meaning == Meaning::Unknown {
                        self.text.push_key(key);
                    }
                    let value = self.reader.read()?;
                    self.note_kept(kept, value)?;
                    if let Some((turn, scope)) = apart {
                        self.text.begin_within(scope, turn);
                    }
                    if let Event::String(string) = value {
                        if is_type {
                            block = self.dialect.scope_of_block(string.decoded(&mut self.name));
                        }
                        if let Some(id) = id {
                            self.ids.note(id, string);
                        }
                        if let Some(kind) = kind {
                            let word = string.decoded(&mut self.name);
                            is_redacted |= kind == "type" && word == "redacted_thinking";
                            beside = beside.max(Beside::of(kind, word));
                        }
                        is_redacted |= is_data && self.is_redacted_behind(string);
                        let beside = match is_data {
                            true => beside.max(self.said_behind(string)),
                            false => Beside::Data,
                        };
                        self.is_kept_longer |= is_ttl && !is_short(string.raw());
                        if is_address && is_web_address(string.raw()) {
                            self.left_out += ATTACHMENT;
                            self.size.attach(is_image, 0);
                        }
                        self.string(string, meaning, beside, is_sealed || is_redacted);
                    } else {
                        self.collect(value, meaning_of(value, meaning, is_text))?;
                    }
                    if let Some((turn, _)) = apart {
                        self.text.go_on(turn);
                    }
                    (self.refuses_ids, self.is_free) = (refuses_ids, was_free);
                }
                if let (Some(turn), Some(scope)) = (turn, block) {
                    self.text.set_apart(start, scope, turn);
                }
            }
            Event::Number(number) => {
                let is_data = self.is_free || under == Meaning::Unknown;
                let kind = if is_data { Kind::Number } else { Kind::Setting };
                self.text.push_number(number, self.reader.offset(), kind);
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes a string. `beside`: what stands beside it says of it. `is_sealed`: whether its bytes
    /// bound its tokens all the same, if it is no text.
    pub(super) fn string(&mut self, string: Str<'b>, under: Meaning, beside: Beside, is_sealed: bool) {
        match under {
            Meaning::Word if self.is_free && is_schema_type(string.raw()) => {}
            Meaning::Word if !self.is_free && is_word(string.raw()) => {}
            Meaning::Attachment if !self.is_free && beside != Beside::Text => {
                let says_text = beside == Beside::EncodedText;
                let attached = Attached::of(string.raw(), says_text).filter(|_| !is_sealed);
                let mut bytes = 0;
                if !self.text.push_unless_data(string, says_text) {
                    bytes = string.raw().len();
                    self.left_out += bytes.min(ATTACHMENT);
                }
                if let Some(attached) = attached {
                    self.size.attach(attached == Attached::Image, bytes);
                }
            }
            _ => self.text.push(string),
        }
    }

    /// Whether what stands behind `string` says that it is thinking that its provider has encrypted.
    pub(super) fn is_redacted_behind(&self, string: Str<'b>) -> bool {
        let rest = self.body.get(string.range().end + 1..).unwrap_or_default();
        let mut parts = rest.splitn(5, '"');
        let mut next = || parts.next().map(str::trim_ascii);
        (next(), next(), next(), next()) == (Some(","), Some("type"), Some(":"), Some("redacted_thinking"))
    }

    /// What stands behind `string` in its object says of it.
    pub(super) fn said_behind(&self, string: Str<'b>) -> Beside {
        Beside::behind(self.body.get(string.range().end + 1..).unwrap_or_default())
    }
}

/// Whether a field holds a text, or several: some clients write a number there.
fn is_text(name: &str) -> bool {
    matches!(name, "content" | "text" | "output" | "result")
}

/// What the key of a value says about it: a number in the place of a text may as well be one.
fn meaning_of(value: Event<'_>, meaning: Meaning, is_text: bool) -> Meaning {
    match value {
        Event::Number(_) if is_text => Meaning::Unknown,
        _ => meaning,
    }
}

/// The name of a field of what the provider keeps, where such are refused.
fn kept(dialect: Dialect, refuses: bool, name: &str) -> Option<&'static str> {
    refuses.then(|| dialect.kept_by_provider(name)).flatten()
}
