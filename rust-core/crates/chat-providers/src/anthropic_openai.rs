//! Translates between a client of Anthropic's messages and a provider of OpenAI's chat completions.
//!
//! Refused requests: a prefilled answer, `max_tokens` of 0 (it warms a cache), tools that Anthropic
//! defines (`web_search`, `bash` …) and their blocks, documents by URL, files and containers of
//! Anthropic's store. Images and documents in a tool result are moved to the user's message after
//! all results, because only user messages can contain them. Thinking of earlier turns with a
//! signature is signed for its own provider: it is left out, and named in
//! [`RequestContext::dropped`](proofgate_dialect::RequestContext::dropped_fields) whatever the
//! target's policy. Thinking without a signature becomes `reasoning_content` again, which DeepSeek
//! and Kimi require. An answer loses the matched stop sequence and the provider's citations.
//! Thinking has an empty signature, unless encrypted reasoning came with it (`reasoning_details`):
//! then the signature contains the encrypted reasoning, in one block for each element.
//!
//! Texts of several blocks are joined by line feeds for roles that not all providers accept as
//! parts (system, assistant, tool), and stay parts in the user's turns. Consecutive turns of one
//! role are merged, as at Anthropic; in a merged turn the tool results come first. A result that is
//! an error begins with `Error: `, because chat completions have no flag for it.
//!
//! The limit is sent as `max_completion_tokens` to models with OpenAI's own names (`gpt-5`, `o3`),
//! because the reasoning models among them refuse `max_tokens`, and as `max_tokens` to all others,
//! because OpenAI-compatible providers refuse the new name (Mistral) or ignore it. OpenAI's own
//! models from `gpt-5.4` on accept tools in chat completions only without an effort, so requests
//! with tools have the effort `none`.
//!
//! [`translate_for_responses`] writes a chat request that `openai_responses` translates for
//! `/v1/responses`, as decided by `openai_responses::requires_responses_api`: effort and tools stay
//! together, `thinking` is kept, tool results keep their images and documents, documents may have
//! URLs, and thinking with a signature of the gateway becomes `reasoning_details` again.
//! [`translate_for_other_apis`] does the same for all other modules that read chat requests, and
//! [`translate_for_gemini`] also requests thoughts. [`translate_response`] and [`Stream`] are the
//! same for all.

pub(crate) mod arguments;
mod block_errors;
mod block_events;
mod blocks;
mod body;
pub(crate) mod chat;
mod content;
mod destination;
mod dropped_fields;
mod encrypted_reasoning;
pub(crate) mod error;
pub(crate) mod finish_reason;
pub(crate) mod json;
mod message_writer;
mod messages;
mod mismatch;
mod output_options;
mod request;
mod response;
mod stream;
mod tool_results;
mod tools;
pub(crate) mod usage;

pub(crate) use encrypted_reasoning::SIGNATURE_PREFIX as SEALED;
pub use error::translate_error;
pub use request::{
    translate_for_gemini, translate_for_other_apis, translate_for_responses, translate_request,
};
pub use response::translate_response;
pub use stream::Stream;
