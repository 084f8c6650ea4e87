use std::borrow::Cow;
use std::ops::Range;

use proofgate_json::{Event, JsonError, Reader, Workspace, equals_but_for_case};

use crate::bad_request::{BadRequest, Field};
use crate::body_text::BodyText;
use crate::field_names::{Meaning, is_word, meaning};

/// What an attachment counts for at most in an estimate, in bytes of text: an image or a recording costs some thousand
/// tokens whatever its encoded size.
const ATTACHMENT: usize = 8_000;

/// The fields of a body that are read, and of its `stream_options`.
const READ: [&str; 7] = [
    "model",
    "messages",
    "stream",
    "stream_options",
    "max_tokens",
    "max_completion_tokens",
    "n",
];
const INCLUDE_USAGE: &str = "include_usage";

/// What is read from the body of `POST /v1/chat/completions` to route it and to limit it.
#[derive(Debug, PartialEq, Eq)]
pub struct ChatRequest<'b> {
    /// The model that the client asks for.
    pub model: Cow<'b, str>,
    /// Whether the answer is to be streamed as server-sent events.
    pub stream: bool,
    /// Whether a streamed answer is to end with its usage (`stream_options.include_usage`).
    pub include_usage: bool,
    /// What `stream_options` is made of.
    stream_options: StreamOptions,
    /// How many tokens the answer may have: the larger of `max_tokens` and `max_completion_tokens`.
    pub max_tokens: Option<u64>,
    /// How many answers are asked for.
    pub n: u32,
    /// How many messages there are.
    pub messages: usize,
    model_value: Range<usize>,
    /// Bytes of the text and of the attachments, each of these counted with at most [`ATTACHMENT`].
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
    /// The text holds every string, every number of nine or more characters and every key of the body except names of the API as keys, the value of `model`, and
    /// values of `role` and `type` that are single words.
    ///
    /// # Errors
    /// [`BadRequest`] when the body is not a JSON object with a model, when it has more than
    /// [`MOST_STRINGS`](crate::MOST_STRINGS) strings, when a field that is read has a wrong type, or when a name is that of
    /// such a field but for its case. A field that is `null` counts as absent, except `model` and `messages`.
    pub fn read(body: &'b [u8], workspace: &mut Workspace, text: &mut BodyText) -> Result<Self, BadRequest> {
        Self::read_text(Self::text_of(body)?, workspace, text)
    }

    /// The first part of [`read`](ChatRequest::read): a body as text.
    ///
    /// # Errors
    /// [`BadRequest`] when it is not UTF-8.
    pub fn text_of(body: &'b [u8]) -> Result<&'b str, BadRequest> {
        std::str::from_utf8(body).map_err(|error| {
            let at = error.valid_up_to();
            BadRequest::InvalidJson(JsonError::InvalidUtf8 { at })
        })
    }

    /// The second part of [`read`](ChatRequest::read), of a body that is text.
    ///
    /// # Errors
    /// As for [`read`](ChatRequest::read).
    pub fn read_text(
        body: &'b str,
        workspace: &mut Workspace,
        text: &mut BodyText,
    ) -> Result<Self, BadRequest> {
        text.clear();
        let mut walk = Walk {
            reader: Reader::of_text(body, workspace)?,
            text,
            name: String::new(),
            uncounted: 0,
            left_out: 0,
        };
        if walk.reader.read()? != Event::ObjectStart {
            return Err(BadRequest::NotAnObject);
        }
        let mut request = ChatRequest {
            model: Cow::Borrowed(""),
            stream: false,
            include_usage: false,
            stream_options: StreamOptions::Absent,
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
                walk.text.push_key(key);
            }
            let event = walk.reader.read()?;
            request.field(&mut walk, field, event, meaning)?;
            walk.name = name;
        }
        request.counted_bytes = walk.text.text().len().saturating_sub(walk.uncounted) + walk.left_out;
        walk.reader.finish()?;
        if text.overflowed() {
            return Err(BadRequest::TooManyStrings);
        }
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
                        message => walk.message(message)?,
                    }
                    self.messages += 1;
                }
            }
            "stream" => self.stream = boolean(event, Field::Stream)?,
            "stream_options" => match event {
                Event::Null => self.stream_options = StreamOptions::Null(walk.behind("null")),
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
            _ => {
                if let Some(read) = READ.into_iter().find(|read| equals_but_for_case(name, read)) {
                    return Err(BadRequest::AmbiguousName(read));
                }
                walk.collect(event, meaning)?;
            }
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

    fn limit_tokens(&mut self, limit: Option<u64>) {
        self.max_tokens = self.max_tokens.max(limit);
    }

    /// Where in the body the value of `model` stands, quotes included: the bytes that another name replaces.
    pub fn model_value(&self) -> Range<usize> {
        self.model_value.clone()
    }

    /// The edit by which a streamed answer brings its usage: a range of the body and what takes its place there. `None`
    /// when it does anyway, or is not streamed.
    ///
    /// `model_value` is where the value of `model` stands in the body that is edited. When that is not the body that was
    /// read, because rules have replaced text in it, the edit is known only for a request without `stream_options`: read
    /// the other body to know it.
    pub fn usage_edit(&self, model_value: &Range<usize>) -> Option<(Range<usize>, &'static [u8])> {
        if !self.stream || self.include_usage {
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
    text: &'t mut BodyText,
    /// Room for a key that has to be unescaped.
    name: String,
    /// Bytes of the text that do not count in an estimate, and bytes that count and are not in the text.
    uncounted: usize,
    left_out: usize,
}

impl<'b> Walk<'b, '_, '_> {
    /// Where the word that was just read stands.
    fn behind(&self, word: &str) -> Range<usize> {
        let end = self.reader.offset();
        end - word.len()..end
    }

    /// Takes the text of a message, and notes whether it holds instructions for the model.
    fn message(&mut self, event: Event<'b>) -> Result<(), BadRequest> {
        let Event::ObjectStart = event else {
            return self.collect(event, Meaning::Field);
        };
        let start = self.text.next_start();
        let mut is_instructions = false;
        while let Event::Key(key) = self.reader.read()? {
            let name = key.decoded(&mut self.name);
            let (meaning, is_role) = (meaning(name), name == "role");
            if meaning == Meaning::Unknown {
                self.text.push_key(key);
            }
            let value = self.reader.read()?;
            if let Event::String(role) = value
                && is_role
            {
                is_instructions = matches!(role.decoded(&mut self.name), "system" | "developer");
            }
            self.collect(value, meaning)?;
        }
        if is_instructions {
            self.text.mark_instructions(start);
        }
        Ok(())
    }

    /// Takes the text of the value that `event` begins; `meaning` is that of its key. The depth limit of the reader
    /// bounds the recursion.
    fn collect(&mut self, event: Event<'b>, under: Meaning) -> Result<(), BadRequest> {
        match event {
            Event::String(string) => {
                if under == Meaning::Word && is_word(string.raw()) {
                    return Ok(());
                }
                let (length, expected) = (string.raw().len(), under == Meaning::Attachment);
                if !self.text.push_unless_data(string, expected) {
                    self.left_out += length.min(ATTACHMENT);
                } else if expected {
                    self.uncounted += length.saturating_sub(ATTACHMENT);
                }
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
                        self.text.push_key(key);
                    }
                    let value = self.reader.read()?;
                    self.collect(value, meaning)?;
                }
            }
            Event::Number(number) => self.text.push_number(number, self.reader.offset()),
            _ => {}
        }
        Ok(())
    }
}
