//! Holds: what must stay, whatever a policy or a request says.

use serde::{Deserialize, Serialize};

/// What a hold is about: records that are all of what is given. One that gives nothing is about everything.
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
    /// Whether a record is one of these: of that tenant and that exchange, if it is of any, and of that time.
    #[must_use]
    pub fn matches(&self, tenant: Option<&str>, exchange: Option<&str>, ts: u64) -> bool {
        self.matches_ignoring_time(tenant, exchange)
            && self.since.is_none_or(|since| ts >= since)
            && self.until.is_none_or(|until| ts <= until)
    }

    /// Whether a record of that tenant and that exchange is one of these at some time.
    pub(crate) fn matches_ignoring_time(&self, tenant: Option<&str>, exchange: Option<&str>) -> bool {
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
        };
        is(&self.tenant, tenant) && is(&self.exchange, exchange)
    }
}

/// That a hold is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HoldRelease {
    /// When, in unix microseconds.
    pub at: u64,
    /// Who released it; absent where an older version did not ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// Why.
    pub reason: String,
    /// The ticket that asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<String>,
}

/// One hold. It stays in the list when it is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hold {
    /// Its number, from 1.
    pub id: u64,
    /// The name by which a plan knows it; no other that holds has it. Absent of one that no plan made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it is about.
    pub scope: HoldScope,
    /// Who placed it; absent where an older version did not ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// Why.
    pub reason: String,
    /// The case or ticket that it is for.
    #[serde(default, skip_serializing_if = "Option::is_none", alias = "reference")]
    pub ticket: Option<String>,
    /// When it was added, in unix microseconds.
    pub added: u64,
    /// That it is over; absent while it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub released: Option<HoldRelease>,
}

impl Hold {
    /// Whether it holds.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.released.is_none()
    }
}
