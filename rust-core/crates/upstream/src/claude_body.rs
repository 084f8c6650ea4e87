//! Bodies of Claude's clients that speak to Amazon Bedrock or Vertex AI, as requests of Anthropic's messages.

use std::rc::Rc;

use proofgate_base::client_fields::AnthropicHeaders;
use proofgate_base::memory::{Buffer, MemoryBudget, MemoryExhausted};
use proofgate_translate::invoke_client::{self, to_messages_request};

use crate::google_path::{BodyForm, PathParams};

/// The request of Anthropic's messages that a body stands for; `None` where it is in the words of its dialect already, or is no JSON
/// object. Betas that it names are added to `fields`.
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
    // An escape of a character has six bytes.
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
