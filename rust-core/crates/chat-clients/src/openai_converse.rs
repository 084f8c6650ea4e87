//! A client of OpenAI's chat completions, and Amazon Bedrock's Converse.
//!
//! The model, and whether the answer is streamed, stand in Converse's path and not in its body: the caller takes both from
//! [`Target::model`](proofgate_dialect::Target::model) and [`RequestContext::stream`](proofgate_dialect::RequestContext::stream).
//!
//! What is said otherwise than the client said it: `system` and `developer` messages stand before the conversation, wherever
//! they stood; turns of the same role are one; the results of tools stand first in theirs; text that is empty or blank, and a
//! message of nothing else, is left out, since Converse refuses it; a document's name keeps only the characters that Converse
//! allows; ids of tool calls that Converse would refuse are replaced, a call's and its result's alike. `cache_control` and
//! `prompt_cache_breakpoint` become cache points without a lifetime of their own, except `cache_control.ttl`.
//!
//! What cannot pass is refused: more than one answer (`n`), files and images that are not in the request itself (Converse
//! fetches no URL and knows no `file_id`), audio in answers, custom tools and those that OpenAI runs, functions in the style of
//! 2023. What is a preference is refused or left out as [`Target::untranslatable`](proofgate_dialect::Target::untranslatable)
//! says: sampling by seed and penalties, `logprobs`, a `temperature` above 1, `parallel_tool_calls: false`. What says nothing
//! to the model (names of speakers, marks of who asks, thoughts of other providers, fields and parts that are not known) is
//! left out. `json_object` is an instruction. A conversation with tool calls has a tool that is not to be called where the
//! request has none or `tool_choice` is `none`: Converse refuses it without.
//!
//! An end at which the model's output could not be read is `content_filter`, and stands in `native_finish_reason` as Converse
//! calls it.
//!
//! Of an answer, images, citations and the calls of tools that the provider ran itself are not told to the client. Reasoning is
//! told twice: its text in `reasoning_content`, and with its signature in `reasoning_details`, which the client sends back.

mod answer;
mod cache_points;
mod chunks;
mod error;
mod files;
mod finish;
mod messages;
mod reasoning;
mod request;
mod stream;
mod stream_events;
mod tools;
mod usage;

pub use answer::translate_response;
pub use error::translate_error;
pub use request::translate_request;
pub use stream::{MAX_OPEN_TOOL_CALLS, Stream};

pub use proofgate_dialect::EventKind;
