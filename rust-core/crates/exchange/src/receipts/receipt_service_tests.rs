use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};

use tokio::task::JoinHandle;

use super::*;

fn question() -> ReceiptQuery {
    question_of("acme")
}

fn question_of(tenant: &str) -> ReceiptQuery {
    ReceiptQuery {
        id: "id".into(),
        tenant: tenant.into(),
        is_open: false,
        client_checkpoint: None,
        shred_keys: None,
    }
}

#[test]
fn the_checkpoint_that_a_client_holds_is_read_out_of_the_query() {
    let held = |origin: &str, size| {
        Some(ClientCheckpoint {
            origin: origin.to_owned(),
            size,
        })
    };
    for (query, read) in [
        (None, None),
        (Some(""), None),
        (Some("other=1&a"), None),
        (Some("since=7&origin=a.b%2F0%2FX"), held("a.b/0/X", 7)),
        (Some("origin=a/0/X&x=y&since=12"), held("a/0/X", 12)),
    ] {
        assert_eq!(ClientCheckpoint::from_query(query).unwrap(), read, "{query:?}");
    }
    for query in [
        "since=7",
        "origin=a",
        "since=0&origin=a",
        "since=07&origin=a",
        "since=+7&origin=a",
        "since=&origin=a",
        "since=18446744073709551616&origin=a",
        "since=7&since=8&origin=a",
        "since=7&origin=%FF",
    ] {
        let refused = ClientCheckpoint::from_query(Some(query)).unwrap_err();
        assert_eq!((refused.status, refused.code), (400, "invalid_query"), "{query}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_no_checkpoint_covers_is_asked_for_again_and_then_given_up_with_a_conflict() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let desk = ReceiptService::start(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        ReceiptLookup::NotCovered
    });
    let refused = desk.request(question()).await.unwrap_err();
    assert_eq!((refused.status, refused.code), (409, "receipt_pending"));
    assert_eq!(
        asked.load(Ordering::Relaxed),
        21,
        "four times a second for five seconds"
    );

    let asked = AtomicUsize::new(0);
    let desk = ReceiptService::start(move |_| match asked.fetch_add(1, Ordering::Relaxed) {
        0..3 => ReceiptLookup::NotCovered,
        _ => ReceiptLookup::Receipt(b"{}".to_vec()),
    });
    assert_eq!(desk.request(question()).await.unwrap(), b"{}");
}

/// Returns a service whose threads are both busy. After its gate is dropped, it answers that
/// nothing was found.
async fn busy_desk() -> (Arc<ReceiptService>, Sender<()>, Vec<Waiting>) {
    let (open, gate) = channel::<()>();
    let (began, begun) = channel();
    let gate = Mutex::new(gate);
    let began = Mutex::new(began);
    let desk = Arc::new(ReceiptService::start(move |_| {
        let _ = began.lock().unwrap().send(());
        // Dropping the other end of the gate lets all threads continue.
        let _ = gate.lock().unwrap().recv();
        ReceiptLookup::NotFound
    }));
    let asked = (0..THREADS)
        .map(|number| ask(&desk, &format!("early-{number}")))
        .collect();
    for _ in 0..THREADS {
        while begun.try_recv().is_err() {
            tokio::task::yield_now().await;
        }
    }
    (desk, open, asked)
}

type Waiting = JoinHandle<Result<Vec<u8>, Rejection>>;

fn ask(desk: &Arc<ReceiptService>, tenant: &str) -> Waiting {
    let (desk, question) = (Arc::clone(desk), question_of(tenant));
    tokio::spawn(async move { desk.request(question).await })
}

async fn refusal(asked: Waiting) -> (u16, &'static str) {
    let refused = asked.await.unwrap().unwrap_err();
    (refused.status, refused.code)
}

#[tokio::test]
async fn a_full_queue_refuses_at_once_and_what_waits_in_it_is_answered() {
    let (desk, open, mut waiting) = busy_desk().await;
    // The earlier clients were spawned first, so they have sent their queries before this one.
    waiting.extend((0..MAX_WAITING).map(|number| ask(&desk, &format!("tenant-{number}"))));
    assert_eq!(refusal(ask(&desk, "late")).await, (503, "receipts_busy"));
    drop(open);
    for asked in waiting {
        assert_eq!(refusal(asked).await, (404, "unknown_receipt"));
    }
}

#[tokio::test]
async fn a_tenant_that_asks_for_many_receipts_at_once_leaves_places_to_others() {
    let (desk, open, mut waiting) = busy_desk().await;
    waiting.extend((0..MAX_PER_TENANT).map(|_| ask(&desk, "greedy")));
    assert_eq!(refusal(ask(&desk, "greedy")).await, (503, "receipts_busy"));
    // A client that disconnects while its query is queued still occupies its slot.
    waiting.pop().unwrap().abort();
    assert_eq!(refusal(ask(&desk, "greedy")).await, (503, "receipts_busy"));
    waiting.push(ask(&desk, "modest"));
    drop(open);
    for asked in waiting {
        assert_eq!(refusal(asked).await, (404, "unknown_receipt"));
    }
    // A client that has received its responses may query again.
    assert_eq!(refusal(ask(&desk, "greedy")).await, (404, "unknown_receipt"));
    assert!(desk.tenant_slots.lock().unwrap().is_empty());
}

/// Waits until `count` queries have reached a thread, and returns their tenants.
async fn begun(tenants: &Mutex<Vec<Arc<str>>>, count: usize) -> Vec<Arc<str>> {
    while tenants.lock().unwrap().len() < count {
        tokio::task::yield_now().await;
    }
    tenants.lock().unwrap().clone()
}

#[tokio::test]
async fn a_tenant_whose_receipts_take_long_leaves_a_thread_to_others_and_they_take_turns() {
    let (go_on, gate) = channel::<()>();
    let gate = Mutex::new(gate);
    let tenants = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&tenants);
    let desk = Arc::new(ReceiptService::start(move |question| {
        noted.lock().unwrap().push(Arc::clone(&question.tenant));
        let _ = gate.lock().unwrap().recv();
        ReceiptLookup::NotFound
    }));
    let mut waiting: Vec<_> = (0..MAX_PER_TENANT).map(|_| ask(&desk, "slow")).collect();
    assert_eq!(*begun(&tenants, 1).await[0], *"slow");
    waiting.extend((0..MAX_PER_TENANT).map(|_| ask(&desk, "as-slow")));
    assert_eq!(*begun(&tenants, 2).await[1], *"as-slow");
    waiting.push(ask(&desk, "modest"));
    // The query of the modest tenant is queued by now, after all others.
    assert_eq!(refusal(ask(&desk, "slow")).await, (503, "receipts_busy"));
    go_on.send(()).unwrap();
    assert_eq!(*begun(&tenants, 3).await[2], *"modest");
    drop(go_on);
    for asked in waiting {
        assert_eq!(refusal(asked).await, (404, "unknown_receipt"));
    }
}

#[tokio::test]
async fn a_search_that_panics_is_told_and_the_next_one_is_made() {
    let asked = AtomicUsize::new(0);
    let desk = ReceiptService::start(move |_| match asked.fetch_add(1, Ordering::Relaxed) {
        // Simulates a bug, without a panic message.
        0..4 => std::panic::resume_unwind(Box::new(())),
        _ => ReceiptLookup::NotFound,
    });
    for _ in 0..4 {
        assert_eq!(
            desk.request(question()).await.unwrap_err().code,
            "receipt_unavailable"
        );
    }
    assert_eq!(
        desk.request(question()).await.unwrap_err().code,
        "unknown_receipt"
    );
}
