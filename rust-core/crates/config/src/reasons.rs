//! What may send a request on to another provider.

use serde::Deserialize;

/// What may send a request on to another provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Reason {
    /// No connection was made, or it took not all of the request.
    Unreachable,
    /// 429.
    RateLimited,
    /// 408, 503 or 529.
    Overloaded,
    /// All of the request left, and no answer began in time: it may have been answered and paid for.
    Timeout,
    /// 500, 502 or 504, or an end instead of an answer: it may have been answered and paid for.
    ServerError,
    /// 401 or 403: the provider does not accept the gateway's key.
    Unauthorized,
    /// The provider says that the prompt is too long for its model.
    ContextLength,
}

/// A set of reasons.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reasons(u8);

impl Reasons {
    pub fn has(self, reason: Reason) -> bool {
        self.0 & (1 << reason as u8) != 0
    }

    /// Whether any of them is one that a provider gives in an answer.
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
    /// What a status says, apart from those that say the prompt is too long.
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
