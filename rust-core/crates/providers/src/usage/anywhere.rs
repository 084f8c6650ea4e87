use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::openai::Counted;
use super::tokens::Usage;

const NAME: &[u8] = b"\"usage\"";
/// A usage, from its name on, has at most so many bytes; a longer one is passed over.
const LONGEST: usize = 4096;
/// So many bytes are looked at again with every piece, whatever it brings.
const CHEAP: usize = 64;

/// Reads the `usage` of an answer as the answer passes, wherever it stands, in an event or in a whole document: where no
/// answer repeats what a client has written, nobody else can have put it there.
///
/// Of the answer no more is kept than what may be the beginning of a usage, at most 4 KiB.
#[derive(Debug, Default)]
pub(super) struct Anywhere {
    last: Option<Usage>,
    begun: Vec<u8>,
}

/// What stands where the name was found.
enum Found {
    Usage(Usage),
    /// More bytes could make it one.
    Unfinished,
    Other,
}

impl Anywhere {
    /// Forgets everything, for the next answer; keeps the buffer.
    pub(super) fn clear(&mut self) {
        self.last = None;
        self.begun.clear();
    }

    /// Takes the next piece of the answer; says whether a usage ended in it.
    ///
    /// A quoted `usage` inside model output has its quotes escaped and does not match.
    pub(super) fn push(&mut self, piece: &[u8]) -> bool {
        if self.begun.is_empty() {
            return self.search(piece);
        }
        self.begun.extend_from_slice(piece);
        // Without a brace no object has ended.
        if (CHEAP..LONGEST).contains(&self.begun.len()) && memchr::memchr(b'}', piece).is_none() {
            return false;
        }
        let joined = std::mem::take(&mut self.begun);
        self.search(&joined)
    }

    /// The last usage that the answer gave, if it gave one.
    pub(super) fn usage(&self) -> Option<Usage> {
        // What waits for a brace may have turned out to be no object by now, and hold one.
        let mut waiting = Self::default();
        waiting.search(&self.begun);
        waiting.last.or(self.last)
    }

    fn search(&mut self, bytes: &[u8]) -> bool {
        static FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(NAME));
        let mut seen = false;
        let mut at = 0;
        while let Some(offset) = FINDER.find(&bytes[at..]) {
            let named = &bytes[at + offset..];
            at += offset + NAME.len();
            let whole = named.len() >= LONGEST;
            match found(&named[NAME.len()..named.len().min(LONGEST)]) {
                Found::Usage(usage) => {
                    self.last = Some(usage);
                    seen = true;
                }
                Found::Unfinished if !whole => {
                    self.begun.extend_from_slice(named);
                    return seen;
                }
                Found::Unfinished | Found::Other => {}
            }
        }
        let rest = &bytes[at.max(bytes.len().saturating_sub(NAME.len() - 1))..];
        if let Some(cut) = (0..rest.len()).find(|cut| NAME.starts_with(&rest[*cut..])) {
            self.begun.extend_from_slice(&rest[cut..]);
        }
        seen
    }
}

/// Reads what follows the name.
fn found(bytes: &[u8]) -> Found {
    let value = match bytes.trim_ascii_start() {
        [] => return Found::Unfinished,
        [b':', value @ ..] => value.trim_ascii_start(),
        _ => return Found::Other,
    };
    match value.first() {
        None => return Found::Unfinished,
        Some(b'{') => {}
        Some(_) => return Found::Other,
    }
    let mut values = serde_json::Deserializer::from_slice(value).into_iter::<Counted>();
    match values.next() {
        Some(Ok(counted)) => Found::Usage(counted.usage()),
        Some(Err(error)) if error.is_eof() => Found::Unfinished,
        _ => Found::Other,
    }
}
