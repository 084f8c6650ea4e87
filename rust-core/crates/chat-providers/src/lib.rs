//! Translation between providers of OpenAI's chat completions and clients of other APIs: Anthropic's Messages, OpenAI's
//! Responses, and chat completions with [custom tools](chat_custom_tools).
//!
//! The chat requests written here go to a provider of chat completions, or to the writer of another provider's API. Content
//! that the gateway added to answers, for clients to send back, is removed from requests by [`reasoning_removal`].
#![forbid(unsafe_code)]

pub mod anthropic_openai;
pub mod chat_custom_tools;
pub mod reasoning_removal;
pub mod responses_openai;

mod call_name;
mod custom_tools;
mod edits;
mod gemini_thoughts;
mod thought_signature;
