//! Translation between clients of OpenAI's chat completions and providers of other APIs: Anthropic's Messages, Amazon
//! Bedrock's Converse, Google's Gemini and OpenAI's Responses.
//!
//! Each provider API has a module, named after the client's API and the provider's. [`proofgate_chat_request`] parses a chat
//! request; each module here writes it for its provider, and reads the provider's answers.
#![forbid(unsafe_code)]

pub mod openai_anthropic;
pub mod openai_converse;
pub mod openai_gemini;
pub mod openai_responses;

mod chat_error;
mod chunks;
mod nesting;
