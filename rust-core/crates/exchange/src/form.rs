//! What a request that is a form says, as it arrives: what routes it, what rules look at, and how much of it may leave.
//!
//! The files are not looked at, but their names are. What has been read may leave as far as nothing in it is a text that has not been judged.

use std::ops::Range;

use proofgate_base::rejection::Rejection;
use proofgate_multipart::{Boundary, FormEvent, FormReader, Part};
use proofgate_providers::{BadRequest, Dialect, ParsedRequest};

use crate::batch_input::{BatchLines, UploadedFile};

/// Most bytes of all fields of a form that are no files.
const MAX_FIELD_BYTES: usize = 1 << 20;
/// What a file counts for at least in an estimate, in bytes of text.
const MIN_FILE_BYTES: u64 = 8_000;
/// What a form is taken to have that does not say its length: the most that a recording may have at the provider.
const DEFAULT_FORM_BYTES: u64 = 25 << 20;
/// Of so many bytes of a form one is counted as text: a minute of a compressed recording is about half a megabyte, and
/// some hundred tokens.
const BYTES_PER_CHARACTER: u64 = 256;

/// Fields that there may be once: what others would read otherwise decides where a request goes.
const SINGLE_FIELDS: [&str; 3] = ["model", "stream", "n"];
/// Names of the API, which are no text.
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

/// A form as far as it has come.
pub(crate) struct Form {
    reader: FormReader,
    /// Bytes read so far.
    position: u64,
    /// Where the part at hand begins, or the next one.
    part_start: u64,
    /// From where on there is text that nobody has judged.
    uninspected_from: Option<u64>,
    content: PartContent,
    /// Bytes of fields so far.
    field_bytes: usize,
    file_count: u64,
    model: Option<(String, Range<u64>)>,
    stream: Option<bool>,
    n: Option<u32>,
    /// Whether it has been admitted by what it said so far.
    is_admitted: bool,
    /// What is known of a file that the provider is to keep: then the form names no model.
    uploaded_file: Option<Box<UploadedFile>>,
    /// Fields and names of files, a line each.
    text: String,
}
/// The same of a form with a file that the provider is to keep.
const KNOWN_UPLOAD_FIELDS: [&str; 4] = [
    "expires_after[anchor]",
    "expires_after[seconds]",
    "file",
    "purpose",
];

/// What the bytes at hand are.
enum PartContent {
    /// None of a part.
    BetweenParts,
    File,
    Field {
        name: String,
        begin: u64,
        value: Vec<u8>,
    },
}

impl Form {
    /// A form; `stored`, where it uploads a file that the provider is to keep.
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
    /// What is wrong with it.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<(), Rejection> {
        loop {
            // Not a part of what is changed while its event is at hand.
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

    /// Before the last bytes leave of a form that is not what it should be.
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

    /// Takes a whole field.
    fn set_field(&mut self, name: &str, begin: u64, value: Vec<u8>) -> Result<(), Rejection> {
        let end = begin + value.len() as u64;
        let value = String::from_utf8(value).map_err(|_| Rejection::FORM_NOT_TEXT)?;
        let once = |is_first: bool, name: &'static str| match is_first {
            true => Ok(()),
            false => Err(Rejection::invalid_form_field(name, "appears more than once.")),
        };
        // Nothing makes it another request than the one that was admitted.
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

    /// Adds a text of the part at hand.
    fn push_line(&mut self, text: &str) {
        self.uninspected_from.get_or_insert(self.part_start);
        self.text.push_str(text);
        self.text.push('\n');
    }

    /// Bytes of memory that it takes, for the most part.
    pub fn size(&self) -> usize {
        let stored = self.uploaded_file.as_ref().map_or(0, |stored| stored.size());
        self.field_bytes + self.text.len() + stored
    }

    /// Lines of a batch's input that have to be judged before more of the form may leave, if there are such.
    pub(crate) fn take_lines(&mut self) -> Option<BatchLines> {
        let stored = self.uploaded_file.as_mut().filter(|stored| stored.has_lines())?;
        Some(stored.take_lines())
    }

    /// All text so far.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether what rules look at can be judged now: in a file, and at the end. In a field it would be cut.
    fn is_inspectable(&self) -> bool {
        matches!(self.content, PartContent::File) || self.reader.is_done()
    }

    /// Whether there is text that has to be judged before more of the form may leave.
    pub(crate) fn needs_inspection(&self) -> bool {
        self.uninspected_from.is_some() && self.is_inspectable()
    }

    /// All text so far has been judged.
    pub fn mark_inspected(&mut self) {
        self.uninspected_from = None;
    }

    /// How many bytes from the beginning on may leave.
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

    /// Whether all is known that an admission needs, while a file is still coming.
    pub(crate) fn can_be_admitted(&self) -> bool {
        self.has_model() && matches!(self.content, PartContent::File)
    }

    /// Whether the form says for which model it is, or need not.
    pub(crate) fn has_model(&self) -> bool {
        self.model.is_some() || self.uploaded_file.is_some()
    }

    /// Says that the body has ended.
    ///
    /// # Errors
    /// What is missing of the form.
    pub fn check_complete(&self) -> Result<(), Rejection> {
        Ok(self.reader.finish()?)
    }

    /// What the form says so far, by which it is admitted. `length`: of all of it, where that is known.
    ///
    /// # Errors
    /// It names no model.
    pub fn summary(&mut self, length: Option<u64>) -> Result<FormSummary, Rejection> {
        let lines = self.take_lines().unwrap_or_default();
        self.is_admitted = true;
        let (model, range) = match &self.model {
            Some((model, range)) => (&**model, range.clone()),
            None if self.uploaded_file.is_some() => ("", 0..0),
            None => return Err(Rejection::invalid_form_field("model", "is missing.")),
        };
        // Both lie in what is held.
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

/// What a form says when it is admitted.
pub struct FormSummary {
    model: String,
    model_range: Range<usize>,
    stream: bool,
    n: u32,
    /// What rules look at.
    pub text: String,
    /// Lines of a batch's input, which rules look at as well.
    pub lines: BatchLines,
    counted_bytes: usize,
}

impl FormSummary {
    /// The request that it is.
    ///
    /// # Errors
    /// What it asks for is not served.
    pub fn to_call(&self, dialect: Dialect) -> Result<ParsedRequest<'_>, BadRequest> {
        let (model, place) = (&*self.model, self.model_range.clone());
        ParsedRequest::from_form(dialect, model, place, self.stream, self.n, self.counted_bytes)
    }
}
