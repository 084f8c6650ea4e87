//! Reasons for a fallback to another provider.

use serde::Deserialize;

/// A reason for a fallback to another provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Reason {
    /// No connection was made, or the request was not sent completely.
    Unreachable,
    /// 429.
    RateLimited,
    /// 408, 503 or 529.
    Overloaded,
    /// The request was sent completely, and no response started in time: it may have run and been charged.
    Timeout,
    /// 500, 502 or 504, or the connection ended before a response: it may have run and been charged.
    ServerError,
    /// 401 or 403: the provider does not accept the gateway's key.
    Unauthorized,
    /// The provider reports that the prompt is too long for its model.
    ContextLength,
}

/// A set of reasons.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reasons(u8);

impl Reasons {
    pub fn has(self, reason: Reason) -> bool {
        self.0 & (1 << reason as u8) != 0
    }

    /// Whether any of them is determined from a provider's response.
    pub fn may_be_answered(self) -> bool {
        self.0 & !(1 << Reason::Unreachable as u8 | 1 << Reason::Timeout as u8) != 0
    }
}

impl FromIterator<Reason> for Reasons {
    fn from_iter<I: IntoIterator<Item = Reason>>(reasons: I) -> Self {
        Reasons(
            reasons
                .into_iter()
                .fold(0, |set, reason| set | (1 << reason as u8)),
        )
    }
}

impl<'de> Deserialize<'de> for Reasons {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Vec::<Reason>::deserialize(deserializer)?.into_iter().collect())
    }
}

impl Reason {
    /// Returns the reason for a status, apart from too long prompts.
    pub fn of_status(status: u16) -> Option<Reason> {
        match status {
            401 | 403 => Some(Reason::Unauthorized),
            408 | 503 | 529 => Some(Reason::Overloaded),
            429 => Some(Reason::RateLimited),
            500 | 502 | 504 => Some(Reason::ServerError),
            _ => None,
        }
    }
}
