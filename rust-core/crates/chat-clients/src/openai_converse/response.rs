use serde::Deserialize;
use serde_json::value::RawValue;

use crate::openai_converse::finish_reason::FinishReason;
use crate::openai_converse::usage::{TokenUsage, write_usage};
use proofgate_chat_request::fnv1a;
use proofgate_dialect::json::write_all;
use proofgate_dialect::json::write_string;
use proofgate_dialect::json_text::unquoted as inner;
use proofgate_dialect::reasoning_details::{ENCRYPTED, TEXT};
use proofgate_dialect::{RequestContext, ResponseError, Usage};

/// An answer of Converse, reduced to the members that have a counterpart. Source: botocore 1.44.5,
/// shape `ConverseResponse`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConverseResponse<'b> {
    #[serde(borrow)]
    output: Output<'b>,
    #[serde(borrow)]
    stop_reason: &'b RawValue,
    usage: TokenUsage,
}

#[derive(Deserialize)]
struct Output<'b> {
    #[serde(borrow)]
    message: Message<'b>,
}

#[derive(Deserialize)]
struct Message<'b> {
    #[serde(borrow)]
    content: Vec<Block<'b>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Block<'b> {
    #[serde(borrow)]
    text: Option<&'b RawValue>,
    #[serde(borrow)]
    tool_use: Option<ToolUse<'b>>,
    #[serde(borrow)]
    reasoning_content: Option<Reasoning<'b>>,
    #[serde(borrow)]
    citations_content: Option<CitationsContent<'b>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolUse<'b> {
    #[serde(borrow)]
    tool_use_id: &'b RawValue,
    #[serde(borrow)]
    name: &'b RawValue,
    #[serde(borrow)]
    input: Option<&'b RawValue>,
    /// `server_tool_use` for a call that the provider ran itself.
    #[serde(borrow, rename = "type")]
    kind: Option<&'b RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reasoning<'b> {
    #[serde(borrow)]
    reasoning_text: Option<ReasoningText<'b>>,
    #[serde(borrow)]
    redacted_content: Option<&'b RawValue>,
}

#[derive(Deserialize)]
struct ReasoningText<'b> {
    #[serde(borrow)]
    text: &'b RawValue,
    #[serde(borrow)]
    signature: Option<&'b RawValue>,
}

#[derive(Deserialize)]
struct CitationsContent<'b> {
    #[serde(borrow)]
    content: Option<Vec<CitedText<'b>>>,
}

#[derive(Deserialize)]
struct CitedText<'b> {
    #[serde(borrow)]
    text: Option<&'b RawValue>,
}

/// Appends the chat completion for an answer of Converse.
///
/// `created` is in Unix seconds. Converse's answers have no id in their body, so the completion's id is a hash of the
/// answer.
///
/// # Errors
/// Returns [`ResponseError::Malformed`] if it is not such an answer. Nothing is appended then.
pub fn translate_response(
    body: &[u8],
    asked: &RequestContext,
    created: u64,
    out: &mut Vec<u8>,
) -> Result<Usage, ResponseError> {
    let answer: ConverseResponse<'_> =
        serde_json::from_slice(body).map_err(|_| ResponseError::Malformed("not a Converse answer"))?;
    let begin = out.len();
    write_completion(&answer, body, asked, created, out).inspect_err(|_| out.truncate(begin))
}

fn write_completion(
    answer: &ConverseResponse<'_>,
    body: &[u8],
    asked: &RequestContext,
    created: u64,
    out: &mut Vec<u8>,
) -> Result<Usage, ResponseError> {
    let blocks = &answer.output.message.content;
    let calls: Vec<&ToolUse<'_>> = blocks
        .iter()
        .filter_map(|block| block.tool_use.as_ref())
        .filter(|call| call.kind.is_none())
        .collect();
    let stop_reason =
        inner(answer.stop_reason).ok_or(ResponseError::Malformed("stopReason is not a string"))?;
    let finish = FinishReason::from_stop_reason(stop_reason, !calls.is_empty());
    let usage = Usage::from(&answer.usage);

    write_all(
        out,
        &[
            r#"{"id":""#,
            &completion_id(created, body),
            r#"","object":"chat.completion","created":"#,
            itoa::Buffer::new().format(created),
            r#","model":"#,
        ],
    );
    write_string(out, &asked.model);
    write_all(
        out,
        &[r#","choices":[{"index":0,"message":{"role":"assistant","content":"#],
    );
    write_texts(out, blocks.iter().flat_map(texts), calls.is_empty())?;
    write_all(out, &[r#","refusal":null"#]);
    write_reasoning(out, blocks)?;
    for (number, call) in calls.iter().enumerate() {
        write_all(out, &[if number == 0 { r#","tool_calls":["# } else { "," }]);
        write_call(out, call)?;
    }
    let end = if calls.is_empty() { "" } else { "]" };
    write_all(
        out,
        &[end, r#"},"logprobs":null,"finish_reason":""#, finish.reason, "\""],
    );
    finish.write_native(out);
    write_all(out, &[r#"}],"usage":"#]);
    write_usage(out, &usage);
    out.push(b'}');
    Ok(usage)
}

/// Returns an id for a completion, because Converse has none.
pub(super) fn completion_id(created: u64, said: &[u8]) -> String {
    let hash = fnv1a(created.to_be_bytes().into_iter().chain(said.iter().copied()));
    format!("chatcmpl-{hash:016x}")
}

fn texts<'t, 'b>(block: &'t Block<'b>) -> impl Iterator<Item = &'b RawValue> + use<'t, 'b> {
    let cited = block
        .citations_content
        .iter()
        .flat_map(|cited| cited.content.iter().flatten());
    block.text.into_iter().chain(cited.filter_map(|part| part.text))
}

/// Writes texts as one string; without texts, `null` or an empty string.
fn write_texts<'b>(
    out: &mut Vec<u8>,
    texts: impl Iterator<Item = &'b RawValue>,
    or_empty: bool,
) -> Result<(), ResponseError> {
    let begin = out.len();
    out.push(b'"');
    for text in texts {
        let text = inner(text).ok_or(ResponseError::Malformed("a text is not a string"))?;
        out.extend_from_slice(text.as_bytes());
    }
    out.push(b'"');
    if !or_empty && out.len() == begin + 2 {
        out.truncate(begin);
        out.extend_from_slice(b"null");
    }
    Ok(())
}

/// Writes the text of the reasoning, and the blocks that a client sends back.
fn write_reasoning(out: &mut Vec<u8>, blocks: &[Block<'_>]) -> Result<(), ResponseError> {
    let reasoning = || blocks.iter().filter_map(|block| block.reasoning_content.as_ref());
    let texts = || reasoning().filter_map(|block| block.reasoning_text.as_ref());
    if texts().next().is_some() {
        write_all(out, &[r#","reasoning_content":"#]);
        write_texts(out, texts().map(|text| text.text), true)?;
    }
    let mut number = 0;
    for block in reasoning() {
        let (kind, value, signature) = match (&block.reasoning_text, block.redacted_content) {
            (Some(text), _) => (TEXT, text.text, text.signature),
            (None, Some(data)) => (ENCRYPTED, data, None),
            (None, None) => continue,
        };
        let before = if number == 0 {
            r#","reasoning_details":["#
        } else {
            ","
        };
        write_all(out, &[before]);
        write_detail(out, number, kind, value, signature)?;
        number += 1;
    }
    if number > 0 {
        out.push(b']');
    }
    Ok(())
}

/// Writes an item of `reasoning_details`.
fn write_detail(
    out: &mut Vec<u8>,
    number: usize,
    kind: &str,
    value: &RawValue,
    signature: Option<&RawValue>,
) -> Result<(), ResponseError> {
    let field = if kind == TEXT { "text" } else { "data" };
    if inner(value).is_none() || signature.is_some_and(|signature| inner(signature).is_none()) {
        return Err(ResponseError::Malformed("reasoning is not a string"));
    }
    let index = itoa::Buffer::new().format(number).to_owned();
    write_all(
        out,
        &[
            r#"{"type":""#,
            kind,
            r#"","index":"#,
            &index,
            ",\"",
            field,
            "\":",
            value.get(),
        ],
    );
    if let Some(signature) = signature {
        write_all(out, &[r#","signature":"#, signature.get()]);
    }
    out.push(b'}');
    Ok(())
}

fn write_call(out: &mut Vec<u8>, call: &ToolUse<'_>) -> Result<(), ResponseError> {
    if inner(call.tool_use_id).is_none() || inner(call.name).is_none() {
        return Err(ResponseError::Malformed("a tool call has no id or name"));
    }
    let input = call.input.map_or("{}", RawValue::get);
    write_all(
        out,
        &[
            r#"{"id":"#,
            call.tool_use_id.get(),
            r#","type":"function","function":{"name":"#,
            call.name.get(),
            r#","arguments":"#,
        ],
    );
    write_string(out, input);
    write_all(out, &["}}"]);
    Ok(())
}
