//! Requests and answers of one dialect in the words of another: pure functions on bytes.
//!
//! A module for each pair, named by who speaks and who is spoken to: in [`openai_anthropic`] a client of OpenAI's chat
//! completions reaches a provider of Anthropic's messages. Each has the same four parts:
//!
//! * `request(body, target, out)` writes what the provider is sent, and says what the way back has to know ([`RequestContext`]);
//! * `answer(body, asked, out)` writes a whole answer in the client's dialect;
//! * `error(status, body, out)` writes what the provider says of a failure as the client's dialect says it;
//! * `Stream` takes the events of a streamed answer one by one and writes those that the client expects. Where an event is an
//!   error, it may have written that to the client already: whoever says it in its place drops what was written.
//!
//! Nothing is guessed and nothing vanishes in silence. What a provider has no counterpart for is of one of three classes: what says
//! nothing to the model is left out and named in [`RequestContext::dropped`]; what asks for less is [refused by name](Untranslatable), or left
//! out and named where [`Target::untranslatable`] allows it; what would make another request is always refused. What both sides know
//! passes byte for byte (numbers keep their digits, objects the order of their keys).
//!
//! What single models refuse stands in one table, [`constraints`].
#![forbid(unsafe_code)]

pub mod anthropic_invoke;
pub mod anthropic_invoke_tokens;
pub mod anthropic_raw_predict;
pub mod invoke_client;

pub use proofgate_chat_clients::{openai_anthropic, openai_converse, openai_gemini, openai_responses};
pub use proofgate_chat_providers::{anthropic_openai, chat_customs, own_thoughts, responses_openai};
pub use proofgate_dialect::{
    EventKind, RequestContext, ResponseError, StreamStatus, Target, UntranslatableFieldPolicy,
    UntranslatableRequest, Usage, abilities, constraints, write_data, write_event,
};
