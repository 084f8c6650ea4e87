//! The header fields in which clients send their keys.

use std::fmt;

/// The values of the header fields in which a client can send its key, as received. Each field
/// occurs at most once. The values are not checked to be keys.
#[derive(Clone, Copy, Default)]
pub struct ApiKeyHeaders<'b> {
    /// The value of Authorization (RFC 9110 section 11.6.2).
    pub authorization: Option<&'b [u8]>,
    /// The value of X-Api-Key, which older Anthropic clients send.
    pub x_api_key: Option<&'b [u8]>,
    /// The value of Api-Key, which Azure OpenAI clients send.
    pub api_key: Option<&'b [u8]>,
    /// The value of X-Goog-Api-Key, which Google's clients send.
    pub x_goog_api_key: Option<&'b [u8]>,
}

impl fmt::Debug for ApiKeyHeaders<'_> {
    /// Shows only which fields are present, because their values are secrets.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("KeyFields")
            .field("authorization", &self.authorization.is_some())
            .field("x_api_key", &self.x_api_key.is_some())
            .field("api_key", &self.api_key.is_some())
            .field("x_goog_api_key", &self.x_goog_api_key.is_some())
            .finish()
    }
}
