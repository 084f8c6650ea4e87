//! TLS to providers.

use std::sync::Arc;

use proofgate_config::HttpVersion;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

use super::http2;

/// The certificates that the worker trusts, and its own certificate. The struct contains a key, so
/// it has no `Debug`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct TlsTrust {
    /// Certificates to trust instead of the system's roots; `None` for the system's roots.
    pub ca_pem: Option<String>,
    /// The client certificate for providers that request one.
    pub client_certificate_pem: Option<String>,
    /// The private key of the client certificate.
    pub client_key_pem: Option<String>,
}

/// The TLS settings of connections to one provider.
pub(super) struct Tls {
    pub(super) connector: TlsConnector,
    pub(super) server_name: ServerName<'static>,
}

impl Tls {
    /// Prepares TLS to `host`, offering the protocols that `http` allows.
    ///
    /// # Errors
    /// A description of the part of `trust`, or of the host's name, that cannot be used.
    pub(super) fn new(host: &str, trust: &TlsTrust, http: HttpVersion) -> Result<Self, String> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots(trust.ca_pem.as_deref())?);
        let mut config = match (&trust.client_certificate_pem, &trust.client_key_pem) {
            (Some(certificate), Some(key)) => {
                let chain: Result<Vec<_>, _> =
                    CertificateDer::pem_slice_iter(certificate.as_bytes()).collect();
                let chain = chain.map_err(|error| format!("clientCertificateFile: {error}"))?;
                // The parser's message is not used, because it may describe the key.
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes())
                    .map_err(|_| "clientKeyFile contains no PEM private key")?;
                let config = config.with_client_auth_cert(chain, key);
                config.map_err(|error| format!("clientCertificateFile: {error}"))?
            }
            (None, None) => config.with_no_client_auth(),
            _ => return Err("a client certificate and its key must both be set".into()),
        };
        let (http1, http2) = (b"http/1.1".to_vec(), http2::ALPN.to_vec());
        config.alpn_protocols = match http {
            HttpVersion::Http1 => vec![http1],
            HttpVersion::Auto => vec![http2, http1],
            HttpVersion::Http2 => vec![http2],
        };
        let server_name = ServerName::try_from(host.to_owned())
            .map_err(|_| format!("{host:?} is not a valid host name for TLS"))?;
        Ok(Tls {
            connector: TlsConnector::from(Arc::new(config)),
            server_name,
        })
    }
}

/// Returns the certificates of `ca_pem`, or the system's roots if it is `None`.
fn roots(ca_pem: Option<&str>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    match ca_pem {
        Some(pem) => {
            for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
                let certificate = certificate.map_err(|error| format!("caFile: {error}"))?;
                roots
                    .add(certificate)
                    .map_err(|error| format!("caFile: {error}"))?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    if roots.is_empty() {
        return Err("no certificate authority is trusted: install ca-certificates or set caFile".into());
    }
    Ok(roots)
}
