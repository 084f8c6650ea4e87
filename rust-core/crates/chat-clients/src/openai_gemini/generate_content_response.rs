use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use proofgate_dialect::{ResponseError, Usage};

/// A `GenerateContentResponse`: a whole answer, or an event of a streamed one. Strings are kept as raw JSON.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GenerateContentResponse<'b> {
    #[serde(borrow)]
    pub candidates: Option<Vec<Candidate<'b>>>,
    #[serde(borrow)]
    pub prompt_feedback: Option<PromptFeedback<'b>>,
    pub usage_metadata: Option<UsageMetadata>,
    #[serde(borrow)]
    pub response_id: Option<&'b RawValue>,
    /// Sent by the provider instead of an answer if it failed after its response headers were sent.
    pub error: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Candidate<'b> {
    pub index: Option<u32>,
    #[serde(borrow)]
    pub content: Option<Content<'b>>,
    #[serde(borrow)]
    finish_reason: Option<&'b RawValue>,
    #[serde(borrow)]
    pub logprobs_result: Option<Logprobs<'b>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Content<'b> {
    #[serde(borrow)]
    pub parts: Option<Vec<Part<'b>>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Part<'b> {
    #[serde(borrow)]
    pub text: Option<&'b RawValue>,
    pub thought: Option<bool>,
    #[serde(borrow)]
    pub thought_signature: Option<&'b RawValue>,
    #[serde(borrow)]
    pub function_call: Option<FunctionCall<'b>>,
    #[serde(borrow)]
    pub inline_data: Option<InlineData<'b>>,
    #[serde(borrow)]
    pub file_data: Option<FileData<'b>>,
}

/// Inline data in base64.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InlineData<'b> {
    #[serde(borrow)]
    pub mime_type: Option<&'b RawValue>,
    #[serde(borrow)]
    pub data: Option<&'b RawValue>,
}

/// Data at a URL.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FileData<'b> {
    #[serde(borrow)]
    pub mime_type: Option<&'b RawValue>,
    #[serde(borrow)]
    pub file_uri: Option<&'b RawValue>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FunctionCall<'b> {
    #[serde(borrow)]
    pub id: Option<&'b RawValue>,
    #[serde(borrow)]
    pub name: Option<&'b RawValue>,
    #[serde(borrow)]
    pub args: Option<&'b RawValue>,
    /// Fragments of the arguments, which are sent only on request.
    pub partial_args: Option<IgnoredAny>,
    pub will_continue: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PromptFeedback<'b> {
    #[serde(borrow)]
    block_reason: Option<&'b RawValue>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Logprobs<'b> {
    #[serde(borrow)]
    pub chosen_candidates: Option<Vec<Token<'b>>>,
    #[serde(borrow)]
    pub top_candidates: Option<Vec<Alternatives<'b>>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Alternatives<'b> {
    #[serde(borrow)]
    pub candidates: Option<Vec<Token<'b>>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Token<'b> {
    #[serde(borrow)]
    pub token: Option<&'b RawValue>,
    #[serde(borrow)]
    pub log_probability: Option<&'b RawValue>,
}

/// The tokens so far. Every event has the totals so far, so they replace the totals of earlier
/// events.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UsageMetadata {
    /// The tokens of the prompt, including tokens read from a cache.
    prompt_token_count: Option<u64>,
    cached_content_token_count: Option<u64>,
    tool_use_prompt_token_count: Option<u64>,
    /// The tokens of the candidates, excluding thoughts.
    candidates_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
    total_token_count: Option<u64>,
}

/// The reason why a candidate ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FinishReason {
    /// A normal end. Gemini reports it after function calls too.
    Stop,
    Length,
    Filtered,
    /// An end without a counterpart in OpenAI's API, with Gemini's name.
    Abnormal(&'static str),
}

impl FinishReason {
    /// Returns OpenAI's `finish_reason`.
    pub fn openai_name(self, has_calls: bool) -> &'static str {
        match self {
            FinishReason::Stop if has_calls => "tool_calls",
            FinishReason::Stop => "stop",
            FinishReason::Length => "length",
            FinishReason::Filtered | FinishReason::Abnormal(_) => "content_filter",
        }
    }

    /// Appends a choice's `finish_reason`, and Gemini's own if it is more specific.
    pub fn write(self, has_calls: bool, out: &mut Vec<u8>) {
        out.extend_from_slice(br#","finish_reason":""#);
        out.extend_from_slice(self.openai_name(has_calls).as_bytes());
        out.push(b'"');
        if let FinishReason::Abnormal(native) = self {
            out.extend_from_slice(br#","native_finish_reason":""#);
            out.extend_from_slice(native.as_bytes());
            out.push(b'"');
        }
    }
}

impl Candidate<'_> {
    /// Returns the reason why it ended; `None` if it has not ended.
    ///
    /// # Errors
    /// Returns [`ResponseError::Malformed`] if the reason is not a word.
    pub fn parse_finish_reason(&self) -> Result<Option<FinishReason>, ResponseError> {
        let Some(reason) = self.finish_reason else {
            return Ok(None);
        };
        Ok(Some(match string_contents(reason)? {
            "FINISH_REASON_UNSPECIFIED" => return Ok(None),
            "MAX_TOKENS" | "CONTINUATION" => FinishReason::Length,
            "SAFETY"
            | "RECITATION"
            | "LANGUAGE"
            | "BLOCKLIST"
            | "PROHIBITED_CONTENT"
            | "SPII"
            | "MODEL_ARMOR"
            | "IMAGE_SAFETY"
            | "IMAGE_PROHIBITED_CONTENT"
            | "IMAGE_RECITATION"
            | "IMAGE_OTHER" => FinishReason::Filtered,
            reason => match ABNORMAL_REASONS.iter().find(|known| **known == reason) {
                Some(known) => FinishReason::Abnormal(known),
                // A reason of a later version: the answer has ended, and there is no sign of a failure.
                None => FinishReason::Stop,
            },
        }))
    }
}

/// Reasons caused by the model and not by a filter.
const ABNORMAL_REASONS: [&str; 9] = [
    "MALFORMED_FUNCTION_CALL",
    "MALFORMED_RESPONSE",
    "UNEXPECTED_TOOL_CALL",
    "TOO_MANY_TOOL_CALLS",
    "MISSING_THOUGHT_SIGNATURE",
    "NO_IMAGE",
    "ESCALATION",
    "PUP_LIMITED_DISABLED",
    "OTHER",
];

impl GenerateContentResponse<'_> {
    /// Returns whether the prompt was blocked.
    pub fn is_blocked(&self) -> bool {
        let reason = self
            .prompt_feedback
            .as_ref()
            .and_then(|feedback| feedback.block_reason);
        reason.is_some_and(|reason| reason.get() != r#""BLOCKED_REASON_UNSPECIFIED""#)
    }
}

impl UsageMetadata {
    /// Applies a later event.
    pub fn update(&mut self, later: &UsageMetadata) {
        for (now, later) in [
            (&mut self.prompt_token_count, later.prompt_token_count),
            (
                &mut self.cached_content_token_count,
                later.cached_content_token_count,
            ),
            (
                &mut self.tool_use_prompt_token_count,
                later.tool_use_prompt_token_count,
            ),
            (&mut self.candidates_token_count, later.candidates_token_count),
            (&mut self.thoughts_token_count, later.thoughts_token_count),
            (&mut self.total_token_count, later.total_token_count),
        ] {
            *now = later.or(*now);
        }
    }

    /// Returns the usage; `None` if no counts were reported.
    ///
    /// Some models count thoughts only in the total. The part of the total beyond prompt and
    /// candidates is reasoning.
    pub fn usage(&self) -> Option<Usage> {
        let prompt = self.prompt_token_count;
        prompt
            .or(self.candidates_token_count)
            .or(self.total_token_count)?;
        let input = prompt
            .unwrap_or(0)
            .saturating_add(self.tool_use_prompt_token_count.unwrap_or(0));
        let thoughts = self.thoughts_token_count.unwrap_or(0);
        let output = self.candidates_token_count.unwrap_or(0).saturating_add(thoughts);
        let total = self.total_token_count.filter(|_| prompt.is_some()).unwrap_or(0);
        let unnamed = total.saturating_sub(input.saturating_add(output));
        Some(Usage {
            input,
            cache_read: self.cached_content_token_count.unwrap_or(0).min(input),
            cache_write: 0,
            output: output.saturating_add(unnamed),
            reasoning: thoughts.saturating_add(unnamed),
        })
    }
}

/// Returns the contents of a string without its quotes, with escapes unchanged.
pub(super) fn string_contents(string: &RawValue) -> Result<&str, ResponseError> {
    let text = string
        .get()
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    text.ok_or(ResponseError::Malformed("a string was expected"))
}
