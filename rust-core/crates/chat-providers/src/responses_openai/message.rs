//! The model's message: an item with parts that are texts and refusals.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::responses_openai::calls::write_string_member;
use crate::responses_openai::events::OutputItems;
use crate::responses_openai::parts::{ItemParts, append_elements};
use crate::responses_openai::response::write_compact;
use crate::responses_openai::tools::write_json;
use proofgate_dialect::ResponseError;

/// The current message.
#[derive(Debug)]
pub(super) struct Message {
    parts: ItemParts,
    part: Option<Part>,
}

#[derive(Debug, Default)]
struct Part {
    is_refusal: bool,
    /// The text, JSON-escaped and without quotes.
    text: String,
    /// The elements, separated by commas.
    annotations: Vec<u8>,
    annotation_count: usize,
    logprobs: Vec<u8>,
}

impl Message {
    pub(super) fn open(items: &mut OutputItems, out: &mut Vec<u8>) -> Result<Self, ResponseError> {
        let message = Message {
            parts: ItemParts::open("msg", "content_index", items)?,
            part: None,
        };
        message
            .parts
            .write_added(&message.write("in_progress"), items, out);
        Ok(message)
    }

    /// Adds a piece of the content; `logprobs` are elements separated by commas.
    pub(super) fn push(
        &mut self,
        is_refusal: bool,
        text: &str,
        logprobs: &[u8],
        items: &mut OutputItems,
        out: &mut Vec<u8>,
    ) -> Result<(), ResponseError> {
        if self
            .part
            .as_ref()
            .is_some_and(|part| part.is_refusal != is_refusal)
        {
            self.finish_part(items, out);
        }
        items.count_retained(text.len().saturating_add(logprobs.len()))?;
        if self.part.is_none() {
            let part = Part {
                is_refusal,
                ..Part::default()
            };
            let of = self.parts.event_target();
            items.write_targeted_event("response.content_part.added", of, out, |out| {
                write_json(out, ",\"part\":");
                part.write(out);
            });
            self.part = Some(part);
        }
        let kind = match is_refusal {
            true => "response.refusal.delta",
            false => "response.output_text.delta",
        };
        items.write_targeted_event(kind, self.parts.event_target(), out, |out| {
            write_string_member("delta", text, out);
            if !is_refusal {
                write_json(out, ",\"logprobs\":[");
                out.extend_from_slice(logprobs);
                out.push(b']');
            }
        });
        if let Some(part) = &mut self.part {
            part.text.push_str(text);
            append_elements(logprobs, &mut part.logprobs);
        }
        Ok(())
    }

    /// Adds the annotations of the current text.
    pub(super) fn annotate(
        &mut self,
        annotations: &RawValue,
        items: &mut OutputItems,
        out: &mut Vec<u8>,
    ) -> Result<(), ResponseError> {
        let Some(part) = self.part.as_mut().filter(|part| !part.is_refusal) else {
            return Ok(());
        };
        for annotation in citations(annotations) {
            items.count_retained(annotation.len())?;
            let of = self.parts.event_target();
            let number = part.annotation_count;
            items.write_targeted_event("response.output_text.annotation.added", of, out, |out| {
                write_json(out, ",\"annotation_index\":");
                proofgate_dialect::json::write_number(out, number as u64);
                write_json(out, ",\"annotation\":");
                out.extend_from_slice(&annotation);
            });
            part.annotation_count = number.saturating_add(1);
            append_elements(&annotation, &mut part.annotations);
        }
        Ok(())
    }

    fn finish_part(&mut self, items: &mut OutputItems, out: &mut Vec<u8>) {
        let Some(part) = self.part.take() else { return };
        let (kind, name) = match part.is_refusal {
            true => ("response.refusal.done", "refusal"),
            false => ("response.output_text.done", "text"),
        };
        items.write_targeted_event(kind, self.parts.event_target(), out, |out| {
            write_string_member(name, &part.text, out);
            if !part.is_refusal {
                write_json(out, ",\"logprobs\":[");
                out.extend_from_slice(&part.logprobs);
                out.push(b']');
            }
        });
        let mut whole = Vec::with_capacity(part.text.len() + 64);
        part.write(&mut whole);
        self.parts
            .finish_part("response.content_part.done", &whole, items, out);
    }

    pub(super) fn finish(mut self, status: &str, items: &mut OutputItems, out: &mut Vec<u8>) {
        self.finish_part(items, out);
        let item = self.write(status);
        self.parts.finish(item, items, out);
    }

    fn write(&self, status: &str) -> Vec<u8> {
        let before = "\"role\":\"assistant\",\"content\":";
        let mut item = self.parts.write("message", status, before);
        item.push(b'}');
        item
    }
}

impl Part {
    fn write(&self, out: &mut Vec<u8>) {
        if self.is_refusal {
            write_json(out, "{\"type\":\"refusal\"");
            write_string_member("refusal", &self.text, out);
        } else {
            write_json(out, "{\"type\":\"output_text\"");
            write_string_member("text", &self.text, out);
            write_json(out, ",\"annotations\":[");
            out.extend_from_slice(&self.annotations);
            write_json(out, "],\"logprobs\":[");
            out.extend_from_slice(&self.logprobs);
            out.push(b']');
        }
        out.push(b'}');
    }
}

/// Returns the elements of the `content` of a choice's `logprobs`, separated by commas; both APIs have the same form.
pub(super) fn logprobs(of_choice: Option<&RawValue>) -> Vec<u8> {
    #[derive(Deserialize)]
    struct Logprobs<'l> {
        #[serde(borrow)]
        content: Option<Vec<&'l RawValue>>,
    }
    let mut list = Vec::new();
    let logprobs = of_choice.and_then(|logprobs| serde_json::from_str::<Logprobs<'_>>(logprobs.get()).ok());
    for token in logprobs.and_then(|logprobs| logprobs.content).unwrap_or_default() {
        if !list.is_empty() {
            list.push(b',');
        }
        write_compact(token.get(), &mut list);
    }
    list
}

/// Converts chat annotations to the form of Responses, where the citation's fields are in the annotation itself.
fn citations(annotations: &RawValue) -> Vec<Vec<u8>> {
    #[derive(Deserialize)]
    struct Annotation<'a> {
        #[serde(borrow)]
        url_citation: Option<Citation<'a>>,
    }
    #[derive(Deserialize)]
    struct Citation<'a> {
        #[serde(borrow)]
        url: &'a RawValue,
        #[serde(borrow)]
        title: Option<&'a RawValue>,
        start_index: Option<u64>,
        end_index: Option<u64>,
    }
    let annotations: Vec<Annotation<'_>> = serde_json::from_str(annotations.get()).unwrap_or_default();
    let cited = annotations
        .into_iter()
        .filter_map(|annotation| annotation.url_citation);
    let is_string = |value: &&RawValue| value.get().starts_with('"');
    cited
        .filter(|cited| is_string(&cited.url))
        .map(|cited| {
            let title = cited.title.filter(is_string).map_or("\"\"", RawValue::get);
            let mut out = b"{\"type\":\"url_citation\",\"start_index\":".to_vec();
            proofgate_dialect::json::write_number(&mut out, cited.start_index.unwrap_or(0));
            write_json(&mut out, ",\"end_index\":");
            proofgate_dialect::json::write_number(&mut out, cited.end_index.unwrap_or(0));
            for piece in [",\"title\":", title, ",\"url\":", cited.url.get(), "}"] {
                write_json(&mut out, piece);
            }
            out
        })
        .collect()
}
