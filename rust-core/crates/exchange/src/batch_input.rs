//! The file of an upload. If it is the input of a batch, its lines are read as they arrive.
//!
//! The field with the file's purpose can follow the file, because OpenAI's JavaScript client sends
//! fields in the caller's order. While the purpose is unknown, a file is treated as a batch's input
//! if all its lines so far are valid as one.

use std::ops::Range;

use proofgate_base::rejection::Rejection;
use proofgate_json::Workspace;
use proofgate_providers::{Dialect, line_endpoint};
use proofgate_upstream::stored_path::is_purpose;

/// The purpose of a file whose lines are requests.
const BATCH_PURPOSE: &str = "batch";

/// The state of an upload's file.
pub struct UploadedFile {
    purpose: Option<String>,
    has_file: bool,
    content: FileContent,
    /// Complete lines that have not been judged.
    unchecked_lines: Vec<BatchLine>,
    splitter: LineSplitter,
    /// Memory for the JSON parser.
    workspace: Workspace,
}

enum FileContent {
    /// One request per line, so far.
    Batch,
    /// Any content, because the file has another purpose.
    Opaque,
    /// Content that is not requests. The rejection applies if the file's purpose is a batch.
    NotBatch(Rejection),
}

/// A line with one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchLine {
    /// Range of the line in [`BatchLines::bytes`].
    pub range: Range<usize>,
    /// Line number in the file, from 1.
    pub number: u64,
    pub dialect: Dialect,
}

/// Complete lines of a batch's input that have not been judged.
#[derive(Default)]
pub struct BatchLines {
    pub bytes: Vec<u8>,
    pub lines: Vec<BatchLine>,
}

impl UploadedFile {
    /// Creates the state of a file; `most` is the maximum length of a line of a batch's input, in bytes.
    pub fn new(most: usize) -> Self {
        UploadedFile {
            purpose: None,
            has_file: false,
            content: FileContent::Batch,
            unchecked_lines: Vec::new(),
            splitter: LineSplitter::new(most),
            workspace: Workspace::new(),
        }
    }

    /// Handles the `purpose` field.
    pub fn set_purpose(&mut self, value: String) -> Result<(), Rejection> {
        if self.purpose.is_some() {
            return Err(Rejection::invalid_form_field(
                "purpose",
                "appears more than once.",
            ));
        }
        if !is_purpose(&value) {
            return Err(Rejection::invalid_form_field(
                "purpose",
                "must have 1 to 64 characters: lowercase letters, - and _.",
            ));
        }
        if value != BATCH_PURPOSE {
            self.content = FileContent::Opaque;
            self.discard_lines();
        } else if let FileContent::NotBatch(rejection) = &self.content {
            return Err(rejection.clone());
        }
        self.purpose = Some(value);
        Ok(())
    }

    /// Handles the start of the file.
    pub fn start_file(&mut self, name: &str) -> Result<(), Rejection> {
        if name != "file" {
            return Err(Rejection::invalid_form_field(
                "file",
                "must be the only file of this form.",
            ));
        }
        if std::mem::replace(&mut self.has_file, true) {
            return Err(Rejection::invalid_form_field("file", "appears more than once."));
        }
        Ok(())
    }

    /// Adds bytes of the file that start at offset `at` in the form.
    pub fn push(&mut self, bytes: &[u8], at: u64) -> Result<(), Rejection> {
        match self.content {
            FileContent::Batch => {
                let pushed = self.splitter.push(bytes, at);
                self.check_lines(pushed)
            }
            FileContent::Opaque | FileContent::NotBatch(_) => Ok(()),
        }
    }

    /// Handles the end of the file.
    pub(crate) fn finish_file(&mut self) -> Result<(), Rejection> {
        match self.content {
            FileContent::Batch => {
                self.splitter.finish();
                self.check_lines(Ok(()))
            }
            FileContent::Opaque | FileContent::NotBatch(_) => Ok(()),
        }
    }

    /// Checks the complete lines.
    fn check_lines(&mut self, pushed: Result<(), LineTooLong>) -> Result<(), Rejection> {
        let checked = self.read_lines().and_then(|()| {
            pushed.map_err(|LineTooLong { number }| Rejection::BATCH_LINE_TOO_LONG.at_line(number))
        });
        match (checked, &self.purpose) {
            (Ok(()), _) => Ok(()),
            (Err(rejection), Some(_)) => Err(rejection),
            (Err(rejection), None) => {
                self.content = FileContent::NotBatch(rejection);
                self.discard_lines();
                Ok(())
            }
        }
    }

    fn read_lines(&mut self) -> Result<(), Rejection> {
        while let Some((number, range)) = self.splitter.next()? {
            let line = self.splitter.bytes.get(range.clone()).unwrap_or_default();
            let dialect = line_endpoint(line, &mut self.workspace)
                .map_err(|bad| Rejection::from(bad).at_line(number))?;
            self.unchecked_lines.push(BatchLine {
                range,
                number,
                dialect,
            });
        }
        Ok(())
    }

    fn discard_lines(&mut self) {
        self.splitter = LineSplitter::new(self.splitter.max_line_bytes);
        self.unchecked_lines = Vec::new();
        self.workspace = Workspace::new();
    }

    /// Takes the complete lines, which can be sent after they have been judged.
    pub(crate) fn take_lines(&mut self) -> BatchLines {
        BatchLines {
            bytes: self.splitter.take_complete(),
            lines: std::mem::take(&mut self.unchecked_lines),
        }
    }

    /// Whether there are lines to take.
    pub(crate) fn has_lines(&self) -> bool {
        self.splitter.complete_length > 0
    }

    /// Returns the form offset of the first byte that has not been judged; `None` if all have been.
    pub(crate) fn uninspected_from(&self) -> Option<u64> {
        (!self.splitter.bytes.is_empty()).then_some(self.splitter.offset)
    }

    /// Returns the approximate memory use, in bytes.
    pub fn size(&self) -> usize {
        self.splitter.bytes.capacity()
            + self.unchecked_lines.len() * size_of::<BatchLine>()
            + self.workspace.capacity()
    }

    /// Checks that the upload is complete at the end of the form.
    ///
    /// # Errors
    /// A [`Rejection`] if the purpose or the file is missing.
    pub fn check_complete(&self) -> Result<(), Rejection> {
        if self.purpose.is_none() {
            return Err(Rejection::invalid_form_field("purpose", "is missing."));
        }
        match self.has_file {
            true => Ok(()),
            false => Err(Rejection::invalid_form_field(
                "file",
                "is missing, or has no filename.",
            )),
        }
    }
}

/// A line that exceeds the maximum length of a request.
#[derive(Debug, PartialEq, Eq)]
struct LineTooLong {
    number: u64,
}

impl From<LineTooLong> for Rejection {
    fn from(LineTooLong { number }: LineTooLong) -> Self {
        Rejection::BATCH_LINE_TOO_LONG.at_line(number)
    }
}

/// Splits a file that arrives in pieces into lines. Each line ends with LF or at the end of the
/// file.
#[derive(Debug)]
struct LineSplitter {
    bytes: Vec<u8>,
    /// Offset of `bytes` in the form.
    offset: u64,
    /// Length of the complete lines at the start of `bytes`.
    complete_length: usize,
    /// Length of the complete lines that have been returned.
    consumed: usize,
    /// Number of lines returned so far.
    line_count: u64,
    /// Maximum bytes of a line.
    max_line_bytes: usize,
}

impl LineSplitter {
    fn new(most: usize) -> Self {
        LineSplitter {
            bytes: Vec::new(),
            offset: 0,
            complete_length: 0,
            consumed: 0,
            line_count: 0,
            max_line_bytes: most,
        }
    }

    fn push(&mut self, bytes: &[u8], at: u64) -> Result<(), LineTooLong> {
        if self.bytes.is_empty() {
            self.offset = at;
        }
        if let Some(last) = bytes.iter().rposition(|byte| *byte == b'\n') {
            self.complete_length = self.bytes.len() + last + 1;
        }
        self.bytes.extend_from_slice(bytes);
        if self.bytes.len() - self.complete_length <= self.max_line_bytes {
            return Ok(());
        }
        let behind = self
            .bytes
            .get(self.consumed..self.complete_length)
            .unwrap_or_default();
        let lines = behind.iter().filter(|byte| **byte == b'\n').count() as u64;
        Err(LineTooLong {
            number: self.line_count + lines + 1,
        })
    }

    /// Ends the file and its last line.
    fn finish(&mut self) {
        self.complete_length = self.bytes.len();
    }

    /// Returns the number and range of the next complete line that is not blank.
    fn next(&mut self) -> Result<Option<(u64, Range<usize>)>, LineTooLong> {
        while self.consumed < self.complete_length {
            let rest = self
                .bytes
                .get(self.consumed..self.complete_length)
                .unwrap_or_default();
            let length = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
            let is_blank = rest.get(..length).is_none_or(|line| line.trim_ascii().is_empty());
            let range = self.consumed..self.consumed + length;
            self.consumed = self.complete_length.min(range.end + 1);
            self.line_count += 1;
            if length > self.max_line_bytes {
                return Err(LineTooLong {
                    number: self.line_count,
                });
            }
            if !is_blank {
                return Ok(Some((self.line_count, range)));
            }
        }
        Ok(None)
    }

    /// Takes the complete lines out of the buffer.
    fn take_complete(&mut self) -> Vec<u8> {
        let rest = self.bytes.split_off(self.complete_length);
        self.offset += self.complete_length as u64;
        self.consumed = 0;
        self.complete_length = 0;
        std::mem::replace(&mut self.bytes, rest)
    }
}

#[cfg(test)]
#[path = "batch_input_tests.rs"]
mod tests;
