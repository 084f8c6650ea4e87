use std::borrow::Cow;
use std::ops::Range;

use proofgate_json::{Event, JsonError, Reader, Str, Workspace, equals_but_for_case};

use crate::bad_request::{BadRequest, Field};
use crate::beside::Beside;
use crate::body_text::BodyText;
use crate::call_fields::{Fields, Read, field};
use crate::dialect::{Dialect, Family};
use crate::field_names::{Meaning, is_free, is_schema_type, is_word, meaning};
use crate::hosted_tools::{HostedTool, MOST_HOSTED_TOOLS, Tools, is_of_client};
use crate::prompt_size::{Attached, PromptSize, has_additions, is_web_address};
use crate::service_tier::AskedTier;

/// What an attachment counts for at most in an estimate, in bytes of text: an image or a recording costs some thousand
/// tokens whatever its encoded size.
const ATTACHMENT: usize = 8_000;

const INCLUDE_USAGE: &str = "include_usage";

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
                ("custom_id", _) => walk.collect(event, Meaning::Field)?,
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
            is_kept_longer,
            size,
            ..
        } = walk;
        let mut request = self;
        (request.tools, request.kept) = (tools, kept);
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
            if has_additions(decoded) {
                walk.size.add_tools();
            }
            if meaning == Meaning::Unknown {
                walk.text.push_key(key);
            }
            let event = walk.reader.read()?;
            self.member(walk, field(fields, decoded)?, event, meaning)?;
            walk.name = name;
        }
        Ok(())
    }

    fn member(
        &mut self,
        walk: &mut Walk<'b, '_, '_>,
        read: Read,
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
            Read::Turns | Read::TurnsOrText => self.messages += walk.turns(event)?,
            Read::TextOrTokens(field) => {
                let (has_tokens, texts) = walk.text_or_tokens(event)?;
                if has_tokens {
                    self.token_ids = Some(field);
                }
                if self.dialect == Dialect::Completions {
                    self.prompts = texts.max(1);
                }
            }
            Read::Instructions => walk.instructions(event)?,
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
                Event::ObjectStart => self.stream_options(walk)?,
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
                walk.collect(event, meaning)?;
            }
            Read::Text => walk.collect(event, meaning)?,
        }
        Ok(())
    }

    fn stream_options(&mut self, walk: &mut Walk<'b, '_, '_>) -> Result<(), BadRequest> {
        let begin = walk.reader.offset();
        let mut empty = true;
        let mut refused = None;
        while let Event::Key(key) = walk.reader.read()? {
            empty = false;
            let event = walk.reader.read()?;
            let mut decoded = String::new();
            let name = key.decoded(&mut decoded);
            if name == INCLUDE_USAGE {
                self.include_usage = boolean(event, Field::IncludeUsage)?;
                let value = if event == Event::Null { "null" } else { "false" };
                refused = (!self.include_usage).then(|| walk.behind(value));
            } else if equals_but_for_case(name, INCLUDE_USAGE) {
                return Err(BadRequest::AmbiguousName(Field::IncludeUsage.name()));
            } else {
                walk.text.push_key(key);
                walk.collect(event, Meaning::Field)?;
            }
        }
        self.stream_options = match refused {
            Some(value) => StreamOptions::Refused(value),
            None => StreamOptions::Object { begin, empty },
        };
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

    /// The edit by which a streamed answer brings its usage: a range of the body and what takes its place there. `None`
    /// when it does anyway, or is not streamed.
    ///
    /// `model_value` is where the value of `model` stands in the body that is edited. When that is not the body that was
    /// read, because rules have replaced text in it, the edit is known only for a request without `stream_options`: read
    /// the other body to know it.
    pub fn usage_edit(&self, model_value: &Range<usize>) -> Option<(Range<usize>, &'static [u8])> {
        if !self.stream || self.include_usage || !self.dialect.has_stream_options() {
            return None;
        }
        Some(match &self.stream_options {
            // Behind a member that every request has.
            StreamOptions::Absent => (
                model_value.end..model_value.end,
                br#","stream_options":{"include_usage":true}"#,
            ),
            StreamOptions::Null(value) => (value.clone(), br#"{"include_usage":true}"#),
            StreamOptions::Refused(value) => (value.clone(), b"true"),
            StreamOptions::Object { begin, empty: true } => (*begin..*begin, br#""include_usage":true"#),
            StreamOptions::Object { begin, empty: false } => (*begin..*begin, br#""include_usage":true,"#),
        })
    }

    /// Whether the request says anything of `stream_options`.
    pub fn has_stream_options(&self) -> bool {
        self.stream_options != StreamOptions::Absent
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

/// Whether what is written to a cache is kept no longer than at the price of every write: Anthropic's five minutes, OpenAI's
/// half an hour and its memory.
fn is_short(kept: &str) -> bool {
    matches!(kept, "5m" | "30m" | "in_memory" | "in-memory")
}

/// The name of a field of what the provider keeps, where such are refused.
fn kept(dialect: Dialect, refuses: bool, name: &str) -> Option<&'static str> {
    refuses.then(|| dialect.kept_by_provider(name)).flatten()
}

fn boolean(event: Event<'_>, field: Field) -> Result<bool, BadRequest> {
    match event {
        Event::Bool(value) => Ok(value),
        Event::Null => Ok(false),
        _ => Err(BadRequest::InvalidField(field)),
    }
}

fn integer(event: Event<'_>, field: Field) -> Result<Option<u64>, BadRequest> {
    match event {
        Event::Null => Ok(None),
        Event::Number(number) => number
            .parse()
            .map(Some)
            .map_err(|_| BadRequest::InvalidField(field)),
        _ => Err(BadRequest::InvalidField(field)),
    }
}

/// The member `stream_options` of a body.
#[derive(Debug, PartialEq, Eq)]
enum StreamOptions {
    Absent,
    /// `null`, which stands here.
    Null(Range<usize>),
    /// An object whose `include_usage` is `false` or `null`, which stands here.
    Refused(Range<usize>),
    /// An object that says nothing of usage, or asks for it; its first member would begin here.
    Object {
        begin: usize,
        empty: bool,
    },
}

/// One pass over a body.
struct Walk<'b, 'w, 't> {
    reader: Reader<'b, 'w>,
    dialect: Dialect,
    /// Whether ids of what the provider keeps are refused where the walk is.
    refuses_ids: bool,
    text: &'t mut BodyText,
    body: &'b str,
    /// Room for a key that has to be unescaped.
    name: String,
    /// Whether the names where the walk is are not the API's.
    is_free: bool,
    /// Bytes that count in an estimate and are not in the text.
    left_out: usize,
    tools: Tools,
    kept: Option<&'static str>,
    is_kept_longer: bool,
    size: PromptSize,
}

impl<'b, 'w, 't> Walk<'b, 'w, 't> {
    /// Begins with the object that a body is.
    fn begin(
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
            is_kept_longer: false,
            size: PromptSize::of_body(body.len()),
        };
        match walk.reader.read()? {
            Event::ObjectStart => Ok(walk),
            _ => Err(BadRequest::NotAnObject),
        }
    }

    /// Where the word that was just read stands.
    fn behind(&self, word: &str) -> Range<usize> {
        let end = self.reader.offset();
        end - word.len()..end
    }

    /// Takes the text of a conversation and says how many messages or items it has.
    fn turns(&mut self, event: Event<'b>) -> Result<usize, BadRequest> {
        self.refuses_ids = self.dialect.refuses_ids();
        let mut turns = 0;
        if event == Event::ArrayStart {
            loop {
                match self.reader.read()? {
                    Event::ArrayEnd => break,
                    turn => self.turn(turn)?,
                }
                turns += 1;
            }
        } else {
            self.turn(event)?;
            turns = 1;
        }
        self.refuses_ids = false;
        Ok(turns)
    }

    /// Takes the text of a message or an item, and notes whether it holds instructions for the model.
    fn turn(&mut self, event: Event<'b>) -> Result<(), BadRequest> {
        let Event::ObjectStart = event else {
            return self.collect(event, Meaning::Field);
        };
        let start = self.text.next_start();
        let mut is_instructions = false;
        while let Event::Key(key) = self.reader.read()? {
            let name = key.decoded(&mut self.name);
            let (meaning, is_role) = (meaning(name), name == "role");
            let (is_type, kept) = (name == "type", kept(self.dialect, self.refuses_ids, name));
            self.is_free = is_free(name);
            if meaning == Meaning::Unknown {
                self.text.push_key(key);
            }
            let value = self.reader.read()?;
            if let Event::String(word) = value {
                if is_role {
                    is_instructions = matches!(word.decoded(&mut self.name), "system" | "developer");
                } else if self.refuses_ids && is_type && word.decoded(&mut self.name) == "item_reference" {
                    self.note_kept(Some("item_reference"), value)?;
                }
            }
            self.note_kept(kept, value)?;
            self.collect(value, meaning)?;
            self.is_free = false;
        }
        if is_instructions {
            self.text.mark_instructions(start);
        }
        Ok(())
    }

    /// Takes what the model takes for its instructions.
    fn instructions(&mut self, event: Event<'b>) -> Result<(), BadRequest> {
        let start = self.text.next_start();
        // In Gemini's stand the same parts as in a conversation.
        self.refuses_ids = self.dialect == Dialect::Gemini;
        self.collect(event, Meaning::Field)?;
        self.refuses_ids = false;
        self.text.mark_instructions(start);
        Ok(())
    }

    /// Takes a text, texts, or the numbers of their tokens; says whether there are any of these, and how many texts an
    /// array has: numbers that stand in it are those of one.
    fn text_or_tokens(&mut self, event: Event<'b>) -> Result<(bool, usize), BadRequest> {
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
                            texts += usize::from(!matches!(element, Event::Number(_)));
                            has_tokens |= self.text_or_tokens(element)?.0;
                        }
                    }
                }
            }
            other => self.collect(other, Meaning::Field).map(|()| (false, 0)),
        }
    }

    /// Takes the text of tools, and notes which of them the provider runs.
    fn tools(&mut self, event: Event<'b>) -> Result<(), BadRequest> {
        match event {
            Event::ArrayStart => {}
            // Google's parsers take one element for a list of it.
            Event::ObjectStart => return self.tool(),
            _ => return self.collect(event, Meaning::Field),
        }
        loop {
            match self.reader.read()? {
                Event::ArrayEnd => return Ok(()),
                Event::ObjectStart => self.tool()?,
                other => self.collect(other, Meaning::Field)?,
            }
        }
    }

    fn tool(&mut self) -> Result<(), BadRequest> {
        let begin = self.reader.offset() - 1;
        let mut kind = None;
        let (mut hosted_field, mut has_client_field) = (None, false);
        while let Event::Key(key) = self.reader.read()? {
            let name = key.decoded(&mut self.name);
            let (meaning, is_type) = (meaning(name), name == "type");
            let is_of_client = self.dialect.is_field_of_client_tools(name);
            let is_free = is_free(name);
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
            if value != Event::Null {
                has_client_field |= is_of_client;
                hosted_field = hosted_field.or(field);
            }
            self.is_free = is_free;
            self.collect(value, meaning)?;
            self.is_free = false;
        }
        self.note_tool(begin, kind, hosted_field, has_client_field)
    }

    /// Notes who runs a tool that begins at `begin` and ends where the walk is.
    fn note_tool(
        &mut self,
        begin: usize,
        kind: Option<String>,
        hosted_field: Option<String>,
        has_client_field: bool,
    ) -> Result<(), BadRequest> {
        let range = begin..self.reader.offset();
        let tool = self.body.get(range.clone()).unwrap_or_default();
        let hosted = match (kind, hosted_field) {
            (_, Some(field)) => Some(field),
            (Some(kind), None) => (!is_of_client(self.dialect, &kind, tool)).then_some(kind),
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
        self.tools.hosted.push(HostedTool::new(&hosted, range));
        Ok(())
    }

    /// Takes the value of a field that is not served, which must say nothing.
    fn nothing(&mut self, event: Event<'b>, field: &'static str) -> Result<(), BadRequest> {
        match event {
            Event::Null | Event::Bool(false) => Ok(()),
            Event::ArrayStart if self.reader.read()? == Event::ArrayEnd => Ok(()),
            _ => Err(BadRequest::UnservedField(field)),
        }
    }

    /// Notes a value that names what the provider keeps, or refuses it where no account is a tenant's alone.
    fn note_kept(&mut self, kept: Option<&'static str>, value: Event<'_>) -> Result<(), BadRequest> {
        let Some(name) = kept.filter(|_| value != Event::Null) else {
            return Ok(());
        };
        if self.dialect.family() != Family::OpenAi {
            return Err(BadRequest::UnservedField(name));
        }
        self.kept.get_or_insert(name);
        Ok(())
    }

    /// Takes the text of the value that `event` begins; `under` is what its key says. The depth limit of the reader bounds
    /// the recursion.
    fn collect(&mut self, event: Event<'b>, under: Meaning) -> Result<(), BadRequest> {
        match event {
            Event::String(string) => self.string(string, under, Beside::Data, false),
            Event::ArrayStart => loop {
                // The API has neither words nor attachments in lists, only schemas have types there.
                let under = if self.is_free { under } else { Meaning::Field };
                match self.reader.read()? {
                    Event::ArrayEnd => break,
                    element => self.collect(element, under)?,
                }
            },
            Event::ObjectStart => {
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
                    let is_ttl = name == "ttl";
                    // What a provider has signed or encrypted of a conversation: its bytes bound its tokens.
                    let is_sealed =
                        meaning == Meaning::Attachment && !is_data && !is_address && name != "url";
                    if meaning == Meaning::Unknown {
                        self.text.push_key(key);
                    }
                    let value = self.reader.read()?;
                    self.note_kept(kept, value)?;
                    if let Event::String(string) = value {
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
                        self.collect(value, meaning)?;
                    }
                    (self.refuses_ids, self.is_free) = (refuses_ids, was_free);
                }
            }
            Event::Number(number) => self.text.push_number(number, self.reader.offset()),
            _ => {}
        }
        Ok(())
    }

    /// Takes a string. `beside`: what stands beside it says of it. `is_sealed`: whether its bytes
    /// bound its tokens all the same, if it is no text.
    fn string(&mut self, string: Str<'b>, under: Meaning, beside: Beside, is_sealed: bool) {
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
    fn is_redacted_behind(&self, string: Str<'b>) -> bool {
        let rest = self.body.get(string.range().end + 1..).unwrap_or_default();
        let mut parts = rest.splitn(5, '"');
        let mut next = || parts.next().map(str::trim_ascii);
        (next(), next(), next(), next()) == (Some(","), Some("type"), Some(":"), Some("redacted_thinking"))
    }

    /// What stands behind `string` in its object says of it.
    fn said_behind(&self, string: Str<'b>) -> Beside {
        Beside::behind(self.body.get(string.range().end + 1..).unwrap_or_default())
    }
}
