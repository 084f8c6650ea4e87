use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proofgate_base::descriptors::UpstreamSockets;
use proofgate_providers::BaseUrl;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{LocalSet, yield_now};
use tokio_rustls::TlsAcceptor;

use super::super::maybe_tls_stream::Socket;
use super::super::{Egress, Pool, Route, TlsTrust};
use super::*;

const CERTIFICATE: &str = include_str!("../../../dataplane/tests/downstream/certificates/upstream.crt");
const KEY: &str = include_str!("../../../dataplane/tests/downstream/certificates/upstream.key");

fn acceptor() -> TlsAcceptor {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(CERTIFICATE.as_bytes()).unwrap()],
            PrivateKeyDer::from_pem_slice(KEY.as_bytes()).unwrap(),
        );
    let mut config = config.unwrap();
    // Without tickets, only the data that the tests wait for arrives.
    config.send_tls13_tickets = 0;
    TlsAcceptor::from(Arc::new(config))
}

/// The data that an upstream sends after the requested response.
#[derive(Clone, Copy, PartialEq)]
enum Behind {
    Nothing,
    MoreBytes,
    Leave,
}

/// Whether a connection can be reused after the response and the data behind it arrived together,
/// and exactly the response was read.
async fn can_serve_again(behind: Behind) -> bool {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/v1", listener.local_addr().unwrap());
    let route = Route::new(
        BaseUrl::parse(&url).unwrap(),
        TlsTrust {
            ca_pem: Some(CERTIFICATE.into()),
            ..TlsTrust::default()
        },
        proofgate_config::HttpVersion::Http1,
        Duration::from_secs(20),
        Egress::default(),
        None,
    );
    let pool = Pool::new(route.unwrap(), &Rc::default());
    let serve = async {
        let (tcp, _) = listener.accept().await.unwrap();
        let mut stream = acceptor().accept(tcp).await.unwrap();
        stream.read_exact(&mut [0]).await.unwrap();
        stream
    };
    let ask = async {
        let mut stream = pool.connect("upstream").await.unwrap();
        stream.write_all(b"?").await.unwrap();
        stream.flush().await.unwrap();
        stream
    };
    let (mut server, mut client) = tokio::join!(serve, ask);
    let (wire, session) = server.get_mut();
    use std::io::Write as _;
    session.writer().write_all(b"answer").unwrap();
    match behind {
        Behind::Nothing => {}
        Behind::MoreBytes => session.writer().write_all(b"surplus").unwrap(),
        Behind::Leave => session.send_close_notify(),
    }
    let mut encrypted = Vec::new();
    while session.wants_write() {
        session.write_tls(&mut encrypted).unwrap();
    }
    wire.write_all(&encrypted).await.unwrap();
    let mut arrived = vec![0; encrypted.len()];
    while wire_of(&mut client).tcp().peek(&mut arrived).await.unwrap() < encrypted.len() {
        yield_now().await;
    }
    let mut answer = [0; 6];
    wire_of(&mut client).read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"answer");
    client.can_be_reused()
}

fn wire_of(stream: &mut UpstreamStream) -> &mut MaybeTlsStream {
    match &mut stream.transport {
        Transport::Http1(wire) => wire,
        Transport::Http2(_) => panic!("nobody asked for HTTP/2"),
    }
}

#[tokio::test]
async fn a_connection_with_decrypted_bytes_that_nobody_asked_for_serves_no_more() {
    let tests = async {
        assert!(can_serve_again(Behind::Nothing).await);
        assert!(!can_serve_again(Behind::MoreBytes).await);
    };
    LocalSet::new().run_until(tests).await;
}

#[tokio::test]
async fn a_connection_whose_upstream_has_taken_its_leave_serves_no_more() {
    LocalSet::new()
        .run_until(async { assert!(!can_serve_again(Behind::Leave).await) })
        .await;
}

#[tokio::test]
async fn a_connection_whose_request_did_not_leave_whole_serves_no_more() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let tcp = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let descriptor = Rc::new(UpstreamSockets::default()).acquire().unwrap();
    let mut stream = UpstreamStream::http1(MaybeTlsStream::Plain(Socket::new(tcp, descriptor)));
    assert!(stream.can_be_reused());
    stream.forbid_reuse();
    assert!(!stream.can_be_reused());
}

#[tokio::test]
async fn of_many_connections_that_serve_no_more_none_is_taken_for_one_that_does() {
    let test = async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let route = Route::new(
            BaseUrl::parse(&url).unwrap(),
            TlsTrust::default(),
            proofgate_config::HttpVersion::Http1,
            Duration::from_secs(20),
            Egress::default(),
            None,
        );
        let (pool, mut open) = (Pool::new(route.unwrap(), &Rc::default()), Vec::new());
        for number in 0..200 {
            let (stream, accepted) = tokio::join!(pool.connect("upstream"), listener.accept());
            let (mut stream, mut peer) = (stream.unwrap(), accepted.unwrap().0);
            if number % 2 == 0 {
                drop(peer);
            } else {
                peer.write_all(b"?").await.unwrap();
                open.push(peer);
            }
            wire_of(&mut stream).tcp().peek(&mut [0]).await.unwrap();
            pool.put_back(stream);
        }
        // Yielding restores the task's cooperative budget.
        yield_now().await;
        assert!(pool.take_idle().is_none());
    };
    LocalSet::new().run_until(test).await;
}

#[tokio::test]
async fn an_idle_connection_is_kept_as_long_as_its_provider_is_configured_to() {
    let test = async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let route = |keep_alive| {
            let route = Route::new(
                BaseUrl::parse(&url).unwrap(),
                TlsTrust::default(),
                proofgate_config::HttpVersion::Http1,
                Duration::from_secs(20),
                Egress::default(),
                None,
            );
            route.unwrap().with_keep_alive(keep_alive)
        };
        let second = Duration::from_secs(1);
        for (keep_alive, seconds) in [(None, 30), (Some(5 * second), 5), (Some(240 * second), 240)] {
            let pool = Pool::new(route(keep_alive), &Rc::default());
            let (stream, _peer) = tokio::join!(pool.connect("upstream"), listener.accept());
            let begin = Instant::now();
            pool.close_expired(begin);
            pool.put_back(stream.unwrap());
            pool.close_expired(begin + (seconds - 1) * second);
            assert_eq!(pool.idle_count(), 1, "{keep_alive:?}");
            pool.close_expired(begin + seconds * second);
            assert_eq!(pool.idle_count(), 0, "{keep_alive:?}");
        }
        // A reload changes the timeout for open connections.
        let pool = Rc::new(Pool::new(route(None), &Rc::default()));
        let (stream, _peer) = tokio::join!(pool.connect("upstream"), listener.accept());
        pool.put_back(stream.unwrap());
        let pool = Pool::reuse_or_new(Some(&pool), route(Some(5 * second)), &Rc::default());
        assert_eq!(pool.idle_count(), 1);
        pool.close_expired(Instant::now() + 6 * second);
        assert_eq!(pool.idle_count(), 0);
    };
    LocalSet::new().run_until(test).await;
}
