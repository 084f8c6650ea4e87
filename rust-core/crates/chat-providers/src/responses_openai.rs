//! A client of OpenAI's Responses, and a provider of OpenAI's chat completions: the hub from which the other modules go on, so
//! that the chat request written here is read by `openai_anthropic`, `openai_gemini` or `openai_converse`, and what they answer is
//! read here.
//!
//! [`translate_request`] writes for them, with pictures and files in the results of tools. [`translate_for_chat`] writes for a provider that
//! speaks chat completions itself: the user shows pictures and files there, choices among the tools are made by sending those alone,
//! and the limit has the name that the model takes.
//!
//! Nothing is kept between requests. What a provider signed of its thinking is in a reasoning item's `encrypted_content`, in a
//! form of our own with a version (`thoughts`); it holds no text that a model reads, since rules do not look there: the text is the
//! item's `summary`. `item_reference`, `previous_response_id`, `conversation`, `prompt`, `background` and compaction items are refused
//! by name.
//!
//! Tools are functions there. A custom tool is one with a single string, `input`; one of a namespace has the namespace's name before
//! its own; `apply_patch`, `shell` and `local_shell`, and a `tool_search` that the client runs, have parameters of ours. Calls come
//! back as the items that the client knows. Tools that OpenAI runs are left out and named, those that searches found are sent with
//! the others. Instructions and the system's messages at the begin are one message.
//!
//! A picture that the model made is the result of an `image_generation_call`, and is shown by the user in later turns. Left out of an
//! answer: audio. A call that was cut off is told only if it is a function's, with the status `incomplete`.

mod answer;
mod call_items;
mod calls;
mod choice;
mod content;
mod conversation;
mod error;
mod events;
mod input;
mod item;
mod keeper;
mod message;
mod output;
mod parts;
mod pictures;
mod reasoning;
mod request;
mod response;
mod settings;
mod stream;
mod thoughts;
mod tool_calls;
mod tool_names;
mod tools;

pub use answer::translate_response;
pub use error::translate_error;
pub use request::{translate_for_chat, translate_for_gemini, translate_request};
pub use stream::Stream;
pub(crate) use thoughts::STATE_PREFIX;
