//! A client of OpenAI's chat completions, and Google's Gemini.
//!
//! The provider is reached by `generateContent` or, for a stream, `streamGenerateContent?alt=sse`; the method and the model
//! stand in the path and are the caller's to write.
//!
//! What cannot pass: ids of files and of recordings, which a provider keeps for its own clients; custom tools, and the
//! `functions` that tools have replaced; audio and the web's results in an answer. An image at an address is `fileData`, which
//! the provider fetches; one in an answer stands in `images` of the message, as OpenRouter has it, and returns from there.
//! Instructions lose their place, since Gemini has one `systemInstruction` before all turns, and what a tool returned becomes
//! the `output` of an object, since Gemini takes no bare text there.
//!
//! Gemini 3 refuses a function call of the turn at hand without its `thoughtSignature`. It is given to the client in
//! `extra_content.google.thought_signature` of the call or the message, as Google's own endpoint for OpenAI's clients gives
//! it, and read from there; the first call of a message without one gets Google's stand-in for it.
//!
//! An end that is none of OpenAI's, such as `MALFORMED_FUNCTION_CALL`, is `content_filter`, and stands in `native_finish_reason` as the
//! provider calls it: it is an answer that was paid for, and asking again by itself pays for another.
//!
//! Sources: google-genai 3.4.0 (`types.py`, `models.py`), the discovery document of generativelanguage v1beta, revision
//! 20260529, and openai 3.54.0.

pub mod embeddings;

mod answer;
mod error;
mod generated;
mod messages;
mod parts;
mod request;
mod said;
mod settings;
mod stream;
mod tools;

pub use answer::translate_response;
pub use error::{retry_after, translate_error};
pub use request::translate_request;
pub use stream::Stream;
