//! A client of OpenAI's chat completions, and a provider of Anthropic's messages.
//!
//! What cannot pass: more than one answer, audio in or out, files and answers that the other provider keeps, its web search and
//! its moderation, tools with a grammar, the older `functions`; a request with any of these is refused. Penalties, `seed`,
//! `logprobs` and the like follow [`Target::untranslatable`](proofgate_dialect::Target::untranslatable); what says nothing to
//! the model is left out. System and developer messages lose their place among the others: they become `system`, in their
//! order, as at Anthropic's own endpoint for OpenAI's clients. `temperature`, `top_p` and `top_k` pass as far as the model
//! takes them, a temperature above 1 as 1 where it may be changed. `response_format` with a schema is `output_config.format`
//! and loses its name; `json_object` is an instruction, as Anthropic has no such mode. `reasoning_effort` is
//! `output_config.effort`, `minimal` its lowest, `none` disables thinking; models that have no effort think with a budget,
//! unless the request excludes it. Keywords of schemas that Anthropic refuses stand in descriptions.
//!
//! Anthropic's `cache_control` passes as an extra field of messages, parts, tools, calls and the request; so do `thinking`
//! and `top_k`. Thinking is `reasoning_content` of an answer for those who read, and `reasoning_details` for those who
//! continue: a list of `{"type":"reasoning.text","index","text","signature"}` and `{"type":"reasoning.encrypted","index","data"}`, as
//! OpenRouter has it, streamed in fragments by `index`, that a client sends back with the assistant's message. It returns byte
//! for byte, before all else of its turn, the only order that a chat message can tell. Anthropic's own names of both are read, too.
//!
//! Of an answer, citations and what Anthropic's own tools did are lost; a client cannot ask for them either.

mod answer;
mod error;
mod event;
mod finish;
mod messages;
mod reasoning;
mod request;
mod stream;
pub(crate) mod tokens;
mod tools;

pub use answer::translate_response;
pub use error::translate_error;
pub use request::translate_request;
pub use stream::Stream;
