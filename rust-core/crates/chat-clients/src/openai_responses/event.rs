use serde::Deserialize;
use serde_json::value::RawValue;

use crate::openai_responses::output::{Annotation, Item, Response};
use proofgate_dialect::ResponseError;
use proofgate_dialect::json_text::JsonText;
use proofgate_dialect::object::UnescapedString;

/// An event of a streamed response. Its members depend on its type.
#[derive(Default, Deserialize)]
pub(super) struct Event<'b> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: UnescapedString<'b>,
    pub(super) output_index: Option<u64>,
    pub(super) content_index: Option<u64>,
    #[serde(borrow)]
    pub(super) response: Option<Response<'b>>,
    #[serde(borrow)]
    pub(super) item: Option<Item<'b>>,
    #[serde(borrow)]
    delta: Option<&'b RawValue>,
    #[serde(borrow)]
    arguments: Option<&'b RawValue>,
    #[serde(borrow)]
    input: Option<&'b RawValue>,
    #[serde(borrow)]
    logprobs: Option<&'b RawValue>,
    #[serde(borrow)]
    annotation: Option<&'b RawValue>,
}

/// The types of events that are read.
const KNOWN_EVENTS: [&str; 19] = [
    "response.created",
    "response.queued",
    "response.in_progress",
    "response.output_item.added",
    "response.output_item.done",
    "response.output_text.delta",
    "response.output_text.annotation.added",
    "response.refusal.delta",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.custom_tool_call_input.delta",
    "response.custom_tool_call_input.done",
    "response.reasoning_summary_part.added",
    "response.reasoning_summary_text.delta",
    "response.reasoning_text.delta",
    "response.completed",
    "response.incomplete",
    "response.failed",
    "error",
];

impl<'b> Event<'b> {
    /// Reads the data of an event. Returns `None` for an event of another type.
    ///
    /// # Errors
    /// Returns [`ResponseError::Malformed`] if it is not JSON, or a known event with the wrong members.
    pub(super) fn read(data: &'b str) -> Result<Option<Self>, ResponseError> {
        #[derive(Deserialize)]
        struct Kind<'b> {
            #[serde(borrow, rename = "type")]
            kind: UnescapedString<'b>,
        }
        if let Ok(event) = serde_json::from_str::<Event<'b>>(data) {
            return Ok(Some(event).filter(|event| KNOWN_EVENTS.contains(&&*event.kind)));
        }
        let Kind { kind } = serde_json::from_str(data)
            .map_err(|_| ResponseError::Malformed("an event is not JSON, or has no type"))?;
        match &*kind {
            // A failure counts whatever its form.
            "error" | "response.failed" => Ok(Some(Event {
                kind,
                ..Event::default()
            })),
            known if KNOWN_EVENTS.contains(&known) => {
                Err(ResponseError::Malformed("an event does not match its type"))
            }
            _ => Ok(None),
        }
    }

    /// Returns the fragment in the event; `None` if it is empty.
    pub(super) fn fragment(&self) -> Result<Option<JsonText<'b>>, ResponseError> {
        let delta = self.delta.and_then(JsonText::from_raw);
        let delta = delta.ok_or(ResponseError::Malformed("a delta lacks its value"))?;
        Ok(Some(delta).filter(|delta| !delta.is_empty()))
    }

    /// Returns the whole arguments or input of a call.
    pub(super) fn full_argument(&self) -> Option<JsonText<'b>> {
        let whole = self.arguments.or(self.input).and_then(JsonText::from_raw);
        whole.filter(|whole| !whole.is_empty())
    }

    /// Returns the log probabilities of the fragment's tokens: the elements of a list.
    pub(super) fn logprobs(&self) -> Option<&'b str> {
        let list = self.logprobs?.get().strip_prefix('[')?.strip_suffix(']')?.trim();
        (!list.is_empty()).then_some(list)
    }

    /// Returns the citation in the event, if chat completions support it.
    pub(super) fn annotation(&self) -> Option<Annotation<'b>> {
        let annotation: Annotation<'b> = serde_json::from_str(self.annotation?.get()).ok()?;
        Some(annotation).filter(Annotation::is_supported)
    }
}
