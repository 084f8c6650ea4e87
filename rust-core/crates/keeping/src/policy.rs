//! How long records must be kept.

use crate::RetentionError;
use std::collections::BTreeMap;
use std::time::Instant;

const DAY_MICROS: u64 = 86_400_000_000;

/// Minimums, in days.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetentionPolicy {
    default_days: u64,
    tenants: BTreeMap<String, u64>,
}

impl RetentionPolicy {
    /// Everything for `days`, and what is of one of `tenants` for that many. A log is one of many tenants, so no tenant's
    /// minimum may be shorter than that of all.
    ///
    /// # Errors
    /// [`RetentionError::InvalidRequest`].
    pub fn new(days: u64, tenants: BTreeMap<String, u64>) -> Result<Self, RetentionError> {
        if let Some((tenant, shorter)) = tenants.iter().find(|(_, minimum)| **minimum < days) {
            return Err(RetentionError::InvalidRequest(format!(
                "the minimum of {tenant}, {shorter} days, is below the general minimum of {days} days: logs contain records of many tenants and are removed as a whole"
            )));
        }
        let most = tenants.values().copied().fold(days, u64::max);
        if most.checked_mul(DAY_MICROS).is_none() {
            return Err(RetentionError::InvalidRequest(format!(
                "a minimum of {most} days is too long"
            )));
        }
        Ok(Self {
            default_days: days,
            tenants,
        })
    }

    /// That of records which are nobody's.
    #[must_use]
    pub fn days(&self) -> u64 {
        self.default_days
    }

    /// That of a tenant.
    #[must_use]
    pub fn days_for(&self, tenant: &str) -> u64 {
        self.tenants.get(tenant).copied().unwrap_or(self.default_days)
    }

    /// The longest of all.
    #[must_use]
    pub fn max_days(&self) -> u64 {
        self.tenants.values().copied().fold(self.default_days, u64::max)
    }
}

/// Whether what is of a time is at least this many days old.
pub(crate) fn has_elapsed(days: u64, ts: u64, now: u64) -> bool {
    now.checked_sub(ts)
        .zip(days.checked_mul(DAY_MICROS))
        .is_some_and(|(age, minimum)| age >= minimum)
}

/// The time now, where it was `now` at `begun`; in unix microseconds.
pub(crate) fn current_time(now: u64, begun: Option<Instant>) -> u64 {
    let since = begun.map_or(0, |begun| begun.elapsed().as_micros());
    now.saturating_add(u64::try_from(since).unwrap_or(u64::MAX))
}

/// The time that many days ago, in unix milliseconds.
pub(crate) fn ago_ms(days: u64, now: u64) -> u64 {
    now.saturating_sub(days.saturating_mul(DAY_MICROS)) / 1000
}
