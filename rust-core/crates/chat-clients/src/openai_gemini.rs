//! Translates between a client of OpenAI's chat completions and Google's Gemini.
//!
//! The provider is called with `generateContent` or, for a stream, `streamGenerateContent?alt=sse`. The caller writes the
//! path, which has the method and the model.
//!
//! Not supported: ids of files and of recordings, which a provider keeps for its own clients;
//! custom tools, and the `functions` that tools have replaced; audio and web search results in an
//! answer. An image URL becomes `fileData`, which the provider fetches. Images in an answer are in
//! `images` of the message, as in OpenRouter's API, and are read from this field when the client
//! sends them back. Instructions lose their position, because Gemini has one `systemInstruction`
//! before all turns. A tool result becomes the `output` of an object, because Gemini accepts no
//! plain text as a result.
//!
//! Gemini 3 refuses a function call of the current turn without its `thoughtSignature`. The client
//! receives it in `extra_content.google.thought_signature` of the call or the message, as at
//! Google's own endpoint for OpenAI's clients, and the signature is read from this field. If the
//! first call of a message has no signature, it gets Google's placeholder.
//!
//! An end without a counterpart in OpenAI's API, such as `MALFORMED_FUNCTION_CALL`, becomes `content_filter`, and
//! `native_finish_reason` has the provider's name for it. It is an answer that was charged, and an automatic retry would be
//! charged again.
//!
//! Sources: google-genai 3.4.0 (`types.py`, `models.py`), the discovery document of generativelanguage v1beta, revision
//! 20260529, and openai 3.54.0.

pub mod embeddings;

mod candidate_content;
mod error;
mod generate_content_response;
mod messages;
mod parts;
mod request;
mod response;
mod settings;
mod stream;
mod tools;

pub use error::{retry_after, translate_error};
pub use request::translate_request;
pub use response::translate_response;
pub use stream::Stream;
