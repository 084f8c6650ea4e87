use crate::openai_anthropic::tokens::write_usage;
use crate::openai_responses::output::{
    Annotation, Call, Detail, Item, Part, Response, char_count, write_detail,
};
use proofgate_dialect::json::write_member;
use proofgate_dialect::json::{write_number, write_string};
use proofgate_dialect::json_text::JsonText;
use proofgate_dialect::{RequestContext, ResponseError, Usage};

/// The separator between the texts of two messages, or of two parts of a summary, in a JSON string.
pub(super) const TEXT_SEPARATOR: &str = "\\n\\n";

/// Writes the chat completion for a whole response, and returns its usage; counts that the provider
/// does not report are 0.
///
/// `created` is the time of the answer in seconds since 1970, used if the response has none. `out` is unchanged if the
/// answer cannot be translated.
///
/// # Errors
/// Returns [`ResponseError::Malformed`] if it is not a response, or an item lacks a member that its
/// type requires, and [`ResponseError::Failed`] if it is an error, or a response that failed, was
/// cancelled or has not ended.
///
/// Source: openai 3.54.0, `types/responses/response.py`.
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
    let body = std::str::from_utf8(body).map_err(|_| ResponseError::Malformed("not UTF-8"))?;
    let response: Response<'_> =
        serde_json::from_str(body).map_err(|_| ResponseError::Malformed("not a response in JSON"))?;
    if response.error.is_some() {
        return Err(ResponseError::Failed("the response has an error"));
    }
    match response.status.as_deref() {
        None | Some("completed" | "incomplete") => {}
        Some("failed") => return Err(ResponseError::Failed("the response failed")),
        Some("cancelled") => return Err(ResponseError::Failed("the response was cancelled")),
        Some(_) => return Err(ResponseError::Failed("the response has not ended")),
    }
    let items = response
        .output
        .as_deref()
        .ok_or(ResponseError::Malformed("no output"))?;
    let calls = items.iter().filter_map(Item::call);
    let calls = calls.collect::<Result<Vec<_>, _>>()?;

    out.reserve(body.len());
    out.extend_from_slice(b"{\"id\":");
    out.extend_from_slice(response.id.map_or("\"\"", JsonText::raw).as_bytes());
    out.extend_from_slice(b",\"object\":\"chat.completion\",\"created\":");
    write_number(out, response.created().unwrap_or(created));
    out.extend_from_slice(b",\"model\":");
    write_string(out, &asked.model);
    write_member(out, "service_tier", response.service_tier().map(JsonText::raw));
    out.extend_from_slice(b",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":");
    let logprobs = write_message_content(items, !calls.is_empty(), out)?;
    write_reasoning(items, out)?;
    write_calls(&calls, out);
    out.extend_from_slice(b"},\"logprobs\":");
    write_logprobs(&logprobs, out);
    out.extend_from_slice(b",\"finish_reason\":");
    write_string(out, response.finish_reason(!calls.is_empty()));
    out.extend_from_slice(b"}],\"usage\":");
    let usage = response.usage.unwrap_or_default().usage();
    write_usage(&usage, out);
    out.push(b'}');
    Ok(usage)
}

/// Writes the texts, refusals and citations of all messages; returns the log probabilities of their tokens.
fn write_message_content<'b>(
    items: &[Item<'b>],
    has_calls: bool,
    out: &mut Vec<u8>,
) -> Result<Vec<&'b str>, ResponseError> {
    let (mut text, mut refusal) = (String::new(), String::new());
    let mut cited: Vec<(u64, Annotation<'b>)> = Vec::new();
    let mut logprobs = Vec::new();
    let mut said = 0_u64;
    for item in items
        .iter()
        .filter(|item| item.kind.as_deref() == Some("message"))
    {
        let mut is_first = true;
        for part in item.parts()? {
            if let Some(declined) = part.refusal() {
                refusal.push_str(declined.inner());
            }
            let Some(words) = part.text() else { continue };
            if std::mem::replace(&mut is_first, false) && !text.is_empty() {
                text.push_str(TEXT_SEPARATOR);
                said = said.saturating_add(2);
            }
            let annotations = part.annotations().into_iter();
            cited.extend(
                annotations
                    .filter(Annotation::is_supported)
                    .map(|cited| (said, cited)),
            );
            logprobs.extend(logprob_elements(&part));
            text.push_str(words.inner());
            said = said.saturating_add(char_count(words));
        }
    }
    let quoted = |text: &str| format!("\"{text}\"");
    let content = match text.is_empty() && (has_calls || !refusal.is_empty()) {
        true => "null".to_owned(),
        false => quoted(&text),
    };
    out.extend_from_slice(content.as_bytes());
    let refusal = if refusal.is_empty() {
        "null".to_owned()
    } else {
        quoted(&refusal)
    };
    write_member(out, "refusal", Some(&refusal));
    let mut before = ",\"annotations\":[";
    for (said, annotation) in &cited {
        out.extend_from_slice(std::mem::replace(&mut before, ",").as_bytes());
        annotation.write(*said, out);
    }
    if before == "," {
        out.push(b']');
    }
    Ok(logprobs)
}

/// Returns the elements of the list of log probabilities, if there are any.
fn logprob_elements<'b>(part: &Part<'b>) -> Option<&'b str> {
    let list = part.logprobs?.get().strip_prefix('[')?.strip_suffix(']')?.trim();
    (!list.is_empty()).then_some(list)
}

/// Writes the log probabilities of tokens, which have the same form in both APIs.
fn write_logprobs(logprobs: &[&str], out: &mut Vec<u8>) {
    if logprobs.is_empty() {
        out.extend_from_slice(b"null");
        return;
    }
    let mut before = "{\"content\":[";
    for list in logprobs {
        out.extend_from_slice(std::mem::replace(&mut before, ",").as_bytes());
        out.extend_from_slice(list.as_bytes());
    }
    out.extend_from_slice(b"],\"refusal\":null}");
}

/// Writes the reasoning, for display and to be sent back.
fn write_reasoning(items: &[Item<'_>], out: &mut Vec<u8>) -> Result<(), ResponseError> {
    let (mut read, mut details) = (String::new(), Vec::new());
    let mut index = 0;
    for item in items
        .iter()
        .filter(|item| item.kind.as_deref() == Some("reasoning"))
    {
        let id = item.id().map(JsonText::raw);
        let summary = item.summary()?;
        let texts = item.parts()?;
        let summary = summary.iter().filter_map(Part::text).map(Detail::Summary);
        let texts = texts.iter().filter_map(Part::text).map(Detail::Text);
        let encrypted = item.encrypted_content().map(Detail::Encrypted);
        for detail in summary.chain(texts).chain(encrypted) {
            if let Detail::Summary(text) | Detail::Text(text) = detail {
                if !read.is_empty() {
                    read.push_str(TEXT_SEPARATOR);
                }
                read.push_str(text.inner());
            }
            details.push(if index == 0 { b'[' } else { b',' });
            write_detail(detail, index, id, &mut details);
            index += 1;
        }
    }
    if !read.is_empty() {
        write_member(out, "reasoning_content", Some(&format!("\"{read}\"")));
    }
    if !details.is_empty() {
        out.extend_from_slice(b",\"reasoning_details\":");
        out.append(&mut details);
        out.push(b']');
    }
    Ok(())
}

fn write_calls(calls: &[Call<'_>], out: &mut Vec<u8>) {
    let mut before = ",\"tool_calls\":[";
    for call in calls {
        let (kind, argument, empty) = match call.is_custom {
            true => ("custom", "input", "\"\""),
            false => ("function", "arguments", "\"{}\""),
        };
        let value = call.argument.map_or(empty, JsonText::raw);
        for piece in [
            std::mem::replace(&mut before, ","),
            "{\"id\":",
            call.id.raw(),
            ",\"type\":\"",
            kind,
            "\",\"",
            kind,
            "\":{\"name\":",
            call.name.raw(),
            ",\"",
            argument,
            "\":",
            value,
            "}}",
        ] {
            out.extend_from_slice(piece.as_bytes());
        }
    }
    if !calls.is_empty() {
        out.push(b']');
    }
}
