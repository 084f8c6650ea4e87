use std::time::Duration;

use h2::server;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::task::{LocalSet, yield_now};
use tokio::time::{sleep, timeout};

use super::*;

const HEAD: &[u8] = b"POST /v1 HTTP/1.1\r\nHost: provider.test\r\nContent-Length: 0\r\n\r\n";

async fn locally(test: impl Future<Output = ()>) {
    LocalSet::new().run_until(test).await;
}

/// Plays a provider that allows `streams` streams and replies to PING but to no request. It runs as
/// long as its connection.
async fn quiet(connection: DuplexStream, streams: u32) {
    let mut settings = server::Builder::new();
    settings.max_concurrent_streams(streams);
    let mut connection = settings.handshake::<_, Bytes>(connection).await.unwrap();
    let mut taken = Vec::new();
    while let Some(Ok(stream)) = connection.accept().await {
        taken.push(stream);
    }
}

/// Opens a session with a provider that allows `streams` streams.
async fn begin(sessions: &Sessions, streams: u32) -> io::Result<Http2Stream> {
    let (near, far) = duplex(1 << 16);
    spawn_local(quiet(far, streams));
    let session = sessions.establish(near, true).await?;
    let stream = session.open_stream();
    sessions.insert(session);
    Ok(stream)
}

/// Returns the outcome of the response to a request that was sent on a stream.
async fn answer(stream: &mut Http2Stream) -> io::Result<usize> {
    let mut buffer = Vec::new();
    poll_fn(|context| stream.poll_fill(context, &mut buffer, 1024)).await
}

#[tokio::test(start_paused = true)]
async fn a_session_that_gives_no_sign_of_life_ends_and_one_that_does_goes_on() {
    locally(async {
        let sessions = Sessions::new(1);
        let (near, mut far) = duplex(1 << 16);
        // Empty SETTINGS are a valid start of a session.
        far.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).await.unwrap();
        let dead = sessions.establish(near, true).await.unwrap();
        let mut stream = dead.open_stream();
        stream.send_head(HEAD).unwrap();
        let ended = timeout(PING_INTERVAL * 3, answer(&mut stream)).await;
        assert!(ended.expect("it waits for ever").is_err());
        assert!(!stream.is_unprocessed());

        let mut stream = begin(&sessions, 10).await.unwrap();
        stream.send_head(HEAD).unwrap();
        assert!(timeout(PING_INTERVAL * 30, answer(&mut stream)).await.is_err());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_session_that_carries_nothing_is_asked_for_nothing_and_expires() {
    locally(async {
        let sessions = Sessions::new(1);
        let (near, mut far) = duplex(1 << 16);
        far.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).await.unwrap();
        let session = sessions.establish(near, true).await.unwrap();
        sessions.insert(session);
        sleep(PING_INTERVAL * 30).await;
        assert_eq!(sessions.count(), 1);
        let (now, limit) = (Instant::now(), Duration::from_secs(30));
        sessions.close_expired(now, limit);
        assert_eq!(sessions.count(), 1);
        sessions.close_expired(now + limit, limit);
        assert_eq!(sessions.count(), 0);
        let mut said = Vec::new();
        far.read_to_end(&mut said).await.unwrap();
        let goodbye = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert!(said.ends_with(&goodbye), "GOAWAY without an error");
    })
    .await;
}

#[tokio::test]
async fn a_session_is_closed_at_once_to_make_room_unless_it_carries_something() {
    locally(async {
        let sessions = Sessions::new(2);
        let (near, mut far) = duplex(1 << 16);
        far.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).await.unwrap();
        let session = sessions.establish(near, true).await.unwrap();
        sessions.insert(session);
        let used = begin(&sessions, 1).await.unwrap();
        let also_used = sessions.acquire_stream().expect("one of them is idle");
        assert!(!sessions.close_idlest(), "both carry something");
        assert_eq!(sessions.count(), 2);
        drop(also_used);
        assert!(sessions.close_idlest());
        assert!(!sessions.close_idlest());
        assert_eq!(sessions.count(), 1);
        let mut said = Vec::new();
        far.read_to_end(&mut said).await.unwrap();
        let goodbye = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert!(said.ends_with(&goodbye), "GOAWAY without an error");
        drop(used);
        assert!(sessions.close_idlest());
    })
    .await;
}

#[tokio::test]
async fn requests_that_come_together_wait_for_one_session_to_be_made() {
    locally(async {
        let sessions = Rc::new(Sessions::new(10));
        let made = Rc::new(Cell::new(0));
        let request = || {
            let (sessions, made) = (Rc::clone(&sessions), Rc::clone(&made));
            spawn_local(async move {
                let make = async || {
                    made.set(made.get() + 1);
                    begin(&sessions, 100).await
                };
                sessions
                    .acquire_stream_or_connect::<Http2Stream>(make)
                    .await
                    .unwrap()
            })
        };
        let requests = [request(), request(), request()];
        for request in requests {
            request.await.unwrap();
        }
        assert_eq!(made.get(), 1);
    })
    .await;
}

#[tokio::test]
async fn where_there_are_as_many_sessions_as_may_be_a_request_waits_for_another_ones_end() {
    locally(async {
        let sessions = Rc::new(Sessions::new(1));
        let first = begin(&sessions, 1).await.unwrap();
        assert!(sessions.acquire_stream().is_none());
        let waits = {
            let sessions = Rc::clone(&sessions);
            spawn_local(async move {
                let make = async || Err(io::Error::other("there may be no other"));
                sessions.acquire_stream_or_connect::<Http2Stream>(make).await
            })
        };
        for _ in 0..10 {
            yield_now().await;
        }
        assert!(!waits.is_finished());
        drop(first);
        assert!(waits.await.unwrap().is_ok());
    })
    .await;
}
