//! Text on the stack, for header values.

/// The largest integer of a structured field (RFC 9651 section 3.3.1).
const MAX_INTEGER: u64 = 999_999_999_999_999;

/// At most `N` bytes of text; what does not fit is cut off.
pub(crate) struct Text<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> Text<N> {
    pub(crate) fn new() -> Self {
        Self {
            bytes: [0; N],
            len: 0,
        }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    #[inline]
    pub(crate) fn push(&mut self, text: &str) {
        self.push_bytes(text.as_bytes());
    }

    #[inline]
    fn push_bytes(&mut self, bytes: &[u8]) {
        let fits = bytes.len().min(N - self.len);
        self.bytes[self.len..self.len + fits].copy_from_slice(&bytes[..fits]);
        self.len += fits;
    }

    pub(crate) fn push_number(&mut self, number: u64) {
        let mut digits = [0; 20];
        let mut at = digits.len();
        let mut left = number;
        loop {
            at -= 1;
            digits[at] = b'0' + (left % 10) as u8;
            left /= 10;
            if left == 0 {
                break;
            }
        }
        self.push_bytes(&digits[at..]);
    }

    /// An integer of a structured field, which ends at 15 digits.
    pub(crate) fn push_integer(&mut self, number: u64) {
        self.push_number(number.min(MAX_INTEGER));
    }

    /// A time as OpenAI writes it: `59s`, `6m0s`, `1h0m0s`.
    pub(crate) fn push_seconds(&mut self, seconds: u64) {
        let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
        if hours > 0 {
            self.push_number(hours);
            self.push("h");
        }
        if hours > 0 || minutes > 0 {
            self.push_number(minutes);
            self.push("m");
        }
        self.push_number(seconds % 60);
        self.push("s");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_written_as_openai_does() {
        for (seconds, expected) in [
            (0, "0s"),
            (59, "59s"),
            (60, "1m0s"),
            (360, "6m0s"),
            (3600, "1h0m0s"),
            (86_399, "23h59m59s"),
        ] {
            let mut text = Text::<16>::new();
            text.push_seconds(seconds);
            assert_eq!(text.as_bytes(), expected.as_bytes());
        }
    }

    #[test]
    fn what_does_not_fit_is_cut_off() {
        let mut text = Text::<4>::new();
        text.push_number(u64::MAX);
        text.push("x");
        assert_eq!(text.as_bytes(), b"1844");
    }
}
