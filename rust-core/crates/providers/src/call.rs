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
use crate::call_fields::{FieldPurpose, Fields, boolean, field_purpose, integer, is_short_retention};
use crate::client_ids::{ClientIds, IdField, IdObject};
use crate::dialect::Dialect;
use crate::field_names::{KeyMeaning, key_meaning};
use crate::hosted_tools::Tools;
use crate::prompt_size::{MAX_ATTACHMENT_ESTIMATE_BYTES, PromptSize, causes_additions};
use crate::service_tier::RequestedTier;
use stream_options::StreamOptions;
use walk::Walk;

/// What is read from the body of a request to route it and to limit it.
#[derive(Debug, PartialEq, Eq)]
pub struct ParsedRequest<'b> {
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
    pub choice_count: u32,
    /// How many prompts a completion has, each of which has answers of its own.
    pub prompt_count: usize,
    /// How many messages there are.
    pub message_count: usize,
    /// A field whose text is there as the numbers of its tokens, which no rule can read.
    pub token_ids: Option<&'static str>,
    /// Its tools, as far as it matters who runs them.
    pub tools: Tools,
    /// The tier of service that is asked for.
    pub tier: RequestedTier<'b>,
    /// Whether a cache is asked for that keeps what is written for longer than five minutes.
    pub is_long_cache_requested: bool,
    /// The first field that names what the provider keeps, in OpenAI's dialects: it may go only where the account is the
    /// tenant's alone. In the others such a field is refused.
    pub stored_reference: Option<&'static str>,
    /// Whom it is for, as it says.
    pub client_ids: ClientIds<'b>,
    /// What bounds the tokens of its prompt.
    prompt_size: PromptSize,
    model_value: Range<usize>,
    /// Bytes of the text and of the attachments, each of these counted with at most [`MAX_ATTACHMENT_ESTIMATE_BYTES`].
    counted_bytes: usize,
}

impl<'b> ParsedRequest<'b> {
    /// Reads a request body without keeping its text.
    ///
    /// # Errors
    /// As for [`read`](ParsedRequest::read).
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
    /// [`MAX_STRINGS`](crate::MAX_STRINGS) strings, when a field that is read has a wrong type, or when a name is that of
    /// such a field but for its case. A field that is `null` counts as absent, except `model` and `messages`.
    pub fn read(
        dialect: Dialect,
        body: &'b [u8],
        workspace: &mut Workspace,
        text: &mut BodyText,
    ) -> Result<Self, BadRequest> {
        Self::read_text(dialect, Self::body_as_str(body)?, workspace, text)
    }

    /// A request that is a [form](Dialect::has_form), by what its fields say. `model_value`: where the model's name stands in
    /// it. `n`: how many answers it asks for. `counted_bytes`: those of its text, and what its files count for.
    ///
    /// # Errors
    /// [`BadRequest::MultipleImagesInStream`].
    pub fn from_form(
        dialect: Dialect,
        model: &'b str,
        model_value: Range<usize>,
        stream: bool,
        n: u32,
        counted_bytes: usize,
    ) -> Result<Self, BadRequest> {
        let request = ParsedRequest {
            model: Cow::Borrowed(model),
            stream,
            choice_count: n,
            model_value,
            counted_bytes,
            prompt_size: PromptSize::from_form(dialect, counted_bytes, MAX_ATTACHMENT_ESTIMATE_BYTES),
            ..ParsedRequest::without_body(dialect)
        };
        request.check_stream()?;
        Ok(request)
    }

    /// A request that says nothing besides its path.
    #[must_use]
    pub fn without_body(dialect: Dialect) -> Self {
        ParsedRequest {
            dialect,
            model: Cow::Borrowed(""),
            stream: false,
            include_usage: false,
            stream_options: StreamOptions::Absent,
            max_tokens: None,
            choice_count: 1,
            prompt_count: 1,
            message_count: 0,
            token_ids: None,
            tools: Tools::default(),
            tier: RequestedTier::Standard,
            is_long_cache_requested: false,
            stored_reference: None,
            client_ids: ClientIds::default(),
            prompt_size: PromptSize::default(),
            model_value: 0..0,
            counted_bytes: 0,
        }
    }

    /// Checks that a stream of images is one of a single image.
    fn check_stream(&self) -> Result<(), BadRequest> {
        let is_of_images = matches!(self.dialect, Dialect::Images | Dialect::ImageEdits);
        match is_of_images && self.stream && self.choice_count > 1 {
            true => Err(BadRequest::MultipleImagesInStream),
            false => Ok(()),
        }
    }

    /// The first part of [`read`](ParsedRequest::read): a body as text.
    ///
    /// # Errors
    /// [`BadRequest`] when it is not UTF-8.
    pub fn body_as_str(body: &'b [u8]) -> Result<&'b str, BadRequest> {
        std::str::from_utf8(body).map_err(|error| {
            let at = error.valid_up_to();
            BadRequest::InvalidJson(JsonError::InvalidUtf8 { at })
        })
    }

    /// The second part of [`read`](ParsedRequest::read), of a body that is text.
    ///
    /// # Errors
    /// As for [`read`](ParsedRequest::read).
    pub fn read_text(
        dialect: Dialect,
        body: &'b str,
        workspace: &mut Workspace,
        text: &mut BodyText,
    ) -> Result<Self, BadRequest> {
        let mut walk = Walk::start(dialect, body, workspace, text)?;
        let mut request = ParsedRequest::without_body(dialect);
        request.read_members(&mut walk, dialect.fields())?;
        request.finish(walk)
    }

    /// Reads a line of a batch's input: `body` as a request in `dialect`, `custom_id` as a text besides. What the others say
    /// is known ([`line_endpoint`](crate::line_endpoint)).
    ///
    /// # Errors
    /// As for [`read`](ParsedRequest::read), of `body`.
    pub fn read_line(
        dialect: Dialect,
        line: &'b str,
        workspace: &mut Workspace,
        text: &mut BodyText,
    ) -> Result<Self, BadRequest> {
        let mut walk = Walk::start(dialect, line, workspace, text)?;
        let mut request = ParsedRequest::without_body(dialect);
        while let Event::Key(key) = walk.reader.read_event()? {
            let mut name = std::mem::take(&mut walk.key_buffer);
            let decoded = key.decode(&mut name);
            let event = walk.reader.read_event()?;
            match (decoded, event) {
                ("body", Event::ObjectStart) => request.read_members(&mut walk, dialect.fields())?,
                ("custom_id", _) => {
                    walk.text.start_message(Scope::Other, "", None);
                    walk.collect(event, KeyMeaning::Field)?;
                }
                _ => walk.reader.skip(event)?,
            }
            walk.key_buffer = name;
        }
        request.finish(walk)
    }

    /// Ends the walk over a body.
    fn finish(self, walk: Walk<'b, '_, '_>) -> Result<Self, BadRequest> {
        let Walk {
            reader,
            text,
            uncollected_bytes: left_out,
            tools,
            stored_reference: kept,
            client_ids: ids,
            is_long_cache_requested: is_kept_longer,
            prompt_size: size,
            ..
        } = walk;
        let mut request = self;
        (request.tools, request.stored_reference, request.client_ids) = (tools, kept, ids);
        request.is_long_cache_requested = is_kept_longer;
        request.prompt_size = size;
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
    fn read_members(&mut self, walk: &mut Walk<'b, '_, '_>, fields: Fields) -> Result<(), BadRequest> {
        while let Event::Key(key) = walk.reader.read_event()? {
            let mut name = std::mem::take(&mut walk.key_buffer);
            let decoded = key.decode(&mut name);
            let meaning = key_meaning(decoded);
            walk.text.start_message(Scope::Other, decoded, None);
            if causes_additions(decoded) {
                walk.prompt_size.add_tools();
            }
            if meaning == KeyMeaning::Unknown {
                walk.text.push_key(key);
            }
            let begin = key.range().start - 1;
            let event = walk.reader.read_event()?;
            self.read_member(
                walk,
                field_purpose(fields, decoded)?,
                (decoded, begin),
                event,
                meaning,
            )?;
            walk.key_buffer = name;
        }
        Ok(())
    }

    /// Reads a member by its name, which begins at `begin`.
    fn read_member(
        &mut self,
        walk: &mut Walk<'b, '_, '_>,
        read: FieldPurpose,
        (name, begin): (&str, usize),
        event: Event<'b>,
        meaning: KeyMeaning,
    ) -> Result<(), BadRequest> {
        match read {
            FieldPurpose::Model => {
                let Event::String(model) = event else {
                    return Err(BadRequest::MissingModel);
                };
                self.model_value = model.range().start - 1..model.range().end + 1;
                self.model = if model.is_escaped() {
                    Cow::Owned(model.decode(&mut String::new()).to_owned())
                } else {
                    Cow::Borrowed(model.raw())
                };
            }
            FieldPurpose::Messages if event != Event::ArrayStart => {
                return Err(BadRequest::InvalidField(Field::Messages));
            }
            FieldPurpose::Messages | FieldPurpose::MessagesOrText => {
                self.message_count += walk.read_messages(event, name)?
            }
            FieldPurpose::TextOrTokens(field) => {
                walk.text.start_message(Scope::User, field, None);
                let (has_tokens, texts) = walk.read_text_or_tokens(event, field)?;
                if has_tokens {
                    self.token_ids = Some(field);
                }
                if self.dialect == Dialect::Completions {
                    self.prompt_count = texts.max(1);
                }
            }
            FieldPurpose::Instructions => walk.read_instructions(event, name)?,
            FieldPurpose::Prompt => {
                walk.text.start_message(Scope::User, name, None);
                walk.collect(event, meaning)?;
            }
            FieldPurpose::ToolDescriptions => walk.read_tool_descriptions(event, name)?,
            FieldPurpose::Stream => self.stream = boolean(event, Field::Stream)?,
            FieldPurpose::StreamFormat => {
                self.stream = match event {
                    Event::String(format) => format.decode(&mut walk.key_buffer) == "sse",
                    Event::Null => false,
                    _ => return Err(BadRequest::InvalidField(Field::StreamFormat)),
                };
                walk.collect(event, meaning)?;
            }
            FieldPurpose::ServiceTier => {
                let asked = std::mem::take(&mut self.tier);
                self.tier = match event {
                    Event::Null => asked,
                    Event::String(tier) if tier.is_escaped() => {
                        asked.combine(Cow::Owned(tier.decode(&mut walk.key_buffer).to_owned()))
                    }
                    Event::String(tier) => asked.combine(Cow::Borrowed(tier.raw())),
                    _ => RequestedTier::Ambiguous,
                };
                walk.collect(event, meaning)?;
            }
            FieldPurpose::CacheRetention => {
                walk.is_long_cache_requested |=
                    matches!(event, Event::String(kept) if !is_short_retention(kept.raw()));
                walk.collect(event, meaning)?;
            }
            FieldPurpose::StreamOptions => match event {
                Event::Null => self.stream_options = StreamOptions::Null(walk.last_word_range("null")),
                Event::ObjectStart => {
                    let (options, include_usage) = StreamOptions::read(walk)?;
                    self.stream_options = options;
                    self.include_usage = include_usage.unwrap_or(self.include_usage);
                }
                _ => return Err(BadRequest::InvalidField(Field::StreamOptions)),
            },
            FieldPurpose::MaxTokens(field) => {
                // Zero is no limit to some (Ollama).
                let least = u64::from(matches!(self.dialect, Dialect::Chat | Dialect::Completions));
                let most = integer(event, field)?.filter(|&most| most >= least);
                self.max_tokens = self.max_tokens.max(most);
            }
            FieldPurpose::Count(field) => {
                if let Some(n) = integer(event, field)? {
                    let n = u32::try_from(n).ok().filter(|&n| n >= 1);
                    self.choice_count = self.choice_count.max(n.ok_or(BadRequest::InvalidField(field))?);
                }
            }
            FieldPurpose::Tools => walk.read_tools(event)?,
            FieldPurpose::HostedTool(kind) => walk.note_hosted_tool(kind, begin, event)?,
            FieldPurpose::ToolCalls => {
                walk.tools.null_max_calls_range =
                    (event == Event::Null).then(|| walk.last_word_range("null"));
                walk.tools.max_calls = integer(event, Field::MaxToolCalls)?;
            }
            FieldPurpose::Object(fields, field) => match event {
                Event::Null => {}
                Event::ObjectStart => self.read_members(walk, fields)?,
                _ => return Err(BadRequest::InvalidField(field)),
            },
            FieldPurpose::ModelInPath if event == Event::Null => {}
            FieldPurpose::ModelInPath => return Err(BadRequest::ModelInBody),
            FieldPurpose::Unsupported(field) => walk.require_empty(event, field)?,
            FieldPurpose::StoredReference(field) => {
                walk.note_stored_reference(Some(field), event)?;
                if field == "conversation"
                    && let Event::String(id) = event
                {
                    walk.client_ids.note(IdField::Conversation, id);
                }
                walk.collect_ids(IdObject::Conversation, event, meaning)?;
            }
            FieldPurpose::ClientId(field) => {
                if let Event::String(id) = event {
                    walk.client_ids.note(field, id);
                }
                walk.collect(event, meaning)?;
            }
            FieldPurpose::ClientIdObject(object) => walk.collect_ids(object, event, meaning)?,
            FieldPurpose::Text => walk.collect(event, meaning)?,
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
    pub fn max_prompt_tokens(&self, most: Option<u64>) -> u64 {
        self.prompt_size.max_tokens(self.estimated_prompt_tokens(), most)
    }

    /// About how many tokens the prompt has: one for every four bytes of its text, and four for every message.
    ///
    /// It is an estimate: English prose has about four characters per token, and chat formats frame a message with three
    /// or four tokens (OpenAI, "How to count tokens with tiktoken"). It serves to reserve tokens before the provider
    /// says what the request cost.
    pub fn estimated_prompt_tokens(&self) -> u64 {
        let messages = (self.message_count as u64).saturating_mul(4);
        (self.counted_bytes as u64).div_ceil(4).saturating_add(messages)
    }
}
