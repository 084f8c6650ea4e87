//! Reads request bodies.

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
use crate::client_ids::{ClientIds, IdField, IdObject};
use crate::dialect::Dialect;
use crate::field_names::{KeyMeaning, key_meaning};
use crate::hosted_tools::Tools;
use crate::prompt_size::{MAX_ATTACHMENT_ESTIMATE_BYTES, PromptSize, adds_provider_instructions};
use crate::request_fields::{FieldPurpose, Fields, boolean, field_purpose, integer, is_short_retention};
use crate::service_tier::RequestedTier;
use stream_options::StreamOptions;
use walk::Walk;

/// The parts of a request body that are needed to route and limit the request.
#[derive(Debug, PartialEq, Eq)]
pub struct ParsedRequest<'b> {
    /// The dialect of the body.
    pub dialect: Dialect,
    /// The requested model; empty where the path [names it](Dialect::has_model_in_path).
    pub model: Cow<'b, str>,
    /// Whether the response is requested as a stream of server-sent events.
    pub stream: bool,
    /// Whether a stream is requested to end with its usage (`stream_options.include_usage`).
    pub include_usage: bool,
    /// The content of `stream_options`.
    stream_options: StreamOptions,
    /// Maximum tokens of the response; the largest value where several fields set it.
    pub max_tokens: Option<u64>,
    /// Number of choices that are requested, or that the provider generates to select from.
    pub choice_count: u32,
    /// Number of prompts of a completion; each has its own choices.
    pub prompt_count: usize,
    /// Number of messages.
    pub message_count: usize,
    /// A field whose text is sent as token ids, which rules cannot read; `None` if there is none.
    pub token_ids: Option<&'static str>,
    /// The tools, with the data that shows whether the client or the provider runs them.
    pub tools: Tools,
    /// The requested service tier.
    pub tier: RequestedTier<'b>,
    /// Whether the request asks for a cache that keeps entries for longer than five minutes.
    pub is_long_cache_requested: bool,
    /// The first field that refers to content stored at the provider, in OpenAI's dialects. Such a request may only
    /// go to an account that is exclusive to the tenant. In other dialects, such a field is refused.
    pub stored_reference: Option<&'static str>,
    /// The session and end user that the request names.
    pub client_ids: ClientIds<'b>,
    /// The input of the upper bound on prompt tokens.
    prompt_size: PromptSize,
    model_value: Range<usize>,
    /// Bytes of the text and of the attachments, each attachment counted with at most
    /// [`MAX_ATTACHMENT_ESTIMATE_BYTES`].
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

    /// Reads a request body in one pass, and collects the text that rules scan.
    ///
    /// The text contains every string, every number of nine or more characters and every key of the body, except API
    /// field names as keys, the value of `model`, and single-word values of `role` and `type`.
    ///
    /// # Errors
    /// [`BadRequest`] when the body is not a JSON object with a model (without one, where the path names it), when it
    /// has more than [`MAX_STRINGS`](crate::MAX_STRINGS) strings, when a field that is read has a wrong type, or when
    /// a name differs from such a field only in case. A field that is `null` counts as absent, except `model` and
    /// `messages`.
    pub fn read(
        dialect: Dialect,
        body: &'b [u8],
        workspace: &mut Workspace,
        text: &mut BodyText,
    ) -> Result<Self, BadRequest> {
        Self::read_text(dialect, Self::body_as_str(body)?, workspace, text)
    }

    /// Builds a request that is a [form](Dialect::has_form) from its fields. `model_value`: the
    /// range of the model's name in it. `n`: the number of choices. `counted_bytes`: the bytes of
    /// its text, plus the bytes that its files count for.
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

    /// Builds a request that consists only of its path.
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

    /// Checks that a stream of images requests a single image.
    fn check_stream(&self) -> Result<(), BadRequest> {
        let is_of_images = matches!(self.dialect, Dialect::Images | Dialect::ImageEdits);
        match is_of_images && self.stream && self.choice_count > 1 {
            true => Err(BadRequest::MultipleImagesInStream),
            false => Ok(()),
        }
    }

    /// Performs the first step of [`read`](ParsedRequest::read): returns the body as text.
    ///
    /// # Errors
    /// [`BadRequest`] when it is not UTF-8.
    pub fn body_as_str(body: &'b [u8]) -> Result<&'b str, BadRequest> {
        std::str::from_utf8(body).map_err(|error| {
            let at = error.valid_up_to();
            BadRequest::InvalidJson(JsonError::InvalidUtf8 { at })
        })
    }

    /// Performs the second step of [`read`](ParsedRequest::read), on a body that is text.
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

    /// Reads a line of a batch's input: `body` as a request in `dialect`, and `custom_id` as additional text. The
    /// other fields are already known ([`line_endpoint`](crate::line_endpoint)).
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

    /// Completes the walk over a body.
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

    /// Reads an object whose start has been read.
    fn read_members(&mut self, walk: &mut Walk<'b, '_, '_>, fields: Fields) -> Result<(), BadRequest> {
        while let Event::Key(key) = walk.reader.read_event()? {
            let mut name = std::mem::take(&mut walk.key_buffer);
            let decoded = key.decode(&mut name);
            let meaning = key_meaning(decoded);
            walk.text.start_message(Scope::Other, decoded, None);
            if adds_provider_instructions(decoded) {
                walk.prompt_size.mark_provider_additions();
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

    /// Reads a member by its name, which starts at `begin`.
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
                // Some providers treat zero as no limit (Ollama).
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

    /// Returns the range of the value of `model` in the body, quotes included: the bytes that another name replaces.
    pub fn model_value(&self) -> Range<usize> {
        self.model_value.clone()
    }

    /// Returns the maximum number of tokens in the prompt. `most`: the context size of the model, if known.
    ///
    /// For text and images it is an upper bound, whatever the provider's tokenizer. For documents,
    /// recordings and video it is an upper bound only if the context size of the model is known.
    pub fn max_prompt_tokens(&self, most: Option<u64>) -> u64 {
        self.prompt_size.max_tokens(self.estimated_prompt_tokens(), most)
    }

    /// Returns an estimate of the prompt's tokens: one for every four bytes of its text, and four for every message.
    ///
    /// English prose has about four characters per token, and chat formats frame a message with three or four tokens
    /// (OpenAI, "How to count tokens with tiktoken"). The estimate is used to reserve tokens before the provider
    /// reports the usage.
    pub fn estimated_prompt_tokens(&self) -> u64 {
        let messages = (self.message_count as u64).saturating_mul(4);
        (self.counted_bytes as u64).div_ceil(4).saturating_add(messages)
    }
}
