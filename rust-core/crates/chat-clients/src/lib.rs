//! Clients of OpenAI's chat completions at providers of other dialects: Anthropic's messages, Amazon Bedrock's Converse, Google's
//! Gemini and OpenAI's Responses.
//!
//! A module for each provider's dialect, named by who speaks and who is spoken to. What a chat request is, is decided in
//! [`proofgate_chat_request`]; each module here is a writer of it, and a reader of what its provider answers.
#![forbid(unsafe_code)]

pub mod openai_anthropic;
pub mod openai_converse;
pub mod openai_gemini;
pub mod openai_responses;

mod chat_error;
mod chunks;
mod nesting;
