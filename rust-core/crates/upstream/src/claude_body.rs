//! Bodies of Claude's clients that speak to Amazon Bedrock or Vertex AI, as requests of Anthropic's messages.

use std::rc::Rc;

use proofgate_base::client_fields::ClientFields;
use proofgate_base::memory::{Budget, Buffer, Exhausted};
use proofgate_translate::invoke_client::{self, as_message};

use crate::google_path::{BodyForm, InPath};

/// The request of Anthropic's messages that a body stands for; `None` where it is in the words of its dialect already, or is no JSON
/// object. Betas that it names are added to `fields`.
pub fn read(
    budget: &Rc<Budget>,
    in_path: Option<&InPath>,
    body: &[u8],
    fields: Option<&mut ClientFields>,
) -> Result<Option<Buffer>, Exhausted> {
    let Some(in_path) = in_path.filter(|in_path| in_path.form != BodyForm::OfDialect) else {
        return Ok(None);
    };
    let path = invoke_client::InPath {
        model: Some(in_path.model.as_str()).filter(|model| !model.is_empty()),
        stream: in_path.stream,
    };
    // An escape of a character has six bytes.
    let of_path = in_path.model.len().saturating_mul(6).saturating_add(64);
    let mut message = Buffer::new(budget);
    let betas = message.write(body.len().saturating_add(of_path), |out| {
        as_message(body, path, out)
    })?;
    let Some(betas) = betas else { return Ok(None) };
    if let Some(fields) = fields {
        fields.add_from_body(betas);
    }
    Ok(Some(message))
}
