use serde::Deserialize;
use serde_json::value::RawValue;

use crate::openai_responses::output::{Annotation, Item, Response};
use proofgate_dialect::ResponseError;
use proofgate_dialect::json_text::JsonText;
use proofgate_dialect::object::Word;

/// An event of a streamed response. The members that stand in it depend on its type.
#[derive(Default, Deserialize)]
pub(super) struct Event<'b> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Word<'b>,
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

/// The events that are read.
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
    /// Reads the data of an event. `None` is an event of a type that is not read.
    ///
    /// # Errors
    /// [`ResponseError::Malformed`] when it is no JSON, or an event of a known type that is not made as that type is.
    pub(super) fn read(data: &'b str) -> Result<Option<Self>, ResponseError> {
        #[derive(Deserialize)]
        struct Kind<'b> {
            #[serde(borrow, rename = "type")]
            kind: Word<'b>,
        }
        if let Ok(event) = serde_json::from_str::<Event<'b>>(data) {
            return Ok(Some(event).filter(|event| KNOWN_EVENTS.contains(&&*event.kind)));
        }
        let Kind { kind } = serde_json::from_str(data)
            .map_err(|_| ResponseError::Malformed("an event is not JSON, or has no type"))?;
        match &*kind {
            // A failure is one, however it is made.
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

    /// The fragment that it brings; empty ones say nothing.
    pub(super) fn fragment(&self) -> Result<Option<JsonText<'b>>, ResponseError> {
        let delta = self.delta.and_then(JsonText::from_raw);
        let delta = delta.ok_or(ResponseError::Malformed("a delta lacks its value"))?;
        Ok(Some(delta).filter(|delta| !delta.is_empty()))
    }

    /// The whole of a call's arguments or input.
    pub(super) fn full_argument(&self) -> Option<JsonText<'b>> {
        let whole = self.arguments.or(self.input).and_then(JsonText::from_raw);
        whole.filter(|whole| !whole.is_empty())
    }

    /// The probabilities of the fragment's tokens: the elements of a list.
    pub(super) fn logprobs(&self) -> Option<&'b str> {
        let list = self.logprobs?.get().strip_prefix('[')?.strip_suffix(']')?.trim();
        (!list.is_empty()).then_some(list)
    }

    /// What the text cites, if chat completions have it.
    pub(super) fn annotation(&self) -> Option<Annotation<'b>> {
        let annotation: Annotation<'b> = serde_json::from_str(self.annotation?.get()).ok()?;
        Some(annotation).filter(Annotation::is_supported)
    }
}
