//! The file of an upload: of a batch's input the lines are read as they come.
//!
//! What the file is for may stand behind it in the form (OpenAI's client for JavaScript sends the fields in the order in which its
//! caller gives them). Until that is known a file is taken for a batch's input, as long as its lines are what those are.

use std::ops::Range;

use proofgate_base::rejection::Rejection;
use proofgate_json::Workspace;
use proofgate_providers::{Dialect, line_endpoint};
use proofgate_upstream::stored_path::is_purpose;

/// The purpose of a file whose lines are requests.
const BATCH_PURPOSE: &str = "batch";

/// What is known of the file of an upload.
pub struct UploadedFile {
    purpose: Option<String>,
    has_file: bool,
    content: FileContent,
    /// Of whole lines, which nobody has judged.
    unchecked_lines: Vec<Line>,
    splitter: LineSplitter,
    /// What reading their JSON needs.
    workspace: Workspace,
}

enum FileContent {
    /// Requests, a line each, so far.
    Batch,
    /// Anything: it is for something else.
    Opaque,
    /// Not requests: what would be told if it were for a batch.
    NotBatch(Rejection),
}

/// A line that is a request for an endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Where it stands among the bytes.
    pub range: Range<usize>,
    /// Which line of the file it is, from 1 on.
    pub number: u64,
    pub dialect: Dialect,
}

/// Whole lines of a batch's input that nobody has judged.
#[derive(Default)]
pub struct BatchLines {
    pub bytes: Vec<u8>,
    pub lines: Vec<Line>,
}

impl UploadedFile {
    /// The file of an upload whose lines may have so many bytes if it is a batch's input.
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

    /// Takes what the file is for.
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

    /// The file begins.
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

    /// Takes bytes of the file, which begin at `at` in the form.
    pub fn push(&mut self, bytes: &[u8], at: u64) -> Result<(), Rejection> {
        match self.content {
            FileContent::Batch => {
                let pushed = self.splitter.push(bytes, at);
                self.check_lines(pushed)
            }
            FileContent::Opaque | FileContent::NotBatch(_) => Ok(()),
        }
    }

    /// The file has ended.
    pub(crate) fn finish_file(&mut self) -> Result<(), Rejection> {
        match self.content {
            FileContent::Batch => {
                self.splitter.finish();
                self.check_lines(Ok(()))
            }
            FileContent::Opaque | FileContent::NotBatch(_) => Ok(()),
        }
    }

    /// Checks the lines that are complete.
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
            self.unchecked_lines.push(Line {
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

    /// The lines that are whole, of which the rest may leave when they have been judged.
    pub(crate) fn take_lines(&mut self) -> BatchLines {
        BatchLines {
            bytes: self.splitter.take_complete(),
            lines: std::mem::take(&mut self.unchecked_lines),
        }
    }

    /// Whether there are lines to be taken.
    pub(crate) fn has_lines(&self) -> bool {
        self.splitter.complete_length > 0
    }

    /// From where on in the form there are bytes that nobody has judged.
    pub(crate) fn uninspected_from(&self) -> Option<u64> {
        (!self.splitter.bytes.is_empty()).then_some(self.splitter.offset)
    }

    /// Bytes of memory that it takes, for the most part.
    pub fn size(&self) -> usize {
        self.splitter.bytes.capacity()
            + self.unchecked_lines.len() * size_of::<Line>()
            + self.workspace.capacity()
    }

    /// Says that the form has ended.
    ///
    /// # Errors
    /// What is missing of it.
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

/// A line that is longer than a request may be.
#[derive(Debug, PartialEq, Eq)]
struct LineTooLong {
    number: u64,
}

impl From<LineTooLong> for Rejection {
    fn from(LineTooLong { number }: LineTooLong) -> Self {
        Rejection::BATCH_LINE_TOO_LONG.at_line(number)
    }
}

/// Cuts a file into its lines, however it comes in pieces. They end with LF, and the last one with the file.
#[derive(Debug)]
struct LineSplitter {
    bytes: Vec<u8>,
    /// Where in the form they begin.
    offset: u64,
    /// So many of them are whole lines.
    complete_length: usize,
    /// So many of these have been handed out.
    consumed: usize,
    /// Lines that have been handed out.
    line_count: u64,
    /// Most bytes of a line.
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

    /// The file has ended, and with it its last line.
    fn finish(&mut self) {
        self.complete_length = self.bytes.len();
    }

    /// The next whole line that is not blank, its number and where it stands.
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

    /// The whole lines, which are the file's beginning no more.
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
