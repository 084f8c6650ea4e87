//! Signatures of requests to object stores, using AWS Signature Version 4.

use proofgate_providers::sigv4::{Credentials, RequestHead, SigningKey};
use pyo3::prelude::*;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(sign_s3, module)?)
}

/// Returns the headers that sign a request; see `_core.pyi`.
#[pyfunction]
#[expect(
    clippy::too_many_arguments,
    reason = "Python callers pass these arguments by keyword"
)]
#[expect(clippy::needless_pass_by_value, reason = "Python passes owned values")]
fn sign_s3(
    method: &str,
    path: &str,
    query: &str,
    host: &str,
    headers: Vec<(String, String)>,
    body_sha256: [u8; 32],
    credentials: (String, String, Option<String>),
    region: &str,
    unix_seconds: u64,
) -> Vec<(&'static str, String)> {
    let (id, secret, token) = &credentials;
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (&**name, &**value)).collect();
    let request = RequestHead {
        method,
        path,
        query,
        host,
        headers: &headers,
        body_sha256: &body_sha256,
        with_body_hash: true,
    };
    let credentials = Credentials {
        access_key_id: id,
        secret_access_key: secret,
        session_token: token.as_deref(),
    };
    let key = SigningKey::derive(secret, unix_seconds, region, "s3");
    let signature = key.sign(&request, &credentials, unix_seconds);
    let mut signed = vec![
        ("Authorization", signature.authorization),
        ("X-Amz-Date", signature.date),
    ];
    let hash = signature.content_sha256.into_iter();
    signed.extend(hash.map(|hash| ("X-Amz-Content-Sha256", hash)));
    signed.extend(token.iter().map(|token| ("X-Amz-Security-Token", token.clone())));
    signed
}
