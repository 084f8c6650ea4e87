//! Holds: records that must be retained regardless of any policy or request.

use serde::{Deserialize, Serialize};

/// The scope of a hold: records that match every given field. Without any field, it covers everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HoldScope {
    /// Records of exchanges and refusals of this tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Records of this exchange, by its request id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchange: Option<String>,
    /// Records from this time on, in unix microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<u64>,
    /// Records up to this time, in unix microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
}

impl HoldScope {
    /// Returns whether a record is in the scope: by its tenant and exchange, if it has any, and by its time.
    #[must_use]
    pub fn matches(&self, tenant: Option<&str>, exchange: Option<&str>, ts: u64) -> bool {
        self.matches_ignoring_time(tenant, exchange)
            && self.since.is_none_or(|since| ts >= since)
            && self.until.is_none_or(|until| ts <= until)
    }

    /// Returns whether a record with this tenant and exchange is in the scope at some time.
    pub(crate) fn matches_ignoring_time(&self, tenant: Option<&str>, exchange: Option<&str>) -> bool {
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
        };
        is(&self.tenant, tenant) && is(&self.exchange, exchange)
    }
}

/// The release of a hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HoldRelease {
    /// The time in unix microseconds.
    pub at: u64,
    /// Who released it; absent if an older version did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// The reason.
    pub reason: String,
    /// The ticket that requested it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<String>,
}

/// A hold. It stays in the list after its release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hold {
    /// Its number, from 1.
    pub id: u64,
    /// The name by which a plan refers to it, unique among active holds. Absent when no plan created it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its scope.
    pub scope: HoldScope,
    /// Who placed it; absent if an older version did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// The reason.
    pub reason: String,
    /// The case or ticket of the hold.
    #[serde(default, skip_serializing_if = "Option::is_none", alias = "reference")]
    pub ticket: Option<String>,
    /// When it was added, in unix microseconds.
    pub added: u64,
    /// Its release; absent while it is active.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub released: Option<HoldRelease>,
}

impl Hold {
    /// Returns whether it is active.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.released.is_none()
    }
}
