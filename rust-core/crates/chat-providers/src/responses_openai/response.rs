//! The response object of an answer.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::responses_openai::events::OutputItems;
use crate::responses_openai::tools::write_json;
use proofgate_dialect::Usage;
use proofgate_dialect::json::{write_number, write_string};

/// The maximum length of a request value that an answer repeats, and of all of them together, in bytes. A longer value is
/// reported as if it was not set, because no client reads it.
const MAX_ECHO_VALUE_BYTES: usize = 8 << 10;
const MAX_ECHO_BYTES: usize = 64 << 10;

/// The fields of its request that an answer repeats, with the values for absent fields.
const ECHOED_FIELDS: [(&str, &str); 16] = [
    ("instructions", "null"),
    ("max_output_tokens", "null"),
    ("max_tool_calls", "null"),
    ("metadata", "{}"),
    ("parallel_tool_calls", "true"),
    ("prompt_cache_key", "null"),
    ("reasoning", r#"{"effort":null,"summary":null}"#),
    ("safety_identifier", "null"),
    ("temperature", "null"),
    ("text", r#"{"format":{"type":"text"}}"#),
    ("tool_choice", r#""auto""#),
    ("tools", "[]"),
    ("top_logprobs", "0"),
    ("top_p", "null"),
    ("truncation", r#""disabled""#),
    ("user", "null"),
];

/// Returns the members of an answer that repeat these members of a request.
pub(super) fn echo(members: &[(Cow<'_, str>, &RawValue)]) -> String {
    let mut out = Vec::new();
    for (name, default) in ECHOED_FIELDS {
        let asked = members
            .iter()
            .find(|(asked, _)| asked == name)
            .map(|(_, value)| value.get());
        let is_short =
            |value: &&str| value.len() <= MAX_ECHO_VALUE_BYTES && out.len() + value.len() <= MAX_ECHO_BYTES;
        let value = asked.filter(is_short).unwrap_or(default);
        for piece in [",\"", name, "\":"] {
            write_json(&mut out, piece);
        }
        write_compact(value, &mut out);
    }
    write_json(
        &mut out,
        ",\"background\":false,\"previous_response_id\":null,\"store\":false",
    );
    String::from_utf8(out).unwrap_or_default()
}

/// Appends JSON without white space between tokens: a line feed would end an event.
pub(super) fn write_compact(json: &str, out: &mut Vec<u8>) {
    if !json.bytes().any(|byte| byte.is_ascii_whitespace()) {
        write_json(out, json);
        return;
    }
    let (mut in_string, mut escaped) = (false, false);
    for &byte in json.as_bytes() {
        if in_string || !byte.is_ascii_whitespace() {
            out.push(byte);
        }
        in_string ^= byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
    }
}

/// The status of an answer.
#[derive(Debug, Clone, Copy)]
pub(super) enum Status<'s> {
    InProgress,
    Completed,
    /// The answer is incomplete, for one of OpenAI's reasons.
    Incomplete(&'static str),
    /// The answer failed, with a code, and with a message that is JSON-escaped and without quotes.
    Failed(&'s str, &'s str),
}

/// The common members of all response objects of an answer.
#[derive(Debug, Default)]
pub(super) struct ResponseBase {
    pub(super) created: u64,
    /// The client's name of the model.
    pub(super) model: String,
    pub(super) echo: String,
}

impl ResponseBase {
    /// Appends the object.
    pub(super) fn write(
        &self,
        status: Status<'_>,
        items: &OutputItems,
        usage: Option<&Usage>,
        out: &mut Vec<u8>,
    ) {
        for piece in [
            "{\"id\":\"resp_",
            items.id_stem(),
            "\",\"object\":\"response\",\"created_at\":",
        ] {
            write_json(out, piece);
        }
        write_number(out, self.created);
        let (name, error, reason) = match status {
            Status::InProgress => ("in_progress", None, None),
            Status::Completed => ("completed", None, None),
            Status::Incomplete(reason) => ("incomplete", None, Some(reason)),
            Status::Failed(code, message) => ("failed", Some((code, message)), None),
        };
        for piece in [",\"status\":\"", name, "\",\"error\":"] {
            write_json(out, piece);
        }
        match error {
            Some((code, message)) => {
                for piece in ["{\"code\":\"", code, "\",\"message\":\"", message, "\"}"] {
                    write_json(out, piece);
                }
            }
            None => write_json(out, "null"),
        }
        write_json(out, ",\"incomplete_details\":");
        match reason {
            Some(reason) => {
                for piece in ["{\"reason\":\"", reason, "\"}"] {
                    write_json(out, piece);
                }
            }
            None => write_json(out, "null"),
        }
        write_json(out, ",\"model\":");
        write_string(out, &self.model);
        write_json(out, ",\"output\":[");
        items.write(out);
        write_json(out, "],\"usage\":");
        match usage {
            Some(usage) => write_usage(usage, out),
            None => write_json(out, "null"),
        }
        write_json(out, &self.echo);
        out.push(b'}');
    }
}

fn write_usage(usage: &Usage, out: &mut Vec<u8>) {
    for (before, number) in [
        ("{\"input_tokens\":", usage.input),
        (",\"input_tokens_details\":{\"cached_tokens\":", usage.cache_read),
        (",\"cache_write_tokens\":", usage.cache_write),
        ("},\"output_tokens\":", usage.output),
        (
            ",\"output_tokens_details\":{\"reasoning_tokens\":",
            usage.reasoning,
        ),
        ("},\"total_tokens\":", usage.input.saturating_add(usage.output)),
    ] {
        write_json(out, before);
        write_number(out, number);
    }
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::write_compact;

    #[test]
    fn only_blanks_between_parts_are_left_out() {
        let mut out = Vec::new();
        write_compact("{\n  \"a b\\\" c\": [1, 2]\r\n}", &mut out);
        assert_eq!(out, br#"{"a b\" c":[1,2]}"#);
    }
}
