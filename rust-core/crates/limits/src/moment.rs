//! Moments, with the periods that limits count in.

use crate::calendar;
use crate::{DAY_SECONDS, MICROS};

/// A moment as it is counted: its second, its UTC day, and its UTC month.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) second: u64,
    pub(crate) day: u64,
    /// In months since January 1970.
    pub(crate) month: u64,
}

impl Moment {
    #[inline]
    pub(crate) fn of_micros(micros: u64) -> Self {
        Self::of_second(micros / MICROS)
    }

    #[inline]
    pub(crate) fn of_second(second: u64) -> Self {
        let day = second / DAY_SECONDS;
        Self {
            second,
            day,
            month: calendar::month_of(day),
        }
    }

    /// The second in which the next day begins.
    pub(crate) fn next_day(self) -> u64 {
        (self.day + 1).saturating_mul(DAY_SECONDS)
    }

    /// The second in which the next month begins.
    pub(crate) fn next_month(self) -> u64 {
        calendar::first_day_of(self.month + 1).saturating_mul(DAY_SECONDS)
    }
}
