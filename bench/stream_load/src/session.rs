//! An agent's session: a conversation that grows by a turn at a time and is sent again with each.
//!
//! A file has it in lines: the begin of the request, up to the bracket that opens its messages, then the messages of each
//! turn, parted by commas. Wherever it holds a [`mark`], the number of the session takes its place, so that no system has
//! seen the text before.

use memchr::memmem;

use crate::mark;

/// A session whose texts get their number when they are sent.
#[derive(Debug)]
pub struct Session {
    begin: Line,
    turns: Vec<Line>,
}

#[derive(Debug)]
struct Line {
    bytes: Vec<u8>,
    /// Where its marks stand.
    marks: Vec<usize>,
}

const END: &[u8] = b"]}";

impl Session {
    /// Reads the lines of a file.
    ///
    /// # Errors
    /// It has no turn.
    pub fn read(file: &[u8]) -> Result<Self, String> {
        let mut lines = file.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let begin = Line::new(lines.next().unwrap_or_default());
        let turns: Vec<_> = lines.map(Line::new).collect();
        match turns.is_empty() {
            true => Err("the session has no turn".to_owned()),
            false => Ok(Self { begin, turns }),
        }
    }

    /// How many turns it has.
    #[must_use]
    pub fn turns(&self) -> usize {
        self.turns.len()
    }

    /// Bytes of the request of a turn, counted from 1.
    #[must_use]
    pub fn length(&self, turn: usize) -> usize {
        let turns = self.turns.iter().take(turn);
        let commas = turn.min(self.turns.len()).saturating_sub(1);
        self.begin.bytes.len() + turns.map(|line| line.bytes.len()).sum::<usize>() + commas + END.len()
    }

    /// Appends the request of a turn, counted from 1. `number` marks its texts, `last` those of the turn itself.
    pub fn write(&self, turn: usize, number: u64, last: u64, out: &mut Vec<u8>) {
        self.begin.write(number, out);
        for (place, line) in self.turns.iter().take(turn).enumerate() {
            if place > 0 {
                out.push(b',');
            }
            line.write(if place + 1 == turn { last } else { number }, out);
        }
        out.extend_from_slice(END);
    }
}

impl Line {
    fn new(bytes: &[u8]) -> Self {
        let marks = memmem::find_iter(bytes, mark::PREFIX)
            .filter(|place| mark::read(&bytes[*place..]).is_some())
            .collect();
        Self {
            bytes: bytes.to_vec(),
            marks,
        }
    }

    fn write(&self, number: u64, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        let mark = mark::write(number);
        for place in &self.marks {
            out[start + place..][..mark.len()].copy_from_slice(&mark);
        }
    }
}
