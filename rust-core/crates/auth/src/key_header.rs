//! The fields of a request that can hold a key.

use std::fmt;

/// A field of a request that can hold a key or a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyHeader {
    /// After `Bearer` (RFC 6750 section 2.1): OpenAI's clients, and Anthropic's since 2026.
    Authorization,
    /// The key alone: older Anthropic clients.
    XApiKey,
    /// The key alone: Azure OpenAI clients.
    ApiKey,
    /// The key alone: Google's clients.
    XGoogApiKey,
}

impl KeyHeader {
    /// Returns the expected form of its value.
    pub(crate) fn expected_format(self) -> &'static str {
        match self {
            KeyHeader::Authorization => "Bearer YOUR_KEY",
            _ => "YOUR_KEY",
        }
    }
}

/// Shows its name.
impl fmt::Display for KeyHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            KeyHeader::Authorization => "Authorization",
            KeyHeader::XApiKey => "x-api-key",
            KeyHeader::ApiKey => "api-key",
            KeyHeader::XGoogApiKey => "x-goog-api-key",
        })
    }
}
