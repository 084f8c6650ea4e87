//! Answers of OpenAI's: <https://platform.openai.com/docs/api-reference>.

use super::{Reading, first, token_of};
use crate::{Refusal, TokenId};
use serde_json::Value;

/// `chat.completion` and `chat.completion.chunk`.
pub(super) fn chat(reading: &mut Reading<'_>, value: &Value) {
    reading.is_answer |= value.get("choices").is_some();
    let Some(choice) = first(value, "choices") else {
        return;
    };
    finish(reading, choice.get("finish_reason"));
    if let Some(message) = choice.get("message").or_else(|| choice.get("delta")) {
        reading.text(message.get("content"));
        reading.declares(message.get("refusal"));
    }
    let content = choice.get("logprobs").and_then(|told| told.get("content"));
    tokens(reading, content);
}

/// `text_completion`, whole and in parts.
pub(super) fn completion(reading: &mut Reading<'_>, value: &Value) {
    reading.is_answer |= value.get("choices").is_some();
    let Some(choice) = first(value, "choices") else {
        return;
    };
    finish(reading, choice.get("finish_reason"));
    reading.text(choice.get("text"));
    let Some(told) = choice.get("logprobs") else {
        return;
    };
    let list = |name: &str| told.get(name).and_then(Value::as_array);
    let (chosen, alternatives) = (list("token_logprobs"), list("top_logprobs"));
    let Some(tokens) = list("tokens") else { return };
    for (at, token) in tokens.iter().enumerate() {
        let id = token.as_str().map(|token| TokenId::of(token.as_bytes()));
        let logarithm = chosen.and_then(|chosen| chosen.get(at)?.as_f64());
        let others = alternatives.and_then(|told| told.get(at)?.as_object());
        let others = others
            .into_iter()
            .flatten()
            .filter_map(|(token, logarithm)| Some((TokenId::of(token.as_bytes()), logarithm.as_f64()?)));
        reading.token(id.zip(logarithm).into_iter().chain(others));
    }
}

/// A whole `response`.
pub(super) fn response(reading: &mut Reading<'_>, value: &Value) {
    reading.is_answer |= value.get("output").is_some();
    response_end(reading, value);
    let items = value.get("output").and_then(Value::as_array);
    let contents = items
        .into_iter()
        .flatten()
        .filter_map(|item| item.get("content")?.as_array());
    for part in contents.flatten() {
        reading.text(part.get("text"));
        reading.declares(part.get("refusal"));
        tokens(reading, part.get("logprobs"));
    }
}

/// An event of a stream of one.
pub(super) fn response_event(reading: &mut Reading<'_>, value: &Value) {
    let kind = value.get("type").and_then(Value::as_str).unwrap_or_default();
    reading.is_answer |= kind.starts_with("response.");
    match kind {
        "response.output_text.delta" => {
            reading.text(value.get("delta"));
            tokens(reading, value.get("logprobs"));
        }
        "response.refusal.delta" => reading.declares(value.get("delta")),
        "response.completed" | "response.incomplete" => {
            if let Some(response) = value.get("response") {
                response_end(reading, response);
            }
        }
        _ => {}
    }
}

fn response_end(reading: &mut Reading<'_>, response: &Value) {
    let details = response.get("incomplete_details");
    match details.and_then(|details| details.get("reason")?.as_str()) {
        Some("max_output_tokens") => reading.cut = true,
        Some("content_filter") => reading.refuses(Refusal::Filtered),
        _ => {}
    }
}

fn finish(reading: &mut Reading<'_>, reason: Option<&Value>) {
    match reason.and_then(Value::as_str) {
        Some("length") => reading.cut = true,
        Some("content_filter") => reading.refuses(Refusal::Filtered),
        _ => {}
    }
}

fn tokens(reading: &mut Reading<'_>, told: Option<&Value>) {
    let outcome = |told: &Value| Some((token_of(told)?, told.get("logprob")?.as_f64()?));
    for token in told.and_then(Value::as_array).into_iter().flatten() {
        let others = token.get("top_logprobs").and_then(Value::as_array);
        let all = std::iter::once(token).chain(others.into_iter().flatten());
        reading.token(all.filter_map(outcome));
    }
}
