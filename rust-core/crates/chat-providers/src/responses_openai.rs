//! Translates between a client of OpenAI's Responses and a provider of OpenAI's chat completions.
//! Other modules continue the translation: `openai_anthropic`, `openai_gemini` or `openai_converse`
//! reads the chat request that this module writes, and this module reads the answer that they
//! write.
//!
//! [`translate_request`] writes for them, with images and files in tool results.
//! [`translate_for_chat`] writes for a provider that uses chat completions itself: images and files
//! are in user messages, a tool choice is made by sending only the allowed tools, and the token
//! limit has the name that the model accepts.
//!
//! Nothing is stored between requests. A provider's signatures of its thinking are in a reasoning
//! item's `encrypted_content`, in the gateway's own versioned format (`turn_reasoning`). The format
//! holds no text that a model reads, because rules do not check it: the text is the item's
//! `summary`. `item_reference`, `previous_response_id`, `conversation`, `prompt`, `background` and
//! compaction items are refused by name.
//!
//! All tools become functions. A custom tool becomes a function with a single string, `input`; a
//! tool of a namespace gets the namespace's name before its own; `apply_patch`, `shell`,
//! `local_shell`, and a `tool_search` that the client runs, get parameters defined by the gateway.
//! Calls are returned as the items that the client knows. Tools that OpenAI runs are left out and
//! named; tools that searches found are sent with the others. Instructions and system messages at
//! the start become one message.
//!
//! An image that the model generated is the result of an `image_generation_call`, and is in a user
//! message in later turns. Audio in an answer is left out. A truncated call is sent only if it is a
//! function's, with the status `incomplete`.

mod call_items;
mod calls;
mod content;
mod conversation;
mod error;
mod events;
mod images;
mod input;
mod item;
mod message;
mod output;
mod parts;
mod reasoning;
mod reasoning_state;
mod request;
mod response;
mod response_translation;
mod settings;
mod stream;
mod tool_calls;
mod tool_choice;
mod tool_names;
mod tools;
mod turn_reasoning;

pub use error::translate_error;
pub use request::{translate_for_chat, translate_for_gemini, translate_request};
pub use response_translation::translate_response;
pub use stream::Stream;
pub(crate) use turn_reasoning::STATE_PREFIX;
