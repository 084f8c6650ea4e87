//! Requests to OpenAI's own models that require `/v1/responses`.

use serde::Deserialize;
use serde_json::value::RawValue;

use proofgate_dialect::constraints::{Constraint, has_constraint, model_requires_responses_api};
use proofgate_dialect::json_text::JsonText;

/// The fields that determine the API; they have the same names in chat completions and in
/// Anthropic's messages.
#[derive(Deserialize)]
struct RoutingFields<'b> {
    #[serde(borrow)]
    tools: Option<&'b RawValue>,
    #[serde(borrow)]
    reasoning_effort: Option<&'b RawValue>,
    #[serde(borrow)]
    output_config: Option<&'b RawValue>,
    #[serde(borrow)]
    thinking: Option<&'b RawValue>,
}

#[derive(Default, Deserialize)]
struct Inner<'b> {
    #[serde(borrow)]
    effort: Option<&'b RawValue>,
    #[serde(borrow, rename = "type")]
    kind: Option<&'b RawValue>,
}

/// Returns whether a request of chat completions or of Anthropic's messages must be sent to this
/// model of OpenAI's own at `/v1/responses` ([`model_requires_responses_api`]). `model` is the
/// provider's name. Returns `false` for a body that cannot be read.
///
/// The body is read only for models from `gpt-5.4` on, and for models that exist only at
/// `/v1/responses`.
#[must_use]
pub fn requires_responses_api(model: &str, body: &[u8]) -> bool {
    if has_constraint(model, Constraint::ResponsesOnly) {
        return true;
    }
    if !has_constraint(model, Constraint::ToolsWithoutEffort) {
        return false;
    }
    let Ok(wishes) = serde_json::from_slice::<RoutingFields<'_>>(body) else {
        return false;
    };
    let has_tools = wishes.tools.is_some_and(|tools| {
        serde_json::from_str(tools.get()).is_ok_and(|tools: Vec<&RawValue>| !tools.is_empty())
    });
    let text = |value: Option<&RawValue>| {
        let text = value
            .and_then(JsonText::from_raw)
            .filter(|text| !text.is_empty())?;
        text.decode().map(|text| text.into_owned())
    };
    let inner = |value: Option<&RawValue>| -> (Option<String>, Option<String>) {
        let inner: Option<Inner<'_>> = value.and_then(|value| serde_json::from_str(value.get()).ok());
        inner.map_or((None, None), |inner| (text(inner.effort), text(inner.kind)))
    };
    // Thinking counts as an effort, whatever its level.
    let thinks = inner(wishes.thinking).1.filter(|kind| kind != "disabled");
    let effort = text(wishes.reasoning_effort).or(inner(wishes.output_config).0);
    model_requires_responses_api(model, has_tools, effort.or(thinks).as_deref())
}
