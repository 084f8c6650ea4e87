use crate::openai_gemini::candidate_content::{
    CallIds, CandidateContent, write_joined, write_logprobs, write_usage,
};
use crate::openai_gemini::generate_content_response::{
    Candidate, FinishReason, GenerateContentResponse, UsageMetadata, string_contents,
};
use proofgate_dialect::json::{write_number, write_string};
use proofgate_dialect::{RequestContext, ResponseError, Usage};

/// The maximum length of an answer's id in bytes; a longer id is treated as absent.
pub(super) const MAX_ID_BYTES: usize = 256;

/// Appends a whole answer of `generateContent` as a chat completion.
///
/// `created` is the time in seconds since 1970; ids are derived from it if the provider sends none.
/// If the provider reports no usage, the usage is zero and is not written.
///
/// # Errors
/// Returns [`ResponseError::Malformed`] if it is not an answer, or has not ended, and [`ResponseError::Failed`] if it is an
/// error. Nothing is appended then.
pub fn translate_response(
    body: &[u8],
    asked: &RequestContext,
    created: u64,
    out: &mut Vec<u8>,
) -> Result<Usage, ResponseError> {
    let start = out.len();
    let usage = write_completion(body, asked, created, out);
    if usage.is_err() {
        out.truncate(start);
    }
    usage
}

fn write_completion(
    body: &[u8],
    asked: &RequestContext,
    created: u64,
    out: &mut Vec<u8>,
) -> Result<Usage, ResponseError> {
    let generated = parse(body)?;
    if generated.error.is_some() {
        return Err(ResponseError::Failed("error"));
    }
    let id = response_id(&generated, created);
    write_head(&id, "chat.completion", created, &asked.model, out);
    match generated.candidates.as_deref().unwrap_or_default() {
        [] if generated.is_blocked() => write_blocked(out),
        [] => return Err(ResponseError::Malformed("it has no candidates")),
        candidates => {
            for (candidate, position) in candidates.iter().zip(0..) {
                if position > 0 {
                    out.push(b',');
                }
                write_choice(candidate, candidate.index.unwrap_or(position), &id, out)?;
            }
        }
    }
    out.push(b']');
    let usage = generated.usage_metadata.as_ref().and_then(UsageMetadata::usage);
    if let Some(usage) = &usage {
        out.extend_from_slice(br#","usage":"#);
        write_usage(usage, out);
    }
    out.push(b'}');
    Ok(usage.unwrap_or_default())
}

fn write_choice(
    candidate: &Candidate<'_>,
    index: u32,
    id: &str,
    out: &mut Vec<u8>,
) -> Result<(), ResponseError> {
    let finish = candidate
        .parse_finish_reason()?
        .ok_or(ResponseError::Malformed("a candidate has no finish reason"))?;
    let said = CandidateContent::read(candidate)?;
    out.extend_from_slice(br#"{"index":"#);
    write_number(out, u64::from(index));
    out.extend_from_slice(br#","message":{"role":"assistant","content":"#);
    if said.text.is_empty() && !said.calls.is_empty() {
        out.extend_from_slice(b"null");
    } else {
        write_joined(&said.text, out);
    }
    out.extend_from_slice(br#","refusal":null"#);
    let ids = CallIds {
        response_id: id,
        choice: index,
    };
    said.write_optional_members(ids, 0, false, out);
    out.extend_from_slice(br#"},"logprobs":"#);
    write_logprobs(candidate.logprobs_result.as_ref(), out);
    finish.write(!said.calls.is_empty(), out);
    out.push(b'}');
    Ok(())
}

/// Appends the single choice of an answer to a blocked prompt.
fn write_blocked(out: &mut Vec<u8>) {
    out.extend_from_slice(
        br#"{"index":0,"message":{"role":"assistant","content":"","refusal":null},"logprobs":null"#,
    );
    FinishReason::Filtered.write(false, out);
    out.push(b'}');
}

pub(super) fn parse(body: &[u8]) -> Result<GenerateContentResponse<'_>, ResponseError> {
    let text = std::str::from_utf8(body).map_err(|_| ResponseError::Malformed("it is not UTF-8"))?;
    serde_json::from_str(text).map_err(|_| ResponseError::Malformed("it is not a JSON answer"))
}

/// Returns an identifier of the answer, as the contents of a JSON string.
pub(super) fn response_id(generated: &GenerateContentResponse<'_>, created: u64) -> String {
    let id = generated.response_id.and_then(|id| string_contents(id).ok());
    match id.filter(|id| (1..=MAX_ID_BYTES).contains(&id.len())) {
        Some(id) => id.to_owned(),
        None => created.to_string(),
    }
}

/// Appends an answer or chunk up to its `choices`.
pub(super) fn write_head(id: &str, object: &str, created: u64, model: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"id":"chatcmpl-"#);
    out.extend_from_slice(id.as_bytes());
    out.extend_from_slice(br#"","object":""#);
    out.extend_from_slice(object.as_bytes());
    out.extend_from_slice(br#"","created":"#);
    write_number(out, created);
    out.extend_from_slice(br#","model":"#);
    write_string(out, model);
    out.extend_from_slice(br#","choices":["#);
}
