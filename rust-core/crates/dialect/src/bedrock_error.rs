//! Errors of Amazon Bedrock, for all its operations.

use serde::Deserialize;
use serde_json::value::RawValue;

/// The kind of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BedrockError {
    /// The request is not valid.
    Invalid,
    /// The request was refused for another reason.
    Refused,
    /// There is no such model.
    UnknownModel,
    /// Too many requests.
    Throttled,
    /// The model is not ready yet.
    NotReady,
    /// The account's quota is used up.
    Quota,
    /// The model took too long.
    ModelTimeout,
    /// The model could not be run, or its output could not be read.
    ModelError,
    /// The service is unavailable.
    Unavailable,
    /// The gateway's credentials were refused. The provider's message names accounts and roles, and quotes the signed
    /// request with its session token.
    Denied,
    /// Any other error.
    Other,
}

impl BedrockError {
    /// Classifies an error by its name, from the header `x-amzn-errortype` or from an exception of a stream; by the
    /// status if the name is not conclusive.
    ///
    /// A name may have a namespace before it and an address after it:
    /// `com.amazon.coral#ThrottlingException:http://…`. Source of the names: botocore 1.44.5, errors of the
    /// operations Converse and InvokeModel; for credentials: "Common errors" of AWS APIs.
    pub fn from_name(name: &str, status: u16) -> Self {
        let name = name.split(':').next().unwrap_or_default();
        let name = name.rsplit('#').next().unwrap_or_default();
        let name = name
            .strip_suffix("Exception")
            .unwrap_or(name)
            .to_ascii_lowercase();
        match (name.as_str(), status) {
            ("validation", _) => BedrockError::Invalid,
            ("resourcenotfound", _) => BedrockError::UnknownModel,
            ("throttling" | "toomanyrequests", _) => BedrockError::Throttled,
            ("modelnotready", _) => BedrockError::NotReady,
            ("servicequotaexceeded", _) => BedrockError::Quota,
            ("modeltimeout", _) => BedrockError::ModelTimeout,
            ("modelerror" | "modelstreamerror", _) => BedrockError::ModelError,
            ("internalserver", _) => BedrockError::Other,
            ("serviceunavailable", _) => BedrockError::Unavailable,
            (
                "accessdenied"
                | "expiredtoken"
                | "incompletesignature"
                | "invalidclienttokenid"
                | "invalidsignature"
                | "missingauthenticationtoken"
                | "notauthorized"
                | "optinrequired"
                | "requestexpired"
                | "signaturedoesnotmatch"
                | "unrecognizedclient",
                _,
            )
            | (_, 401 | 403) => BedrockError::Denied,
            (_, 404) => BedrockError::UnknownModel,
            (_, 429) => BedrockError::Throttled,
            (_, 503) => BedrockError::Unavailable,
            (_, 400 | 405..=407 | 409..=423) => BedrockError::Refused,
            _ => BedrockError::Other,
        }
    }

    /// Returns the message to use if the provider sends none that may be forwarded.
    pub fn default_message(self) -> &'static str {
        match self {
            BedrockError::Invalid => "The provider refused the request as invalid.",
            BedrockError::Refused => "The provider refused the request.",
            BedrockError::UnknownModel => "The provider does not know the model.",
            BedrockError::Throttled => "The provider's rate limit is exceeded.",
            BedrockError::NotReady => "The provider's model is not ready.",
            BedrockError::Quota => "The quota at the provider is exceeded.",
            BedrockError::ModelTimeout => "The provider's model took too long.",
            BedrockError::ModelError => "The provider's model failed to answer.",
            BedrockError::Unavailable => "The provider is unavailable.",
            BedrockError::Denied => "The provider denied access to the gateway.",
            BedrockError::Other => "The provider failed.",
        }
    }
}

/// The body of an error, or the payload of an exception.
#[derive(Default, Deserialize)]
pub struct ErrorBody<'b> {
    #[serde(borrow, alias = "Message")]
    message: Option<&'b RawValue>,
    #[serde(borrow, rename = "__type")]
    name: Option<&'b RawValue>,
}

impl<'b> ErrorBody<'b> {
    /// Parses a body; an invalid body gives an empty result.
    pub fn parse(body: &'b [u8]) -> Self {
        serde_json::from_slice(body).unwrap_or_default()
    }

    /// Returns the error's name in the body, for errors without a header.
    pub fn name(&self) -> Option<&'b str> {
        unquoted(self.name?)
    }

    /// Returns the provider's message for `error`, as a JSON string, if it may be forwarded to the client.
    pub fn client_message(&self, error: BedrockError) -> Option<&'b str> {
        let message = self.message?;
        let says = unquoted(message).is_some_and(|text| !text.is_empty());
        (says && error != BedrockError::Denied).then_some(message.get())
    }
}

/// Returns the part of a JSON string between its quotes.
fn unquoted(value: &RawValue) -> Option<&str> {
    value.get().strip_prefix('"')?.strip_suffix('"')
}
