use crate::KeyField;

/// Why a well-formed request is not served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum AuthError {
    /// There is none of the fields that can hold a key.
    #[error(
        "You didn't provide an API key. Send it as \"Authorization: Bearer YOUR_KEY\", or by itself in x-api-key, api-key or x-goog-api-key."
    )]
    MissingKey,
    /// The field does not hold one key or token of bearable length, behind `Bearer` where it is Authorization.
    #[error("The {0} header is not of the form \"{form}\".", form = .0.form())]
    MalformedKey(KeyField),
    /// The two fields hold different keys.
    #[error("The headers {0} and {1} contain different API keys. Send one key.")]
    AmbiguousKey(KeyField, KeyField),
    /// No tenant owns this key.
    #[error("Incorrect API key provided.")]
    UnknownKey,
    /// The key was its tenant's and has ended.
    #[error("The API key provided has expired. Use a newer one.")]
    ExpiredKey,
    /// The token is not three parts of base64url, its header is not a JSON object, or it has a critical extension.
    #[error("The token provided is not a well-formed signed JWT.")]
    MalformedToken,
    /// The token's algorithm is not one that its issuer and its key are configured for.
    #[error("The token provided is signed with an algorithm that is not accepted.")]
    UnsupportedAlgorithm,
    /// The token's `iss` is not configured.
    #[error("The token provided is from an issuer that is not known here.")]
    UnknownIssuer,
    /// The issuer's key set has no key, or no unambiguous one, for the token.
    #[error(
        "The token provided is signed with a key that is not known here. Try again later or get a new token."
    )]
    UnknownSigningKey,
    /// The signature is not of the key that the token names.
    #[error("The signature of the token provided is wrong.")]
    InvalidSignature,
    /// `iss`, `aud`, `exp` or `nbf` is missing where it must be, repeated, or of the wrong type.
    #[error("The token provided lacks a required claim, or a claim is malformed.")]
    InvalidClaims,
    /// The token is for somebody else.
    #[error("The token provided is not for this service: it has a different audience.")]
    WrongAudience,
    /// The token's `exp` is past.
    #[error("The token provided has expired. Get a new one.")]
    ExpiredToken,
    /// The token's `nbf` is to come.
    #[error("The token provided is not valid yet.")]
    TokenNotYetValid,
    /// The token is genuine and names no tenant of this gateway.
    #[error("The token provided does not belong to a tenant of this service.")]
    UnknownTenant,
    /// The tenant's plan is not in the configuration, so nobody can say what it may use.
    #[error(
        "The tenant of this credential has a plan that is not known here. Ask the gateway administrator."
    )]
    UnknownPlan,
    /// The tenant's allow-list of endpoints leaves this one out.
    #[error("You are not allowed to use this endpoint.")]
    EndpointNotAllowed,
}

impl AuthError {
    /// The HTTP status that answers it: 400 when the request asks twice, 403 when it is known who asks, 401 otherwise.
    /// Without a plan, nobody is known.
    pub fn status(self) -> u16 {
        match self {
            AuthError::AmbiguousKey(..) => 400,
            AuthError::UnknownTenant | AuthError::EndpointNotAllowed => 403,
            _ => 401,
        }
    }

    /// A stable machine code, where OpenAI has one the same.
    pub fn code(self) -> &'static str {
        match self {
            AuthError::MissingKey => "missing_api_key",
            AuthError::MalformedKey(_) => "malformed_api_key",
            AuthError::AmbiguousKey(..) => "ambiguous_api_key",
            AuthError::UnknownKey => "invalid_api_key",
            AuthError::ExpiredKey => "expired_api_key",
            AuthError::MalformedToken => "malformed_token",
            AuthError::UnsupportedAlgorithm => "unsupported_token_algorithm",
            AuthError::UnknownIssuer => "unknown_token_issuer",
            AuthError::UnknownSigningKey => "unknown_signing_key",
            AuthError::InvalidSignature => "invalid_token_signature",
            AuthError::InvalidClaims => "invalid_token_claims",
            AuthError::WrongAudience => "wrong_token_audience",
            AuthError::ExpiredToken => "expired_token",
            AuthError::TokenNotYetValid => "token_not_yet_valid",
            AuthError::UnknownTenant => "unknown_tenant",
            AuthError::UnknownPlan => "plan_unknown",
            AuthError::EndpointNotAllowed => "endpoint_not_allowed",
        }
    }

    /// The value of the answer's `www-authenticate` field (RFC 6750 section 3). A request without credentials gets no
    /// error code, as section 3.1 asks.
    pub fn www_authenticate(self) -> &'static str {
        match self {
            AuthError::MissingKey => r#"Bearer realm="proofgate""#,
            AuthError::MalformedKey(_) | AuthError::AmbiguousKey(..) => {
                r#"Bearer realm="proofgate", error="invalid_request""#
            }
            AuthError::UnknownTenant | AuthError::EndpointNotAllowed => {
                r#"Bearer realm="proofgate", error="insufficient_scope""#
            }
            _ => r#"Bearer realm="proofgate", error="invalid_token""#,
        }
    }
}
