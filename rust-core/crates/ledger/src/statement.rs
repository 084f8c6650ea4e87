//! The common format of tombstones, erasures, holds, key destructions and key successions: signed
//! notes whose text starts with a line that names the format. Each following line is a word and a
//! value, in a fixed order.

use crate::LedgerError;
use crate::checkpoint::parse_decimal;

/// Largest statement that is parsed, in bytes.
pub const MAX_STATEMENT_BYTES: usize = 8 << 10;
/// Largest reason of a statement, in bytes.
pub const MAX_REASON_BYTES: usize = 512;

const MALFORMED: fn(&'static str) -> LedgerError = LedgerError::StatementMalformed;

/// A reader of the lines of a statement's text.
pub(crate) struct StatementReader<'t>(std::str::Split<'t, char>);

impl<'t> StatementReader<'t> {
    /// Creates a reader and checks the first line, which names the format.
    pub(crate) fn new(text: &'t str, format: &'static str) -> Result<Self, LedgerError> {
        let text = text
            .strip_suffix('\n')
            .ok_or(MALFORMED("does not end in a newline"))?;
        let mut lines = Self(text.split('\n'));
        match lines.next_line()? == format {
            true => Ok(lines),
            false => Err(MALFORMED("the first line names an unexpected format")),
        }
    }

    pub(crate) fn next_line(&mut self) -> Result<&'t str, LedgerError> {
        self.0.next().ok_or(MALFORMED("too few lines"))
    }

    pub(crate) fn next_decimal(&mut self) -> Result<u64, LedgerError> {
        parse_decimal(self.next_line()?).ok_or(MALFORMED("a size is not a decimal number"))
    }

    /// Returns the value of a line that starts with `word` and a space.
    pub(crate) fn next_value(&mut self, word: &str) -> Result<&'t str, LedgerError> {
        self.next_line()?
            .strip_prefix(word)
            .and_then(|rest| rest.strip_prefix(' '))
            .ok_or(MALFORMED("a line begins with an unexpected word"))
    }

    pub(crate) fn next_number(&mut self, word: &str) -> Result<u64, LedgerError> {
        parse_decimal(self.next_value(word)?).ok_or(MALFORMED("a value is not a decimal number"))
    }

    /// Reads the last lines: the author, the reason and the ticket.
    pub(crate) fn into_justification(mut self) -> Result<Justification, LedgerError> {
        let author = self.next_value("author")?.to_owned();
        let reason = self.next_value("reason")?.to_owned();
        let ticket = match self.0.next() {
            None => None,
            Some(line) => {
                let ticket = line.strip_prefix("ticket ");
                Some(
                    ticket
                        .ok_or(MALFORMED("a line begins with an unexpected word"))?
                        .to_owned(),
                )
            }
        };
        self.finish()?;
        let why = Justification {
            author,
            reason,
            ticket,
        };
        why.check()?;
        Ok(why)
    }

    pub(crate) fn finish(mut self) -> Result<(), LedgerError> {
        match self.0.next() {
            None => Ok(()),
            Some(_) => Err(MALFORMED("too many lines")),
        }
    }
}

/// The author and the reason of a statement. Each part is one line of 1 to 512 bytes without
/// control characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Justification {
    /// Author of the statement: a person, or the program that acts on a configuration.
    pub author: String,
    /// Reason for the statement.
    pub reason: String,
    /// The case or ticket that requested the statement's action, if any.
    pub ticket: Option<String>,
}

impl Justification {
    /// Checks that each part is one line of text.
    ///
    /// # Errors
    /// [`LedgerError::StatementMalformed`].
    pub fn check(&self) -> Result<(), LedgerError> {
        let parts = [Some(&self.author), Some(&self.reason), self.ticket.as_ref()];
        parts
            .into_iter()
            .flatten()
            .try_for_each(|part| check_reason(part))
    }

    /// Returns the last lines of a statement's text, each with a newline.
    pub(crate) fn lines(&self) -> String {
        let mut text = format!("author {}\nreason {}\n", self.author, self.reason);
        if let Some(ticket) = &self.ticket {
            text.push_str("ticket ");
            text.push_str(ticket);
            text.push('\n');
        }
        text
    }
}

/// Checks that a reason, or other free text, is one line of text.
pub(crate) fn check_reason(reason: &str) -> Result<(), LedgerError> {
    if reason.is_empty() || reason.len() > MAX_REASON_BYTES || reason.chars().any(char::is_control) {
        return Err(MALFORMED(
            "an author, a reason and a ticket must each be one line of 1 to 512 bytes",
        ));
    }
    Ok(())
}
