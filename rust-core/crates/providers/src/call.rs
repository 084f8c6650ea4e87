//! What is read from the body of a request.

mod stream_options;
mod tools;
mod usage_edit;
mod walk;

use std::borrow::Cow;
use std::ops::Range;

use proofgate_json::{Event, JsonError, Workspace};
use proofgate_policy::Scope;

use crate::bad_request::{BadRequest, Field};
use crate::body_text::BodyText;
use crate::call_fields::{Fields, Read, boolean, field, integer, is_short};
use crate::client_ids::{ClientIds, IdField, IdObject};
use crate::dialect::Dialect;
use crate::field_names::{Meaning, meaning};
use crate::hosted_tools::Tools;
use crate::prompt_size::{ATTACHMENT, PromptSize, has_additions};
use crate::service_tier::AskedTier;
use stream_options::StreamOptions;
use walk::Walk;

/// What is read from the body of a request to route it and to limit it.
#[derive(Debug, PartialEq, Eq)]
pub struct Call<'b> {
    /// What the body is written in.
    pub dialect: Dialect,
    /// The model that the client asks for; empty where the path [names it](Dialect::has_model_in_path).
    pub model: Cow<'b, str>,
    /// Whether the answer is to be streamed as server-sent events.
    pub stream: bool,
    /// Whether a streamed answer is to end with its usage (`stream_options.include_usage`).
    pub include_usage: bool,
    /// What `stream_options` is made of.
    stream_options: StreamOptions,
    /// How many tokens the answer may have; the largest where several fields say it.
    pub max_tokens: Option<u64>,
    /// How many answers are asked for, or made to choose from.
    pub n: u32,
    /// How many prompts a completion has, each of which has answers of its own.
    pub prompts: usize,
    /// How many messages there are.
    pub messages: usize,
    /// A field whose text is there as the numbers of its tokens, which no rule can read.
    pub token_ids: Option<&'static str>,
    /// Its tools, as far as it matters who runs them.
    pub tools: Tools,
    /// The tier of service that is asked for.
    pub tier: AskedTier<'b>,
    /// Whether a cache is asked for that keeps what is written for longer than five minutes.
    pub is_kept_longer: bool,
    /// The first field that names what the provider keeps, in OpenAI's dialects: it may go only where the account is the
    /// tenant's alone. In the others such a field is refused.
    pub kept: Option<&'static str>,
    /// Whom it is for, as it says.
    pub ids: ClientIds<'b>,
    /// What bounds the tokens of its prompt.
    size: PromptSize,
    model_value: Range<usize>,
    /// Bytes of the text and of the attachments, each of these counted with at most [`ATTACHMENT`].
    counted_bytes: usize,
}

impl<'b> Call<'b> {
    /// Reads a request body without keeping its text.
    ///
    /// # Errors
    /// As for [`read`](Call::read).
    pub fn parse(dialect: Dialect, body: &'b [u8]) -> Result<Self, BadRequest> {
        Self::read(dialect, body, &mut Workspace::new(), &mut BodyText::new())
    }

    /// Reads a request body in one pass, and with it the text that rules look at.
    ///
    /// The text holds every string, every number of nine or more characters and every key of the body except names of the API as keys, the value of `model`, and
    /// values of `role` and `type` that are single words.
    ///
    /// # Errors
    /// [`BadRequest`] when the body is not a JSON object with a model (without one, where the path names it), when it has more than
    /// [`MOST_STRINGS`](crate::MOST_STRINGS) strings, when a field that is read has a wrong type, or when a name is that of
    /// such a field but for its case. A field that is `null` counts as absent, except `model` and `messages`.
    pub fn read(
        dialect: Dialect,
        body: &'b [u8],
        workspace: &mut Workspace,
        text: &mut BodyText,
    ) -> Result<Self, BadRequest> {
        Self::read_text(dialect, Self::text_of(body)?, workspace, text)
    }

    /// A request that is a [form](Dialect::has_form), by what its fields say. `model_value`: where the model's name stands in
    /// it. `n`: how many answers it asks for. `counted_bytes`: those of its text, and what its files count for.
    ///
    /// # Errors
    /// [`BadRequest::SeveralInStream`].
    pub fn of_form(
        dialect: Dialect,
        model: &'b str,
        model_value: Range<usize>,
        stream: bool,
        n: u32,
        counted_bytes: usize,
    ) -> Result<Self, BadRequest> {
        let request = Call {
            model: Cow::Borrowed(model),
            stream,
            n,
            model_value,
            counted_bytes,
            size: PromptSize::of_form(dialect, counted_bytes, ATTACHMENT),
            ..Call::without_body(dialect)
        };
        request.check_stream()?;
        Ok(request)
    }

    /// A request that says nothing besides its path.
    #[must_use]
    pub fn without_body(dialect: Dialect) -> Self {
        Call {
            dialect,
            model: Cow::Borrowed(""),
            stream: false,
            include_usage: false,
            stream_options: StreamOptions::Absent,
            max_tokens: None,
            n: 1,
            prompts: 1,
            messages: 0,
            token_ids: None,
            tools: Tools::default(),
            tier: AskedTier::Standard,
            is_kept_longer: false,
            kept: None,
            ids: ClientIds::default(),
            size: PromptSize::default(),
            model_value: 0..0,
            counted_bytes: 0,
        }
    }

    /// Checks that a stream of images is one of a single image.
    fn check_stream(&self) -> Result<(), BadRequest> {
        let is_of_images = matches!(self.dialect, Dialect::Images | Dialect::ImageEdits);
        match is_of_images && self.stream && self.n > 1 {
            true => Err(BadRequest::SeveralInStream),
            false => Ok(()),
        }
    }

    /// The first part of [`read`](Call::read): a body as text.
    ///
    /// # Errors
    /// [`BadRequest`] when it is not UTF-8.
    pub fn text_of(body: &'b [u8]) -> Result<&'b str, BadRequest> {
        std::str::from_utf8(body).map_err(|error| {
            let at = error.valid_up_to();
            BadRequest::InvalidJson(JsonError::InvalidUtf8 { at })
        })
    }

    /// The second part of [`read`](Call::read), of a body that is text.
    ///
    /// # Errors
    /// As for [`read`](Call::read).
    pub fn read_text(
        dialect: Dialect,
        body: &'b str,
        workspace: &mut Workspace,
        text: &mut BodyText,
    ) -> Result<Self, BadRequest> {
        let mut walk = Walk::begin(dialect, body, workspace, text)?;
        let mut request = Call::without_body(dialect);
        request.members(&mut walk, dialect.fields())?;
        request.finish(walk)
    }

    /// Reads a line of a batch's input: `body` as a request in `dialect`, `custom_id` as a text besides. What the others say
    /// is known ([`line_endpoint`](crate::line_endpoint)).
    ///
    /// # Errors
    /// As for [`read`](Call::read), of `body`.
    pub fn read_line(
        dialect: Dialect,
        line: &'b str,
        workspace: &mut Workspace,
        text: &mut BodyText,
    ) -> Result<Self, BadRequest> {
        let mut walk = Walk::begin(dialect, line, workspace, text)?;
        let mut request = Call::without_body(dialect);
        while let Event::Key(key) = walk.reader.read()? {
            let mut name = std::mem::take(&mut walk.name);
            let decoded = key.decoded(&mut name);
            let event = walk.reader.read()?;
            match (decoded, event) {
                ("body", Event::ObjectStart) => request.members(&mut walk, dialect.fields())?,
                ("custom_id", _) => {
                    walk.text.begin_message(Scope::Other, "", None);
                    walk.collect(event, Meaning::Field)?;
                }
                _ => walk.reader.skip(event)?,
            }
            walk.name = name;
        }
        request.finish(walk)
    }

    /// Ends the walk over a body.
    fn finish(self, walk: Walk<'b, '_, '_>) -> Result<Self, BadRequest> {
        let Walk {
            reader,
            text,
            left_out,
            tools,
            kept,
            ids,
            is_kept_longer,
            size,
            ..
        } = walk;
        let mut request = self;
        (request.tools, request.kept, request.ids) = (tools, kept, ids);
        request.is_kept_longer = is_kept_longer;
        request.size = size;
        request.counted_bytes = text.text().len() + left_out;
        reader.finish()?;
        if text.overflowed() {
            return Err(BadRequest::TooManyStrings);
        }
        let dialect = request.dialect;
        if request.model.is_empty() && dialect.has_model_in_body() {
            return Err(BadRequest::MissingModel);
        }
        request.check_stream()?;
        text.set_model(request.model_value());
        Ok(request)
    }

    /// Reads an object that has begun.
    fn members(&mut self, walk: &mut Walk<'b, '_, '_>, fields: Fields) -> Result<(), BadRequest> {
        while let Event::Key(key) = walk.reader.read()? {
            let mut name = std::mem::take(&mut walk.name);
            let decoded = key.decoded(&mut name);
            let meaning = meaning(decoded);
            walk.text.begin_message(Scope::Other, decoded, None);
            if has_additions(decoded) {
                walk.size.add_tools();
            }
            if meaning == Meaning::Unknown {
                walk.text.push_key(key);
            }
            let begin = key.range().start - 1;
            let event = walk.reader.read()?;
            self.member(walk, field(fields, decoded)?, (decoded, begin), event, meaning)?;
            walk.name = name;
        }
        Ok(())
    }

    /// Reads a member by its name, which begins at `begin`.
    fn member(
        &mut self,
        walk: &mut Walk<'b, '_, '_>,
        read: Read,
        (name, begin): (&str, usize),
        event: Event<'b>,
        meaning: Meaning,
    ) -> Result<(), BadRequest> {
        match read {
            Read::Model => {
                let Event::String(model) = event else {
                    return Err(BadRequest::MissingModel);
                };
                self.model_value = model.range().start - 1..model.range().end + 1;
                self.model = if model.is_escaped() {
                    Cow::Owned(model.decoded(&mut String::new()).to_owned())
                } else {
                    Cow::Borrowed(model.raw())
                };
            }
            Read::Turns if event != Event::ArrayStart => {
                return Err(BadRequest::InvalidField(Field::Messages));
            }
            Read::Turns | Read::TurnsOrText => self.messages += walk.turns(event, name)?,
            Read::TextOrTokens(field) => {
                walk.text.begin_message(Scope::User, field, None);
                let (has_tokens, texts) = walk.text_or_tokens(event, field)?;
                if has_tokens {
                    self.token_ids = Some(field);
                }
                if self.dialect == Dialect::Completions {
                    self.prompts = texts.max(1);
                }
            }
            Read::Instructions => walk.instructions(event, name)?,
            Read::Prompt => {
                walk.text.begin_message(Scope::User, name, None);
                walk.collect(event, meaning)?;
            }
            Read::Descriptions => walk.descriptions(event, name)?,
            Read::Stream => self.stream = boolean(event, Field::Stream)?,
            Read::StreamFormat => {
                self.stream = match event {
                    Event::String(format) => format.decoded(&mut walk.name) == "sse",
                    Event::Null => false,
                    _ => return Err(BadRequest::InvalidField(Field::StreamFormat)),
                };
                walk.collect(event, meaning)?;
            }
            Read::ServiceTier => {
                let asked = std::mem::take(&mut self.tier);
                self.tier = match event {
                    Event::Null => asked,
                    Event::String(tier) if tier.is_escaped() => {
                        asked.and(Cow::Owned(tier.decoded(&mut walk.name).to_owned()))
                    }
                    Event::String(tier) => asked.and(Cow::Borrowed(tier.raw())),
                    _ => AskedTier::Unclear,
                };
                walk.collect(event, meaning)?;
            }
            Read::CacheRetention => {
                walk.is_kept_longer |= matches!(event, Event::String(kept) if !is_short(kept.raw()));
                walk.collect(event, meaning)?;
            }
            Read::StreamOptions => match event {
                Event::Null => self.stream_options = StreamOptions::Null(walk.behind("null")),
                Event::ObjectStart => {
                    let (options, include_usage) = StreamOptions::read(walk)?;
                    self.stream_options = options;
                    self.include_usage = include_usage.unwrap_or(self.include_usage);
                }
                _ => return Err(BadRequest::InvalidField(Field::StreamOptions)),
            },
            Read::MaxTokens(field) => {
                // Zero is no limit to some (Ollama).
                let least = u64::from(matches!(self.dialect, Dialect::Chat | Dialect::Completions));
                let most = integer(event, field)?.filter(|&most| most >= least);
                self.max_tokens = self.max_tokens.max(most);
            }
            Read::Count(field) => {
                if let Some(n) = integer(event, field)? {
                    let n = u32::try_from(n).ok().filter(|&n| n >= 1);
                    self.n = self.n.max(n.ok_or(BadRequest::InvalidField(field))?);
                }
            }
            Read::Tools => walk.tools(event)?,
            Read::Hosted(kind) => walk.hosted_member(kind, begin, event)?,
            Read::ToolCalls => {
                walk.tools.untold_calls = (event == Event::Null).then(|| walk.behind("null"));
                walk.tools.most_calls = integer(event, Field::MaxToolCalls)?;
            }
            Read::Object(fields, field) => match event {
                Event::Null => {}
                Event::ObjectStart => self.members(walk, fields)?,
                _ => return Err(BadRequest::InvalidField(field)),
            },
            Read::ModelInPath if event == Event::Null => {}
            Read::ModelInPath => return Err(BadRequest::ModelInBody),
            Read::Unserved(field) => walk.nothing(event, field)?,
            Read::Kept(field) => {
                walk.note_kept(Some(field), event)?;
                if field == "conversation"
                    && let Event::String(id) = event
                {
                    walk.ids.note(IdField::Conversation, id);
                }
                walk.collect_ids(IdObject::Conversation, event, meaning)?;
            }
            Read::Id(field) => {
                if let Event::String(id) = event {
                    walk.ids.note(field, id);
                }
                walk.collect(event, meaning)?;
            }
            Read::Ids(object) => walk.collect_ids(object, event, meaning)?,
            Read::Text => walk.collect(event, meaning)?,
        }
        Ok(())
    }

    /// Where in the body the value of `model` stands, quotes included: the bytes that another name replaces.
    pub fn model_value(&self) -> Range<usize> {
        self.model_value.clone()
    }

    /// The most tokens that its prompt can have, where its model takes `most` (`None`: not known).
    ///
    /// Of a text and of images it is a bound, whatever the provider's tokenizer; of documents, recordings and films only where
    /// it is known what the model takes.
    pub fn most_prompt_tokens(&self, most: Option<u64>) -> u64 {
        self.size.most_tokens(self.estimated_prompt_tokens(), most)
    }

    /// About how many tokens the prompt has: one for every four bytes of its text, and four for every message.
    ///
    /// It is an estimate: English prose has about four characters per token, and chat formats frame a message with three
    /// or four tokens (OpenAI, "How to count tokens with tiktoken"). It serves to reserve tokens before the provider
    /// says what the request cost.
    pub fn estimated_prompt_tokens(&self) -> u64 {
        let messages = (self.messages as u64).saturating_mul(4);
        (self.counted_bytes as u64).div_ceil(4).saturating_add(messages)
    }
}
