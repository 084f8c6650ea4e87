//! Translation of requests and answers between the APIs of providers: pure functions on bytes.
//!
//! Each pair of APIs has a module, named after the client's API and the provider's: with [`openai_anthropic`], a client of
//! OpenAI's chat completions reaches a provider of Anthropic's messages. Each has the same four parts:
//!
//! * `translate_request` writes the request for the provider and returns the context that the
//!   translation of its answer needs ([`RequestContext`]);
//! * `translate_response` writes a whole answer for the client;
//! * `translate_error` writes the provider's error as an error of the client's API;
//! * `Stream` reads the events of a streamed answer one by one and writes the client's events. If
//!   an event is an error, `Stream` may already have written the error for the client; a caller
//!   that reports the error itself must drop that output.
//!
//! Nothing is guessed and nothing is lost silently. A field without a counterpart at the provider
//! is in one of three classes: if it does not reach the model, it is left out and named in
//! [`RequestContext::dropped_fields`]; if the request can be served without it, it is refused by
//! name, or left out and named if [`Target::untranslatable`] allows that; if its omission would
//! make a different request, it is always refused. Fields that both APIs support are copied byte
//! for byte: numbers keep their digits, and objects keep the order of their keys.
//!
//! The table [`constraints`] lists the fields and values that individual models refuse.
#![forbid(unsafe_code)]

pub mod anthropic_invoke;
pub mod anthropic_invoke_tokens;
pub mod anthropic_raw_predict;
pub mod invoke_client;

pub use proofgate_chat_clients::{openai_anthropic, openai_converse, openai_gemini, openai_responses};
pub use proofgate_chat_providers::{
    anthropic_openai, chat_custom_tools, reasoning_removal, responses_openai,
};
pub use proofgate_dialect::{
    EventKind, RequestContext, ResponseError, StreamStatus, Target, UntranslatableFieldPolicy,
    UntranslatableRequest, Usage, capabilities, constraints, write_data, write_event,
};
