//! The body of a response as it arrives: chunked (RFC 9112 section 7.1), counted, or until the connection closes.

/// How the end of a body is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// `Transfer-Encoding: chunked`.
    Chunked,
    /// `Content-Length`, in bytes.
    Length(usize),
    /// Neither: the server closes the connection.
    Close,
}

/// The head of a response: what the client needs of it.
#[derive(Debug, PartialEq, Eq)]
pub struct Head {
    /// Bytes of the head, with its empty line.
    pub length: usize,
    /// Status code.
    pub status: u16,
    /// How the body ends.
    pub framing: Framing,
}

/// Reads the head of a response; none while it is not complete. A head that cannot be read has status 0.
#[must_use]
pub fn read_head(input: &[u8]) -> Option<Head> {
    let length = memchr::memmem::find(input, b"\r\n\r\n")? + 4;
    let text = String::from_utf8_lossy(&input[..length]).to_ascii_lowercase();
    let status = text
        .split(' ')
        .nth(1)
        .and_then(|code| code.parse().ok())
        .unwrap_or(0);
    let value = |name: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::trim))
    };
    let framing = match (value("transfer-encoding"), value("content-length")) {
        (Some(_), _) => Framing::Chunked,
        (None, Some(bytes)) => Framing::Length(bytes.parse().unwrap_or(0)),
        (None, None) => Framing::Close,
    };
    Some(Head {
        length,
        status,
        framing,
    })
}

#[derive(Debug, Clone, Copy)]
enum State {
    Size(usize),
    Extension(usize),
    Data(usize),
    AfterData,
    Trailer(bool),
    Counted(usize),
    Close,
    Ended,
}

/// Takes the framing off a body that arrives in pieces.
#[derive(Debug)]
pub struct Body(State);

impl Body {
    /// A body of which nothing has arrived.
    #[must_use]
    pub fn new(framing: Framing) -> Self {
        Self(match framing {
            Framing::Chunked => State::Size(0),
            Framing::Length(0) => State::Ended,
            Framing::Length(bytes) => State::Counted(bytes),
            Framing::Close => State::Close,
        })
    }

    /// Whether the last byte has been taken.
    #[must_use]
    pub fn ended(&self) -> bool {
        matches!(self.0, State::Ended)
    }

    /// Appends the payload in `input` to `payload`.
    pub fn push(&mut self, mut input: &[u8], payload: &mut Vec<u8>) {
        while let Some((&byte, rest)) = input.split_first() {
            let data = match self.0 {
                State::Data(left) | State::Counted(left) => left.min(input.len()),
                State::Close => input.len(),
                _ => 0,
            };
            if data > 0 {
                payload.extend_from_slice(&input[..data]);
                input = &input[data..];
                self.0 = match self.0 {
                    State::Data(left) if left == data => State::AfterData,
                    State::Data(left) => State::Data(left - data),
                    State::Counted(left) if left == data => State::Ended,
                    State::Counted(left) => State::Counted(left - data),
                    other => other,
                };
                continue;
            }
            input = rest;
            self.0 = match (self.0, byte) {
                (State::Size(0) | State::Extension(0), b'\n') => State::Trailer(true),
                (State::Size(size) | State::Extension(size), b'\n') => State::Data(size),
                (State::Size(size), digit) if digit.is_ascii_hexdigit() => {
                    let value = char::from(digit).to_digit(16).unwrap_or(0) as usize;
                    State::Size(size.saturating_mul(16).saturating_add(value))
                }
                (State::Size(size) | State::Extension(size), _) => State::Extension(size),
                (State::AfterData, b'\n') => State::Size(0),
                (State::Trailer(true), b'\n') => State::Ended,
                (State::Trailer(_), b'\n') => State::Trailer(true),
                (State::Trailer(empty), b'\r') => State::Trailer(empty),
                (State::Trailer(_), _) => State::Trailer(false),
                (State::Ended, _) => return,
                (other, _) => other,
            };
        }
    }
}
