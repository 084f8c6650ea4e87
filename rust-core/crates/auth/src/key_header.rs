//! The header fields of a request that can contain a key.

use std::fmt;

/// A header field that can contain a key or a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyHeader {
    /// The key follows `Bearer` (RFC 6750 section 2.1): OpenAI's clients, and Anthropic's clients
    /// since 2026.
    Authorization,
    /// The field contains only the key: older Anthropic clients.
    XApiKey,
    /// The field contains only the key: Azure OpenAI clients.
    ApiKey,
    /// The field contains only the key: Google's clients.
    XGoogApiKey,
}

impl KeyHeader {
    /// Returns the expected form of the field's value.
    pub(crate) fn expected_format(self) -> &'static str {
        match self {
            KeyHeader::Authorization => "Bearer YOUR_KEY",
            _ => "YOUR_KEY",
        }
    }
}

/// Displays the field's name.
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
