//! Features of Anthropic's API that `anthropic-beta` values enable, and the body fields that belong to them.
//!
//! A provider refuses a request that has the field without the value ("Extra inputs are not permitted"), so the two
//! must be removed together.

use crate::members::{Members, ObjectWriter};

/// A field of a body: a top-level member, or a member of a top-level member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FieldPath {
    top_level: &'static str,
    nested: Option<&'static str>,
    /// The name under which the dropped field is reported.
    reported_name: &'static str,
}

const fn top_level(name: &'static str) -> FieldPath {
    FieldPath {
        top_level: name,
        nested: None,
        reported_name: name,
    }
}

const fn in_output_config(within: &'static str, name: &'static str) -> FieldPath {
    FieldPath {
        top_level: "output_config",
        nested: Some(within),
        reported_name: name,
    }
}

/// Beta names without their dates, and the fields that belong to them: from Claude Code's requests (2.1.197), and
/// from `anthropic.types.beta` (anthropic-sdk-python 2.12.0).
const FEATURES: &[(&str, &[FieldPath])] = &[
    ("context-management", &[top_level("context_management")]),
    ("compact", &[top_level("context_management")]),
    ("effort", &[in_output_config("effort", "output_config.effort")]),
    (
        "task-budgets",
        &[in_output_config("task_budget", "output_config.task_budget")],
    ),
    (
        "structured-outputs",
        &[
            top_level("output_format"),
            in_output_config("format", "output_config.format"),
        ],
    ),
    ("fast-mode", &[top_level("speed")]),
    ("mcp-client", &[top_level("mcp_servers")]),
    ("skills", &[top_level("container")]),
    ("server-side-fallback", &[top_level("fallbacks")]),
    ("message-threads", &[top_level("thread")]),
];

/// Returns the name of a beta without the date at its end.
fn without_date(beta: &str) -> &str {
    const DATE_PATTERN: &[u8; 11] = b"-0000-00-00";
    let Some(at) = beta.len().checked_sub(DATE_PATTERN.len()) else {
        return beta;
    };
    let Some((name, date)) = beta.split_at_checked(at) else {
        return beta;
    };
    let mut bytes = date.bytes().zip(DATE_PATTERN);
    match bytes.all(|(byte, form)| byte == *form || (*form == b'0' && byte.is_ascii_digit())) {
        true => name,
        false => beta,
    }
}

/// Whether an `anthropic-beta` value is the feature `name`, with or without a date suffix.
pub fn is_beta_feature(value: &str, name: &str) -> bool {
    value == name || without_date(value) == name
}

/// Writes the object `body` without the fields of the named features (with or without a date), and
/// returns the names of the removed fields. Writes nothing if `body` has none of these fields or is
/// not an object. Everything else is copied byte for byte, except white space between members.
pub fn remove_feature_fields(body: &[u8], names: &[String], out: &mut Vec<u8>) -> Vec<&'static str> {
    let mut left_out = Vec::new();
    let of = |name: &String| FEATURES.iter().find(|(known, _)| *known == without_date(name));
    let paths: Vec<&FieldPath> = names
        .iter()
        .filter_map(of)
        .flat_map(|(_, paths)| *paths)
        .collect();
    if paths.is_empty() {
        return left_out;
    }
    let Ok(members) = serde_json::from_slice::<Members<'_>>(body) else {
        return left_out;
    };
    let begin = out.len();
    let mut kept = ObjectWriter::new(out);
    for member in members.iter() {
        let mut of_member = paths.iter().filter(|path| path.top_level == member.name);
        let mut note = |path: &FieldPath| {
            if !left_out.contains(&path.reported_name) {
                left_out.push(path.reported_name);
            }
        };
        if let Some(path) = of_member.clone().find(|path| path.nested.is_none()) {
            note(path);
            continue;
        }
        let mut without = Vec::new();
        let inner = match of_member.next() {
            Some(_) => serde_json::from_str::<Members<'_>>(member.value.get()).ok(),
            None => None,
        };
        let Some(inner) = inner else {
            kept.write_member(member);
            continue;
        };
        let mut inside = ObjectWriter::new(&mut without);
        for one in inner.iter() {
            let is_of = |path: &&&FieldPath| path.top_level == member.name && path.nested == Some(&*one.name);
            match paths.iter().find(is_of) {
                Some(path) => note(path),
                None => inside.write_member(one),
            }
        }
        if !inside.is_empty() {
            inside.finish();
            kept.write_member_with_value(member, &without);
        }
    }
    kept.finish();
    if left_out.is_empty() {
        out.truncate(begin);
    }
    left_out
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn without(body: &str, names: &[&str]) -> (String, Vec<&'static str>) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut out = Vec::new();
        let left_out = remove_feature_fields(body.as_bytes(), &names, &mut out);
        (String::from_utf8(out).unwrap(), left_out)
    }

    #[test]
    fn a_beta_is_named_with_or_without_its_date() {
        assert!(is_beta_feature(
            "context-management-2025-06-27",
            "context-management"
        ));
        assert!(is_beta_feature(
            "context-management-2025-06-27",
            "context-management-2025-06-27"
        ));
        assert!(is_beta_feature("oauth", "oauth"));
        for value in [
            "context-management-2025-6-27",
            "context-management-x025-06-27",
            "my-context-management-2025-06-27",
            "context",
            "",
            "é-2025-06-27x",
        ] {
            assert!(!is_beta_feature(value, "context-management"), "{value}");
        }
        assert!(!is_beta_feature("effort-2025-11-24", "effort-2026-01-01"));
    }

    #[test]
    fn the_fields_of_a_feature_leave_and_no_other_byte() {
        let body = r#"{ "model":"m", "context_management":{"edits":[]}, "x": 1.50e1,"context_management":1}"#;
        assert_eq!(
            without(body, &["context-management-2025-06-27"]),
            (r#"{"model":"m","x":1.50e1}"#.into(), vec!["context_management"])
        );
        let body = r#"{"output_config":{"effort":"max","format":{"type":"json_schema"}},"model":"m"}"#;
        assert_eq!(
            without(body, &["effort"]),
            (
                r#"{"output_config":{"format":{"type":"json_schema"}},"model":"m"}"#.into(),
                vec!["output_config.effort"]
            )
        );
        assert_eq!(
            without(body, &["effort", "structured-outputs"]),
            (
                r#"{"model":"m"}"#.into(),
                vec!["output_config.effort", "output_config.format"]
            )
        );
    }

    #[test]
    fn what_has_no_such_field_is_not_written() {
        for (body, names) in [
            (r#"{"model":"m"}"#, &["context-management"][..]),
            (r#"{"context_management":1}"#, &["effort"]),
            (r#"{"context_management":1}"#, &["unheard-of"]),
            (
                r#"{"messages":[{"context_management":1}]}"#,
                &["context-management"],
            ),
            ("[]", &["effort"]),
            ("{", &["effort"]),
            (r#"{"output_config":7}"#, &["effort"]),
        ] {
            assert_eq!(without(body, names), (String::new(), vec![]), "{body}");
        }
    }
}
