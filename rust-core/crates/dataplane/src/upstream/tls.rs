//! TLS to providers.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

pub(super) struct Tls {
    pub(super) connector: TlsConnector,
    pub(super) server_name: ServerName<'static>,
}

/// Prepares TLS to `host`, trusting the system's roots or those of `ca_pem` alone.
pub(super) fn tls(host: &str, ca_pem: Option<&str>) -> Result<Tls, String> {
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
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let server_name =
        ServerName::try_from(host.to_owned()).map_err(|_| format!("{host:?} is no host name for TLS"))?;
    Ok(Tls {
        connector: TlsConnector::from(Arc::new(config)),
        server_name,
    })
}
