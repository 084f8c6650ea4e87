use serde::Deserialize;

use super::SigningAlgorithm;
use crate::Error;

/// An issuer whose tokens are accepted, with the required contents of its tokens.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Issuer {
    /// The exact value of `iss`.
    pub issuer: String,
    /// Accepted values of `aud`; a token must contain one of them.
    pub audiences: Vec<String>,
    /// The algorithms with which this issuer signs.
    pub algorithms: Vec<SigningAlgorithm>,
    /// The claim that contains the tenant's name.
    pub tenant_claim: String,
    /// The tolerated clock difference, in seconds: added to `exp`, subtracted from `nbf`.
    pub leeway_seconds: u64,
}

impl Issuer {
    /// Checks that the settings are complete.
    ///
    /// # Errors
    /// [`Error::IncompleteIssuer`] if a setting is empty: an empty list must not mean "anything".
    pub(super) fn check(&self) -> Result<(), Error> {
        let parts = [
            (self.issuer.is_empty(), "name"),
            (self.audiences.is_empty(), "audience"),
            (self.algorithms.is_empty(), "algorithm"),
            (self.tenant_claim.is_empty(), "tenant claim"),
        ];
        match parts.into_iter().find(|(empty, _)| *empty) {
            None => Ok(()),
            Some((_, missing)) => Err(Error::IncompleteIssuer {
                issuer: self.issuer.clone(),
                missing,
            }),
        }
    }
}
