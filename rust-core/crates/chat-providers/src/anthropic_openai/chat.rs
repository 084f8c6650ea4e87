//! The shape of whole chat answers and of the chunks of streamed answers, reduced to the members
//! that are read. Strings are kept raw, so that they are copied byte for byte. Values whose type
//! differs between providers are left raw.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Visitor};
use serde_json::value::RawValue;

use super::encrypted_reasoning::{Detail, EncryptedReasoning, details};
use super::json::unquoted;
use crate::thought_signature::signature;
use proofgate_dialect::ResponseError;

/// A whole answer, or a chunk.
#[derive(Debug, Deserialize)]
pub(crate) struct ChatCompletion<'a> {
    #[serde(borrow)]
    pub id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub choices: Option<Vec<Choice<'a>>>,
    pub usage: Option<TokenUsage>,
    #[serde(borrow)]
    pub x_groq: Option<GroqExtension<'a>>,
    #[serde(borrow)]
    pub error: Option<&'a RawValue>,
    #[serde(borrow)]
    object: Option<&'a RawValue>,
}

/// Groq's extension.
#[derive(Debug, Deserialize)]
pub(crate) struct GroqExtension<'a> {
    pub usage: Option<TokenUsage>,
    #[serde(borrow)]
    pub error: Option<&'a RawValue>,
}

/// One of the requested answers.
#[derive(Debug, Deserialize)]
pub(crate) struct Choice<'a> {
    index: Option<u64>,
    #[serde(borrow)]
    pub message: Option<ChatMessage<'a>>,
    #[serde(borrow)]
    pub delta: Option<ChatMessage<'a>>,
    #[serde(borrow)]
    finish_reason: Option<&'a RawValue>,
    #[serde(borrow)]
    pub logprobs: Option<&'a RawValue>,
    #[serde(borrow)]
    pub error: Option<&'a RawValue>,
}

/// The model's message, or a piece of it.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct ChatMessage<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    refusal: Option<&'a RawValue>,
    #[serde(borrow)]
    pub reasoning: Option<&'a RawValue>,
    #[serde(borrow)]
    pub reasoning_content: Option<&'a RawValue>,
    #[serde(borrow)]
    pub reasoning_details: Option<&'a RawValue>,
    #[serde(borrow)]
    pub annotations: Option<&'a RawValue>,
    #[serde(borrow)]
    pub images: Option<&'a RawValue>,
    #[serde(borrow)]
    pub extra_content: Option<&'a RawValue>,
    #[serde(borrow)]
    pub tool_calls: Option<Vec<ToolCall<'a>>>,
}

/// A tool call, or a piece of one.
#[derive(Debug, Deserialize)]
pub(crate) struct ToolCall<'a> {
    pub index: Option<u64>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    function: Option<Function<'a>>,
    #[serde(borrow)]
    pub extra_content: Option<&'a RawValue>,
}

/// The called tool and its arguments.
#[derive(Debug, Deserialize)]
struct Function<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// Token counts under the names of chat completions.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub(crate) struct TokenUsage {
    #[serde(default)]
    pub prompt_tokens: TokenCount,
    #[serde(default)]
    pub completion_tokens: TokenCount,
    #[serde(default)]
    pub total_tokens: TokenCount,
    pub prompt_tokens_details: Option<PromptDetails>,
    pub completion_tokens_details: Option<CompletionDetails>,
    /// DeepSeek's name for cached tokens.
    #[serde(default)]
    pub prompt_cache_hit_tokens: TokenCount,
}

/// Parts of the prompt's tokens.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub(crate) struct PromptDetails {
    #[serde(default)]
    pub cached_tokens: TokenCount,
    #[serde(default)]
    pub cache_write_tokens: TokenCount,
}

/// Parts of the answer's tokens.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub(crate) struct CompletionDetails {
    #[serde(default)]
    pub reasoning_tokens: TokenCount,
}

/// A number of tokens; `null` and negative numbers are 0.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TokenCount(pub u64);

impl<'a> Deserialize<'a> for TokenCount {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        struct Lenient;
        impl Visitor<'_> for Lenient {
            type Value = TokenCount;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number")
            }
            fn visit_u64<E>(self, count: u64) -> Result<TokenCount, E> {
                Ok(TokenCount(count))
            }
            fn visit_i64<E>(self, count: i64) -> Result<TokenCount, E> {
                Ok(TokenCount(u64::try_from(count).unwrap_or(0)))
            }
            fn visit_f64<E>(self, count: f64) -> Result<TokenCount, E> {
                // The conversion saturates: negative values and NaN become 0.
                Ok(TokenCount(count as u64))
            }
            fn visit_unit<E>(self) -> Result<TokenCount, E> {
                Ok(TokenCount(0))
            }
        }
        deserializer.deserialize_any(Lenient)
    }
}

impl<'a> ChatCompletion<'a> {
    /// Reads an answer or a chunk.
    pub(crate) fn read(data: &'a [u8]) -> Result<Self, ResponseError> {
        serde_json::from_slice(data).map_err(|_| ResponseError::Malformed("it is not a chat completion"))
    }

    /// Returns the error that the answer reports, if any; `whole` if the answer itself is an error.
    pub(crate) fn error<'e>(&'e self, whole: &'e str) -> Option<&'e str> {
        let groq = self.x_groq.as_ref().and_then(|groq| groq.error);
        let chosen = self.choice().and_then(|choice| choice.error);
        let error = self.error.or(groq).or(chosen).map(RawValue::get);
        let error = error.filter(|error| !matches!(*error, "\"\"" | "false"));
        error.or_else(|| (unquoted(self.object) == Some("error")).then_some(whole))
    }

    /// Returns the answer; there is only one.
    pub(crate) fn choice(&self) -> Option<&Choice<'a>> {
        let choices = self.choices.as_deref().unwrap_or_default();
        choices.iter().find(|choice| choice.index.unwrap_or(0) == 0)
    }

    /// Returns the usage. Groq reports it twice.
    pub(crate) fn usage(&self) -> Option<TokenUsage> {
        self.usage.or(self.x_groq.as_ref().and_then(|groq| groq.usage))
    }
}

impl Choice<'_> {
    /// Returns the reason why the model stopped, if it did.
    pub(crate) fn finish_reason(&self) -> Option<&str> {
        unquoted(self.finish_reason)
    }
}

/// A piece of the model's output, JSON-escaped and without quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputFragment<'a> {
    Thinking(&'a str),
    Text(&'a str),
    /// Text of a refusal.
    Refusal(&'a str),
    /// Encrypted reasoning for the preceding thinking.
    EncryptedReasoning(EncryptedReasoning<'a>),
}

/// The separator between two parts of one thought.
const THOUGHT_SEPARATOR: OutputFragment<'_> = OutputFragment::Thinking("\\n\\n");

impl<'a> ChatMessage<'a> {
    /// Visits thinking and text in their intended order, without empty pieces.
    pub(crate) fn for_each_fragment<E: From<ResponseError>>(
        &self,
        mut visit: impl FnMut(OutputFragment<'a>) -> Result<(), E>,
    ) -> Result<(), E> {
        let details = details(self.reasoning_details);
        // Some providers send their reasoning again as details.
        if !details.iter().any(|detail| matches!(detail, Detail::Readable(_))) {
            self.visit_plain_thinking(&mut visit)?;
        }
        let mut goes_on = false;
        for detail in details {
            match detail {
                Detail::Readable(text) => {
                    if std::mem::replace(&mut goes_on, true) {
                        visit(THOUGHT_SEPARATOR)?;
                    }
                    visit(OutputFragment::Thinking(text))?;
                }
                Detail::Encrypted(sealed) => {
                    goes_on = false;
                    visit(OutputFragment::EncryptedReasoning(sealed))?;
                }
            }
        }
        self.visit_content(&mut visit)
    }

    /// Like [`for_each_fragment`](Self::for_each_fragment), but without `reasoning_details`, for
    /// callers that read them separately.
    pub(crate) fn for_each_fragment_except_details<E: From<ResponseError>>(
        &self,
        mut visit: impl FnMut(OutputFragment<'a>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.visit_plain_thinking(&mut visit)?;
        self.visit_content(&mut visit)
    }

    fn visit_plain_thinking<E>(
        &self,
        visit: &mut impl FnMut(OutputFragment<'a>) -> Result<(), E>,
    ) -> Result<(), E> {
        // Some providers send their reasoning under both names.
        let reasoning = unquoted(self.reasoning_content).or(unquoted(self.reasoning));
        reasoning.map_or(Ok(()), |thinking| visit(OutputFragment::Thinking(thinking)))
    }

    fn visit_content<E: From<ResponseError>>(
        &self,
        visit: &mut impl FnMut(OutputFragment<'a>) -> Result<(), E>,
    ) -> Result<(), E> {
        match self
            .content
            .map(|content| (content.get().as_bytes().first(), content))
        {
            None => {}
            Some((Some(b'"'), content)) => {
                if let Some(text) = unquoted(Some(content)) {
                    visit(OutputFragment::Text(text))?;
                }
            }
            Some((Some(b'['), content)) => visit_chunks(content, visit)?,
            Some(_) => return Err(ResponseError::Malformed("content").into()),
        }
        match unquoted(self.refusal) {
            Some(refusal) => visit(OutputFragment::Refusal(refusal)),
            None => Ok(()),
        }
    }
}

/// A part of content in list form, as Mistral sends it.
#[derive(Debug, Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    thinking: Option<&'a RawValue>,
}

fn visit_chunks<'a, E: From<ResponseError>>(
    content: &'a RawValue,
    visit: &mut impl FnMut(OutputFragment<'a>) -> Result<(), E>,
) -> Result<(), E> {
    for chunk in chunks(content)? {
        match chunk.thinking {
            Some(thinking) if thinking.get().starts_with('[') => {
                for chunk in chunks(thinking)? {
                    if let Some(text) = unquoted(chunk.text) {
                        visit(OutputFragment::Thinking(text))?;
                    }
                }
            }
            thinking => {
                if let Some(text) = unquoted(thinking) {
                    visit(OutputFragment::Thinking(text))?;
                }
            }
        }
        if let Some(text) = unquoted(chunk.text) {
            visit(OutputFragment::Text(text))?;
        }
    }
    Ok(())
}

fn chunks(list: &RawValue) -> Result<Vec<Chunk<'_>>, ResponseError> {
    serde_json::from_str(list.get()).map_err(|_| ResponseError::Malformed("content"))
}

impl<'a> ToolCall<'a> {
    /// Returns Gemini's signature of the call.
    pub(super) fn encrypted_reasoning(&self) -> Option<EncryptedReasoning<'a>> {
        Some(EncryptedReasoning::for_call(
            self.id()?,
            signature(self.extra_content)?,
        ))
    }

    pub(crate) fn id(&self) -> Option<&'a str> {
        unquoted(self.id)
    }

    pub(crate) fn name(&self) -> Option<&'a str> {
        unquoted(self.function.as_ref()?.name)
    }

    /// Returns the arguments: a string, an object (as old versions of TGI send it), or nothing.
    pub(crate) fn arguments(&self) -> Result<Arguments<'a>, ResponseError> {
        let Some(arguments) = self.function.as_ref().and_then(|function| function.arguments) else {
            return Ok(Arguments::None);
        };
        match arguments.get().as_bytes().first() {
            Some(b'"') => Ok(unquoted(Some(arguments)).map_or(Arguments::None, Arguments::String)),
            Some(b'{') => Ok(Arguments::Object(arguments.get())),
            _ => Err(ResponseError::Malformed(
                "the arguments of a tool call are invalid",
            )),
        }
    }
}

/// The arguments of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Arguments<'a> {
    None,
    /// The contents of the string that holds them, without its quotes.
    String(&'a str),
    /// The object itself.
    Object(&'a str),
}

impl Arguments<'_> {
    /// Returns whether the provider sent no arguments.
    pub(crate) fn are_blank(self) -> bool {
        match self {
            Arguments::None => true,
            Arguments::String(text) => text.trim_ascii().is_empty(),
            Arguments::Object(_) => false,
        }
    }
}
