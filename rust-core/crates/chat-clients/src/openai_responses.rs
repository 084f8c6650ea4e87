//! A client of OpenAI's chat completions, and a provider of OpenAI's Responses.
//!
//! OpenAI's newer models take tools and an effort together at `/v1/responses` only, and some models exist nowhere else:
//! [`requires_responses_api`] reads a request and says so. The provider is asked to keep nothing (`store: false`); what it thought comes back
//! encrypted and is the client's to send again.
//!
//! * Messages become items in the same order, with the roles that they have; nothing is moved to `instructions`, so the
//!   cached prefix stays what it was. Results of tools may hold pictures and files. `max_tokens` and `max_completion_tokens` are
//!   `max_output_tokens`, at least 16. `strict` of a function is written as `false` where it is absent, since its default differs.
//! * Responses have no `stop`, `seed`, penalties or `logit_bias`: they follow
//!   [`Target::untranslatable`](proofgate_dialect::Target::untranslatable). More than one answer (`n`), audio, web search, the
//!   older `functions` and tools of other types are refused by name. `prediction`, `cache_control` and the `name` of a speaker
//!   are left out.
//! * A summary of the reasoning is asked for when the client wants to see thoughts: when the extra field `thinking`, in
//!   Anthropic's words, has `display: summarized`, or is `enabled` and has no `display`. OpenAI gives summaries to verified organizations
//!   alone. `budget_tokens` are an effort where the request names none.
//! * Reasoning is `reasoning_content` of an answer for those who read, and `reasoning_details` for those who continue: for each item
//!   `{"type":"reasoning.summary","index","id","format","summary"}` for each part of the summary and
//!   `{"type":"reasoning.encrypted","index","id","format","data"}`, with the format `openai-responses-v1`, as OpenRouter has it. It
//!   returns before all else of its message, the only order that a chat message can express. Without `data` it cannot return,
//!   because the provider has kept nothing.
//!
//! Several messages of one response are one `content`, with an empty line between them; their `phase` is lost. What OpenAI's own tools
//! did is not part of a chat completion, and a client cannot ask for them here. `moderation` passes, and acts at the provider; its results
//! are not part of the answer.

mod answer;
mod closing;
mod error;
mod event;
mod input;
mod items;
mod output;
mod reasoning;
mod request;
mod stream;
mod tools;
mod wants;

pub use answer::translate_response;
pub use error::translate_error;
pub use request::translate_request;
pub use stream::Stream;
pub use wants::requires_responses_api;
