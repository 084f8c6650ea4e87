//! A client of Anthropic's messages, and a provider of OpenAI's chat completions.
//!
//! What cannot pass: a prefilled answer, `max_tokens` of 0 (it warms a cache), tools that Anthropic defines (`web_search`,
//! `bash` …) and the blocks that come of them, documents by URL, files and containers of Anthropic's store. Images and
//! documents in a tool's result stand in the user's message behind all results, since only the user can show them. Thinking of
//! earlier turns that has a signature is signed for its own provider: it is left out, and named in
//! [`RequestContext::dropped`](proofgate_dialect::RequestContext::dropped) whatever the target says; without one it is `reasoning_content` again,
//! which DeepSeek and Kimi demand. On the way back are lost which stop sequence matched and the provider's citations. Thinking
//! has an empty signature, unless encrypted reasoning came with it (`reasoning_details`): its signature carries that, a block
//! for each.
//!
//! Texts of several blocks are joined by line feeds where a role is understood by all providers only as a string (system,
//! assistant, tool), and stay parts in the user's turns. Turns of one role in a row become one, as Anthropic has it; in
//! them the results of tools come first. A result that is an error begins with `Error: `, since chat has no flag for it.
//!
//! The limit is sent as `max_completion_tokens` to models with names of OpenAI's own (`gpt-5`, `o3`), whose reasoning ones
//! refuse `max_tokens`, and as `max_tokens` to all others, since kin refuse the new name (Mistral) or ignore it. OpenAI's own models
//! from `gpt-5.4` on take tools here only without an effort: theirs is `none` then.
//!
//! [`translate_for_responses`] writes a chat request that `openai_responses` takes on to `/v1/responses`, as
//! `openai_responses::wants` says: effort and tools stay together, `thinking` passes, results of tools keep their pictures and
//! documents, documents may have addresses, and thinking that a signature of ours stands behind is `reasoning_details` again.
//! [`translate_for_others`] does so for all other modules that read chat requests, and [`translate_for_gemini`] asks for thoughts
//! besides. [`translate_response`] and [`Stream`] are the same for all.

mod answer;
pub(crate) mod arguments;
mod block_events;
mod blocks;
mod body;
pub(crate) mod chat;
mod content;
pub(crate) mod error;
mod form;
pub(crate) mod json;
mod left_out;
mod messages;
mod misfit;
mod refused_blocks;
mod request;
mod results;
mod sealed;
pub(crate) mod stop;
mod stream;
mod tools;
mod turns;
pub(crate) mod usage;
mod way;

pub use answer::translate_response;
pub use error::translate_error;
pub use request::{translate_for_gemini, translate_for_others, translate_for_responses, translate_request};
pub(crate) use sealed::SIGNATURE_PREFIX as SEALED;
pub use stream::Stream;
