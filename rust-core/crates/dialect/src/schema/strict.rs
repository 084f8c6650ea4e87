use super::members::{MAX_DEPTH, Members, elements};

/// Keywords that a strict schema may have (platform.openai.com, Structured outputs: supported schemas).
const KEYWORDS: [&str; 25] = [
    "$schema",
    "$ref",
    "$defs",
    "definitions",
    "type",
    "title",
    "description",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
    "const",
    "anyOf",
    "pattern",
    "format",
    "multipleOf",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
];

/// Whether OpenAI accepts a schema as strict: an object at its root, with every property required
/// and no additional properties.
pub fn can_be_strict(schema: &str) -> bool {
    let root = Members::parse(schema);
    let is_object =
        root.is_some_and(|root| root.get("type") == Some("\"object\"") && root.get("anyOf").is_none());
    is_object && is_strict(schema, 0)
}

fn is_strict(schema: &str, depth: usize) -> bool {
    if depth > MAX_DEPTH {
        return false;
    }
    let Some(members) = Members::parse(schema) else {
        return false;
    };
    let is_object = members.get("properties").is_some() || members.get("type").is_some_and(is_object_type);
    if is_object && !is_closed_object(&members) {
        return false;
    }
    members.0.iter().all(|(name, value)| match &**name {
        "properties" | "$defs" | "definitions" => Members::parse(value.get()).is_some_and(|named| {
            named
                .0
                .iter()
                .all(|(_, schema)| is_strict(schema.get(), depth + 1))
        }),
        "anyOf" => elements(value.get())
            .is_some_and(|variants| variants.iter().all(|schema| is_strict(schema.get(), depth + 1))),
        "items" => is_strict(value.get(), depth + 1),
        name => KEYWORDS.contains(&name),
    })
}

/// Whether a `type`, a name or a list of names, is the type of objects.
pub(super) fn is_object_type(kind: &str) -> bool {
    kind.contains("\"object\"")
}

/// Whether an object accepts only its listed properties, and requires all of them.
fn is_closed_object(members: &Members<'_>) -> bool {
    if members.get("additionalProperties") != Some("false") {
        return false;
    }
    let required: Vec<String> = members
        .get("required")
        .and_then(|required| serde_json::from_str(required).ok())
        .unwrap_or_default();
    let Some(properties) = members.get("properties").map(Members::parse) else {
        return true;
    };
    properties.is_some_and(|properties| {
        let mut names = properties.0.iter().map(|(name, _)| name);
        names.all(|name| required.iter().any(|required| required == name))
    })
}

#[cfg(test)]
mod tests {
    use super::can_be_strict;

    #[test]
    fn a_schema_is_strict_where_every_object_requires_all_that_it_has() {
        let inner = r#"{"type":"object","properties":{"b":{"type":"string"}},"required":["b"],"additionalProperties":false}"#;
        let of = |inner: &str| {
            format!(
                r#"{{"type":"object","properties":{{"a":{{"type":"array","items":{inner}}}}},"required":["a"],"additionalProperties":false}}"#
            )
        };
        assert!(can_be_strict(&of(inner)));
        for optional in [
            r#"{"type":"object","properties":{"b":{"type":"string"}},"required":[],"additionalProperties":false}"#,
            r#"{"type":"object","properties":{"b":{"type":"string"}},"required":["b"]}"#,
            r#"{"type":["object","null"],"properties":{}}"#,
            r#"{"oneOf":[{"type":"string"}]}"#,
            r#"{"type":"string","default":"x"}"#,
        ] {
            assert!(!can_be_strict(&of(optional)), "{optional}");
        }
        for root in ["{}", "[]", r#"{"type":"string"}"#, r#"{"anyOf":[]}"#] {
            assert!(!can_be_strict(root), "{root}");
        }
    }

    #[test]
    fn depth_that_no_stack_has_is_not_strict() {
        let deep = format!(
            "{}{}",
            r#"{"type":"array","items":"#.repeat(50_000),
            "1".to_owned() + &"}".repeat(50_000)
        );
        assert!(!can_be_strict(&deep));
    }
}
