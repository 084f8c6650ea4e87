use std::rc::Rc;
use std::time::Duration;

use proofgate_config::RateLimits;
use proofgate_providers::{BaseUrl, BodyFieldOverrides, Dialect, Family, RequestTemplate};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{LocalSet, coop};
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::upstream::{Egress, Pool, Route, TlsTrust};

const LIMITS: Limits = Limits {
    head_bytes: MAX_EARLY_BYTES,
    target_bytes: 8192,
    headers: 64,
    body_bytes: 1 << 20,
};

/// A connection and its peer.
async fn connected() -> (UpstreamStream, TcpStream) {
    let (upstream, listener) = upstream().await;
    let (connection, accepted) = tokio::join!(upstream.pool.connect("upstream"), listener.accept());
    (connection.unwrap(), accepted.unwrap().0)
}

/// An upstream without a connection, and its listener.
async fn upstream() -> (Upstream, TcpListener) {
    upstream_over("http", TlsTrust::default()).await
}

async fn upstream_over(scheme: &str, trust: TlsTrust) -> (Upstream, TcpListener) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("{scheme}://{}/v1", listener.local_addr().unwrap());
    let base = BaseUrl::parse(&url).unwrap();
    let upstream = Upstream {
        name: "upstream".into(),
        family: Family::OpenAi,
        templates: vec![(Dialect::Chat, RequestTemplate::new(&base, Dialect::Chat, None))],
        signer: None,
        token: None,
        path_style: crate::path_style::PathStyle::Dialect(proofgate_config::ArnInPath::Encoded),
        betas: None,
        untranslatable_fields: proofgate_translate::UntranslatableFieldPolicy::Refuse,
        is_key_missing: false,
        stream_usage: proofgate_config::StreamUsage::Leave,
        max_concurrency: None,
        min_idle: 0,
        rate: RateLimits::default(),
        first_byte_timeout: Duration::MAX,
        idle_timeout: Duration::MAX,
        secrets: Vec::new(),
        body_field_overrides: BodyFieldOverrides::default(),
        pool: Rc::new(Pool::new(
            Route::new(
                base,
                trust,
                proofgate_config::HttpVersion::Http1,
                Duration::from_secs(20),
                Egress::default(),
                None,
            )
            .unwrap(),
            &Rc::default(),
        )),
    };
    (upstream, listener)
}

/// Returns the result of sending `body` on a connection, whether the upstream may have acted on it,
/// and the early response.
async fn sent(upstream: &mut UpstreamStream, body: &[u8]) -> (SendProgress, ExecutionState, Vec<u8>) {
    let (mut executed, mut early) = (ExecutionState::NotExecuted, Vec::new());
    let message = Message {
        parts: [&b"head "[..], body],
    };
    let lent = Cell::default();
    let sending = send(upstream, message, &LIMITS, &mut executed, &lent, &mut early).await;
    (sending, executed, early)
}

/// A body larger than two socket buffers.
fn long() -> Vec<u8> {
    vec![b'x'; 32 << 20]
}

async fn locally(test: impl Future<Output = ()>) {
    LocalSet::new().run_until(test).await;
}

#[tokio::test]
async fn a_request_that_has_left_may_have_been_acted_on() {
    locally(async {
        let (mut upstream, mut peer) = connected().await;
        let (sending, executed, _) = sent(&mut upstream, b"body").await;
        assert_eq!(
            (sending, executed),
            (SendProgress::Complete, ExecutionState::MaybeExecuted)
        );
        let mut arrived = [0; 9];
        peer.read_exact(&mut arrived).await.unwrap();
        assert_eq!(&arrived, b"head body");
    })
    .await;
}

#[tokio::test]
async fn a_connection_that_takes_nothing_has_begun_nothing() {
    locally(async {
        let (mut upstream, _peer) = connected().await;
        upstream.shutdown().await.unwrap();
        let (sending, executed, _) = sent(&mut upstream, b"body").await;
        assert_eq!(
            (sending, executed),
            (SendProgress::NotStarted, ExecutionState::NotExecuted)
        );
    })
    .await;
}

#[tokio::test]
async fn what_tls_was_given_and_no_connection_took_has_begun_nothing() {
    let certificate = include_str!("../../dataplane/tests/downstream/certificates/upstream.crt");
    let key = include_str!("../../dataplane/tests/downstream/certificates/upstream.key");
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let server = ServerConfig::builder_with_provider(provider.into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()],
            PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
        );
    let acceptor = TlsAcceptor::from(std::sync::Arc::new(server.unwrap()));
    locally(async {
        let trust = TlsTrust {
            ca_pem: Some(certificate.into()),
            ..TlsTrust::default()
        };
        let (upstream, listener) = upstream_over("https", trust).await;
        let (connection, peer) = tokio::join!(upstream.pool.connect("upstream"), async {
            acceptor.accept(listener.accept().await.unwrap().0).await.unwrap()
        });
        let mut connection = connection.unwrap();
        peer.get_ref().0.set_zero_linger().unwrap();
        drop(peer);
        // The first poll writes nothing to the socket, as if it were full.
        while coop::has_budget_remaining() {
            coop::consume_budget().await;
        }
        let (sending, executed, _) = sent(&mut connection, b"body").await;
        assert_eq!(
            (sending, executed),
            (SendProgress::NotStarted, ExecutionState::NotExecuted)
        );
    })
    .await;
}

#[tokio::test]
async fn a_request_of_which_a_used_connection_took_nothing_goes_over_a_new_one() {
    locally(async {
        let (upstream, listener) = upstream().await;
        let (used, _peer) = tokio::join!(upstream.pool.connect("upstream"), listener.accept());
        let mut used = used.ok().unwrap();
        used.shutdown().await.unwrap();
        upstream.pool.put_back(used);
        let (mut executed, mut span, mut early) = (ExecutionState::NotExecuted, Span::default(), Vec::new());
        let (message, lent) = ([&b"head "[..], b"body"], Cell::default());
        let (delivered, accepted) = tokio::join!(
            deliver(
                &upstream,
                (message, PrefixLengths::default()),
                LIMITS,
                &mut executed,
                &mut span,
                &lent,
                &mut early
            ),
            listener.accept()
        );
        assert!(delivered.is_ok());
        assert_eq!(executed, ExecutionState::MaybeExecuted);
        let mut arrived = [0; 9];
        accepted.unwrap().0.read_exact(&mut arrived).await.unwrap();
        assert_eq!(&arrived, b"head body");
        assert!(upstream.pool.take_idle().is_none());
    })
    .await;
}

#[tokio::test]
async fn a_request_of_which_a_new_connection_took_something_is_not_sent_again() {
    locally(async {
        let (upstream, listener) = upstream().await;
        let (mut executed, mut span, mut early) = (ExecutionState::NotExecuted, Span::default(), Vec::new());
        let (body, lent) = (long(), Cell::default());
        let message = [&b"head "[..], &body];
        let (delivered, ()) = tokio::join!(
            deliver(
                &upstream,
                (message, PrefixLengths::default()),
                LIMITS,
                &mut executed,
                &mut span,
                &lent,
                &mut early
            ),
            async { drop(listener.accept().await.unwrap()) }
        );
        assert!(delivered.is_ok_and(|mut connection| !connection.can_be_reused()));
        assert_eq!(executed, ExecutionState::NotExecuted);
        let again = tokio::time::timeout(Duration::from_millis(1), listener.accept());
        assert!(again.await.is_err());
    })
    .await;
}

#[tokio::test]
async fn an_upstream_that_goes_away_amid_a_request_has_not_acted_on_it() {
    locally(async {
        let (mut upstream, peer) = connected().await;
        let away = tokio::task::spawn_local(async move {
            peer.readable().await.unwrap();
            drop(peer);
        });
        let (sending, executed, early) = sent(&mut upstream, &long()).await;
        assert_eq!(
            (sending, executed),
            (SendProgress::Interrupted, ExecutionState::NotExecuted)
        );
        assert!(early.is_empty());
        away.await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn an_answer_amid_a_request_ends_its_sending_unless_it_may_need_the_rest() {
    locally(async {
        for (answer, stops) in [
            (
                "HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n",
                true,
            ),
            ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 429 Too Many\r\n\r\n", true),
            ("HTTP/1.1 100 Continue\r\n\r\n", false),
            ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false),
            ("no HTTP\r\n\r\n", true),
        ] {
            let (mut upstream, mut peer) = connected().await;
            let (told, heard) = tokio::sync::oneshot::channel::<()>();
            let reads = tokio::task::spawn_local(async move {
                peer.write_all(answer.as_bytes()).await.unwrap();
                if stops {
                    // The peer reads nothing; the sending ends nevertheless.
                    let _ = heard.await;
                } else {
                    tokio::io::copy(&mut peer.take(5 + (32 << 20)), &mut tokio::io::sink())
                        .await
                        .unwrap();
                }
            });
            let (sending, executed, early) = sent(&mut upstream, &long()).await;
            let expected = match stops {
                true => (SendProgress::Interrupted, ExecutionState::NotExecuted),
                false => (SendProgress::Complete, ExecutionState::MaybeExecuted),
            };
            assert_eq!((sending, executed), expected, "{answer}");
            if stops {
                assert_eq!(early, answer.as_bytes());
            }
            drop(told);
            reads.await.unwrap();
        }
    })
    .await;
}
