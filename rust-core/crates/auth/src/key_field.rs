//! Where a key can stand in a request.

use std::fmt;

/// A field of a request in which a key or a token can stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyField {
    /// Behind `Bearer` (RFC 6750 section 2.1): OpenAI's clients, and Anthropic's of 2026.
    Authorization,
    /// Alone: older clients of Anthropic.
    XApiKey,
    /// Alone: clients of Azure OpenAI.
    ApiKey,
    /// Alone: Google's clients.
    XGoogApiKey,
}

impl KeyField {
    /// How a value of it looks.
    pub(crate) fn form(self) -> &'static str {
        match self {
            KeyField::Authorization => "Bearer YOUR_KEY",
            _ => "YOUR_KEY",
        }
    }
}

/// Its name.
impl fmt::Display for KeyField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            KeyField::Authorization => "Authorization",
            KeyField::XApiKey => "x-api-key",
            KeyField::ApiKey => "api-key",
            KeyField::XGoogApiKey => "x-goog-api-key",
        })
    }
}
