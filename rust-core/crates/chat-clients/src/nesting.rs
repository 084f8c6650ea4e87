/// Tracks the nesting depth of a JSON text that arrives in fragments, to detect truncation without buffering the text.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NestingTracker {
    depth: u64,
    in_string: bool,
    escaped: bool,
    started: bool,
}

impl NestingTracker {
    /// Reads the next fragment.
    pub(crate) fn push(&mut self, fragment: &str) {
        for byte in fragment.bytes() {
            self.push_byte(byte);
        }
    }

    /// Reads the next fragment in its escaped form, as it appears between the quotes of a JSON
    /// string.
    pub(crate) fn push_escaped(&mut self, inside: &str) {
        let mut bytes = inside.bytes();
        while let Some(byte) = bytes.next() {
            let byte = if byte == b'\\' { unescape(&mut bytes) } else { byte };
            self.push_byte(byte);
        }
    }

    fn push_byte(&mut self, byte: u8) {
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' if self.in_string => self.escaped = true,
            b'"' => self.in_string = !self.in_string,
            b'{' | b'[' if !self.in_string => self.depth = self.depth.saturating_add(1),
            b'}' | b']' if !self.in_string => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        self.started |= !byte.is_ascii_whitespace();
    }

    /// Returns whether the text has begun.
    pub(crate) fn has_started(&self) -> bool {
        self.started
    }

    /// Returns whether the text ends within an object, an array or a string.
    pub(crate) fn is_truncated(&self) -> bool {
        self.depth > 0 || self.in_string
    }
}

/// Returns the character of an escape sequence, or a question mark for a character that does not
/// affect nesting.
fn unescape(bytes: &mut impl Iterator<Item = u8>) -> u8 {
    match bytes.next() {
        Some(b'u') => {
            let digits = bytes.by_ref().take(4);
            let value = digits.fold(0, |value, digit| {
                value * 16 + char::from(digit).to_digit(16).unwrap_or(0)
            });
            u8::try_from(value).ok().filter(u8::is_ascii).unwrap_or(b'?')
        }
        Some(b'n' | b'r' | b't' | b'f' | b'b') => b' ',
        Some(byte) => byte,
        None => b'?',
    }
}
