/// Maximum length of a value, in bytes; longer ones are skipped.
const MAX_VALUE_BYTES: usize = 4096;

/// Finds the value of a top-level member of a response, or of a member one level below, however the response is cut
/// into pieces. A member with the same name deeper in the document, as in tool arguments or in a repetition of the
/// request, does not match.
#[derive(Debug)]
pub(super) struct MemberScanner {
    target_name: &'static [u8],
    /// Depth of the object that has the member; 1 is the outermost.
    target_depth: u32,
    depth: u32,
    in_string: bool,
    /// Whether the current byte is escaped.
    escaped: bool,
    /// The part of the name that the current or last string matches.
    name_match: NameMatch,
    /// The value, once its name has been found.
    value: Option<Vec<u8>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum NameMatch {
    #[default]
    Other,
    /// The current string starts with this many bytes of the name.
    Partial(usize),
    /// The string is the name.
    Matched,
}

impl MemberScanner {
    /// Creates a scanner for a member of the outermost object (1), or of an object one level below (2).
    pub(super) fn new(wanted: &'static [u8], of: u32) -> Self {
        MemberScanner {
            target_name: wanted,
            target_depth: of,
            depth: 0,
            in_string: false,
            escaped: false,
            name_match: NameMatch::Other,
            value: None,
        }
    }

    /// Reads the next piece, and passes each value that ends in it to `found`.
    pub(super) fn push(&mut self, piece: &[u8], mut found: impl FnMut(&[u8])) {
        let mut at = 0;
        while at < piece.len() {
            let begin = at;
            if self.in_string {
                at = self.scan_string(piece, at);
            } else {
                let byte = piece[at];
                at += 1;
                if self.scan_structure(byte) {
                    found(&self.value.take().unwrap_or_default());
                    continue;
                }
            }
            self.append_value(&piece[begin..at]);
        }
    }

    /// Continues a scan within a string; returns the position at which it stops.
    fn scan_string(&mut self, piece: &[u8], from: usize) -> usize {
        if std::mem::take(&mut self.escaped) {
            self.name_match = NameMatch::Other;
            return from + 1;
        }
        let rest = &piece[from..];
        let length = memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
        if let NameMatch::Partial(before) = self.name_match {
            let part = &rest[..length];
            let goes_on = self.target_name.get(before..before + length) == Some(part);
            self.name_match = if goes_on {
                NameMatch::Partial(before + length)
            } else {
                NameMatch::Other
            };
        }
        match rest.get(length) {
            None => from + length,
            Some(b'"') => {
                self.in_string = false;
                self.name_match = match self.name_match {
                    NameMatch::Partial(all) if all == self.target_name.len() => NameMatch::Matched,
                    _ => NameMatch::Other,
                };
                from + length + 1
            }
            Some(_) => {
                self.escaped = true;
                from + length + 1
            }
        }
    }

    /// Reads a byte outside strings; returns whether the value has ended before it.
    fn scan_structure(&mut self, byte: u8) -> bool {
        match byte {
            b'"' => {
                self.in_string = true;
                self.name_match = if self.depth == self.target_depth && self.value.is_none() {
                    NameMatch::Partial(0)
                } else {
                    NameMatch::Other
                };
            }
            b'{' | b'[' => self.depth = self.depth.saturating_add(1),
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                return self.depth < self.target_depth && self.value.is_some();
            }
            b',' => return self.depth == self.target_depth && self.value.is_some(),
            b':' if self.depth == self.target_depth && self.name_match == NameMatch::Matched => {
                self.value = Some(Vec::new())
            }
            _ => {}
        }
        false
    }

    fn append_value(&mut self, bytes: &[u8]) {
        let Some(value) = &mut self.value else {
            return;
        };
        // The colon before the value.
        if value.is_empty() && bytes == b":" {
            return;
        }
        if value.len() + bytes.len() > MAX_VALUE_BYTES {
            self.value = None;
            self.name_match = NameMatch::Other;
            return;
        }
        value.extend_from_slice(bytes);
    }
}
