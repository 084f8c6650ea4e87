//! Responses in OpenAI's formats: <https://platform.openai.com/docs/api-reference>.

use super::json_value::JsonValue;
use super::response_reader::{ResponseReader, first_choice, token_log_probability};
use crate::{RefusalSignal, TokenId};

/// Reads a `chat.completion` or a `chat.completion.chunk`.
pub(super) fn read_chat(reading: &mut ResponseReader<'_>, value: JsonValue<'_>) {
    let choices = value.get("choices");
    reading.is_response |= choices.is_some();
    let Some(choice) = first_choice(choices) else {
        return;
    };
    let [reason, message, delta, told] = choice.get_all(["finish_reason", "message", "delta", "logprobs"]);
    read_finish_reason(reading, reason);
    if let Some(message) = message.or(delta) {
        let [content, refusal] = message.get_all(["content", "refusal"]);
        reading.push_text(content);
        reading.read_refusal_field(refusal);
    }
    read_logprobs(reading, told.and_then(|told| told.get("content")));
}

/// Reads a `text_completion`, complete or a part.
pub(super) fn read_completion(reading: &mut ResponseReader<'_>, value: JsonValue<'_>) {
    let choices = value.get("choices");
    reading.is_response |= choices.is_some();
    let Some(choice) = first_choice(choices) else {
        return;
    };
    let [reason, text, told] = choice.get_all(["finish_reason", "text", "logprobs"]);
    read_finish_reason(reading, reason);
    reading.push_text(text);
    let Some(told) = told else {
        return;
    };
    let lists = told.get_all(["tokens", "token_logprobs", "top_logprobs"]);
    let [tokens, mut chosen, mut alternatives] =
        lists.map(|list| list.into_iter().flat_map(JsonValue::elements));
    for token in tokens {
        let id = token.text().map(|token| TokenId::from_bytes(token.as_bytes()));
        let logarithm = chosen.next().and_then(JsonValue::as_f64);
        let others = alternatives.next().into_iter().flat_map(JsonValue::members);
        let others = others.filter_map(|(token, logarithm)| {
            Some((TokenId::from_bytes(token.as_bytes()), logarithm.as_f64()?))
        });
        reading.push_token(id.zip(logarithm).into_iter().chain(others));
    }
}

/// Reads a complete `response`.
pub(super) fn read_response(reading: &mut ResponseReader<'_>, value: JsonValue<'_>) {
    let [output, details] = value.get_all(["output", "incomplete_details"]);
    reading.is_response |= output.is_some();
    read_response_end(reading, details);
    let items = output.into_iter().flat_map(JsonValue::elements);
    let contents = items.filter_map(|item| item.get("content"));
    for part in contents.flat_map(JsonValue::elements) {
        let [text, refusal, told] = part.get_all(["text", "refusal", "logprobs"]);
        reading.push_text(text);
        reading.read_refusal_field(refusal);
        read_logprobs(reading, told);
    }
}

/// Reads an event of a response stream.
pub(super) fn read_response_event(reading: &mut ResponseReader<'_>, value: JsonValue<'_>) {
    let [kind, delta, told, response] = value.get_all(["type", "delta", "logprobs", "response"]);
    let kind = kind.and_then(JsonValue::text).unwrap_or_default();
    reading.is_response |= kind.starts_with("response.");
    match &*kind {
        "response.output_text.delta" => {
            reading.push_text(delta);
            read_logprobs(reading, told);
        }
        "response.refusal.delta" => reading.read_refusal_field(delta),
        "response.completed" | "response.incomplete" => {
            read_response_end(
                reading,
                response.and_then(|response| response.get("incomplete_details")),
            );
        }
        _ => {}
    }
}

fn read_response_end(reading: &mut ResponseReader<'_>, details: Option<JsonValue<'_>>) {
    let reason = details.and_then(|details| details.get("reason")?.text());
    match reason.as_deref() {
        Some("max_output_tokens") => reading.hit_length_limit = true,
        Some("content_filter") => reading.set_refusal(RefusalSignal::Filtered),
        _ => {}
    }
}

fn read_finish_reason(reading: &mut ResponseReader<'_>, reason: Option<JsonValue<'_>>) {
    match reason.and_then(JsonValue::text).as_deref() {
        Some("length") => reading.hit_length_limit = true,
        Some("content_filter") => reading.set_refusal(RefusalSignal::Filtered),
        _ => {}
    }
}

fn read_logprobs(reading: &mut ResponseReader<'_>, told: Option<JsonValue<'_>>) {
    for token in told.into_iter().flat_map(JsonValue::elements) {
        let [bytes, name, logarithm, others] = token.get_all(["bytes", "token", "logprob", "top_logprobs"]);
        let others = others.into_iter().flat_map(JsonValue::elements);
        let others = others.map(|other| other.get_all(["bytes", "token", "logprob"]));
        let all = std::iter::once([bytes, name, logarithm]).chain(others);
        reading.push_token(all.filter_map(token_log_probability));
    }
}
