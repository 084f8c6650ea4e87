//! Signatures of requests to Amazon Bedrock.

use std::cell::RefCell;

use proofgate_providers::sigv4::{BodyHash, Credentials, RequestHead, SigningKey};
use proofgate_providers::{CONTENT_TYPE, RequestTemplate, UpstreamBody};
use proofgate_wire::encode;

use crate::config::AwsCredentials;
use crate::memory::AT_ONCE;

/// The name that Bedrock's runtime is signed for.
const SERVICE: &str = "bedrock";

/// Signs each request to one provider. It holds secrets, so it has no `Debug`.
pub(crate) struct Signer {
    region: String,
    access_key_id: String,
    secret_access_key: String,
    session_token: Option<String>,
    /// Of the day on which it signed last.
    key: RefCell<Option<SigningKey>>,
}

impl Signer {
    /// Takes credentials into service.
    ///
    /// # Errors
    /// What is wrong with them; never a part of them.
    pub(crate) fn new(credentials: &AwsCredentials) -> Result<Self, String> {
        let AwsCredentials {
            region,
            access_key_id,
            secret_access_key,
            session_token,
        } = credentials;
        for (name, value) in [
            ("region", Some(region)),
            ("access key id", Some(access_key_id)),
            ("secret access key", Some(secret_access_key)),
            ("session token", session_token.as_ref()),
        ] {
            if value
                .is_some_and(|value| value.is_empty() || !value.bytes().all(|byte| byte.is_ascii_graphic()))
            {
                return Err(format!("its {name} is empty or holds a byte that none has"));
            }
        }
        Ok(Signer {
            region: region.clone(),
            access_key_id: access_key_id.clone(),
            secret_access_key: secret_access_key.clone(),
            session_token: session_token.clone(),
            key: RefCell::default(),
        })
    }

    /// Appends the header lines that sign a request to `template` whose path ends in `model`. `at`: Unix seconds.
    pub(crate) async fn sign(
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
        let credentials = Credentials {
            access_key_id: &self.access_key_id,
            secret_access_key: &self.secret_access_key,
            session_token: self.session_token.as_deref(),
        };
        let mut key = self.key.borrow_mut();
        let kept = key.take().filter(|key| key.is_for(at, &self.region, SERVICE));
        let key = key.insert(
            kept.unwrap_or_else(|| SigningKey::derive(&self.secret_access_key, at, &self.region, SERVICE)),
        );
        let signature = key.sign(&request, &credentials, at);
        for (name, value) in [
            ("authorization", Some(signature.authorization.as_str())),
            ("x-amz-date", Some(&signature.date)),
            ("x-amz-security-token", self.session_token.as_deref()),
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
