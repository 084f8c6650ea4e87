//! Answers of OpenAI's: <https://platform.openai.com/docs/api-reference>.

use super::part::Part;
use super::reading::{Reading, first, outcome};
use crate::{Refusal, TokenId};

/// `chat.completion` and `chat.completion.chunk`.
pub(super) fn chat(reading: &mut Reading<'_>, value: Part<'_>) {
    let choices = value.get("choices");
    reading.is_answer |= choices.is_some();
    let Some(choice) = first(choices) else {
        return;
    };
    let [reason, message, delta, told] = choice.named(["finish_reason", "message", "delta", "logprobs"]);
    finish(reading, reason);
    if let Some(message) = message.or(delta) {
        let [content, refusal] = message.named(["content", "refusal"]);
        reading.text(content);
        reading.declares(refusal);
    }
    tokens(reading, told.and_then(|told| told.get("content")));
}

/// `text_completion`, whole and in parts.
pub(super) fn completion(reading: &mut Reading<'_>, value: Part<'_>) {
    let choices = value.get("choices");
    reading.is_answer |= choices.is_some();
    let Some(choice) = first(choices) else {
        return;
    };
    let [reason, text, told] = choice.named(["finish_reason", "text", "logprobs"]);
    finish(reading, reason);
    reading.text(text);
    let Some(told) = told else {
        return;
    };
    let lists = told.named(["tokens", "token_logprobs", "top_logprobs"]);
    let [tokens, mut chosen, mut alternatives] = lists.map(|list| list.into_iter().flat_map(Part::elements));
    for token in tokens {
        let id = token.text().map(|token| TokenId::of(token.as_bytes()));
        let logarithm = chosen.next().and_then(Part::number);
        let others = alternatives.next().into_iter().flat_map(Part::members);
        let others = others
            .filter_map(|(token, logarithm)| Some((TokenId::of(token.as_bytes()), logarithm.number()?)));
        reading.token(id.zip(logarithm).into_iter().chain(others));
    }
}

/// A whole `response`.
pub(super) fn response(reading: &mut Reading<'_>, value: Part<'_>) {
    let [output, details] = value.named(["output", "incomplete_details"]);
    reading.is_answer |= output.is_some();
    response_end(reading, details);
    let items = output.into_iter().flat_map(Part::elements);
    let contents = items.filter_map(|item| item.get("content"));
    for part in contents.flat_map(Part::elements) {
        let [text, refusal, told] = part.named(["text", "refusal", "logprobs"]);
        reading.text(text);
        reading.declares(refusal);
        tokens(reading, told);
    }
}

/// An event of a stream of one.
pub(super) fn response_event(reading: &mut Reading<'_>, value: Part<'_>) {
    let [kind, delta, told, response] = value.named(["type", "delta", "logprobs", "response"]);
    let kind = kind.and_then(Part::text).unwrap_or_default();
    reading.is_answer |= kind.starts_with("response.");
    match &*kind {
        "response.output_text.delta" => {
            reading.text(delta);
            tokens(reading, told);
        }
        "response.refusal.delta" => reading.declares(delta),
        "response.completed" | "response.incomplete" => {
            response_end(
                reading,
                response.and_then(|response| response.get("incomplete_details")),
            );
        }
        _ => {}
    }
}

fn response_end(reading: &mut Reading<'_>, details: Option<Part<'_>>) {
    let reason = details.and_then(|details| details.get("reason")?.text());
    match reason.as_deref() {
        Some("max_output_tokens") => reading.cut = true,
        Some("content_filter") => reading.refuses(Refusal::Filtered),
        _ => {}
    }
}

fn finish(reading: &mut Reading<'_>, reason: Option<Part<'_>>) {
    match reason.and_then(Part::text).as_deref() {
        Some("length") => reading.cut = true,
        Some("content_filter") => reading.refuses(Refusal::Filtered),
        _ => {}
    }
}

fn tokens(reading: &mut Reading<'_>, told: Option<Part<'_>>) {
    for token in told.into_iter().flat_map(Part::elements) {
        let [bytes, name, logarithm, others] = token.named(["bytes", "token", "logprob", "top_logprobs"]);
        let others = others.into_iter().flat_map(Part::elements);
        let others = others.map(|other| other.named(["bytes", "token", "logprob"]));
        let all = std::iter::once([bytes, name, logarithm]).chain(others);
        reading.token(all.filter_map(outcome));
    }
}
