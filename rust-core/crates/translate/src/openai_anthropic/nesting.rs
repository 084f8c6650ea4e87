/// How deep a JSON text that comes in fragments stands: enough to see that it was cut, without keeping it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Nesting {
    depth: u64,
    in_string: bool,
    escaped: bool,
    begun: bool,
}

impl Nesting {
    /// Takes the next fragment.
    pub(crate) fn push(&mut self, fragment: &str) {
        for byte in fragment.bytes() {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                b'{' | b'[' if !self.in_string => self.depth = self.depth.saturating_add(1),
                b'}' | b']' if !self.in_string => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
            self.begun |= !byte.is_ascii_whitespace();
        }
    }

    /// Whether anything has come.
    pub(crate) fn has_begun(&self) -> bool {
        self.begun
    }

    /// Whether it ends within an object, an array or a string.
    pub(crate) fn is_cut(&self) -> bool {
        self.depth > 0 || self.in_string
    }
}
