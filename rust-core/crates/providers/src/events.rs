use std::ops::Range;

use crate::body_kind::BYTE_ORDER_MARK;

/// The error for an event that is larger than the reader's limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is larger than {limit} bytes")]
pub struct EventTooLarge {
    /// The limit, in bytes.
    pub limit: usize,
}

/// Splits a stream of server-sent events, however it is cut into pieces.
///
/// Lines end with LF, CRLF or CR; an empty line ends an event (WHATWG HTML, sections 9.2.5 and 9.2.6). An event is
/// returned with all its bytes, including the empty line, so that the concatenated events equal the stream.
#[derive(Debug)]
pub struct EventReader {
    buffer: Vec<u8>,
    limit: usize,
    /// The start of the current event.
    start: usize,
    /// The start of its current line, and the end of the part searched for the line's end.
    line_start: usize,
    searched: usize,
    /// Values of the event's `data` lines, as offsets from the start of the event.
    data: Vec<Range<usize>>,
    joined: Vec<u8>,
    has_unknown_fields: bool,
    /// Whether the current event has been returned.
    returned: bool,
    is_started: bool,
}

/// An event, or the bytes between two events, unmodified.
#[derive(Debug)]
pub struct StreamEvent<'r> {
    /// All bytes of the event.
    pub raw: &'r [u8],
    /// The value of its `data`: its lines joined by line feeds. `None` if it has none, like a comment.
    pub data: Option<&'r [u8]>,
    /// Whether it has a line that is neither a comment nor a field of the specification.
    pub has_unknown_fields: bool,
    lines: &'r [Range<usize>],
}

impl StreamEvent<'_> {
    /// Returns the offset in `raw` of an offset in `data`.
    pub fn raw_offset(&self, data_offset: usize) -> usize {
        let mut before = 0;
        for line in self.lines {
            let inside = data_offset - before;
            if inside <= line.len() {
                return line.start + inside;
            }
            before += line.len() + 1;
        }
        self.raw.len()
    }
}

impl EventReader {
    /// Creates a reader for a new stream whose events have at most `limit` bytes each.
    pub fn new(limit: usize) -> Self {
        EventReader {
            buffer: Vec::new(),
            limit,
            start: 0,
            line_start: 0,
            searched: 0,
            data: Vec::new(),
            joined: Vec::new(),
            has_unknown_fields: false,
            returned: false,
            is_started: false,
        }
    }

    /// Clears all state for the next stream; keeps the buffers.
    pub fn clear(&mut self) {
        self.buffer.clear();
        self.is_started = false;
        self.returned = false;
        self.start_event(0);
    }

    /// Clears all state, and releases every buffer with more than `most` bytes.
    pub fn release_memory(&mut self, most: usize) {
        self.clear();
        self.buffer.shrink_to(most);
        self.joined.shrink_to(most);
        self.data.shrink_to(most / size_of::<Range<usize>>());
    }

    /// Returns the number of bytes of memory that the buffers take.
    pub fn capacity(&self) -> usize {
        let lines = self.data.capacity() * size_of::<Range<usize>>();
        self.buffer.capacity() + self.joined.capacity() + lines
    }

    /// Appends the next piece of the stream.
    pub fn push(&mut self, piece: &[u8]) {
        self.drop_returned();
        self.buffer.drain(..self.start);
        self.line_start -= self.start;
        self.searched -= self.start;
        self.start = 0;
        self.buffer.extend_from_slice(piece);
    }

    /// Returns the next complete event.
    ///
    /// # Errors
    /// [`EventTooLarge`] when the current event exceeds the limit, complete or not.
    pub fn next_event(&mut self) -> Result<Option<StreamEvent<'_>>, EventTooLarge> {
        self.drop_returned();
        while let Some(offset) = self
            .buffer
            .get(self.searched..)
            .and_then(|rest| memchr::memchr2(b'\n', b'\r', rest))
        {
            let end = self.searched + offset;
            self.searched = end;
            let length = match (self.buffer[end], self.buffer.get(end + 1)) {
                (b'\r', Some(b'\n')) => 2,
                // A line feed that belongs to it may still arrive.
                (b'\r', None) => return self.check_limit().map(|()| None),
                _ => 1,
            };
            let empty = self.take_line(end);
            self.line_start = end + length;
            self.searched = self.line_start;
            if empty {
                self.check_limit()?;
                return Ok(Some(self.event()));
            }
        }
        self.searched = self.buffer.len();
        self.check_limit().map(|()| None)
    }

    /// Returns the rest at the end of the stream: an event without its empty line. A lenient client could still read
    /// it.
    ///
    /// # Errors
    /// [`EventTooLarge`] as for [`next_event`](EventReader::next_event).
    pub fn finish(&mut self) -> Result<Option<StreamEvent<'_>>, EventTooLarge> {
        self.drop_returned();
        if self.start == self.buffer.len() {
            return Ok(None);
        }
        let end = self.buffer.len() - usize::from(self.buffer.ends_with(b"\r"));
        if end > self.line_start {
            self.take_line(end);
        }
        self.line_start = self.buffer.len();
        self.searched = self.line_start;
        self.check_limit()?;
        Ok(Some(self.event()))
    }

    /// Returns how many bytes of an incomplete event are buffered.
    pub fn pending(&self) -> usize {
        self.buffer.len()
            - if self.returned {
                self.line_start
            } else {
                self.start
            }
    }

    fn check_limit(&self) -> Result<(), EventTooLarge> {
        let end = self.line_start.max(self.searched);
        if end - self.start > self.limit {
            return Err(EventTooLarge { limit: self.limit });
        }
        Ok(())
    }

    /// Records the field of the line that ends at `end`; returns whether the line is empty.
    fn take_line(&mut self, end: usize) -> bool {
        let mut line = &self.buffer[self.line_start..end];
        if !self.is_started {
            self.is_started = true;
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        if line.is_empty() {
            return true;
        }
        let (name, value) = match memchr::memchr(b':', line) {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &line[line.len()..]),
        };
        match name {
            b"data" => {
                let value = value.strip_prefix(b" ").unwrap_or(value);
                let end = end - self.start;
                self.data.push(end - value.len()..end);
            }
            b"" | b"event" | b"id" | b"retry" => {}
            _ => self.has_unknown_fields = true,
        }
        false
    }

    /// Returns the event that ends where the current line begins.
    fn event(&mut self) -> StreamEvent<'_> {
        self.returned = true;
        let raw = &self.buffer[self.start..self.line_start];
        let data = match &self.data[..] {
            [] => None,
            [line] => Some(&raw[line.clone()]),
            lines => {
                self.joined.clear();
                for line in lines {
                    if line != &lines[0] {
                        self.joined.push(b'\n');
                    }
                    self.joined.extend_from_slice(&raw[line.clone()]);
                }
                Some(&self.joined[..])
            }
        };
        StreamEvent {
            raw,
            data,
            has_unknown_fields: self.has_unknown_fields,
            lines: &self.data,
        }
    }

    fn drop_returned(&mut self) {
        if self.returned {
            self.returned = false;
            self.start_event(self.line_start);
        }
    }

    fn start_event(&mut self, start: usize) {
        self.start = start;
        self.line_start = start;
        self.searched = start;
        self.data.clear();
        self.has_unknown_fields = false;
    }
}
