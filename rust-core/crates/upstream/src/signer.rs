//! Signatures of requests to Amazon Bedrock.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use proofgate_base::memory::AT_ONCE;
use proofgate_config::{Aws, AwsKeys};
use proofgate_providers::sigv4::{BodyHash, Credentials, RequestHead, SigningKey};
use proofgate_providers::{CONTENT_TYPE, RequestTemplate, UpstreamBody};
use proofgate_wire::encode;

/// The name that Bedrock's runtime is signed for.
const SERVICE: &str = "bedrock";

/// Whose signature requests carry, and until when it is accepted. It holds secrets, so it has no `Debug`.
pub struct Keys {
    access_key_id: String,
    secret_access_key: String,
    session_token: Option<String>,
    /// `None` for keys that have no end.
    until: Option<Instant>,
    /// Of the day on which they signed last.
    derived: Option<SigningKey>,
}

impl Keys {
    /// Keys of a configuration, which have no end.
    ///
    /// # Errors
    /// What is wrong with them; never a part of them.
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
            require_graphic(name, value.map(String::as_str))?;
        }
        Ok(Keys {
            access_key_id: access_key_id.clone(),
            secret_access_key: secret_access_key.clone(),
            session_token: session_token.clone(),
            until: None,
            derived: None,
        })
    }

    /// The same keys, as long as they are valid: `lifetime` from now on; `None` for an end in no time that there is.
    pub fn for_the_next(self, lifetime: Duration) -> Option<Self> {
        let until = Some(Instant::now().checked_add(lifetime)?);
        Some(Keys { until, ..self })
    }
}

fn require_graphic(name: &str, value: Option<&str>) -> Result<(), String> {
    match value {
        Some(value) if value.is_empty() || !value.bytes().all(|byte| byte.is_ascii_graphic()) => {
            Err(format!("its {name} is empty or contains an invalid character"))
        }
        _ => Ok(()),
    }
}

/// What a configuration says of signatures to one provider.
pub struct SignerPlan {
    region: String,
    /// `None` where keys are issued while the worker runs.
    keys: Option<Keys>,
}

impl SignerPlan {
    /// Checks a configuration.
    ///
    /// # Errors
    /// What is wrong with it; never a part of a key.
    pub fn new(aws: Aws<'_>) -> Result<Self, String> {
        require_graphic("region", Some(aws.region))?;
        Ok(SignerPlan {
            region: aws.region.to_owned(),
            keys: aws.keys.map(Keys::new).transpose()?,
        })
    }
}

/// Signs each request to one provider. It holds secrets, so it has no `Debug`.
pub struct Signer {
    region: String,
    /// Of which there may be none yet. A reload shares those that were issued.
    keys: Rc<RefCell<Option<Keys>>>,
    is_issued: bool,
}

impl Signer {
    /// Takes a plan into service, with the keys that were issued before to the signer that it replaces.
    pub fn follow(plan: SignerPlan, before: Option<&Signer>) -> Self {
        let SignerPlan { region, keys } = plan;
        let is_issued = keys.is_none();
        let known = before.filter(|before| is_issued && before.is_issued);
        Signer {
            region,
            keys: known.map_or_else(|| Rc::new(RefCell::new(keys)), |known| Rc::clone(&known.keys)),
            is_issued,
        }
    }

    /// Replaces the keys; whether it takes any that are issued.
    pub fn set(&self, keys: Keys) -> bool {
        if self.is_issued {
            *self.keys.borrow_mut() = Some(keys);
        }
        self.is_issued
    }

    /// Whether there are keys that are valid at `now`.
    pub(crate) fn is_valid(&self, now: Instant) -> bool {
        let keys = self.keys.borrow();
        keys.as_ref()
            .is_some_and(|keys| keys.until.is_none_or(|until| now < until))
    }

    /// Appends the header lines that sign a request to `template` whose path ends in `model`. `at`: Unix seconds.
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
        // Nothing is sent while there are none; those that ended meanwhile are refused by the provider.
        let Some(keys) = keys.as_mut() else { return };
        let credentials = Credentials {
            access_key_id: &keys.access_key_id,
            secret_access_key: &keys.secret_access_key,
            session_token: keys.session_token.as_deref(),
        };
        let kept = keys
            .derived
            .take()
            .filter(|key| key.is_for(at, &self.region, SERVICE));
        let key = keys.derived.insert(
            kept.unwrap_or_else(|| SigningKey::derive(&keys.secret_access_key, at, &self.region, SERVICE)),
        );
        let signature = key.sign(&request, &credentials, at);
        for (name, value) in [
            ("authorization", Some(signature.authorization.as_str())),
            ("x-amz-date", Some(&signature.date)),
            ("x-amz-security-token", keys.session_token.as_deref()),
        ] {
            if let Some(value) = value {
                // Every part was looked at when it was taken into service.
                let _ = encode::write_header(fields, name, value.as_bytes());
            }
        }
    }
}

/// The digest of a body as it is sent. Between the pieces of a long one everybody else is served.
async fn sha256(body: &UpstreamBody<'_>) -> [u8; 32] {
    let mut digest = BodyHash::default();
    let is_long = body.length() > AT_ONCE;
    for part in body.parts() {
        for piece in part.chunks(AT_ONCE) {
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

    fn issued(id: &str, lifetime: Duration) -> Keys {
        let keys = AwsKeys {
            access_key_id: id.to_owned(),
            secret_access_key: "secret".to_owned(),
            session_token: Some("session".to_owned()),
        };
        Keys::new(&keys).unwrap().for_the_next(lifetime).unwrap()
    }

    fn plan(keys: Option<Keys>) -> SignerPlan {
        SignerPlan {
            region: "eu-west-1".to_owned(),
            keys,
        }
    }

    #[test]
    fn issued_keys_are_valid_until_their_end_and_survive_a_reload() {
        let (now, hour) = (Instant::now(), Duration::from_secs(3600));
        let signer = Signer::follow(plan(None), None);
        assert!(!signer.is_valid(now));
        assert!(signer.set(issued("AKIDONE", hour)));
        assert!(signer.is_valid(now + hour - Duration::from_secs(1)));
        assert!(!signer.is_valid(now + hour + Duration::from_secs(60)));
        let next = Signer::follow(plan(None), Some(&signer));
        assert!(next.is_valid(now));
        assert!(next.set(issued("AKIDTWO", hour * 2)));
        assert!(next.is_valid(now + hour + Duration::from_secs(60)));
    }

    #[test]
    fn keys_of_a_configuration_have_no_end_and_take_the_place_of_issued_ones() {
        let (now, year) = (Instant::now(), Duration::from_secs(31_536_000));
        let before = Signer::follow(plan(None), None);
        before.set(issued("AKIDONE", Duration::ZERO));
        let keys = AwsKeys {
            access_key_id: "AKIDTWO".to_owned(),
            secret_access_key: "secret".to_owned(),
            session_token: None,
        };
        let signer = Signer::follow(plan(Some(Keys::new(&keys).unwrap())), Some(&before));
        assert!(signer.is_valid(now + year));
        assert!(!signer.set(issued("AKIDTHREE", Duration::ZERO)));
        assert!(signer.is_valid(now + year));
        assert!(!Signer::follow(plan(None), Some(&signer)).is_valid(now));
    }
}
