//! Signatures of requests to Amazon Bedrock.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use proofgate_base::memory::SLICE_BYTES;
use proofgate_config::{Aws, AwsKeys};
use proofgate_providers::sigv4::{BodyHash, Credentials, RequestHead, SigningKey};
use proofgate_providers::{CONTENT_TYPE, RequestTemplate, UpstreamBody};
use proofgate_wire::encode;

/// The service name in signatures for Bedrock's runtime.
const SERVICE: &str = "bedrock";

/// The credentials that sign requests, and their expiry. They are secret, so they have no `Debug`.
pub struct SigningCredentials {
    access_key_id: String,
    secret_access_key: String,
    session_token: Option<String>,
    /// `None` for keys that do not expire.
    expires_at: Option<Instant>,
    /// The signing key that was derived for the day of the last signature.
    daily_key: Option<SigningKey>,
}

impl SigningCredentials {
    /// Creates credentials from the keys of a configuration, which do not expire.
    ///
    /// # Errors
    /// A description of the mistake; never a part of a key.
    pub fn new(keys: &AwsKeys) -> Result<Self, String> {
        let AwsKeys {
            access_key_id,
            secret_access_key,
            session_token,
        } = keys;
        for (name, value) in [
            ("access key id", Some(access_key_id)),
            ("secret access key", Some(secret_access_key)),
            ("session token", session_token.as_ref()),
        ] {
            require_ascii_graphic(name, value.map(String::as_str))?;
        }
        Ok(SigningCredentials {
            access_key_id: access_key_id.clone(),
            secret_access_key: secret_access_key.clone(),
            session_token: session_token.clone(),
            expires_at: None,
            daily_key: None,
        })
    }

    /// Returns the same keys with an expiry `lifetime` from now; `None` if the expiry does not fit an `Instant`.
    pub fn with_lifetime(self, lifetime: Duration) -> Option<Self> {
        let until = Some(Instant::now().checked_add(lifetime)?);
        Some(SigningCredentials {
            expires_at: until,
            ..self
        })
    }
}

fn require_ascii_graphic(name: &str, value: Option<&str>) -> Result<(), String> {
    match value {
        Some(value) if value.is_empty() || !value.bytes().all(|byte| byte.is_ascii_graphic()) => {
            Err(format!("its {name} is empty or contains an invalid character"))
        }
        _ => Ok(()),
    }
}

/// The configuration of signatures for one provider.
pub struct SignerPlan {
    region: String,
    /// The configured keys; `None` if keys are issued while the worker runs.
    keys: Option<SigningCredentials>,
}

impl SignerPlan {
    /// Checks a configuration.
    ///
    /// # Errors
    /// A description of the mistake; never a part of a key.
    pub fn new(aws: Aws<'_>) -> Result<Self, String> {
        require_ascii_graphic("region", Some(aws.region))?;
        Ok(SignerPlan {
            region: aws.region.to_owned(),
            keys: aws.keys.map(SigningCredentials::new).transpose()?,
        })
    }
}

/// Signs each request to one provider. It holds secrets, so it has no `Debug`.
pub struct Signer {
    region: String,
    /// The keys; `None` until keys are issued. A reload keeps issued keys.
    keys: Rc<RefCell<Option<SigningCredentials>>>,
    has_issued_keys: bool,
}

impl Signer {
    /// Puts a plan into service, with the keys that were issued to the signer that it replaces.
    pub fn from_plan(plan: SignerPlan, before: Option<&Signer>) -> Self {
        let SignerPlan { region, keys } = plan;
        let is_issued = keys.is_none();
        let known = before.filter(|before| is_issued && before.has_issued_keys);
        Signer {
            region,
            keys: known.map_or_else(|| Rc::new(RefCell::new(keys)), |known| Rc::clone(&known.keys)),
            has_issued_keys: is_issued,
        }
    }

    /// Replaces the keys; returns false if the signer does not use issued keys.
    pub fn set_keys(&self, keys: SigningCredentials) -> bool {
        if self.has_issued_keys {
            *self.keys.borrow_mut() = Some(keys);
        }
        self.has_issued_keys
    }

    /// Whether there are keys that are valid at `now`.
    pub(crate) fn is_valid(&self, now: Instant) -> bool {
        let keys = self.keys.borrow();
        keys.as_ref()
            .is_some_and(|keys| keys.expires_at.is_none_or(|until| now < until))
    }

    /// Appends the header lines that sign a request for `template` whose path ends in `model`. `at`: Unix seconds.
    pub async fn sign(
        &self,
        template: &RequestTemplate,
        model: &str,
        body: &UpstreamBody<'_>,
        at: u64,
        fields: &mut Vec<u8>,
    ) {
        let body_sha256 = sha256(body).await;
        let path = template.path(model);
        let request = RequestHead {
            method: "POST",
            path: &path,
            query: "",
            host: template.host(),
            headers: &[("content-type", CONTENT_TYPE)],
            body_sha256: &body_sha256,
            with_body_hash: false,
        };
        let mut keys = self.keys.borrow_mut();
        // No request is sent while there are no keys. If the keys have expired since the check, the
        // provider refuses the request.
        let Some(keys) = keys.as_mut() else { return };
        let credentials = Credentials {
            access_key_id: &keys.access_key_id,
            secret_access_key: &keys.secret_access_key,
            session_token: keys.session_token.as_deref(),
        };
        let kept = keys
            .daily_key
            .take()
            .filter(|key| key.is_valid_for(at, &self.region, SERVICE));
        let key = keys.daily_key.insert(
            kept.unwrap_or_else(|| SigningKey::derive(&keys.secret_access_key, at, &self.region, SERVICE)),
        );
        let signature = key.sign(&request, &credentials, at);
        for (name, value) in [
            ("authorization", Some(signature.authorization.as_str())),
            ("x-amz-date", Some(&signature.date)),
            ("x-amz-security-token", keys.session_token.as_deref()),
        ] {
            if let Some(value) = value {
                // All parts were checked when the keys were put into service.
                let _ = encode::write_header(fields, name, value.as_bytes());
            }
        }
    }
}

/// Returns the digest of a body as it is sent. Yields to other tasks between the pieces of a long body.
async fn sha256(body: &UpstreamBody<'_>) -> [u8; 32] {
    let mut digest = BodyHash::default();
    let is_long = body.length() > SLICE_BYTES;
    for part in body.parts() {
        for piece in part.chunks(SLICE_BYTES) {
            digest.update(piece);
            if is_long {
                tokio::task::yield_now().await;
            }
        }
    }
    digest.finish()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn issued(id: &str, lifetime: Duration) -> SigningCredentials {
        let keys = AwsKeys {
            access_key_id: id.to_owned(),
            secret_access_key: "secret".to_owned(),
            session_token: Some("session".to_owned()),
        };
        SigningCredentials::new(&keys)
            .unwrap()
            .with_lifetime(lifetime)
            .unwrap()
    }

    fn plan(keys: Option<SigningCredentials>) -> SignerPlan {
        SignerPlan {
            region: "eu-west-1".to_owned(),
            keys,
        }
    }

    #[test]
    fn issued_keys_are_valid_until_their_end_and_survive_a_reload() {
        let (now, hour) = (Instant::now(), Duration::from_secs(3600));
        let signer = Signer::from_plan(plan(None), None);
        assert!(!signer.is_valid(now));
        assert!(signer.set_keys(issued("AKIDONE", hour)));
        assert!(signer.is_valid(now + hour - Duration::from_secs(1)));
        assert!(!signer.is_valid(now + hour + Duration::from_secs(60)));
        let next = Signer::from_plan(plan(None), Some(&signer));
        assert!(next.is_valid(now));
        assert!(next.set_keys(issued("AKIDTWO", hour * 2)));
        assert!(next.is_valid(now + hour + Duration::from_secs(60)));
    }

    #[test]
    fn keys_of_a_configuration_have_no_end_and_take_the_place_of_issued_ones() {
        let (now, year) = (Instant::now(), Duration::from_secs(31_536_000));
        let before = Signer::from_plan(plan(None), None);
        before.set_keys(issued("AKIDONE", Duration::ZERO));
        let keys = AwsKeys {
            access_key_id: "AKIDTWO".to_owned(),
            secret_access_key: "secret".to_owned(),
            session_token: None,
        };
        let signer = Signer::from_plan(plan(Some(SigningCredentials::new(&keys).unwrap())), Some(&before));
        assert!(signer.is_valid(now + year));
        assert!(!signer.set_keys(issued("AKIDTHREE", Duration::ZERO)));
        assert!(signer.is_valid(now + year));
        assert!(!Signer::from_plan(plan(None), Some(&signer)).is_valid(now));
    }
}
