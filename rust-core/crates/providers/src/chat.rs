use std::borrow::Cow;
use std::ops::Range;

use proofgate_json::{Event, Reader, Workspace};

use crate::bad_request::{BadRequest, Field};
use crate::body_text::BodyText;
use crate::field_names::{Meaning, is_word, meaning};

/// What an attachment counts for at most in an estimate, in bytes of text: an image or a recording costs some thousand
/// tokens whatever its encoded size.
const ATTACHMENT: usize = 8_000;

/// What is read from the body of `POST /v1/chat/completions` to route it and to limit it.
#[derive(Debug, PartialEq, Eq)]
pub struct ChatRequest<'b> {
    /// The model that the client asks for.
    pub model: Cow<'b, str>,
    /// Whether the answer is to be streamed as server-sent events.
    pub stream: bool,
    /// Whether a streamed answer is to end with its usage (`stream_options.include_usage`).
    pub include_usage: bool,
    /// How many tokens the answer may have: the larger of `max_tokens` and `max_completion_tokens`.
    pub max_tokens: Option<u64>,
    /// How many answers are asked for.
    pub n: u32,
    /// How many messages there are.
    pub messages: usize,
    model_value: Range<usize>,
    /// Bytes of the text, attachments counted with at most [`ATTACHMENT`].
    counted_bytes: usize,
}

impl<'b> ChatRequest<'b> {
    /// Reads a request body without keeping its text.
    ///
    /// # Errors
    /// As for [`read`](ChatRequest::read).
    pub fn parse(body: &'b [u8]) -> Result<Self, BadRequest> {
        Self::read(body, &mut Workspace::new(), &mut BodyText::new())
    }

    /// Reads a request body in one pass, and with it the text that rules look at.
    ///
    /// The text holds every string and every key of the body except names of the API as keys, the value of `model`, and
    /// values of `role` and `type` that are single words.
    ///
    /// # Errors
    /// [`BadRequest`] when the body is not a JSON object with a model, or when a field that is read has a wrong type. A
    /// field that is `null` counts as absent, except `model` and `messages`.
    pub fn read(body: &'b [u8], workspace: &mut Workspace, text: &mut BodyText) -> Result<Self, BadRequest> {
        text.clear();
        let mut walk = Walk {
            reader: Reader::new(body, workspace)?,
            text,
            name: String::new(),
            uncounted: 0,
        };
        if walk.reader.read()? != Event::ObjectStart {
            return Err(BadRequest::NotAnObject);
        }
        let mut request = ChatRequest {
            model: Cow::Borrowed(""),
            stream: false,
            include_usage: false,
            max_tokens: None,
            n: 1,
            messages: 0,
            model_value: 0..0,
            counted_bytes: 0,
        };
        while let Event::Key(key) = walk.reader.read()? {
            let mut name = std::mem::take(&mut walk.name);
            let field = key.decoded(&mut name);
            let meaning = meaning(field);
            if meaning == Meaning::Unknown {
                walk.text.push(key);
            }
            let event = walk.reader.read()?;
            request.field(&mut walk, field, event, meaning)?;
            walk.name = name;
        }
        request.counted_bytes = walk.text.text().len().saturating_sub(walk.uncounted);
        walk.reader.finish()?;
        if request.model.is_empty() {
            return Err(BadRequest::MissingModel);
        }
        text.set_model(request.model_value());
        Ok(request)
    }

    fn field(
        &mut self,
        walk: &mut Walk<'b, '_, '_>,
        name: &str,
        event: Event<'b>,
        meaning: Meaning,
    ) -> Result<(), BadRequest> {
        match name {
            "model" => {
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
            "messages" => {
                if event != Event::ArrayStart {
                    return Err(BadRequest::InvalidField(Field::Messages));
                }
                loop {
                    match walk.reader.read()? {
                        Event::ArrayEnd => break,
                        message => walk.collect(message, Meaning::Field)?,
                    }
                    self.messages += 1;
                }
            }
            "stream" => self.stream = boolean(event, Field::Stream)?,
            "stream_options" => match event {
                Event::Null => {}
                Event::ObjectStart => self.stream_options(walk)?,
                _ => return Err(BadRequest::InvalidField(Field::StreamOptions)),
            },
            "max_tokens" => self.limit_tokens(integer(event, Field::MaxTokens)?),
            "max_completion_tokens" => self.limit_tokens(integer(event, Field::MaxCompletionTokens)?),
            "n" => {
                if let Some(n) = integer(event, Field::N)? {
                    let n = u32::try_from(n).ok().filter(|&n| n >= 1);
                    self.n = n.ok_or(BadRequest::InvalidField(Field::N))?;
                }
            }
            _ => walk.collect(event, meaning)?,
        }
        Ok(())
    }

    fn stream_options(&mut self, walk: &mut Walk<'b, '_, '_>) -> Result<(), BadRequest> {
        while let Event::Key(key) = walk.reader.read()? {
            let event = walk.reader.read()?;
            if key.decoded(&mut String::new()) == "include_usage" {
                self.include_usage = boolean(event, Field::IncludeUsage)?;
            } else {
                walk.text.push(key);
                walk.collect(event, Meaning::Field)?;
            }
        }
        Ok(())
    }

    fn limit_tokens(&mut self, limit: Option<u64>) {
        self.max_tokens = self.max_tokens.max(limit);
    }

    /// Where in the body the value of `model` stands, quotes included: the bytes that another name replaces.
    pub fn model_value(&self) -> Range<usize> {
        self.model_value.clone()
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

/// One pass over a body.
struct Walk<'b, 'w, 't> {
    reader: Reader<'b, 'w>,
    text: &'t mut BodyText,
    /// Room for a key that has to be unescaped.
    name: String,
    /// Bytes of the text that do not count in an estimate.
    uncounted: usize,
}

impl<'b> Walk<'b, '_, '_> {
    /// Takes the text of the value that `event` begins; `meaning` is that of its key. The depth limit of the reader
    /// bounds the recursion.
    fn collect(&mut self, event: Event<'b>, under: Meaning) -> Result<(), BadRequest> {
        match event {
            Event::String(string) => {
                if under == Meaning::Word && is_word(string.raw()) {
                    return Ok(());
                }
                if under == Meaning::Attachment {
                    self.uncounted += string.raw().len().saturating_sub(ATTACHMENT);
                }
                self.text.push(string);
            }
            Event::ArrayStart => loop {
                match self.reader.read()? {
                    Event::ArrayEnd => break,
                    element => self.collect(element, under)?,
                }
            },
            Event::ObjectStart => {
                while let Event::Key(key) = self.reader.read()? {
                    let meaning = meaning(key.decoded(&mut self.name));
                    if meaning == Meaning::Unknown {
                        self.text.push(key);
                    }
                    let value = self.reader.read()?;
                    self.collect(value, meaning)?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}
