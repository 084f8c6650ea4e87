//! Custom tools, which take a text, as functions with one string, for providers that have only functions.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::value::RawValue;

/// The instruction appended to the description of such a function.
pub(crate) const CALL_INSTRUCTIONS: &str = "Call it with one string, input, which is the whole text.";

/// The description of the parameter.
const INPUT_DESCRIPTION: &str = "The whole text, as it is.";

/// Returns the description of a parameter whose texts have a grammar. No provider enforces it.
/// `definition` and the result are JSON-escaped and without quotes.
pub(crate) fn grammar_description(syntax: &str, definition: &str) -> String {
    let syntax = if syntax == "regex" {
        "regular expression"
    } else {
        "Lark grammar"
    };
    format!("{INPUT_DESCRIPTION} It has to match this {syntax}:\\n{definition}")
}

/// Returns the schema of the parameters. `description` is an additional description of the
/// parameter, JSON-escaped and without quotes.
pub(crate) fn parameters_schema(description: Option<&str>) -> String {
    let description = description.unwrap_or(INPUT_DESCRIPTION);
    format!(
        r#"{{"type":"object","properties":{{"input":{{"type":"string","description":"{description}"}}}},"required":["input"],"additionalProperties":false}}"#
    )
}

/// Returns the members of an object, without those that are `null`.
pub(crate) fn members(json: &str) -> Option<HashMap<Cow<'_, str>, &RawValue>> {
    let mut members: HashMap<Cow<'_, str>, &RawValue> = serde_json::from_str(json).ok()?;
    members.retain(|_, value| value.get() != "null");
    Some(members)
}

/// Returns the text for a call of a custom tool: the string `input`, or the text that the model
/// wrote instead.
pub(crate) fn custom_input(arguments: &str) -> String {
    let members = members(arguments).unwrap_or_default();
    let text = match (members.get("input"), members.len()) {
        (Some(input), _) => Some(*input),
        (None, 1) => members.values().next().copied(),
        (None, _) => None,
    };
    let text = text.and_then(|text| serde_json::from_str(text.get()).ok());
    text.unwrap_or_else(|| {
        if members.is_empty() && arguments.trim() == "{}" {
            ""
        } else {
            arguments
        }
        .to_owned()
    })
}
