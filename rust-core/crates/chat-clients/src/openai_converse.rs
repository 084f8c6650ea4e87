//! Translates between a client of OpenAI's chat completions and Amazon Bedrock's Converse.
//!
//! In Converse, the path instead of the body names the model and determines whether the answer is
//! streamed. The caller reads both from [`Target::model`](proofgate_dialect::Target::model) and
//! [`RequestContext::stream`](proofgate_dialect::RequestContext::stream).
//!
//! Changes to a request: `system` and `developer` messages are moved before the conversation;
//! consecutive turns of one role are merged; tool results come first in their turn; empty and blank
//! text, and messages without other content, are left out, because Converse refuses them; a
//! document's name keeps only the characters that Converse allows; ids of tool calls that Converse
//! would refuse are replaced, both in the call and in its result. `cache_control` and
//! `prompt_cache_breakpoint` become cache points; only `cache_control.ttl` sets a lifetime.
//!
//! Refused requests: more than one answer (`n`), files and images that are not in the request
//! itself (Converse fetches no URL and has no `file_id`), audio in answers, custom tools and tools
//! that OpenAI runs, functions in the style of 2023.
//! [`Target::untranslatable`](proofgate_dialect::Target::untranslatable) determines whether
//! preferences are refused or left out: `seed` and penalties, `logprobs`, a `temperature` above 1,
//! `parallel_tool_calls: false`. Fields that do not reach the model are left out: names of
//! speakers, user identifiers, reasoning of other providers, unknown fields and parts.
//! `json_object` becomes an instruction. A conversation with tool calls gets a placeholder tool
//! that is not to be called if the request has no tools or `tool_choice` is `none`, because
//! Converse refuses such a conversation without tools.
//!
//! If the model's output could not be read, the finish reason is `content_filter`, and `native_finish_reason` has Converse's
//! name for it.
//!
//! Images, citations and the calls of tools that the provider ran itself are not passed to the client. Reasoning is sent
//! twice: its text in `reasoning_content`, and with its signature in `reasoning_details`, which the client sends back.

mod cache_points;
mod chunks;
mod error;
mod files;
mod finish_reason;
mod messages;
mod reasoning;
mod request;
mod response;
mod stream;
mod stream_events;
mod tools;
mod usage;

pub use error::translate_error;
pub use request::translate_request;
pub use response::translate_response;
pub use stream::{MAX_OPEN_TOOL_CALLS, Stream};

pub use proofgate_dialect::EventKind;
