const END: &[u8] = b"data: [DONE]";

/// Finds the end marker of an OpenAI event stream, however the stream is cut into pieces.
///
/// The marker counts only at the start of a line: text inside an event is JSON, where a line break is escaped, so no
/// model output can imitate it.
#[derive(Debug, Default)]
pub struct DoneScanner {
    /// Bytes of the marker that the current line has matched; `None` once the line cannot be the marker.
    matched: Option<usize>,
    begun: bool,
}

impl DoneScanner {
    /// A scanner at the start of a stream.
    pub fn new() -> Self {
        DoneScanner::default()
    }

    /// Looks at the next piece and returns the offset from which its bytes complete the marker.
    ///
    /// What stands before the offset may go to the client at once; what follows ends the answer.
    pub fn scan(&mut self, piece: &[u8]) -> Option<usize> {
        if !self.begun {
            self.begun = true;
            self.matched = Some(0);
        }
        let mut at = 0;
        while at < piece.len() {
            if let Some(matched) = self.matched {
                let wanted = &END[matched..];
                let have = &piece[at..];
                let common = wanted.iter().zip(have).take_while(|(w, h)| w == h).count();
                if common == wanted.len() {
                    return Some(at);
                }
                if common == have.len() {
                    self.matched = Some(matched + common);
                    return None;
                }
                self.matched = None;
            }
            match memchr::memchr(b'\n', &piece[at..]) {
                Some(offset) => {
                    at += offset + 1;
                    self.matched = Some(0);
                }
                None => return None,
            }
        }
        None
    }
}
