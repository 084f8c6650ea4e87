//! Reads `reasoning_details` of an assistant message: a provider's reasoning, which clients send
//! back. All providers use OpenRouter's format, so that a conversation can continue at another
//! provider.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::json_text::unquoted;

/// The type of readable reasoning.
pub const TEXT: &str = "reasoning.text";
/// The type of reasoning that only its provider can read.
pub const ENCRYPTED: &str = "reasoning.encrypted";
/// The type of a summary of encrypted reasoning.
pub const SUMMARY: &str = "reasoning.summary";
/// The format of Gemini's signed reasoning.
pub const GEMINI: &str = "google-gemini-v1";
/// The format of reasoning in OpenAI's Responses.
pub const RESPONSES: &str = "openai-responses-v1";

/// A block of reasoning. Strings are JSON strings without their quotes, unmodified, because a signature covers them.
#[derive(Debug, PartialEq, Eq)]
pub enum Detail<'b> {
    /// Text, in the fragments in which it arrived.
    Text {
        fragments: Vec<&'b str>,
        signature: Option<&'b str>,
    },
    Encrypted(&'b str),
}

/// The blocks that a message sends back.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Details<'b> {
    pub blocks: Vec<Detail<'b>>,
    /// Whether there were blocks of another type or of another provider's format.
    pub has_dropped: bool,
}

/// An element, or a streamed fragment of one. `thinking` is Anthropic's name for the text.
#[derive(Deserialize)]
struct Element<'b> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'b RawValue>,
    #[serde(borrow)]
    index: Option<&'b RawValue>,
    #[serde(borrow)]
    id: Option<&'b RawValue>,
    #[serde(borrow)]
    summary: Option<&'b RawValue>,
    #[serde(borrow)]
    text: Option<&'b RawValue>,
    #[serde(borrow)]
    thinking: Option<&'b RawValue>,
    #[serde(borrow)]
    signature: Option<&'b RawValue>,
    #[serde(borrow)]
    data: Option<&'b RawValue>,
    #[serde(borrow)]
    format: Option<&'b RawValue>,
}

/// Reads the blocks, with OpenRouter's names or Anthropic's own (`thinking`, `redacted_thinking`). Uncombined stream
/// fragments are also accepted: consecutive fragments with the same `index` form one block.
pub fn read(value: Option<&RawValue>) -> Details<'_> {
    let mut details = Details::default();
    let Some(value) = value else { return details };
    let Ok(elements) = serde_json::from_str::<Vec<Element<'_>>>(value.get()) else {
        details.has_dropped = true;
        return details;
    };
    let mut open: Option<OpenBlock<'_>> = None;
    for element in elements {
        match element.kind.and_then(unquoted) {
            Some("thinking" | TEXT) if element.is_claude_format() => {
                let goes_on = |open: &OpenBlock<'_>| {
                    open.index.is_some() && open.index == element.index.map(RawValue::get)
                };
                let mut block = match open.take() {
                    Some(block) if goes_on(&block) => block,
                    before => {
                        details.blocks.extend(before.map(|block| block.close(None)));
                        OpenBlock {
                            index: element.index.map(RawValue::get),
                            fragments: Vec::new(),
                        }
                    }
                };
                block
                    .fragments
                    .extend(element.text.or(element.thinking).and_then(unquoted));
                match element
                    .signature
                    .and_then(unquoted)
                    .filter(|signature| !signature.is_empty())
                {
                    Some(signature) => details.blocks.push(block.close(Some(signature))),
                    None => open = Some(block),
                }
            }
            Some("redacted_thinking" | ENCRYPTED) if element.is_claude_format() => {
                details.blocks.extend(open.take().map(|block| block.close(None)));
                match element.data.and_then(unquoted) {
                    Some(data) => details.blocks.push(Detail::Encrypted(data)),
                    None => details.has_dropped = true,
                }
            }
            _ => details.has_dropped = true,
        }
    }
    details.blocks.extend(open.map(|block| block.close(None)));
    details
}

struct OpenBlock<'b> {
    index: Option<&'b str>,
    fragments: Vec<&'b str>,
}

impl<'b> OpenBlock<'b> {
    fn close(self, signature: Option<&'b str>) -> Detail<'b> {
        Detail::Text {
            fragments: self.fragments,
            signature,
        }
    }
}

impl Element<'_> {
    /// Whether it has Claude's format: OpenRouter declares the format of each block, others do not.
    fn is_claude_format(&self) -> bool {
        let format = self.format.and_then(unquoted).unwrap_or("unknown");
        format.starts_with("anthropic") || format.starts_with("unknown")
    }
}

/// A reasoning item of OpenAI's Responses. Strings are JSON strings without their quotes, unmodified.
#[derive(Debug, PartialEq, Eq)]
pub struct ResponseDetail<'b> {
    pub id: Option<&'b str>,
    /// The parts of the summary, each in the fragments in which it arrived.
    pub summary: Vec<Vec<&'b str>>,
    /// The encrypted content.
    pub data: &'b str,
}

/// Reads the items of OpenAI's Responses; also returns whether there were elements of another kind.
/// The parts of a summary precede the encrypted content of their item; consecutive fragments with
/// the same `index` form one part.
pub fn read_responses(value: Option<&RawValue>) -> (Vec<ResponseDetail<'_>>, bool) {
    let Some(value) = value else {
        return (Vec::new(), false);
    };
    let Ok(elements) = serde_json::from_str::<Vec<Element<'_>>>(value.get()) else {
        return (Vec::new(), true);
    };
    let (mut items, mut lost) = (Vec::new(), false);
    let mut summary: Vec<Vec<&str>> = Vec::new();
    let mut part: Option<&str> = None;
    for element in elements {
        let kind = element.kind.and_then(unquoted);
        if !element.is_responses_format() {
            lost = true;
            continue;
        }
        match (kind, element.data.and_then(unquoted)) {
            (Some(SUMMARY), _) => {
                let index = element.index.map(RawValue::get);
                if summary.is_empty() || index.is_none() || index != part {
                    summary.push(Vec::new());
                }
                part = index;
                if let Some(last) = summary.last_mut() {
                    last.extend(element.summary.and_then(unquoted));
                }
            }
            (Some(ENCRYPTED), Some(data)) if !data.is_empty() => {
                items.push(ResponseDetail {
                    id: element.id.and_then(unquoted).filter(|id| !id.is_empty()),
                    summary: std::mem::take(&mut summary),
                    data,
                });
                part = None;
            }
            _ => lost = true,
        }
    }
    (items, lost || !summary.is_empty())
}

impl Element<'_> {
    /// Whether it declares the format of OpenAI's Responses, or has the id of one of their items.
    fn is_responses_format(&self) -> bool {
        match self.format.and_then(unquoted) {
            Some(format) if format != "unknown" => format.starts_with("openai-responses"),
            _ => self.id.and_then(unquoted).is_some_and(|id| id.starts_with("rs_")),
        }
    }
}

/// Gemini's signed reasoning. Strings are JSON strings without their quotes.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct GeminiDetails<'b> {
    /// The texts of the thoughts.
    pub thoughts: Vec<&'b str>,
    /// The signatures of calls, by call id.
    pub signatures: Vec<(&'b str, &'b str)>,
    /// Whether there were elements of another kind.
    pub has_dropped: bool,
}

/// Reads Gemini's signed reasoning.
pub fn read_gemini(value: Option<&RawValue>) -> GeminiDetails<'_> {
    let mut details = GeminiDetails::default();
    let Some(value) = value else { return details };
    let Ok(elements) = serde_json::from_str::<Vec<Element<'_>>>(value.get()) else {
        details.has_dropped = true;
        return details;
    };
    for element in elements {
        let is_geminis = element
            .format
            .and_then(unquoted)
            .is_some_and(|format| format.starts_with("google-gemini"));
        let text = element.summary.or(element.text).and_then(unquoted);
        let signed = element.id.and_then(unquoted).zip(element.data.and_then(unquoted));
        match (element.kind.and_then(unquoted), text, signed) {
            (Some(TEXT | SUMMARY), Some(text), _) if is_geminis => details.thoughts.push(text),
            (Some(ENCRYPTED), _, Some(signed)) if is_geminis => details.signatures.push(signed),
            _ => details.has_dropped = true,
        }
    }
    details
}

#[cfg(test)]
mod tests {
    use super::{Detail, read, read_responses};
    use serde_json::value::RawValue;

    fn value(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    #[test]
    fn both_forms_are_the_same_blocks() {
        let ours = value(
            r#"[{"type":"reasoning.text","index":0,"text":"a","signature":"s"},{"type":"reasoning.encrypted","index":1,"data":"d"}]"#,
        );
        let anthropics = value(
            r#"[{"type":"thinking","index":0,"thinking":"a"},{"type":"thinking","index":0,"signature":"s"},{"type":"redacted_thinking","data":"d"}]"#,
        );
        assert_eq!(read(Some(&ours)), read(Some(&anthropics)));
        assert_eq!(read(Some(&ours)).blocks[1], Detail::Encrypted("d"));
        assert!(!read(Some(&ours)).has_dropped);
    }

    #[test]
    fn blocks_of_other_providers_are_lost() {
        for foreign in [
            r#"[{"type":"reasoning.encrypted","data":"d","format":"openai-responses-v1"}]"#,
            r#"[{"type":"reasoning.summary","summary":"s"}]"#,
            r#"[{"type":"reasoning.encrypted"}]"#,
            r#""secret""#,
        ] {
            let foreign = value(foreign);
            let details = read(Some(&foreign));
            assert!(details.has_dropped && details.blocks.is_empty());
        }
    }
    #[test]
    fn a_summary_belongs_to_the_encrypted_content_behind_it() {
        let ours = value(
            r#"[{"type":"reasoning.summary","index":0,"format":"openai-responses-v1","summary":"a"},
            {"type":"reasoning.summary","index":0,"format":"openai-responses-v1","summary":"b"},
            {"type":"reasoning.summary","index":1,"format":"openai-responses-v1","summary":"c"},
            {"type":"reasoning.encrypted","index":2,"id":"rs_1","data":"d"},
            {"type":"reasoning.encrypted","index":3,"format":"openai-responses-v1","data":"e"}]"#,
        );
        let (items, lost) = read_responses(Some(&ours));
        assert!(!lost);
        assert_eq!(items[0].summary, [vec!["a", "b"], vec!["c"]]);
        assert_eq!((items[0].id, items[0].data), (Some("rs_1"), "d"));
        assert_eq!((items[1].id, items[1].data), (None, "e"));
        assert!(
            read(Some(&ours)).has_dropped,
            "another provider does not read them"
        );
    }

    #[test]
    fn what_has_no_encrypted_content_or_another_format_is_lost() {
        for foreign in [
            r#"[{"type":"reasoning.summary","format":"openai-responses-v1","summary":"a"}]"#,
            r#"[{"type":"reasoning.encrypted","data":"d"}]"#,
            r#"[{"type":"reasoning.encrypted","data":"d","format":"anthropic-claude-v1"}]"#,
            "3",
        ] {
            let foreign = value(foreign);
            let (items, lost) = read_responses(Some(&foreign));
            assert!(items.is_empty() && lost);
        }
    }
}
