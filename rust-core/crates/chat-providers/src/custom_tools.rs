//! Custom tools, which take a text, as functions of one string: for providers that have functions alone.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::value::RawValue;

/// What the model is told of such a function, behind its own description.
pub(crate) const CALL_INSTRUCTIONS: &str = "Call it with one string, input, which is the whole text.";

/// What it is told of the parameter.
const INPUT_DESCRIPTION: &str = "The whole text, as it is.";

/// What it is told of the parameter whose texts a grammar describes. No provider holds to it. `definition` and the result are insides
/// of strings.
pub(crate) fn grammar_description(syntax: &str, definition: &str) -> String {
    let syntax = if syntax == "regex" {
        "regular expression"
    } else {
        "Lark grammar"
    };
    format!("{INPUT_DESCRIPTION} It has to match this {syntax}:\\n{definition}")
}

/// The schema of the parameters. `description`: the inside of a string, if there is more to say of the parameter.
pub(crate) fn parameters_schema(description: Option<&str>) -> String {
    let description = description.unwrap_or(INPUT_DESCRIPTION);
    format!(
        r#"{{"type":"object","properties":{{"input":{{"type":"string","description":"{description}"}}}},"required":["input"],"additionalProperties":false}}"#
    )
}

/// The members of an object, none of them `null`.
pub(crate) fn members(json: &str) -> Option<HashMap<Cow<'_, str>, &RawValue>> {
    let mut members: HashMap<Cow<'_, str>, &RawValue> = serde_json::from_str(json).ok()?;
    members.retain(|_, value| value.get() != "null");
    Some(members)
}

/// The text that a custom tool is called with: the string `input`, or what the model wrote in its place.
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
