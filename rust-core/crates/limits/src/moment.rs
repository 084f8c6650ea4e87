//! Moments, and the periods in which limits count.

use crate::MICROS_PER_SECOND;
use proofgate_calendar::SECONDS_PER_DAY;

/// A moment in the units of limits: its second, its UTC day and its UTC month.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) second: u64,
    pub(crate) day: u64,
    /// Month, in months since January 1970.
    pub(crate) month: u64,
}

impl Moment {
    #[inline]
    pub(crate) fn from_micros(micros: u64) -> Self {
        Self::from_second(micros / MICROS_PER_SECOND)
    }

    #[inline]
    pub(crate) fn from_second(second: u64) -> Self {
        let day = second / SECONDS_PER_DAY;
        Self {
            second,
            day,
            month: proofgate_calendar::month_of(day),
        }
    }

    /// Returns the second in which the next day begins.
    pub(crate) fn next_day(self) -> u64 {
        (self.day + 1).saturating_mul(SECONDS_PER_DAY)
    }

    /// Returns the second in which the next month begins.
    pub(crate) fn next_month(self) -> u64 {
        proofgate_calendar::first_day_of(self.month + 1).saturating_mul(SECONDS_PER_DAY)
    }
}
