/// Whether fragments of JSON text have come to the end of an object or list, without keeping them.
///
/// It sees brackets and strings, which is enough to tell a text that was cut off from a whole one.
#[derive(Debug, Default)]
pub(super) struct Completeness {
    depth: u64,
    in_string: bool,
    /// Within a string, whether a backslash stands before the next character.
    escaped: bool,
    begun: bool,
}

impl Completeness {
    /// Takes the next fragment: what stands between the quotes of a JSON string.
    pub(super) fn take(&mut self, inner: &str) {
        let mut bytes = inner.bytes();
        while let Some(byte) = bytes.next() {
            let byte = if byte == b'\\' {
                unescaped(&mut bytes)
            } else {
                byte
            };
            self.byte(byte);
        }
    }

    /// Whether there was anything but white space.
    pub(super) fn begun(&self) -> bool {
        self.begun
    }

    /// Whether all that was opened is closed.
    pub(super) fn is_whole(&self) -> bool {
        self.depth == 0 && !self.in_string
    }

    fn byte(&mut self, byte: u8) {
        self.begun |= !byte.is_ascii_whitespace();
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' => self.escaped = self.in_string,
            b'"' => self.in_string = !self.in_string,
            _ if self.in_string => {}
            b'{' | b'[' => self.depth = self.depth.saturating_add(1),
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
    }
}

/// The character behind a backslash, or a question mark for one that means nothing here.
fn unescaped(bytes: &mut impl Iterator<Item = u8>) -> u8 {
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
