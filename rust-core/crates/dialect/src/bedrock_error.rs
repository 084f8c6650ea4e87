//! What Amazon Bedrock says of a failure, whichever of its operations says it.

use serde::Deserialize;
use serde_json::value::RawValue;

/// What failed.
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
    /// The model could not be run, or its output not be read.
    ModelError,
    /// The service is unavailable.
    Unavailable,
    /// The gateway's credentials do not do. What the provider says of that names accounts and roles, and quotes the signed
    /// request with its session token.
    Denied,
    /// Anything else.
    Other,
}

impl BedrockError {
    /// Reads its name, as the field `x-amzn-errortype` or an exception of a stream gives it; the status tells what it is
    /// where the name does not.
    ///
    /// Names may stand behind a namespace and before an address: `com.amazon.coral#ThrottlingException:http://…`. Source of the
    /// names: botocore 1.44.5, errors of the operations Converse and InvokeModel; of those on credentials: "Common errors" of
    /// AWS APIs.
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

    /// What is said where the provider says nothing that may be passed on.
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

/// An error's body, or the payload of an exception.
#[derive(Default, Deserialize)]
pub struct ErrorBody<'b> {
    #[serde(borrow, alias = "Message")]
    message: Option<&'b RawValue>,
    #[serde(borrow, rename = "__type")]
    name: Option<&'b RawValue>,
}

impl<'b> ErrorBody<'b> {
    /// Of a body that cannot be read, nothing.
    pub fn parse(body: &'b [u8]) -> Self {
        serde_json::from_slice(body).unwrap_or_default()
    }

    /// How it names itself, where no header does.
    pub fn name(&self) -> Option<&'b str> {
        inside_quotes(self.name?)
    }

    /// The provider's own words on `error`, a string as JSON, if they are for the client.
    pub fn client_message(&self, error: BedrockError) -> Option<&'b str> {
        let message = self.message?;
        let says = inside_quotes(message).is_some_and(|text| !text.is_empty());
        (says && error != BedrockError::Denied).then_some(message.get())
    }
}

/// What stands between the quotes of a JSON string.
fn inside_quotes(value: &RawValue) -> Option<&str> {
    value.get().strip_prefix('"')?.strip_suffix('"')
}
