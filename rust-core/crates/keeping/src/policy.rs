//! Retention periods: how long records must be kept.

use crate::RetentionError;
use std::collections::BTreeMap;
use std::time::Instant;

const DAY_MICROS: u64 = 86_400_000_000;

/// Minimum retention periods, in days.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetentionPolicy {
    default_days: u64,
    tenants: BTreeMap<String, u64>,
}

impl RetentionPolicy {
    /// Creates a policy with a general minimum of `days`, and a separate minimum for each tenant in
    /// `tenants`. A log belongs to many tenants, so no tenant's minimum may be shorter than the
    /// general one.
    ///
    /// # Errors
    /// [`RetentionError::InvalidRequest`] for a shorter minimum.
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

    /// Returns the minimum for records without a tenant.
    #[must_use]
    pub fn days(&self) -> u64 {
        self.default_days
    }

    /// Returns the minimum for a tenant.
    #[must_use]
    pub fn days_for(&self, tenant: &str) -> u64 {
        self.tenants.get(tenant).copied().unwrap_or(self.default_days)
    }

    /// Returns the longest minimum.
    #[must_use]
    pub fn max_days(&self) -> u64 {
        self.tenants.values().copied().fold(self.default_days, u64::max)
    }
}

/// Returns whether a time is at least this many days ago.
pub(crate) fn has_elapsed(days: u64, ts: u64, now: u64) -> bool {
    now.checked_sub(ts)
        .zip(days.checked_mul(DAY_MICROS))
        .is_some_and(|(age, minimum)| age >= minimum)
}

/// Returns the current time in unix microseconds: `now` plus the time since `begun`.
pub(crate) fn current_time(now: u64, begun: Option<Instant>) -> u64 {
    let since = begun.map_or(0, |begun| begun.elapsed().as_micros());
    now.saturating_add(u64::try_from(since).unwrap_or(u64::MAX))
}

/// Returns the time `days` days ago, in unix milliseconds.
pub(crate) fn days_ago_ms(days: u64, now: u64) -> u64 {
    now.saturating_sub(days.saturating_mul(DAY_MICROS)) / 1000
}
