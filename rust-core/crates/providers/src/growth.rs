/// Tracks how much of growing data has been inspected.
///
/// Another inspection is due once the data has grown by 1/32. All inspections together then cost at most a fixed
/// multiple of one inspection of the whole, however small the arriving pieces are.
#[derive(Debug, Default)]
pub struct GrowthCheck {
    checked_len: usize,
}

impl GrowthCheck {
    /// Whether data of `length` bytes has grown since the last inspection.
    #[must_use]
    pub fn has_grown(&self, length: usize) -> bool {
        length > self.checked_len
    }

    /// Whether data of `length` bytes is due for inspection. If so, it is recorded as inspected.
    pub fn check_due(&mut self, length: usize) -> bool {
        let is_due = length.saturating_sub(self.checked_len) > length / 32;
        if is_due {
            self.checked_len = length;
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::GrowthCheck;

    const LENGTH: usize = 64 * 1024;

    #[test]
    fn all_looks_together_cost_a_fixed_number_of_looks_at_the_whole_whatever_the_pieces_are() {
        for piece in [1, 7, 1000, LENGTH] {
            let mut growth = GrowthCheck::default();
            let lengths = (1..=LENGTH).filter(|length| length % piece == 0);
            let looked_at: usize = lengths.filter(|length| growth.check_due(*length)).sum();
            assert!(looked_at <= 34 * LENGTH, "{piece}: {looked_at}");
        }
    }

    #[test]
    fn what_is_short_and_what_has_come_in_one_piece_is_looked_at_at_once() {
        let mut growth = GrowthCheck::default();
        assert!((1..32).all(|length| growth.check_due(length)));
        assert!(GrowthCheck::default().check_due(LENGTH));
        assert!(!growth.check_due(31), "nothing has come");
        assert!(!growth.check_due(31) && !growth.has_grown(31) && growth.has_grown(32));
    }
}
