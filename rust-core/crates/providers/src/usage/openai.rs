use serde::Deserialize;

use super::Usage;

/// The usage of a chat completion, a completion or an embedding.
#[derive(Deserialize)]
pub(super) struct Counted {
    prompt_tokens: u64,
    #[serde(default)]
    completion_tokens: u64,
    #[serde(default)]
    total_tokens: Option<u64>,
}

impl Counted {
    /// What a total has beyond its parts is reasoning, which some providers leave out of the completion (xAI).
    pub(super) fn usage(&self) -> Usage {
        Usage::of_parts(self.prompt_tokens, self.completion_tokens, self.total_tokens)
    }
}

/// The usage of a response.
#[derive(Deserialize)]
pub(super) struct ResponseUsage {
    input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
}

impl ResponseUsage {
    pub(super) fn usage(&self) -> Usage {
        Usage {
            prompt_tokens: self.input_tokens,
            completion_tokens: self.output_tokens,
        }
    }
}
