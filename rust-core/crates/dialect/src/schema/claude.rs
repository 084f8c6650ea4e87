use super::members::{MAX_DEPTH, Members, elements};
use super::strict::is_object_type;
use crate::json::write_string;

/// String formats that the API supports.
const FORMATS: [&str; 10] = [
    "\"date-time\"",
    "\"time\"",
    "\"date\"",
    "\"duration\"",
    "\"email\"",
    "\"hostname\"",
    "\"uri\"",
    "\"ipv4\"",
    "\"ipv6\"",
    "\"uuid\"",
];

/// The translation of a keyword of a schema.
enum KeywordAction {
    /// The keyword is kept unchanged.
    Keep,
    /// The keyword contains a schema, a list of schemas, or schemas by name.
    RecurseOne,
    RecurseList(&'static str),
    RecurseMap,
    /// The keyword does not constrain the response, or is expressed in another way.
    Drop,
    /// The API refuses the keyword: it is moved to the description, where the model can read it.
    Describe,
}

/// Appends a schema in the form that Anthropic accepts: objects allow no additional properties, and
/// keywords that the API refuses are moved to the description of the value that they constrain, as
/// `{minimum: 0, maximum: 9}`.
///
/// Source: anthropic 2.12.0, `lib/_parse/_transform.py`, which does the same for that client's own schemas.
///
/// A schema that Anthropic accepts unchanged is copied byte for byte.
pub fn write(schema: &str, out: &mut Vec<u8>) {
    let start = out.len();
    write_schema(schema, 0, out);
    let written = out.get(start..).unwrap_or_default();
    if without_whitespace(schema.as_bytes()).eq(without_whitespace(written)) {
        out.truncate(start);
        out.extend_from_slice(schema.as_bytes());
    }
}

/// Appends the schema of a tool's arguments in the form that Anthropic and Converse accept: an object without a
/// choice of schemas at its root. A choice is moved to the description.
///
/// Source: anthropics/claude-code#27337 ("input_schema does not support oneOf, allOf, or anyOf at the top level"),
/// anomalyco/opencode#35516.
pub fn write_arguments(schema: &str, out: &mut Vec<u8>) {
    const COMBINATORS: [&str; 3] = ["anyOf", "oneOf", "allOf"];
    let members = Members::parse(schema).filter(|members| {
        members.get("type").is_none() || COMBINATORS.iter().any(|choice| members.get(choice).is_some())
    });
    let Some(members) = members else {
        out.extend_from_slice(schema.as_bytes());
        return;
    };
    let mut described = String::new();
    let start = out.len();
    out.push(b'{');
    write_name("type", start, out);
    out.extend_from_slice(b"\"object\"");
    for (name, value) in &members.0 {
        match &**name {
            "type" | "description" => {}
            name if COMBINATORS.contains(&name) => describe(name, value.get(), &mut described),
            name => {
                write_name(name, start, out);
                out.extend_from_slice(value.get().as_bytes());
            }
        }
    }
    write_description(&members, described, false, start, out);
    out.push(b'}');
}

/// Adds a keyword to the description.
fn describe(name: &str, value: &str, described: &mut String) {
    described.push_str(if described.is_empty() { "{" } else { ", " });
    for piece in [name, ": ", value] {
        described.push_str(piece);
    }
}

/// Returns the bytes of JSON without white space between tokens.
fn without_whitespace(json: &[u8]) -> impl Iterator<Item = u8> {
    let (mut in_string, mut escaped) = (false, false);
    json.iter().copied().filter(move |&byte| {
        let is_blank = !in_string && byte.is_ascii_whitespace();
        in_string ^= byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        !is_blank
    })
}

fn write_schema(schema: &str, depth: usize, out: &mut Vec<u8>) {
    let members = Members::parse(schema).filter(|_| depth <= MAX_DEPTH);
    let Some(members) = members else {
        out.extend_from_slice(schema.as_bytes());
        return;
    };
    let is_object = members.get("type").is_some_and(is_object_type) || members.get("properties").is_some();
    let is_reference = members.get("$ref").is_some();
    let mut described = String::new();
    let start = out.len();
    out.push(b'{');
    for (name, value) in &members.0 {
        let value = value.get();
        match keyword_action(name, value, is_object, is_reference) {
            KeywordAction::Keep => {
                write_name(name, start, out);
                out.extend_from_slice(value.as_bytes());
            }
            KeywordAction::RecurseOne => {
                write_name(name, start, out);
                write_schema(value, depth + 1, out);
            }
            KeywordAction::RecurseList(name) => {
                write_name(name, start, out);
                write_list(value, depth, out);
            }
            KeywordAction::RecurseMap => {
                write_name(name, start, out);
                write_schema_map(value, depth, out);
            }
            KeywordAction::Drop => {}
            KeywordAction::Describe => describe(name, value, &mut described),
        }
    }
    write_description(&members, described, is_reference, start, out);
    if is_object && !is_reference {
        write_name("additionalProperties", start, out);
        out.extend_from_slice(b"false");
    }
    out.push(b'}');
}

fn keyword_action(name: &str, value: &str, is_object: bool, is_reference: bool) -> KeywordAction {
    match name {
        "$defs" | "definitions" => KeywordAction::RecurseMap,
        "$ref" => KeywordAction::Keep,
        // No other keyword is allowed next to a reference.
        _ if is_reference => KeywordAction::Drop,
        "properties" => KeywordAction::RecurseMap,
        "items" if value.starts_with('{') => KeywordAction::RecurseOne,
        "anyOf" | "oneOf" if value.starts_with('[') => KeywordAction::RecurseList("anyOf"),
        "allOf" if value.starts_with('[') => KeywordAction::RecurseList("allOf"),
        "type" | "enum" | "const" | "title" | "required" => KeywordAction::Keep,
        "format" if FORMATS.contains(&value) => KeywordAction::Keep,
        "minItems" if matches!(value, "0" | "1") => KeywordAction::Keep,
        "additionalProperties" if is_object && !value.starts_with('{') => KeywordAction::Drop,
        "description" | "$schema" | "$id" | "$comment" => KeywordAction::Drop,
        _ => KeywordAction::Describe,
    }
}

fn write_description(
    members: &Members<'_>,
    mut described: String,
    is_reference: bool,
    start: usize,
    out: &mut Vec<u8>,
) {
    let description = members.get("description").filter(|_| !is_reference);
    if described.is_empty() {
        if let Some(description) = description {
            write_name("description", start, out);
            out.extend_from_slice(description.as_bytes());
        }
        return;
    }
    described.push('}');
    let own: String = description
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    let separator = if own.is_empty() { "" } else { "\n\n" };
    write_name("description", start, out);
    write_string(out, &[own.as_str(), separator, described.as_str()].concat());
}

fn write_list(list: &str, depth: usize, out: &mut Vec<u8>) {
    out.push(b'[');
    for (at, schema) in elements(list).unwrap_or_default().into_iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_schema(schema.get(), depth + 1, out);
    }
    out.push(b']');
}

fn write_schema_map(schemas: &str, depth: usize, out: &mut Vec<u8>) {
    let Some(members) = Members::parse(schemas) else {
        out.extend_from_slice(schemas.as_bytes());
        return;
    };
    let start = out.len();
    out.push(b'{');
    for (name, schema) in &members.0 {
        write_name(name, start, out);
        write_schema(schema.get(), depth + 1, out);
    }
    out.push(b'}');
}

/// Appends a member's name, preceded by a comma unless it is the first member of the object at `start`.
fn write_name(name: &str, start: usize, out: &mut Vec<u8>) {
    if out.len() > start + 1 {
        out.push(b',');
    }
    write_string(out, name);
    out.push(b':');
}

#[cfg(test)]
mod tests {
    use super::write;

    fn written(schema: &str) -> String {
        let mut out = Vec::new();
        write(schema, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_the_api_takes_passes_with_its_order_and_digits() {
        let schema = r##"{"type":"object","properties":{"z":{"type":"number","enum":[1.10]},"a":{"$ref":"#/$defs/A"}},"required":["z"],"$defs":{"A":{"type":"string","format":"date"}},"description":"\u00e9","additionalProperties":false}"##;
        assert_eq!(written(schema), schema);
    }

    #[test]
    fn a_keyword_that_the_api_refuses_stands_in_the_description() {
        assert_eq!(
            written(r#"{"type":"integer","minimum":0,"maximum":9,"description":"Age"}"#),
            r#"{"type":"integer","description":"Age\n\n{minimum: 0, maximum: 9}"}"#
        );
        assert_eq!(
            written(
                r#"{"type":"array","items":{"type":"string","minLength":1,"format":"phone"},"minItems":2}"#
            ),
            r#"{"type":"array","items":{"type":"string","description":"{minLength: 1, format: \"phone\"}"},"description":"{minItems: 2}"}"#
        );
    }

    #[test]
    fn an_object_adds_no_properties() {
        assert_eq!(
            written(
                r#"{"$schema":"x","type":"object","properties":{"a":{"oneOf":[{"type":"object","additionalProperties":true}]}}}"#
            ),
            r#"{"type":"object","properties":{"a":{"anyOf":[{"type":"object","additionalProperties":false}]}},"additionalProperties":false}"#
        );
    }

    #[test]
    fn arguments_are_an_object_without_a_choice_at_its_root() {
        let written = |schema: &str| {
            let mut out = Vec::new();
            super::write_arguments(schema, &mut out);
            String::from_utf8(out).unwrap()
        };
        let taken = r#"{ "type": "object", "properties": {"a": {"anyOf": []}} }"#;
        assert_eq!(written(taken), taken);
        assert_eq!(
            written(r#"{"properties":{"a":{}},"anyOf":[{"required":["a"]}],"description":"d"}"#),
            r#"{"type":"object","properties":{"a":{}},"description":"d\n\n{anyOf: [{\"required\":[\"a\"]}]}"}"#
        );
    }

    #[test]
    fn depth_that_no_stack_has_passes_as_it_came() {
        let deep = format!("{}1{}", r#"{"items":"#.repeat(50_000), "}".repeat(50_000));
        assert!(written(&deep).ends_with(&"}".repeat(40_000)));
    }
}
