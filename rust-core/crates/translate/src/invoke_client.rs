//! Clients of Claude that speak to Amazon Bedrock's InvokeModel or Vertex AI's rawPredict: they say in the path what Anthropic's
//! messages say in the body (the model, and whether the answer is streamed), and in the body what belongs into the head (the
//! version of the API, and the betas). [`to_messages_request`] makes a request of Anthropic's messages of theirs; everything else passes as
//! it came. Answers are Anthropic's own.
//!
//! Source: `AnthropicBedrock` and `AnthropicVertex` of Anthropic's client; code.claude.com, LLM gateway protocol.

use serde_json::value::RawValue;

use crate::anthropic_invoke::OrderedFields;
use proofgate_dialect::json::write_string;

/// What a path says of a request.
#[derive(Debug, Clone, Copy)]
pub struct PathParameters<'p> {
    /// The model; `None` where the body names it.
    pub model: Option<&'p str>,
    /// Whether the answer is to be streamed; `None` where the body says it.
    pub stream: Option<bool>,
}

/// Appends the request of Anthropic's messages for a body, and returns the betas that it names; `None`, and nothing is appended,
/// for what is no JSON object.
///
/// What the path says stands at the begin. A `model` that is another one than the path's, and whatever is not of the type that its
/// name promises, is left where it is, for others to refuse.
pub fn to_messages_request(body: &[u8], path: PathParameters<'_>, out: &mut Vec<u8>) -> Option<Vec<String>> {
    let OrderedFields(fields) = serde_json::from_slice(body).ok()?;
    let mut betas = Vec::new();
    out.push(b'{');
    let begin = out.len();
    if let Some(model) = path.model {
        out.extend_from_slice(br#""model":"#);
        write_string(out, model);
    }
    if path.stream == Some(true) {
        write_separator(begin, out);
        out.extend_from_slice(br#""stream":true"#);
    }
    for (name, value) in fields {
        let is_said = match &*name {
            "anthropic_version" => true,
            "anthropic_beta" => {
                let read = read_betas(value);
                let is_read = read.is_some();
                betas.extend(read.unwrap_or_default());
                is_read
            }
            "model" => path
                .model
                .is_some_and(|model| text(value).as_deref() == Some(model)),
            "stream" => path.stream.is_some() && matches!(value.get(), "true" | "false" | "null"),
            _ => false,
        };
        if !is_said {
            write_separator(begin, out);
            write_string(out, &name);
            out.push(b':');
            out.extend_from_slice(value.get().as_bytes());
        }
    }
    out.push(b'}');
    Some(betas)
}

fn write_separator(begin: usize, out: &mut Vec<u8>) {
    if out.len() > begin {
        out.push(b',');
    }
}

fn text(value: &RawValue) -> Option<String> {
    serde_json::from_str(value.get()).ok()
}

/// A list of names, or names with commas between.
fn read_betas(value: &RawValue) -> Option<Vec<String>> {
    if value.get() == "null" {
        return Some(Vec::new());
    }
    let list = text(value).map(|names| names.split(',').map(|name| name.trim().to_owned()).collect());
    list.or_else(|| serde_json::from_str(value.get()).ok())
}
