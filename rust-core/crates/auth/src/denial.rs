/// Why a well-formed request is not served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Denial {
    /// There is no `Authorization` header.
    #[error("You didn't provide an API key. Send it as \"Authorization: Bearer YOUR_KEY\".")]
    MissingKey,
    /// The `Authorization` header is not `Bearer` and one token.
    #[error("The Authorization header is not of the form \"Bearer YOUR_KEY\".")]
    MalformedKey,
    /// No tenant owns this key.
    #[error("Incorrect API key provided.")]
    UnknownKey,
}

impl Denial {
    /// The HTTP status that answers it.
    pub fn status(self) -> u16 {
        401
    }

    /// A stable machine code, as OpenAI's clients know it.
    pub fn code(self) -> &'static str {
        match self {
            Denial::MissingKey => "missing_api_key",
            Denial::MalformedKey => "malformed_api_key",
            Denial::UnknownKey => "invalid_api_key",
        }
    }
}
