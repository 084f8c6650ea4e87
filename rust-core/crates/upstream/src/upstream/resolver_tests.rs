use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use tokio::runtime::{self, LocalOptions};
use tokio::task::{LocalSet, yield_now};
use tokio::time::advance;

use super::*;

fn loopback(port: u16) -> Vec<SocketAddr> {
    vec![(Ipv4Addr::LOCALHOST, port).into()]
}

/// A resolver that the test controls.
struct Played {
    names: Rc<HostAddresses>,
    asked: Receiver<LookupRequest>,
}

impl Played {
    fn new() -> Self {
        let (questions, asked) = sync_channel(MAX_QUEUED);
        Played {
            names: HostAddresses::new("api.example", 7, Resolver { requests: questions }),
            asked,
        }
    }

    /// Returns the result of a look-up whose resolver returns `found` if it is called, and the
    /// number of its calls.
    async fn look_up(&self, found: io::Result<Vec<SocketAddr>>) -> (io::Result<Vec<SocketAddr>>, usize) {
        let names = Rc::clone(&self.names);
        let wanted = tokio::task::spawn_local(async move { names.addresses().await });
        yield_now().await;
        let mut count = 0;
        let mut found = Some(found);
        while let Ok(question) = self.asked.try_recv() {
            count += 1;
            let again = || Err(io::Error::other("asked twice"));
            let _ = question.reply.send(found.take().unwrap_or_else(again));
        }
        let wanted = wanted.await.unwrap().map(|addresses| addresses.to_vec());
        // A late result is stored by a separate task.
        for _ in 0..4 {
            yield_now().await;
        }
        (wanted, count)
    }
}

async fn locally<F: Future>(future: F) -> F::Output {
    LocalSet::new().run_until(future).await
}

#[tokio::test(start_paused = true)]
async fn an_address_is_looked_up_once_and_ahead_of_its_end() {
    locally(async {
        let played = Played::new();
        let (first, second) = (loopback(1), loopback(2));
        let (found, asked) = played.look_up(Ok(first.clone())).await;
        assert_eq!((found.unwrap(), asked), (first.clone(), 1));
        let (found, asked) = played.look_up(Ok(second.clone())).await;
        assert_eq!((found.unwrap(), asked), (first.clone(), 0));
        advance(REFRESH_AFTER).await;
        let (found, asked) = played.look_up(Ok(second.clone())).await;
        assert_eq!((found.unwrap(), asked), (first, 1), "nobody waits for the news");
        let (found, asked) = played.look_up(Ok(loopback(3))).await;
        assert_eq!((found.unwrap(), asked), (second, 0));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_address_that_is_too_old_is_not_used() {
    locally(async {
        let played = Played::new();
        played.look_up(Ok(loopback(1))).await.0.unwrap();
        advance(MAX_AGE).await;
        let (found, asked) = played.look_up(Ok(loopback(2))).await;
        assert_eq!((found.unwrap(), asked), (loopback(2), 1));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_look_up_is_believed_for_a_moment_and_ends_nothing_that_works() {
    locally(async {
        let played = Played::new();
        let failure = || Err(io::Error::new(io::ErrorKind::TimedOut, "no name server"));
        assert_eq!(played.look_up(failure()).await.1, 1);
        let (found, asked) = played.look_up(Ok(loopback(1))).await;
        assert_eq!(
            (found.unwrap_err().to_string(), asked),
            ("no name server".into(), 0)
        );
        advance(RETRY_DELAY).await;
        assert_eq!(played.look_up(Ok(loopback(1))).await.0.unwrap(), loopback(1));
        advance(REFRESH_AFTER).await;
        assert_eq!(played.look_up(failure()).await.1, 1);
        assert_eq!(played.look_up(failure()).await.0.unwrap(), loopback(1));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn addresses_to_which_nothing_led_are_looked_up_again() {
    locally(async {
        let played = Played::new();
        played.look_up(Ok(loopback(1))).await.0.unwrap();
        played.names.invalidate();
        assert_eq!(played.look_up(Ok(loopback(2))).await.1, 0, "they are new");
        advance(RETRY_DELAY).await;
        played.names.invalidate();
        let (found, asked) = played.look_up(Ok(loopback(2))).await;
        assert_eq!((found.unwrap(), asked), (loopback(2), 1));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn many_who_want_a_name_at_once_are_one_question() {
    locally(async {
        let played = Played::new();
        let wanted: Vec<_> = (0..50)
            .map(|_| {
                let names = Rc::clone(&played.names);
                tokio::task::spawn_local(async move { names.addresses().await })
            })
            .collect();
        yield_now().await;
        let question = played.asked.try_recv().unwrap();
        assert!(played.asked.try_recv().is_err());
        question.reply.send(Ok(loopback(9))).unwrap();
        for one in wanted {
            assert_eq!(one.await.unwrap().unwrap().to_vec(), loopback(9));
        }
    })
    .await;
}

#[tokio::test]
async fn an_address_is_no_name() {
    let (questions, asked) = sync_channel(1);
    let names = HostAddresses::new("::1", 7, Resolver { requests: questions });
    assert_eq!(
        names.addresses().await.unwrap().to_vec(),
        ["[::1]:7".parse().unwrap()]
    );
    assert!(asked.try_recv().is_err());
}

#[tokio::test]
async fn the_system_knows_this_machine() {
    locally(async {
        let names = HostAddresses::new("localhost", 7, Resolver::system());
        let found = names.addresses().await.unwrap();
        assert!(
            found
                .iter()
                .all(|address| address.ip().is_loopback() && address.port() == 7)
        );
    })
    .await;
}

static ASKED: AtomicUsize = AtomicUsize::new(0);
static OPEN: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());

/// A name server that does not respond until the test is over.
fn hang(_: &str, _: u16) -> io::Result<Vec<SocketAddr>> {
    ASKED.fetch_add(1, Ordering::SeqCst);
    let open = OPEN.0.lock().unwrap();
    drop(OPEN.1.wait_while(open, |open| !*open).unwrap());
    Err(io::ErrorKind::TimedOut.into())
}

#[test]
fn a_worker_ends_while_its_name_server_does_not_answer() {
    let mut local = runtime::Builder::new_current_thread();
    let runtime = local.enable_all().build_local(LocalOptions::default()).unwrap();
    runtime.block_on(async {
        let names = HostAddresses::new("api.example", 7, Resolver::start(hang));
        let waited = tokio::time::timeout(Duration::from_millis(50), names.addresses()).await;
        assert!(waited.is_err());
        while ASKED.load(Ordering::SeqCst) == 0 {
            yield_now().await;
        }
    });
    // This would not return if the look-up ran on the runtime's own threads.
    drop(runtime);
    assert!(!*OPEN.0.lock().unwrap());
    *OPEN.0.lock().unwrap() = true;
    OPEN.1.notify_all();
}
