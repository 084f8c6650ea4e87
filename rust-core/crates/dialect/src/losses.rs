//! What a request may say that a provider has no words for, and what becomes of it: one list for all writers, so that the
//! same loss has the same name and the same verdict wherever the request goes. Below the fields of chat requests stand those that
//! only a Responses request has.

/// The name under which fields are noted that no list knows.
pub const OTHER_FIELDS: &str = "other fields";

/// What becomes of a field that cannot be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// It says nothing to the model: it is left out and named, and never refused.
    Harmless,
    /// Without it the model is asked for less: it is refused, or left out and named, as the provider's setting says.
    Lossy,
    /// Without it the request would be another one: it is always refused, for this reason.
    Impossible(&'static str),
}

/// A field of the list.
#[derive(Debug, Clone, Copy)]
pub struct Loss {
    /// Its name in the list of what was left out: a path, with `[]` behind the name of an array.
    pub name: &'static str,
    pub class: Class,
    /// Values, as JSON, that ask for what is so without the field.
    without_effect: &'static [&'static str],
}

use Class::{Harmless, Impossible, Lossy};

const fn loss(name: &'static str, class: Class, without_effect: &'static [&'static str]) -> Loss {
    Loss {
        name,
        class,
        without_effect,
    }
}

const TEXT_ONLY: Class = Impossible("The provider of this model answers with text only.");
const OLDER: Class = Impossible("Functions belong to an older API: send tools and tool_choice instead.");
const KEPT: Class = Impossible("The provider of this model cannot read content stored at another provider.");

const STATELESS: Class = Impossible(
    "The provider of this model does not store responses: send the whole conversation as input, with store: false.",
);

/// Every field that some writer leaves out or refuses. Source of the names of chat: openai
/// 3.54.0, `types/chat/completion_create_params.py`; OpenRouter's and Google's fields for clients of that API.
const LOSSES: &[Loss] = &[
    loss("user", Harmless, &[]),
    loss("safety_identifier", Harmless, &[]),
    loss("metadata", Harmless, &["{}"]),
    loss("store", Harmless, &["false"]),
    loss("prompt_cache_key", Harmless, &[]),
    loss("prompt_cache_options", Harmless, &["{}"]),
    loss("prompt_cache_retention", Harmless, &[]),
    loss("cache_control", Harmless, &[]),
    // What the answer may look like: it makes it faster, and not another one.
    loss("prediction", Harmless, &[]),
    loss("stream_options.include_obfuscation", Harmless, &["false"]),
    loss("messages[].name", Harmless, &[]),
    loss("messages[].annotations", Harmless, &["[]"]),
    // Thoughts of another provider, or unsigned ones: no provider reads them, and their turn is over.
    loss("messages[].reasoning", Harmless, &["\"\""]),
    loss("messages[].reasoning_content", Harmless, &["\"\""]),
    loss("messages[].reasoning_details", Harmless, &["[]"]),
    loss("messages[].extra_content", Harmless, &["{}"]),
    loss("messages[].content[].image_url.detail", Harmless, &["\"auto\""]),
    loss("messages[].content[].file.filename", Harmless, &[]),
    loss("messages[].content[].prompt_cache_breakpoint", Harmless, &[]),
    loss("messages[].content[].type", Harmless, &[]),
    loss("tools[].function.strict", Harmless, &["false"]),
    loss("service_tier", Lossy, &["\"auto\"", "\"default\""]),
    loss("parallel_tool_calls", Lossy, &["true"]),
    loss("stop", Lossy, &["[]"]),
    loss("seed", Lossy, &[]),
    loss("frequency_penalty", Lossy, &["0", "0.0", "-0", "-0.0"]),
    loss("presence_penalty", Lossy, &["0", "0.0", "-0", "-0.0"]),
    loss("logit_bias", Lossy, &["{}"]),
    loss("logprobs", Lossy, &["false"]),
    loss("top_logprobs", Lossy, &["0"]),
    loss("verbosity", Lossy, &["\"medium\""]),
    loss("temperature", Lossy, &["1", "1.0"]),
    loss("top_p", Lossy, &["1", "1.0"]),
    loss("top_k", Lossy, &[]),
    loss("thinking", Lossy, &[]),
    loss("reasoning_effort", Lossy, &[]),
    loss("tool_choice", Lossy, &[]),
    loss("response_format.json_schema.description", Lossy, &["\"\""]),
    loss("messages[].images", Lossy, &["[]"]),
    loss(OTHER_FIELDS, Harmless, &[]),
    loss(
        "n",
        Impossible("It must be 1: the provider of this model gives one answer to a request."),
        &["1"],
    ),
    loss("audio", TEXT_ONLY, &[]),
    loss("modalities", TEXT_ONLY, &["[]", "[\"text\"]"]),
    loss(
        "web_search_options",
        Impossible("Web search that a provider runs itself is not available here."),
        &[],
    ),
    loss(
        "moderation",
        Impossible("The provider of this model has no such moderation, and the field cannot be omitted."),
        &[],
    ),
    loss("functions", OLDER, &["[]"]),
    loss("function_call", OLDER, &[]),
    loss("messages[].function_call", OLDER, &[]),
    loss("messages[].audio", KEPT, &[]),
    // Of a Responses request (openai 3.52.0, `types/responses/response_create_params.py`).
    loss("include", Harmless, &["[]"]),
    loss("client_metadata", Harmless, &["{}"]),
    loss("access_programs", Harmless, &["{}"]),
    loss("context_management", Harmless, &["[]"]),
    // Of the tools that OpenAI runs.
    loss("max_tool_calls", Harmless, &[]),
    loss("truncation", Harmless, &["\"disabled\""]),
    loss("image", Harmless, &["{}"]),
    loss("reasoning.summary", Harmless, &[]),
    loss("reasoning.generate_summary", Harmless, &[]),
    loss("reasoning.context", Harmless, &["\"auto\""]),
    loss("reasoning.mode", Lossy, &["\"standard\""]),
    // How long an answer is said is a matter of style: clients ask for it by default, and no other provider has it.
    loss("text.verbosity", Harmless, &["\"medium\""]),
    loss("tools[].type", Harmless, &[]),
    loss("tools[].format", Harmless, &[]),
    loss("tools[].custom.format", Harmless, &[]),
    loss("tools[].strict", Harmless, &["false"]),
    loss("tools[].defer_loading", Harmless, &["false"]),
    loss("tools[].output_schema", Harmless, &["{}"]),
    loss("tools[].allowed_callers", Harmless, &["[\"direct\"]"]),
    loss("tools[].async", Harmless, &["false"]),
    // Items, tools and parts that are not known do not refuse a request, since new clients send new ones.
    loss("input[].type", Harmless, &[]),
    loss("input[].encrypted_content", Harmless, &["\"\""]),
    loss("input[].content[].prompt_cache_breakpoint", Harmless, &[]),
    loss("input[].content[].detail", Harmless, &["\"auto\""]),
    loss("input[].content[].type", Harmless, &[]),
    loss("previous_response_id", STATELESS, &[]),
    loss("conversation", STATELESS, &[]),
    loss("prompt", STATELESS, &[]),
    loss("background", STATELESS, &["false"]),
];

/// The longest value that may be without effect, in bytes.
const LONGEST: usize = 32;

/// The field of a name; one that is not in the list is one of the [`OTHER_FIELDS`].
pub fn find(name: &str) -> &'static Loss {
    const OTHER: Loss = loss(OTHER_FIELDS, Harmless, &[]);
    LOSSES.iter().find(|loss| loss.name == name).unwrap_or(&OTHER)
}

/// Whether the list has a field of this name.
pub fn is_known(name: &str) -> bool {
    LOSSES.iter().any(|loss| loss.name == name)
}

/// Whether a value, as JSON, asks for something that is not so without the field.
pub fn has_effect(name: &str, value: &str) -> bool {
    let has_no_blanks = value.len() > LONGEST || !value.contains(|char: char| char.is_ascii_whitespace());
    if has_no_blanks {
        return value != "null" && !find(name).without_effect.contains(&value);
    }
    let value: String = value.chars().filter(|char| !char.is_ascii_whitespace()).collect();
    has_effect(name, &value)
}

#[cfg(test)]
mod tests {
    use super::{LOSSES, find};

    #[test]
    fn no_name_stands_twice_in_the_list() {
        for (at, loss) in LOSSES.iter().enumerate() {
            let first = LOSSES.iter().position(|other| other.name == loss.name);
            assert_eq!(first, Some(at), "{}", loss.name);
            assert_eq!(find(loss.name).class, loss.class);
        }
    }
}
