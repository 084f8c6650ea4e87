use crate::openai_gemini::messages::Conversation;
use crate::openai_gemini::settings;
use crate::openai_gemini::tools;
use proofgate_chat_request::{ChatRequest, DroppedFields, translate};
use proofgate_dialect::constraints::{Constraint, has_constraint};
use proofgate_dialect::json::write_all;
use proofgate_dialect::{RequestContext, Target, UntranslatableRequest};

/// The fields that Gemini supports, in addition to the fields that every provider supports.
const SUPPORTED_FIELDS: &[&str] = &[
    "n",
    "stop",
    "seed",
    "frequency_penalty",
    "presence_penalty",
    "logprobs",
    "top_logprobs",
    "top_k",
    "modalities",
    "extra_body",
    "messages[].reasoning_content",
    "messages[].extra_content",
    "messages[].images",
];

/// Appends the body of `generateContent` for a body of `POST /v1/chat/completions`.
///
/// `target.max_output_tokens` is not used, because Gemini requires no maximum. Only the generation
/// of `target.model` is read; it determines how thinking is requested.
///
/// # Errors
/// Returns [`UntranslatableRequest`] if the body is not a chat request, asks for a feature that
/// Gemini does not have, or has a field without a counterpart and `target.untranslatable` refuses
/// it. Nothing is appended then.
pub fn translate_request(
    body: &[u8],
    target: &Target<'_>,
    out: &mut Vec<u8>,
) -> Result<RequestContext, UntranslatableRequest> {
    translate(body, target, out, SUPPORTED_FIELDS, |chat, losses, out| {
        write(chat, target.model, losses, out)
    })
}

fn write(
    chat: &ChatRequest<'_>,
    model: &str,
    losses: &mut DroppedFields,
    out: &mut Vec<u8>,
) -> Result<(), UntranslatableRequest> {
    write_all(out, &[r#"{"contents":["#]);
    let needs_signatures = has_constraint(model, Constraint::SignedCalls);
    let instructions = Conversation::write(chat, needs_signatures, losses, out)?;
    out.push(b']');
    if !instructions.is_empty() {
        write_all(out, &[r#","systemInstruction":{"parts":["#]);
        out.extend_from_slice(&instructions);
        write_all(out, &["]}"]);
    }
    tools::write(chat, losses, out)?;
    settings::write(chat, model, losses, out)?;
    out.push(b'}');
    Ok(())
}
