//! Providers of OpenAI's chat completions for clients of other dialects: Anthropic's messages, OpenAI's Responses, and chat
//! completions with [custom tools](chat_customs).
//!
//! The chat requests that are written here go to a provider of chat completions, or on to a writer of another provider's dialect.
//! What the gateway itself wrote into answers, for clients to bring it back, is taken out of requests by [`own_thoughts`].
#![forbid(unsafe_code)]

pub mod anthropic_openai;
pub mod chat_customs;
pub mod own_thoughts;
pub mod responses_openai;

mod call_name;
mod custom_tools;
mod edits;
mod gemini_thoughts;
mod thought_signature;
