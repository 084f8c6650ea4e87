//! Reads a form request as it arrives: the fields that determine its route, the text that rules
//! inspect, and the number of bytes that can be sent.
//!
//! The contents of files are not inspected, but their names are. Data can be sent up to the first text that has not
//! been judged.

use std::ops::Range;

use proofgate_base::rejection::Rejection;
use proofgate_multipart::{Boundary, FormEvent, FormReader, Part};
use proofgate_providers::{BadRequest, Dialect, ParsedRequest};

use crate::batch_input::{BatchLines, UploadedFile};

/// Maximum bytes of all form fields that are not files.
const MAX_FIELD_BYTES: usize = 1 << 20;
/// Minimum size of a file in an estimate, in bytes of text.
const MIN_FILE_BYTES: u64 = 8_000;
/// Assumed size of a form that declares no length: the maximum size of a recording at the provider.
const DEFAULT_FORM_BYTES: u64 = 25 << 20;
/// Number of form bytes that count as one byte of text. A minute of a compressed recording has
/// about half a megabyte and some hundred tokens.
const BYTES_PER_CHARACTER: u64 = 256;

/// Fields that must not be repeated. If the gateway and the provider read different occurrences,
/// the request could get another route.
const SINGLE_FIELDS: [&str; 3] = ["model", "stream", "n"];
/// Field names of the API, which are not inspected as text.
const KNOWN_FIELDS: [&str; 28] = [
    "background",
    "chunking_strategy",
    "file",
    "image",
    "image[]",
    "include[]",
    "input_fidelity",
    "keywords[]",
    "known_speaker_names[]",
    "known_speaker_references[]",
    "language",
    "languages[]",
    "mask",
    "model",
    "n",
    "output_compression",
    "output_format",
    "partial_images",
    "prompt",
    "quality",
    "response_format",
    "size",
    "stream",
    "temperature",
    "timestamp_granularities[]",
    "user",
    "chunking_strategy[type]",
    "moderation",
];

/// The part of a form that has arrived.
pub(crate) struct Form {
    reader: FormReader,
    /// Bytes read so far.
    position: u64,
    /// Offset of the current part, or of the next part if none is open.
    part_start: u64,
    /// Offset of the first text that has not been judged.
    uninspected_from: Option<u64>,
    content: PartContent,
    /// Total bytes of fields so far.
    field_bytes: usize,
    file_count: u64,
    model: Option<(String, Range<u64>)>,
    stream: Option<bool>,
    n: Option<u32>,
    /// Whether the request was admitted on the basis of the fields so far.
    is_admitted: bool,
    /// The state of a file that the provider is to store; `None` for other forms. A form with such
    /// a file names no model.
    uploaded_file: Option<Box<UploadedFile>>,
    /// Fields and file names, one per line.
    text: String,
}
/// The equivalent of `KNOWN_FIELDS` for a form that uploads a file for the provider to store.
const KNOWN_UPLOAD_FIELDS: [&str; 4] = [
    "expires_after[anchor]",
    "expires_after[seconds]",
    "file",
    "purpose",
];

/// The kind of content at the current position.
enum PartContent {
    /// The position is not in a part.
    BetweenParts,
    File,
    Field {
        name: String,
        begin: u64,
        value: Vec<u8>,
    },
}

impl Form {
    /// Creates the reader of a form. `stored`: the state of the uploaded file if the provider is to
    /// store it.
    pub fn new(boundary: &Boundary, stored: Option<UploadedFile>) -> Self {
        Form {
            uploaded_file: stored.map(Box::new),
            reader: FormReader::new(boundary),
            position: 0,
            part_start: 0,
            uninspected_from: None,
            content: PartContent::BetweenParts,
            field_bytes: 0,
            file_count: 0,
            model: None,
            stream: None,
            n: None,
            is_admitted: false,
            text: String::new(),
        }
    }

    /// Reads the next bytes of the form.
    ///
    /// # Errors
    /// A [`Rejection`] if the form is invalid.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<(), Rejection> {
        loop {
            // The fields are borrowed separately, because some change while the reader's event is
            // borrowed.
            let Form {
                reader,
                content,
                field_bytes,
                position: at,
                uploaded_file: stored,
                ..
            } = self;
            let step = reader.read(bytes)?;
            *at += step.consumed as u64;
            bytes = bytes.get(step.consumed..).unwrap_or_default();
            match step.event {
                None => return self.check_end(),
                Some(FormEvent::Data(data)) => {
                    if let (PartContent::File, Some(stored)) = (&*content, &mut *stored) {
                        stored.push(data, at.saturating_sub(data.len() as u64))?;
                    }
                    if let PartContent::Field { value, .. } = content {
                        *field_bytes += data.len();
                        if *field_bytes > MAX_FIELD_BYTES {
                            return Err(Rejection::FORM_FIELDS_TOO_LARGE);
                        }
                        value.extend_from_slice(data);
                    }
                }
                Some(FormEvent::Part(part)) => self.start_part(part)?,
                Some(FormEvent::PartEnd) => self.finish_part()?,
            }
        }
    }

    /// Checks that a form is complete before its last bytes are sent.
    fn check_end(&self) -> Result<(), Rejection> {
        match &self.uploaded_file {
            Some(stored) if self.reader.is_done() => stored.check_complete(),
            _ => Ok(()),
        }
    }

    fn start_part(&mut self, part: Part) -> Result<(), Rejection> {
        let Part { name, file_name } = part;
        let base = name.split('[').next().unwrap_or_default();
        let single = SINGLE_FIELDS
            .iter()
            .find(|single| base.eq_ignore_ascii_case(single));
        if let Some(single) = single
            && (name != **single || file_name.is_some())
        {
            return Err(Rejection::invalid_form_field(
                single,
                "must have exactly this lowercase name, and must not be a file.",
            ));
        }
        if self.uploaded_file.is_some()
            && base.eq_ignore_ascii_case("purpose")
            && (name != "purpose" || file_name.is_some())
        {
            return Err(Rejection::invalid_form_field(
                "purpose",
                "must have exactly this lowercase name, and must not be a file.",
            ));
        }
        if let Some(stored) = &mut self.uploaded_file
            && file_name.is_some()
        {
            stored.start_file(&name)?;
        }
        let known: &[&str] = if self.uploaded_file.is_some() {
            &KNOWN_UPLOAD_FIELDS
        } else {
            &KNOWN_FIELDS
        };
        let is_text = !known.contains(&&*name);
        if is_text {
            self.push_line(&name);
        }
        self.content = match file_name {
            Some(file_name) => {
                self.push_line(&file_name);
                self.file_count += 1;
                PartContent::File
            }
            None => PartContent::Field {
                name,
                begin: self.position,
                value: Vec::new(),
            },
        };
        Ok(())
    }

    fn finish_part(&mut self) -> Result<(), Rejection> {
        let content = std::mem::replace(&mut self.content, PartContent::BetweenParts);
        let done = match content {
            PartContent::Field { name, begin, value } => self.set_field(&name, begin, value),
            PartContent::File => self
                .uploaded_file
                .as_mut()
                .map_or(Ok(()), |stored| stored.finish_file()),
            PartContent::BetweenParts => Ok(()),
        };
        self.part_start = self.position;
        done
    }

    /// Handles a complete field.
    fn set_field(&mut self, name: &str, begin: u64, value: Vec<u8>) -> Result<(), Rejection> {
        let end = begin + value.len() as u64;
        let value = String::from_utf8(value).map_err(|_| Rejection::FORM_NOT_TEXT)?;
        let once = |is_first: bool, name: &'static str| match is_first {
            true => Ok(()),
            false => Err(Rejection::invalid_form_field(name, "appears more than once.")),
        };
        // No later field may turn the admitted request into a different one.
        let is_admitted = self.is_admitted;
        let in_time = |is_default: bool, name: &'static str| match is_admitted && !is_default {
            true => Err(Rejection::invalid_form_field(
                name,
                "comes after a long file. Put it before the file.",
            )),
            false => Ok(()),
        };
        match name {
            "purpose" if self.uploaded_file.is_some() => {
                if let Some(stored) = &mut self.uploaded_file {
                    stored.set_purpose(value)?;
                }
            }
            _ if self.uploaded_file.is_some() => self.push_line(&value),
            "model" => {
                once(self.model.is_none(), "model")?;
                if value.is_empty() {
                    return Err(Rejection::invalid_form_field("model", "is empty."));
                }
                self.model = Some((value, begin..end));
            }
            "stream" => {
                once(self.stream.is_none(), "stream")?;
                let stream = match &*value {
                    "true" => true,
                    "false" => false,
                    _ => return Err(Rejection::invalid_form_field("stream", "must be true or false.")),
                };
                in_time(!stream, "stream")?;
                self.stream = Some(stream);
            }
            "n" => {
                once(self.n.is_none(), "n")?;
                let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
                let n = value.parse().ok().filter(|n| is_number && *n >= 1);
                let n =
                    n.ok_or_else(|| Rejection::invalid_form_field("n", "must be a number of at least 1."))?;
                in_time(n == 1, "n")?;
                self.n = Some(n);
            }
            _ => self.push_line(&value),
        }
        Ok(())
    }

    /// Adds a text of the current part.
    fn push_line(&mut self, text: &str) {
        self.uninspected_from.get_or_insert(self.part_start);
        self.text.push_str(text);
        self.text.push('\n');
    }

    /// Returns the approximate memory use, in bytes.
    pub fn size(&self) -> usize {
        let stored = self.uploaded_file.as_ref().map_or(0, |stored| stored.size());
        self.field_bytes + self.text.len() + stored
    }

    /// Takes the lines of a batch's input that must be judged before more of the form can be sent;
    /// `None` if there are none.
    pub(crate) fn take_lines(&mut self) -> Option<BatchLines> {
        let stored = self.uploaded_file.as_mut().filter(|stored| stored.has_lines())?;
        Some(stored.take_lines())
    }

    /// Returns all text so far.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the text can be judged now: inside a file or at the end. Inside a field, the text
    /// would be incomplete.
    fn is_inspectable(&self) -> bool {
        matches!(self.content, PartContent::File) || self.reader.is_done()
    }

    /// Whether there is text that must be judged before more of the form can be sent.
    pub(crate) fn needs_inspection(&self) -> bool {
        self.uninspected_from.is_some() && self.is_inspectable()
    }

    /// Marks all text so far as judged.
    pub fn mark_inspected(&mut self) {
        self.uninspected_from = None;
    }

    /// Returns the number of bytes from the start of the form that can be sent.
    pub(crate) fn releasable_bytes(&self) -> u64 {
        let by_text = match self.uninspected_from {
            Some(from) => from,
            None if self.is_inspectable() => self.position,
            None => self.part_start,
        };
        let by_lines = self
            .uploaded_file
            .as_ref()
            .and_then(|stored| stored.uninspected_from());
        by_lines.map_or(by_text, |from| from.min(by_text))
    }

    /// Whether a file is arriving and the form already contains everything that an admission needs.
    pub(crate) fn can_be_admitted(&self) -> bool {
        self.has_model() && matches!(self.content, PartContent::File)
    }

    /// Whether the form names its model, or needs none.
    pub(crate) fn has_model(&self) -> bool {
        self.model.is_some() || self.uploaded_file.is_some()
    }

    /// Checks that the form is complete at the end of the body.
    ///
    /// # Errors
    /// A [`Rejection`] if the form is incomplete.
    pub fn check_complete(&self) -> Result<(), Rejection> {
        Ok(self.reader.finish()?)
    }

    /// Marks the form as admitted, and returns its summary for the admission record. `length` is the total length, if
    /// known.
    ///
    /// # Errors
    /// A [`Rejection`] if the form names no model.
    pub fn admit(&mut self, length: Option<u64>) -> Result<FormSummary, Rejection> {
        let lines = self.take_lines().unwrap_or_default();
        self.is_admitted = true;
        let (model, range) = match &self.model {
            Some((model, range)) => (&**model, range.clone()),
            None if self.uploaded_file.is_some() => ("", 0..0),
            None => return Err(Rejection::invalid_form_field("model", "is missing.")),
        };
        // Both offsets are within the buffered part.
        let place = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
        let by_length = length.unwrap_or(DEFAULT_FORM_BYTES) / BYTES_PER_CHARACTER;
        let counted = by_length.max(self.file_count.saturating_mul(MIN_FILE_BYTES)) + self.text.len() as u64;
        Ok(FormSummary {
            model: model.to_owned(),
            lines,
            model_range: place(range.start)..place(range.end),
            stream: self.stream.unwrap_or(false),
            n: self.n.unwrap_or(1),
            text: self.text.clone(),
            counted_bytes: usize::try_from(counted).unwrap_or(usize::MAX),
        })
    }
}

/// The content of a form at its admission.
pub struct FormSummary {
    model: String,
    model_range: Range<usize>,
    stream: bool,
    n: u32,
    /// The text that rules inspect.
    pub text: String,
    /// Lines of a batch's input, which rules also inspect.
    pub lines: BatchLines,
    counted_bytes: usize,
}

impl FormSummary {
    /// Returns the form as a request.
    ///
    /// # Errors
    /// A [`BadRequest`] if the requested operation is not supported.
    pub fn to_call(&self, dialect: Dialect) -> Result<ParsedRequest<'_>, BadRequest> {
        let (model, place) = (&*self.model, self.model_range.clone());
        ParsedRequest::from_form(dialect, model, place, self.stream, self.n, self.counted_bytes)
    }
}
