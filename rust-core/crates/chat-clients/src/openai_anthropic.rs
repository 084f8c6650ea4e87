//! Translates between a client of OpenAI's chat completions and a provider of Anthropic's messages.
//!
//! Refused requests: more than one answer, audio input or output, files and answers stored at
//! OpenAI, OpenAI's web search and moderation, tools with a grammar, the older `functions`.
//! [`Target::untranslatable`](proofgate_dialect::Target::untranslatable) determines the handling of
//! penalties, `seed`, `logprobs` and similar fields; fields that do not reach the model are left
//! out. System and developer messages lose their position among the other messages: they become
//! `system`, in their order, as at Anthropic's own endpoint for OpenAI's clients. `temperature`,
//! `top_p` and `top_k` are kept if the model supports them; a temperature above 1 becomes 1 if it
//! may be changed. `response_format` with a schema becomes `output_config.format` and loses its
//! name; `json_object` becomes an instruction, because Anthropic has no such mode.
//! `reasoning_effort` becomes `output_config.effort`: `minimal` becomes the lowest level, and
//! `none` disables thinking. Models without an effort think with a budget, unless the request
//! excludes it. Schema keywords that Anthropic refuses are moved to descriptions.
//!
//! Clients can send Anthropic's `cache_control` as an extra field of messages, parts, tools, calls
//! and the request, and also `thinking` and `top_k`. Thinking becomes `reasoning_content` of an
//! answer for display, and `reasoning_details` for continuing the conversation: a list of
//! `{"type":"reasoning.text","index","text","signature"}` and
//! `{"type":"reasoning.encrypted","index","data"}`, as in OpenRouter's API, streamed in fragments
//! by `index`. A client sends the list back with the assistant's message. Anthropic receives it
//! byte for byte, before all other content of its turn: the only order that a chat message can
//! express. Anthropic's own types `thinking` and `redacted_thinking` are accepted in the list, too.
//!
//! Citations and the results of Anthropic's own tools in an answer are lost; a client cannot request them either.

mod error;
mod event;
mod finish_reason;
mod messages;
mod reasoning;
mod request;
mod response;
mod stream;
pub(crate) mod tokens;
mod tools;

pub use error::translate_error;
pub use request::translate_request;
pub use response::translate_response;
pub use stream::Stream;
