use std::sync::Arc;

use rustls::client::verify_server_name;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};

use rustls::client::danger::HandshakeSignatureValid;

/// Verifies client certificates by name, because an authority may issue certificates to others as well.
#[derive(Debug)]
pub(super) struct ClientNameVerifier {
    inner: Arc<dyn ClientCertVerifier>,
    names: Vec<ServerName<'static>>,
}

impl ClientNameVerifier {
    /// Accepts certificates that `issued` accepts and that have one of `names` (RFC 6125 section 6.4).
    ///
    /// # Errors
    /// The first name that is not valid.
    pub(super) fn new(issued: Arc<dyn ClientCertVerifier>, names: &[String]) -> Result<Self, String> {
        let names = names
            .iter()
            .map(|name| ServerName::try_from(name.clone()).map_err(|_| name.clone()))
            .collect::<Result<_, _>>()?;
        Ok(ClientNameVerifier { inner: issued, names })
    }
}

impl ClientCertVerifier for ClientNameVerifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.inner.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = self.inner.verify_client_cert(end_entity, intermediates, now)?;
        let certificate = ParsedCertificate::try_from(end_entity)?;
        if self
            .names
            .iter()
            .any(|name| verify_server_name(&certificate, name).is_ok())
        {
            return Ok(verified);
        }
        Err(CertificateError::NotValidForName.into())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}
