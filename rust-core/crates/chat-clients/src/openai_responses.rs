//! Translates between a client of OpenAI's chat completions and a provider of OpenAI's Responses.
//!
//! OpenAI's newer models accept tools together with an effort only at `/v1/responses`, and some
//! models exist only at this endpoint: [`requires_responses_api`] decides whether a request needs
//! it. The provider is asked to store nothing (`store: false`); its reasoning is returned encrypted
//! and is sent again by the client.
//!
//! * Messages become items in the same order and with the same roles; nothing is moved to `instructions`, so the cached
//!   prefix does not change. Tool results may have images and files. `max_tokens` and `max_completion_tokens` become
//!   `max_output_tokens`, at least 16. A function without `strict` gets `strict: false`, because the defaults differ.
//! * Responses has no `stop`, `seed`, penalties or `logit_bias`:
//!   [`Target::untranslatable`](proofgate_dialect::Target::untranslatable) determines their
//!   handling. More than one answer (`n`), audio, web search, the older `functions` and tools of
//!   other types are refused by name. `prediction`, `cache_control` and the `name` of a speaker are
//!   left out.
//! * A reasoning summary is requested if the client wants to see thoughts: if the extra field `thinking`, from Anthropic's
//!   API, has `display: summarized`, or is `enabled` without `display`. OpenAI gives summaries only to verified
//!   organizations. `budget_tokens` become an effort if the request names none.
//! * Reasoning becomes `reasoning_content` of an answer for display, and `reasoning_details` for
//!   continuing the conversation. For each item these are
//!   `{"type":"reasoning.summary","index","id","format","summary"}` for each part of the summary
//!   and `{"type":"reasoning.encrypted","index","id","format","data"}`, with the format
//!   `openai-responses-v1`, as in OpenRouter's API. The provider receives the reasoning before all
//!   other content of its message: the only order that a chat message can express. Reasoning
//!   without `data` cannot be sent back, because the provider has stored nothing.
//!
//! Several messages of one response become one `content`, with an empty line between them; their `phase` is lost. Results of
//! OpenAI's own tools are not part of a chat completion, and a client cannot request them here. `moderation` passes and
//! takes effect at the provider; its results are not part of the answer.

mod api_selection;
mod error;
mod event;
mod input;
mod item_completion;
mod items;
mod output;
mod reasoning;
mod request;
mod response;
mod stream;
mod tools;

pub use api_selection::requires_responses_api;
pub use error::translate_error;
pub use request::translate_request;
pub use response::translate_response;
pub use stream::Stream;
