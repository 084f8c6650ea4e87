//! The fields in which clients send their keys.

use std::fmt;

/// The values of the fields in which a client can send its key, as received; each field is there at most once. Whether
/// one holds a key is not looked at.
#[derive(Clone, Copy, Default)]
pub struct ApiKeyHeaders<'b> {
    /// Of Authorization (RFC 9110 section 11.6.2).
    pub authorization: Option<&'b [u8]>,
    /// Of X-Api-Key, which older Anthropic clients send.
    pub x_api_key: Option<&'b [u8]>,
    /// Of Api-Key, which Azure OpenAI clients send.
    pub api_key: Option<&'b [u8]>,
    /// Of X-Goog-Api-Key, which Google's clients send.
    pub x_goog_api_key: Option<&'b [u8]>,
}

impl fmt::Debug for ApiKeyHeaders<'_> {
    /// Says which are there: values are secrets.
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
