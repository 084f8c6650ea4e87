//! Mutual TLS: the gateway serves only clients with the load balancer's certificate.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::client::tcp;
use crate::gateway::{ACME, FIRST, Gateway, PATIENCE, SECOND, certificate};

macro_rules! pem {
    ($name:literal) => {
        [
            include_str!(concat!("certificates/", $name, ".crt")),
            include_str!(concat!("certificates/", $name, ".key")),
        ]
    };
}

const AUTHORITY: &str = include_str!("certificates/authority.crt");
const NEXT_AUTHORITY: &str = include_str!("certificates/next-authority.crt");
const BALANCER: [&str; 2] = pem!("balancer");
const NEXT_BALANCER: [&str; 2] = pem!("next-balancer");
/// A certificate of the same CA for another name.
const SOMEBODY: [&str; 2] = pem!("somebody");
/// A certificate of the same CA and for the same name, but only for servers.
const SERVER_ONLY: [&str; 2] = pem!("server-only");

/// The header that a load balancer sends first: PROXY v2 with an unspecified family and a unique
/// id.
const PROXY_HEADER: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x21\x00\x00\x0b\x05\x00\x08key:acme";
const REQUEST: &str = "GET /v1/models HTTP/1.1\r\nHost: gateway.test\r\nAuthorization: Bearer ";

fn mutual(shown: [&str; 2], authorities: &str) -> Value {
    let mut tls = certificate(shown);
    tls["clientCaPem"] = authorities.into();
    tls["clientNames"] = json!(["balancer.test"]);
    tls
}

async fn gateway(change: impl FnOnce(&mut Value)) -> Gateway {
    Gateway::with(|config| {
        config["proxyProtocol"] = json!({"routingKey": "key"});
        config["tls"] = mutual(FIRST, AUTHORITY);
        change(config);
    })
    .await
}

/// Returns the status of one request; `None` if the connection ends without a response.
async fn status(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> Option<String> {
    let request = format!("{REQUEST}{ACME}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = [0; 12];
    timeout(PATIENCE, stream.read_exact(&mut answer))
        .await
        .unwrap()
        .ok()?;
    Some(String::from_utf8_lossy(&answer[9..]).into_owned())
}

async fn over_tls(gateway: &Gateway, trusted: &str, shown: Option<[&str; 2]>) -> Option<String> {
    over(rustls::ALL_VERSIONS, gateway, trusted, shown).await
}

async fn over(
    versions: &[&'static SupportedProtocolVersion],
    gateway: &Gateway,
    trusted: &str,
    shown: Option<[&str; 2]>,
) -> Option<String> {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(trusted.as_bytes()).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match shown {
        None => config.with_no_client_auth(),
        Some([chain, key]) => config
            .with_client_auth_cert(
                vec![CertificateDer::from_pem_slice(chain.as_bytes()).unwrap()],
                PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
            )
            .unwrap(),
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let mut tcp = tcp(gateway).await;
    tcp.write_all(PROXY_HEADER).await.unwrap();
    let name = ServerName::try_from("gateway.test").unwrap();
    let stream = TlsConnector::from(Arc::new(config)).connect(name, tcp).await;
    status(stream.ok()?).await
}

async fn in_clear(gateway: &Gateway) -> Option<String> {
    let mut tcp = tcp(gateway).await;
    tcp.write_all(PROXY_HEADER).await.unwrap();
    status(tcp).await.filter(|status| status.starts_with('2'))
}

#[tokio::test]
async fn the_load_balancer_is_served() {
    let gateway = gateway(|_| ()).await;
    for version in [&TLS12, &TLS13] {
        let answered = over(&[version], &gateway, FIRST[0], Some(BALANCER)).await;
        assert_eq!(answered.as_deref(), Some("200"));
    }
}

#[tokio::test]
async fn nobody_else_is_served() {
    let gateway = gateway(|_| ()).await;
    for version in [&TLS12, &TLS13] {
        for shown in [None, Some(SOMEBODY), Some(SERVER_ONLY), Some(NEXT_BALANCER)] {
            assert_eq!(over(&[version], &gateway, FIRST[0], shown).await, None);
        }
    }
    assert_eq!(gateway.metric(r#"proofgate_requests_total{status="200"}"#), 0);
}

#[tokio::test]
async fn a_connection_in_clear_is_refused_even_with_the_routing_key() {
    let gateway = gateway(|_| ()).await;
    assert_eq!(in_clear(&gateway).await, None);
}

#[tokio::test]
async fn connections_in_clear_are_served_beside_others_only_while_the_configuration_says_so() {
    let gateway = gateway(|config| config["tls"]["acceptPlain"] = true.into()).await;
    assert_eq!(in_clear(&gateway).await.as_deref(), Some("200"));
    let answered = over_tls(&gateway, FIRST[0], Some(BALANCER)).await;
    assert_eq!(answered.as_deref(), Some("200"));
    assert_eq!(over_tls(&gateway, FIRST[0], None).await, None);

    gateway.reload(|config| config["tls"]["acceptPlain"] = false.into());

    assert_eq!(in_clear(&gateway).await, None);
}

#[tokio::test]
async fn certificate_and_authorities_are_replaced_while_the_gateway_serves() {
    let gateway = gateway(|_| ()).await;
    let both = format!("{AUTHORITY}{NEXT_AUTHORITY}");
    gateway.reload(|config| config["tls"] = mutual(SECOND, &both));
    for shown in [BALANCER, NEXT_BALANCER] {
        let answered = over_tls(&gateway, SECOND[0], Some(shown)).await;
        assert_eq!(answered.as_deref(), Some("200"));
    }
    gateway.reload(|config| config["tls"] = mutual(SECOND, NEXT_AUTHORITY));
    assert_eq!(over_tls(&gateway, SECOND[0], Some(BALANCER)).await, None);
    let answered = over_tls(&gateway, SECOND[0], Some(NEXT_BALANCER)).await;
    assert_eq!(answered.as_deref(), Some("200"));
}

#[tokio::test]
async fn authorities_that_cannot_be_read_are_refused_and_the_ones_before_stay() {
    let gateway = gateway(|_| ()).await;
    for authorities in [
        "",
        "no certificate",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    ] {
        let refused = gateway.try_reload(|config| config["tls"] = mutual(FIRST, authorities));
        assert!(refused.unwrap_err().to_string().contains("client"));
    }
    let nameless = gateway.try_reload(|config| config["tls"]["clientNames"] = json!(["not a name"]));
    assert!(nameless.is_err());
    let answered = over_tls(&gateway, FIRST[0], Some(BALANCER)).await;
    assert_eq!(answered.as_deref(), Some("200"));
}
