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
const BATCH: &str = "batch";

/// What is known of the file of an upload.
pub struct StoredFile {
    purpose: Option<String>,
    has_file: bool,
    content: Content,
    /// Of whole lines, which nobody has judged.
    found: Vec<Line>,
    lines: Lines,
    /// What reading their JSON needs.
    workspace: Workspace,
}

enum Content {
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

impl StoredFile {
    /// The file of an upload whose lines may have so many bytes if it is a batch's input.
    pub fn new(most: usize) -> Self {
        StoredFile {
            purpose: None,
            has_file: false,
            content: Content::Batch,
            found: Vec::new(),
            lines: Lines::new(most),
            workspace: Workspace::new(),
        }
    }

    /// Takes what the file is for.
    pub fn purpose(&mut self, value: String) -> Result<(), Rejection> {
        if self.purpose.is_some() {
            return Err(Rejection::form_field("purpose", "appears more than once."));
        }
        if !is_purpose(&value) {
            return Err(Rejection::form_field(
                "purpose",
                "must have 1 to 64 characters: lowercase letters, - and _.",
            ));
        }
        if value != BATCH {
            self.content = Content::Opaque;
            self.forget_lines();
        } else if let Content::NotBatch(rejection) = &self.content {
            return Err(rejection.clone());
        }
        self.purpose = Some(value);
        Ok(())
    }

    /// The file begins.
    pub fn begin(&mut self, name: &str) -> Result<(), Rejection> {
        if name != "file" {
            return Err(Rejection::form_field(
                "file",
                "must be the only file of this form.",
            ));
        }
        if std::mem::replace(&mut self.has_file, true) {
            return Err(Rejection::form_field("file", "appears more than once."));
        }
        Ok(())
    }

    /// Takes bytes of the file, which begin at `at` in the form.
    pub fn push(&mut self, bytes: &[u8], at: u64) -> Result<(), Rejection> {
        match self.content {
            Content::Batch => {
                let pushed = self.lines.push(bytes, at);
                self.check_lines(pushed)
            }
            Content::Opaque | Content::NotBatch(_) => Ok(()),
        }
    }

    /// The file has ended.
    pub(crate) fn end_file(&mut self) -> Result<(), Rejection> {
        match self.content {
            Content::Batch => {
                self.lines.end();
                self.check_lines(Ok(()))
            }
            Content::Opaque | Content::NotBatch(_) => Ok(()),
        }
    }

    /// Checks the lines that are complete.
    fn check_lines(&mut self, pushed: Result<(), TooLong>) -> Result<(), Rejection> {
        let checked = self.read_lines().and_then(|()| {
            pushed.map_err(|TooLong { number }| Rejection::BATCH_LINE_TOO_LONG.in_line(number))
        });
        match (checked, &self.purpose) {
            (Ok(()), _) => Ok(()),
            (Err(rejection), Some(_)) => Err(rejection),
            (Err(rejection), None) => {
                self.content = Content::NotBatch(rejection);
                self.forget_lines();
                Ok(())
            }
        }
    }

    fn read_lines(&mut self) -> Result<(), Rejection> {
        while let Some((number, range)) = self.lines.next()? {
            let line = self.lines.bytes.get(range.clone()).unwrap_or_default();
            let dialect = line_endpoint(line, &mut self.workspace)
                .map_err(|bad| Rejection::from(bad).in_line(number))?;
            self.found.push(Line {
                range,
                number,
                dialect,
            });
        }
        Ok(())
    }

    fn forget_lines(&mut self) {
        self.lines = Lines::new(self.lines.most);
        self.found = Vec::new();
        self.workspace = Workspace::new();
    }

    /// The lines that are whole, of which the rest may leave when they have been judged.
    pub(crate) fn take_lines(&mut self) -> BatchLines {
        BatchLines {
            bytes: self.lines.take_whole(),
            lines: std::mem::take(&mut self.found),
        }
    }

    /// Whether there are lines to be taken.
    pub(crate) fn has_lines(&self) -> bool {
        self.lines.whole > 0
    }

    /// From where on in the form there are bytes that nobody has judged.
    pub(crate) fn unjudged(&self) -> Option<u64> {
        (!self.lines.bytes.is_empty()).then_some(self.lines.at)
    }

    /// Bytes of memory that it takes, for the most part.
    pub fn size(&self) -> usize {
        self.lines.bytes.capacity() + self.found.len() * size_of::<Line>() + self.workspace.capacity()
    }

    /// Says that the form has ended.
    ///
    /// # Errors
    /// What is missing of it.
    pub fn end(&self) -> Result<(), Rejection> {
        if self.purpose.is_none() {
            return Err(Rejection::form_field("purpose", "is missing."));
        }
        match self.has_file {
            true => Ok(()),
            false => Err(Rejection::form_field("file", "is missing, or has no filename.")),
        }
    }
}

/// A line that is longer than a request may be.
#[derive(Debug, PartialEq, Eq)]
struct TooLong {
    number: u64,
}

impl From<TooLong> for Rejection {
    fn from(TooLong { number }: TooLong) -> Self {
        Rejection::BATCH_LINE_TOO_LONG.in_line(number)
    }
}

/// Cuts a file into its lines, however it comes in pieces. They end with LF, and the last one with the file.
#[derive(Debug)]
struct Lines {
    bytes: Vec<u8>,
    /// Where in the form they begin.
    at: u64,
    /// So many of them are whole lines.
    whole: usize,
    /// So many of these have been handed out.
    seen: usize,
    /// Lines that have been handed out.
    number: u64,
    /// Most bytes of a line.
    most: usize,
}

impl Lines {
    fn new(most: usize) -> Self {
        Lines {
            bytes: Vec::new(),
            at: 0,
            whole: 0,
            seen: 0,
            number: 0,
            most,
        }
    }

    fn push(&mut self, bytes: &[u8], at: u64) -> Result<(), TooLong> {
        if self.bytes.is_empty() {
            self.at = at;
        }
        if let Some(last) = bytes.iter().rposition(|byte| *byte == b'\n') {
            self.whole = self.bytes.len() + last + 1;
        }
        self.bytes.extend_from_slice(bytes);
        if self.bytes.len() - self.whole <= self.most {
            return Ok(());
        }
        let behind = self.bytes.get(self.seen..self.whole).unwrap_or_default();
        let lines = behind.iter().filter(|byte| **byte == b'\n').count() as u64;
        Err(TooLong {
            number: self.number + lines + 1,
        })
    }

    /// The file has ended, and with it its last line.
    fn end(&mut self) {
        self.whole = self.bytes.len();
    }

    /// The next whole line that is not blank, its number and where it stands.
    fn next(&mut self) -> Result<Option<(u64, Range<usize>)>, TooLong> {
        while self.seen < self.whole {
            let rest = self.bytes.get(self.seen..self.whole).unwrap_or_default();
            let length = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
            let is_blank = rest.get(..length).is_none_or(|line| line.trim_ascii().is_empty());
            let range = self.seen..self.seen + length;
            self.seen = self.whole.min(range.end + 1);
            self.number += 1;
            if length > self.most {
                return Err(TooLong { number: self.number });
            }
            if !is_blank {
                return Ok(Some((self.number, range)));
            }
        }
        Ok(None)
    }

    /// The whole lines, which are the file's beginning no more.
    fn take_whole(&mut self) -> Vec<u8> {
        let rest = self.bytes.split_off(self.whole);
        self.at += self.whole as u64;
        self.seen = 0;
        self.whole = 0;
        std::mem::replace(&mut self.bytes, rest)
    }
}

#[cfg(test)]
#[path = "batch_input_tests.rs"]
mod tests;
