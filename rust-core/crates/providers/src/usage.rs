use std::collections::VecDeque;
use std::sync::LazyLock;

use memchr::memmem::FinderRev;
use serde::Deserialize;

/// Tokens that an answer says it cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt_tokens: u64,
    /// Tokens of the answer.
    #[serde(default)]
    pub completion_tokens: u64,
}

/// How much of an answer's end is kept, in bytes: usage stands last both in an answer and in a stream.
const TAIL: usize = 4096;

/// Keeps the end of an answer, to read its `usage` from when it is over.
#[derive(Debug, Default)]
pub struct UsageTail {
    /// A ring: of a long stream, a token moves nothing but itself.
    tail: VecDeque<u8>,
}

impl UsageTail {
    /// Forgets everything, for the next answer on the same connection; keeps the buffer.
    pub fn clear(&mut self) {
        self.tail.clear();
    }

    /// Takes the next piece of the answer.
    pub fn push(&mut self, piece: &[u8]) {
        let piece = &piece[piece.len().saturating_sub(TAIL)..];
        let surplus = (self.tail.len() + piece.len()).saturating_sub(TAIL);
        self.tail.drain(..surplus);
        self.tail.extend(piece);
    }

    /// The last usage that the answer gave, if it gave one.
    ///
    /// A quoted `usage` inside model output has its quotes escaped and does not match.
    pub fn usage(&mut self) -> Option<Usage> {
        static NAME: LazyLock<FinderRev<'static>> = LazyLock::new(|| FinderRev::new(b"\"usage\""));
        let tail = &*self.tail.make_contiguous();
        NAME.rfind_iter(tail).find_map(|at| {
            let after = tail[at + 7..].trim_ascii_start().strip_prefix(b":")?;
            let mut values = serde_json::Deserializer::from_slice(after).into_iter::<Usage>();
            values.next()?.ok()
        })
    }
}
