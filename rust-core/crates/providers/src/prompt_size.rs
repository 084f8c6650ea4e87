//! Upper bound on the tokens of a prompt, for any tokenizer.

use crate::dialect::Dialect;
use crate::sibling_hint::is_textual;

/// Maximum tokens of one image. Source: OpenAI, "Images and vision" (10,000 patches at `detail: original`); the
/// limits of other providers are lower (Anthropic, "Vision": 4,784).
const MAX_IMAGE_TOKENS: u64 = 10_000;
/// Maximum tokens that a provider adds to a prompt with tools or a response schema (Anthropic, "Tool use": some 700).
const MAX_ADDED_TOKENS: u64 = 1024;

/// Maximum bytes of text that an attachment counts for in an estimate: an image or a recording costs some thousand
/// tokens whatever its encoded size.
pub(crate) const MAX_ATTACHMENT_ESTIMATE_BYTES: usize = 8_000;

/// Fields of a request for which a provider adds its own instructions to the prompt.
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

/// Whether a provider adds its own instructions to the prompt for this field of a request.
pub(crate) fn adds_provider_instructions(name: &str) -> bool {
    FIELDS_WITH_ADDITIONS.contains(&name)
}

/// The kind of a string in an attachment field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttachmentKind {
    /// An image, by its first bytes.
    Image,
    /// Any other string that is not declared as text, even if it looks like text, as a PDF may.
    Document,
}

impl AttachmentKind {
    /// Detects the kind of `data` as written in a body; `None` for text and for an address. `says_text`: a sibling
    /// field declares that it is text.
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

/// Whether a value is the address of content stored elsewhere.
pub(crate) fn is_web_address(value: &str) -> bool {
    ["http:", "https:", "gs:"]
        .iter()
        .any(|scheme| (value.get(..scheme.len())).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme)))
}

/// Whether base64 data, after the rest of a `data:` URL's head, is an image of a kind that providers accept.
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

/// The input of the upper bound on the tokens of a prompt.
///
/// A token represents at least one byte of text, so the bytes of a body are an upper bound on the
/// tokens of its text. The tokens of an image are bounded, too. The tokens of a document, a
/// recording or a video are not: a few bytes may hold many pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PromptSize {
    /// Bytes of the body outside attachments.
    bytes: u64,
    images: u64,
    /// Whether there are attachments other than images.
    has_documents: bool,
    /// Whether the provider adds its own instructions.
    has_additions: bool,
}

impl PromptSize {
    /// Creates the size of a body of `bytes` bytes without attachments.
    pub(crate) fn from_body(bytes: usize) -> Self {
        Self {
            bytes: bytes as u64,
            ..Self::default()
        }
    }

    /// Creates the size of a form whose text and files count for `counted` bytes, each file for at most `each`.
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

    /// Records that the provider adds its own instructions to the prompt: the request has tools or
    /// a response schema.
    pub(crate) fn mark_provider_additions(&mut self) {
        self.has_additions = true;
    }

    /// Records an attachment that takes `bytes` bytes of the body.
    pub(crate) fn add_attachment(&mut self, is_image: bool, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes as u64);
        match is_image {
            true => self.images = self.images.saturating_add(1),
            false => self.has_documents = true,
        }
    }

    /// Returns the maximum number of tokens in the prompt, at least `estimate`. `most`: the context size of the
    /// model, if known.
    ///
    /// If there are documents, the result is the context size; if that is not known, the result
    /// excludes the documents and is not an upper bound.
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
