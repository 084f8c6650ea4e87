//! Requests of Claude clients that use the API of Amazon Bedrock's InvokeModel or Vertex AI's
//! rawPredict. In these requests, the path instead of the body names the model and determines
//! whether the answer is streamed, and the body instead of the headers has the API version and the
//! betas. [`to_messages_request`] converts them to Messages requests; everything else is unchanged.
//! Answers are Anthropic's.
//!
//! Source: `AnthropicBedrock` and `AnthropicVertex` of Anthropic's client; code.claude.com, LLM gateway protocol.

use serde_json::value::RawValue;

use crate::anthropic_invoke::OrderedFields;
use proofgate_dialect::json::write_string;

/// The request parameters in a path.
#[derive(Debug, Clone, Copy)]
pub struct PathParameters<'p> {
    /// The model; `None` if the body names it.
    pub model: Option<&'p str>,
    /// Whether the answer is streamed; `None` if the body determines this.
    pub stream: Option<bool>,
}

/// Appends the Messages request for a body and returns the betas that it names. Returns `None` and appends nothing if the
/// body is not a JSON object.
///
/// The parameters of the path come first. A `model` that differs from the path's model, and any
/// field of the wrong type, is kept, so that later checks refuse it.
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

/// Reads a list of names, or comma-separated names.
fn read_betas(value: &RawValue) -> Option<Vec<String>> {
    if value.get() == "null" {
        return Some(Vec::new());
    }
    let list = text(value).map(|names| names.split(',').map(|name| name.trim().to_owned()).collect());
    list.or_else(|| serde_json::from_str(value.get()).ok())
}
