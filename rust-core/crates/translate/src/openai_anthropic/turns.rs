/// The turns of a conversation. Messages of one role in a row are one turn; the results of tools come first in theirs,
/// as Anthropic demands.
pub(super) struct Turns<'o> {
    pub(super) out: &'o mut Vec<u8>,
    pub(super) role: Option<&'static str>,
    /// Where the results of the turn at hand end.
    pub(super) results_end: usize,
}

impl Turns<'_> {
    /// Where the next block of a role goes. It has to be written, and a comma behind it.
    pub(super) fn of(&mut self, role: &'static str) -> &mut Vec<u8> {
        if self.role != Some(role) {
            self.end();
            self.role = Some(role);
            self.out.extend_from_slice(b"{\"role\":\"");
            self.out.extend_from_slice(role.as_bytes());
            self.out.extend_from_slice(b"\",\"content\":[");
            self.results_end = self.out.len();
        }
        self.out
    }

    /// Takes the block that was written from `start` on to the results of the turn.
    pub(super) fn is_result(&mut self, start: usize) {
        let length = self.out.len().saturating_sub(start);
        if let Some(behind) = self.out.get_mut(self.results_end..) {
            behind.rotate_right(length);
        }
        self.results_end += length;
    }

    pub(super) fn end(&mut self) {
        if self.role.is_some() {
            self.out.pop();
            self.out.extend_from_slice(b"]},");
        }
    }
}
