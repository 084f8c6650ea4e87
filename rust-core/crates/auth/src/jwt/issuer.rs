use serde::Deserialize;

use super::SigningAlgorithm;
use crate::Error;

/// An issuer whose tokens are accepted, and what they must contain.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Issuer {
    /// The exact value of `iss`.
    pub issuer: String,
    /// Values of `aud`, one of which a token must have.
    pub audiences: Vec<String>,
    /// The algorithms that this issuer signs with.
    pub algorithms: Vec<SigningAlgorithm>,
    /// The claim that holds the tenant's name.
    pub tenant_claim: String,
    /// The tolerated clock difference, in seconds: added to `exp`, subtracted from `nbf`.
    pub leeway_seconds: u64,
}

impl Issuer {
    /// Checks that the settings are complete.
    ///
    /// # Errors
    /// [`Error::IncompleteIssuer`] if any setting is empty: an empty list must not mean "anything".
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
