//! Bodies of Claude clients that speak to Amazon Bedrock or Vertex AI, converted to Anthropic Messages requests.

use std::rc::Rc;

use proofgate_base::anthropic_headers::AnthropicHeaders;
use proofgate_base::memory::{Buffer, MemoryBudget, MemoryExhausted};
use proofgate_translate::invoke_client::{self, to_messages_request};

use crate::google_path::{BodyForm, PathParams};

/// Converts a body to an Anthropic Messages request; `None` if the body already is one or is not a
/// JSON object. Betas that the body names are added to `fields`.
pub fn normalize(
    budget: &Rc<MemoryBudget>,
    in_path: Option<&PathParams>,
    body: &[u8],
    fields: Option<&mut AnthropicHeaders>,
) -> Result<Option<Buffer>, MemoryExhausted> {
    let Some(in_path) = in_path.filter(|in_path| in_path.form != BodyForm::Native) else {
        return Ok(None);
    };
    let path = invoke_client::PathParameters {
        model: Some(in_path.model.as_str()).filter(|model| !model.is_empty()),
        stream: in_path.stream,
    };
    // An escaped character takes six bytes.
    let of_path = in_path.model.len().saturating_mul(6).saturating_add(64);
    let mut message = Buffer::new(budget);
    let betas = message.write(body.len().saturating_add(of_path), |out| {
        to_messages_request(body, path, out)
    })?;
    let Some(betas) = betas else { return Ok(None) };
    if let Some(fields) = fields {
        fields.add_from_body(betas);
    }
    Ok(Some(message))
}
