//! How many tokens a prompt can have at most, whatever its provider's tokenizer.

use crate::beside::is_textual;
use crate::dialect::Dialect;

/// The most tokens that one image comes to. Source: OpenAI, "Images and vision" (10,000 patches at `detail: original`); others
/// bound one at fewer (Anthropic, "Vision": 4,784).
const MAX_IMAGE_TOKENS: u64 = 10_000;
/// The most tokens that a provider adds to a prompt with tools or a schema for its answer (Anthropic, "Tool use": some 700).
const MAX_ADDED_TOKENS: u64 = 1024;

/// What an attachment counts for at most in an estimate, in bytes of text: an image or a recording costs some thousand
/// tokens whatever its encoded size.
pub(crate) const MAX_ATTACHMENT_ESTIMATE_BYTES: usize = 8_000;

/// Fields of a request for which a provider adds instructions of its own to the prompt.
const FIELDS_WITH_ADDITIONS: [&str; 9] = [
    "tools",
    "web_search_options",
    "functions",
    "response_format",
    "output_format",
    "output_config",
    "responseSchema",
    "responseJsonSchema",
    "text",
];

/// Whether a field of a request is one for which a provider adds instructions of its own to the prompt.
pub(crate) fn causes_additions(name: &str) -> bool {
    FIELDS_WITH_ADDITIONS.contains(&name)
}

/// What a string is that stands where a request has its attachments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttachmentKind {
    /// An image, by its first bytes.
    Image,
    /// Anything else that is not said to be a text: it may look like one all the same, as a PDF may.
    Document,
}

impl AttachmentKind {
    /// What `data` is, as it stands in a body; `None` for a text and for an address. `says_text`: what stands beside it says
    /// that it is one.
    pub(crate) fn detect(data: &str, says_text: bool) -> Option<Self> {
        let (says_text, encoded) = match data.get(..5) {
            Some(scheme) if scheme.eq_ignore_ascii_case("data:") => {
                let (media_type, encoded) = data[5..].split_once([';', ',']).unwrap_or_default();
                (is_textual(media_type), encoded)
            }
            _ if is_web_address(data) => return None,
            _ => (says_text, data),
        };
        if is_image(encoded) {
            return Some(AttachmentKind::Image);
        }
        (!says_text).then_some(AttachmentKind::Document)
    }
}

/// Whether a value names what stands elsewhere.
pub(crate) fn is_web_address(value: &str) -> bool {
    ["http:", "https:", "gs:"]
        .iter()
        .any(|scheme| (value.get(..scheme.len())).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme)))
}

/// Whether data in base64 is an image of a kind that providers take, behind the rest of the head of a `data:` address.
fn is_image(data: &str) -> bool {
    let data = match data.split_once("base64,") {
        Some((head, data)) if head.len() < 256 => data,
        _ => data,
    };
    let begins = |begin: &str| {
        let mut bytes = data.bytes().filter(|byte| *byte != b'\\');
        begin.bytes().all(|expected| bytes.next() == Some(expected))
    };
    let is_webp = begins("UklG") && data.get(12..16) == Some("RUJQ");
    is_webp || ["iVBORw0K", "/9j/", "R0lGOD"].into_iter().any(begins)
}

/// What bounds the tokens of a prompt.
///
/// A token stands for at least one byte of text, so a body's bytes bound the tokens of its text. Those of an image are bounded,
/// too. Those of a document, a recording or a film are not: a few bytes may hold many pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PromptSize {
    /// Bytes of the body that are no attachment.
    bytes: u64,
    images: u64,
    /// Whether there are attachments that are no images.
    has_documents: bool,
    /// Whether the provider adds instructions of its own.
    has_additions: bool,
}

impl PromptSize {
    /// Of a body of so many bytes without attachments.
    pub(crate) fn from_body(bytes: usize) -> Self {
        Self {
            bytes: bytes as u64,
            ..Self::default()
        }
    }

    /// Of a form whose text and files count for so many bytes, each file for `each` at most.
    pub(crate) fn from_form(dialect: Dialect, counted: usize, each: usize) -> Self {
        let takes_images = matches!(dialect, Dialect::ImageEdits | Dialect::ImageVariations);
        Self {
            images: if takes_images {
                counted.div_ceil(each) as u64
            } else {
                0
            },
            has_documents: !takes_images,
            ..Self::from_body(counted)
        }
    }

    /// Takes note of tools, or of a schema for the answer.
    pub(crate) fn add_tools(&mut self) {
        self.has_additions = true;
    }

    /// Takes note of an attachment, which has so many bytes of the body.
    pub(crate) fn add_attachment(&mut self, is_image: bool, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes as u64);
        match is_image {
            true => self.images = self.images.saturating_add(1),
            false => self.has_documents = true,
        }
    }

    /// The most tokens that the prompt can have, at least `estimate`, where its model takes `most` (`None`: not known).
    ///
    /// With documents it is as much as the model takes; where that is not known, it is no bound, but what is known of the rest.
    #[must_use]
    pub fn max_tokens(&self, estimate: u64, most: Option<u64>) -> u64 {
        let images = self.images.saturating_mul(MAX_IMAGE_TOKENS);
        let added = if self.has_additions { MAX_ADDED_TOKENS } else { 0 };
        let bound = self
            .bytes
            .saturating_add(images)
            .saturating_add(added)
            .max(estimate);
        match most {
            Some(most) if self.has_documents => most,
            Some(most) => bound.min(most),
            None => bound,
        }
    }
}
