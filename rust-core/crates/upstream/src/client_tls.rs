//! TLS for client connections.

mod client_names;

use std::sync::Arc;

use proofgate_base::Error;
use proofgate_config::Tls;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig};

use self::client_names::ClientNameVerifier;

/// The name of HTTP/2 in a TLS handshake (RFC 7301).
pub const ALPN_HTTP2: &[u8] = b"h2";

/// The TLS settings of client connections.
#[derive(Clone)]
pub struct ClientTls {
    pub config: Arc<ServerConfig>,
    /// Whether connections without TLS are served as well.
    pub accept_plain: bool,
}

/// Prepares TLS for client connections.
///
/// # Errors
/// [`Error::Config`] if a certificate, the key or a name cannot be used; the key is not quoted.
pub fn prepare(config: &Tls) -> Result<ClientTls, Error> {
    let certificates = certificates(&config.certificate_pem)
        .map_err(|()| config_error("the certificate file is not PEM"))?;
    let key = PrivateKeyDer::from_pem_slice(config.private_key_pem.as_bytes())
        .map_err(|_| config_error("the key file contains no private key in PEM"))?;
    let versions: &[_] = match config.min_version.as_str() {
        "1.2" => &[&TLS13, &TLS12],
        "1.3" => &[&TLS13],
        _ => return Err(config_error("min_version must be 1.2 or 1.3")),
    };
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(versions)
        .map_err(|error| config_error(&error.to_string()))?;
    let builder = match &config.client_ca_pem {
        None => builder.with_no_client_auth(),
        Some(pem) => builder.with_client_cert_verifier(client_verifier(pem, &config.client_names, provider)?),
    };
    let mut server = builder
        .with_single_cert(certificates, key)
        .map_err(|error| config_error(&error.to_string()))?;
    server.alpn_protocols = vec![ALPN_HTTP2.to_vec(), b"http/1.1".to_vec()];
    Ok(ClientTls {
        config: Arc::new(server),
        accept_plain: config.accept_plain,
    })
}

/// Returns the verifier of client certificates. An authority in `pem` must have issued them, and
/// they must contain one of `names` unless `names` is empty.
fn client_verifier(
    pem: &str,
    names: &[String],
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, Error> {
    let mut roots = RootCertStore::empty();
    let authorities = certificates(pem).map_err(|()| config_error("the client CA file is not PEM"))?;
    for authority in authorities {
        roots
            .add(authority)
            .map_err(|error| config_error(&format!("a client CA certificate: {error}")))?;
    }
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|error| config_error(&format!("client CA certificates: {error}")))?;
    if names.is_empty() {
        return Ok(verifier);
    }
    let named = ClientNameVerifier::new(verifier, names)
        .map_err(|name| config_error(&format!("{name:?} is not a valid client name")))?;
    Ok(Arc::new(named))
}

fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, ()> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    found.map_err(|_| ())
}

fn config_error(what: &str) -> Error {
    Error::Config(format!("tls: {what}"))
}
