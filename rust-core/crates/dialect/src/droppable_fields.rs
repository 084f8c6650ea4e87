//! Request fields that may have no counterpart at a provider, and how they are handled. All writers
//! share one list, so that a dropped field has the same name and the same handling for every
//! provider. The fields of chat requests come first, then the fields that only Responses requests
//! have.

/// The reported name of fields that are not in the list.
pub const OTHER_FIELDS: &str = "other fields";

/// The effect of dropping a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropImpact {
    /// The field does not affect the model: it is always dropped and reported, never refused.
    Harmless,
    /// The model gets less specific instructions without it: it is refused, or dropped and reported, as the
    /// provider's setting requires.
    Lossy,
    /// The request would have another meaning without it: it is always refused, for this reason.
    Impossible(&'static str),
}

/// An entry of the list.
#[derive(Debug, Clone, Copy)]
pub struct DroppableField {
    /// The reported name of a dropped field: a path, with `[]` after the name of an array.
    pub name: &'static str,
    pub impact: DropImpact,
    /// Values, as JSON, that have the same effect as omitting the field.
    no_op_values: &'static [&'static str],
}

use DropImpact::{Harmless, Impossible, Lossy};

const fn droppable_field(
    name: &'static str,
    class: DropImpact,
    without_effect: &'static [&'static str],
) -> DroppableField {
    DroppableField {
        name,
        impact: class,
        no_op_values: without_effect,
    }
}

const TEXT_ONLY: DropImpact = Impossible("The provider of this model answers with text only.");
const LEGACY_FUNCTIONS: DropImpact =
    Impossible("Functions belong to an older API: send tools and tool_choice instead.");
const STORED_CONTENT: DropImpact =
    Impossible("The provider of this model cannot read content stored at another provider.");

const STATELESS: DropImpact = Impossible(
    "The provider of this model does not store responses: send the whole conversation as input, with store: false.",
);

/// Every field that some writer drops or refuses. Source of the chat names: openai 3.54.0,
/// `types/chat/completion_create_params.py`; OpenRouter's and Google's fields for clients of that API.
const DROPPABLE_FIELDS: &[DroppableField] = &[
    droppable_field("user", Harmless, &[]),
    droppable_field("safety_identifier", Harmless, &[]),
    droppable_field("metadata", Harmless, &["{}"]),
    droppable_field("store", Harmless, &["false"]),
    droppable_field("prompt_cache_key", Harmless, &[]),
    droppable_field("prompt_cache_options", Harmless, &["{}"]),
    droppable_field("prompt_cache_retention", Harmless, &[]),
    droppable_field("cache_control", Harmless, &[]),
    // A predicted output makes the response faster, but does not change it.
    droppable_field("prediction", Harmless, &[]),
    droppable_field("stream_options.include_obfuscation", Harmless, &["false"]),
    droppable_field("messages[].name", Harmless, &[]),
    droppable_field("messages[].annotations", Harmless, &["[]"]),
    // Reasoning of another provider, or unsigned reasoning: no provider reads it, and its turn is
    // over.
    droppable_field("messages[].reasoning", Harmless, &["\"\""]),
    droppable_field("messages[].reasoning_content", Harmless, &["\"\""]),
    droppable_field("messages[].reasoning_details", Harmless, &["[]"]),
    droppable_field("messages[].extra_content", Harmless, &["{}"]),
    droppable_field("messages[].content[].image_url.detail", Harmless, &["\"auto\""]),
    droppable_field("messages[].content[].file.filename", Harmless, &[]),
    droppable_field("messages[].content[].prompt_cache_breakpoint", Harmless, &[]),
    droppable_field("messages[].content[].type", Harmless, &[]),
    droppable_field("tools[].function.strict", Harmless, &["false"]),
    droppable_field("service_tier", Lossy, &["\"auto\"", "\"default\""]),
    droppable_field("parallel_tool_calls", Lossy, &["true"]),
    droppable_field("stop", Lossy, &["[]"]),
    droppable_field("seed", Lossy, &[]),
    droppable_field("frequency_penalty", Lossy, &["0", "0.0", "-0", "-0.0"]),
    droppable_field("presence_penalty", Lossy, &["0", "0.0", "-0", "-0.0"]),
    droppable_field("logit_bias", Lossy, &["{}"]),
    droppable_field("logprobs", Lossy, &["false"]),
    droppable_field("top_logprobs", Lossy, &["0"]),
    droppable_field("verbosity", Lossy, &["\"medium\""]),
    droppable_field("temperature", Lossy, &["1", "1.0"]),
    droppable_field("top_p", Lossy, &["1", "1.0"]),
    droppable_field("top_k", Lossy, &[]),
    droppable_field("thinking", Lossy, &[]),
    droppable_field("reasoning_effort", Lossy, &[]),
    droppable_field("tool_choice", Lossy, &[]),
    droppable_field("response_format.json_schema.description", Lossy, &["\"\""]),
    droppable_field("messages[].images", Lossy, &["[]"]),
    droppable_field(OTHER_FIELDS, Harmless, &[]),
    droppable_field(
        "n",
        Impossible("It must be 1: the provider of this model gives one answer to a request."),
        &["1"],
    ),
    droppable_field("audio", TEXT_ONLY, &[]),
    droppable_field("modalities", TEXT_ONLY, &["[]", "[\"text\"]"]),
    droppable_field(
        "web_search_options",
        Impossible("Web search that a provider runs itself is not available here."),
        &[],
    ),
    droppable_field(
        "moderation",
        Impossible("The provider of this model does not support this field, and the gateway cannot omit it."),
        &[],
    ),
    droppable_field("functions", LEGACY_FUNCTIONS, &["[]"]),
    droppable_field("function_call", LEGACY_FUNCTIONS, &[]),
    droppable_field("messages[].function_call", LEGACY_FUNCTIONS, &[]),
    droppable_field("messages[].audio", STORED_CONTENT, &[]),
    // Fields of a Responses request (openai 3.52.0, `types/responses/response_create_params.py`).
    droppable_field("include", Harmless, &["[]"]),
    droppable_field("client_metadata", Harmless, &["{}"]),
    droppable_field("access_programs", Harmless, &["{}"]),
    droppable_field("context_management", Harmless, &["[]"]),
    // Fields of the tools that OpenAI runs.
    droppable_field("max_tool_calls", Harmless, &[]),
    droppable_field("truncation", Harmless, &["\"disabled\""]),
    droppable_field("image", Harmless, &["{}"]),
    droppable_field("reasoning.summary", Harmless, &[]),
    droppable_field("reasoning.generate_summary", Harmless, &[]),
    droppable_field("reasoning.context", Harmless, &["\"auto\""]),
    droppable_field("reasoning.mode", Lossy, &["\"standard\""]),
    // Verbosity is a matter of style: clients set it by default, and no other provider has it.
    droppable_field("text.verbosity", Harmless, &["\"medium\""]),
    droppable_field("tools[].type", Harmless, &[]),
    droppable_field("tools[].format", Harmless, &[]),
    droppable_field("tools[].custom.format", Harmless, &[]),
    droppable_field("tools[].strict", Harmless, &["false"]),
    droppable_field("tools[].defer_loading", Harmless, &["false"]),
    droppable_field("tools[].output_schema", Harmless, &["{}"]),
    droppable_field("tools[].allowed_callers", Harmless, &["[\"direct\"]"]),
    droppable_field("tools[].async", Harmless, &["false"]),
    // A request with unknown items, tools or parts is not refused, because new clients send new
    // ones.
    droppable_field("input[].type", Harmless, &[]),
    droppable_field("input[].encrypted_content", Harmless, &["\"\""]),
    droppable_field("input[].content[].prompt_cache_breakpoint", Harmless, &[]),
    droppable_field("input[].content[].detail", Harmless, &["\"auto\""]),
    droppable_field("input[].content[].type", Harmless, &[]),
    droppable_field("previous_response_id", STATELESS, &[]),
    droppable_field("conversation", STATELESS, &[]),
    droppable_field("prompt", STATELESS, &[]),
    droppable_field("background", STATELESS, &["false"]),
];

/// Maximum length of a value without effect, in bytes.
const MAX_NO_OP_LEN: usize = 32;

/// Returns the entry with this name; a name that is not in the list gives the entry for [`OTHER_FIELDS`].
pub fn find_droppable_field(name: &str) -> &'static DroppableField {
    const OTHER_FIELD: DroppableField = droppable_field(OTHER_FIELDS, Harmless, &[]);
    DROPPABLE_FIELDS
        .iter()
        .find(|loss| loss.name == name)
        .unwrap_or(&OTHER_FIELD)
}

/// Whether the list has an entry with this name.
pub fn is_listed_field(name: &str) -> bool {
    DROPPABLE_FIELDS.iter().any(|loss| loss.name == name)
}

/// Whether a value, as JSON, has an effect, compared with omitting the field.
pub fn has_effect(name: &str, value: &str) -> bool {
    let has_no_blanks =
        value.len() > MAX_NO_OP_LEN || !value.contains(|char: char| char.is_ascii_whitespace());
    if has_no_blanks {
        return value != "null" && !find_droppable_field(name).no_op_values.contains(&value);
    }
    let value: String = value.chars().filter(|char| !char.is_ascii_whitespace()).collect();
    has_effect(name, &value)
}

#[cfg(test)]
mod tests {
    use super::{DROPPABLE_FIELDS, find_droppable_field};

    #[test]
    fn no_name_stands_twice_in_the_list() {
        for (at, loss) in DROPPABLE_FIELDS.iter().enumerate() {
            let first = DROPPABLE_FIELDS.iter().position(|other| other.name == loss.name);
            assert_eq!(first, Some(at), "{}", loss.name);
            assert_eq!(find_droppable_field(loss.name).impact, loss.impact);
        }
    }
}
