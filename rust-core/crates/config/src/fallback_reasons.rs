//! Reasons for a fallback to another provider.

use serde::Deserialize;

/// A reason for a fallback to another provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum FallbackReason {
    /// No connection was made, or the request was not sent completely.
    Unreachable,
    /// 429.
    RateLimited,
    /// 408, 503 or 529.
    Overloaded,
    /// The request was sent completely, but no response started in time: the provider may have run
    /// and charged the request.
    Timeout,
    /// 500, 502 or 504, or the connection ended before a response: the provider may have run and
    /// charged the request.
    ServerError,
    /// 401 or 403: the provider does not accept the gateway's key.
    Unauthorized,
    /// The provider reports that the prompt is too long for its model.
    ContextLength,
}

/// A set of reasons.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FallbackReasons(u8);

impl FallbackReasons {
    pub fn has(self, reason: FallbackReason) -> bool {
        self.0 & (1 << reason as u8) != 0
    }

    /// Whether any of the reasons is determined from a provider's response.
    pub fn depend_on_response(self) -> bool {
        self.0 & !(1 << FallbackReason::Unreachable as u8 | 1 << FallbackReason::Timeout as u8) != 0
    }
}

impl FromIterator<FallbackReason> for FallbackReasons {
    fn from_iter<I: IntoIterator<Item = FallbackReason>>(reasons: I) -> Self {
        FallbackReasons(
            reasons
                .into_iter()
                .fold(0, |set, reason| set | (1 << reason as u8)),
        )
    }
}

impl<'de> Deserialize<'de> for FallbackReasons {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Vec::<FallbackReason>::deserialize(deserializer)?
            .into_iter()
            .collect())
    }
}

impl FallbackReason {
    /// Returns the reason for a status, except [`FallbackReason::ContextLength`], which no status
    /// determines.
    pub fn from_status(status: u16) -> Option<FallbackReason> {
        match status {
            401 | 403 => Some(FallbackReason::Unauthorized),
            408 | 503 | 529 => Some(FallbackReason::Overloaded),
            429 => Some(FallbackReason::RateLimited),
            500 | 502 | 504 => Some(FallbackReason::ServerError),
            _ => None,
        }
    }
}
