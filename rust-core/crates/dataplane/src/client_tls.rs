//! TLS towards clients.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::{TLS12, TLS13};

use crate::Error;
use crate::config::Tls;

/// The name of HTTP/2 in a TLS handshake (RFC 7301).
pub(crate) const HTTP2: &[u8] = b"h2";

/// Prepares TLS towards clients.
///
/// # Errors
/// [`Error::Config`] when the certificate or the key cannot be used; neither is quoted.
pub(crate) fn prepare(config: &Tls) -> Result<Arc<ServerConfig>, Error> {
    let refuse = |what: &str| Error::Config(format!("tls: {what}"));
    let certificates = CertificateDer::pem_slice_iter(config.certificate_pem.as_bytes());
    let certificates: Vec<_> = certificates
        .collect::<Result<_, _>>()
        .map_err(|_| refuse("the certificate file is not PEM"))?;
    let key = PrivateKeyDer::from_pem_slice(config.private_key_pem.as_bytes())
        .map_err(|_| refuse("the key file holds no private key in PEM"))?;
    let versions: &[_] = match config.min_version.as_str() {
        "1.2" => &[&TLS13, &TLS12],
        "1.3" => &[&TLS13],
        _ => return Err(refuse("min_version is 1.2 or 1.3")),
    };
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut server = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .map_err(|error| refuse(&error.to_string()))?
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .map_err(|error| refuse(&error.to_string()))?;
    server.alpn_protocols = vec![HTTP2.to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(server))
}
