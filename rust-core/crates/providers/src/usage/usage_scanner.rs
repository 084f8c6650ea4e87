use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::openai::CompletionUsage;
use super::tokens::Usage;

const QUOTED_NAME: &[u8] = b"\"usage\"";
/// Maximum size of a usage including its name, in bytes; longer ones are skipped.
const MAX_USAGE_BYTES: usize = 4096;
/// Number of buffered bytes below which every piece triggers a new scan.
const RESCAN_LIMIT: usize = 64;

/// Finds a `usage` anywhere in a response while it passes through, in an event or in a whole document. It is for
/// dialects whose responses do not repeat client text, so that only the provider can have written it.
///
/// It buffers only what may be the beginning of a usage, at most 4 KiB.
#[derive(Debug, Default)]
pub(super) struct UsageScanner {
    last: Option<Usage>,
    partial: Vec<u8>,
}

/// The result of parsing at the name.
enum ScanResult {
    Usage(Usage),
    /// More bytes may complete it.
    Unfinished,
    Other,
}

impl UsageScanner {
    /// Clears all state for the next response; keeps the buffer.
    pub(super) fn clear(&mut self) {
        self.last = None;
        self.partial.clear();
    }

    /// Reads the next piece of the response; returns whether a usage ended in it.
    ///
    /// A quoted `usage` inside model output has its quotes escaped and does not match.
    pub(super) fn push(&mut self, piece: &[u8]) -> bool {
        if self.partial.is_empty() {
            return self.search(piece);
        }
        self.partial.extend_from_slice(piece);
        // Without a brace, no object has ended.
        if (RESCAN_LIMIT..MAX_USAGE_BYTES).contains(&self.partial.len())
            && memchr::memchr(b'}', piece).is_none()
        {
            return false;
        }
        let joined = std::mem::take(&mut self.partial);
        self.search(&joined)
    }

    /// Returns the last usage in the response, if there was one.
    pub(super) fn usage(&self) -> Option<Usage> {
        // The buffered bytes, which waited for a brace, may not be an object after all, and may contain a usage.
        let mut waiting = Self::default();
        waiting.search(&self.partial);
        waiting.last.or(self.last)
    }

    fn search(&mut self, bytes: &[u8]) -> bool {
        static FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(QUOTED_NAME));
        let mut seen = false;
        let mut at = 0;
        while let Some(offset) = FINDER.find(&bytes[at..]) {
            let named = &bytes[at + offset..];
            at += offset + QUOTED_NAME.len();
            let whole = named.len() >= MAX_USAGE_BYTES;
            match parse_usage_value(&named[QUOTED_NAME.len()..named.len().min(MAX_USAGE_BYTES)]) {
                ScanResult::Usage(usage) => {
                    self.last = Some(usage);
                    seen = true;
                }
                ScanResult::Unfinished if !whole => {
                    self.partial.extend_from_slice(named);
                    return seen;
                }
                ScanResult::Unfinished | ScanResult::Other => {}
            }
        }
        let rest = &bytes[at.max(bytes.len().saturating_sub(QUOTED_NAME.len() - 1))..];
        if let Some(cut) = (0..rest.len()).find(|cut| QUOTED_NAME.starts_with(&rest[*cut..])) {
            self.partial.extend_from_slice(&rest[cut..]);
        }
        seen
    }
}

/// Parses the text after the name.
fn parse_usage_value(bytes: &[u8]) -> ScanResult {
    let value = match bytes.trim_ascii_start() {
        [] => return ScanResult::Unfinished,
        [b':', value @ ..] => value.trim_ascii_start(),
        _ => return ScanResult::Other,
    };
    match value.first() {
        None => return ScanResult::Unfinished,
        Some(b'{') => {}
        Some(_) => return ScanResult::Other,
    }
    let mut values = serde_json::Deserializer::from_slice(value).into_iter::<CompletionUsage>();
    match values.next() {
        Some(Ok(counted)) => ScanResult::Usage(counted.usage()),
        Some(Err(error)) if error.is_eof() => ScanResult::Unfinished,
        _ => ScanResult::Other,
    }
}
