use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use prometheus_client::metrics::gauge::Gauge;
use proofgate_base::memory::MemoryBudget;
use proofgate_json::Workspace;
use proofgate_providers::BodyText;
use tokio::time::Instant;

use super::super::breaker::MAX_CONSECUTIVE_FAILURES;
use super::super::policy_copy_memory::PolicyCopyMemory;
use super::super::queue::{PolicyQueue, PolicyRequest};
use super::super::request_texts::RequestTexts;
use super::super::verdict::{PolicyFailure, Verdict};
use super::{ExternalPolicies, ExternalPolicy, ExternalPolicyConfig, OnFailure, QUEUE_CAPACITY};

const DEADLINE: Duration = Duration::from_millis(50);
const AT_ONCE: Duration = Duration::ZERO;

fn config(revision: &str, deadline: Duration) -> ExternalPolicyConfig {
    ExternalPolicyConfig {
        name: "p".into(),
        revision: revision.into(),
        deadline_ms: u64::try_from(deadline.as_millis()).unwrap(),
        on_failure: OnFailure::Deny,
    }
}

fn hooks(revision: &str) -> ExternalPolicies {
    ExternalPolicies(vec![Arc::new(ExternalPolicy::new(config(revision, DEADLINE)))])
}

/// A policy and the evaluator's end of its queue.
fn opened() -> (Arc<ExternalPolicy>, PolicyQueue) {
    let hooks = hooks("1");
    let queue = hooks.open_queue("p").unwrap();
    (Arc::clone(&hooks[0]), queue)
}

struct Memory {
    room: PolicyCopyMemory,
    used: Gauge,
}

fn memory() -> Memory {
    let used = Gauge::default();
    let budget = Rc::new(MemoryBudget::new(1 << 30, used.clone()));
    Memory {
        room: PolicyCopyMemory::new(&budget),
        used,
    }
}

fn request(memory: &Memory, text: &str) -> PolicyRequest {
    let mut body = BodyText::new();
    let document = serde_json::to_vec(&[text]).unwrap();
    body.collect(&document, &mut Workspace::new()).unwrap();
    PolicyRequest {
        tenant: "acme".into(),
        model: "m".into(),
        endpoint: "/v1/chat/completions",
        texts: RequestTexts::from_body(&body),
        _permit: memory.room.reserve(RequestTexts::max_copy_bytes(&body)).unwrap(),
    }
}

#[tokio::test]
async fn a_verdict_of_another_thread_reaches_the_request_that_waits_for_it() {
    let hook = ExternalPolicy::new(config("1", Duration::from_secs(20)));
    let queue = PolicyQueue::new(hook.receiver.lock().unwrap().take().unwrap());
    let evaluator = thread::spawn(move || {
        let mut batch = queue.take_batch(8, Duration::from_secs(20)).unwrap();
        let item = batch.remove(0);
        let texts: Vec<_> = item
            .texts()
            .map(|(text, kind, _)| (text.to_owned(), kind))
            .collect();
        assert_eq!((item.tenant(), item.model()), ("acme", "m"));
        assert_eq!(texts, [("hello".to_owned(), "text")]);
        item.respond(Verdict::Allow)
    });
    let verdict = hook.evaluate(request(&memory(), "hello")).await;
    assert_eq!(verdict, Ok(Verdict::Allow));
    assert!(evaluator.join().unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_request_waits_no_longer_than_its_deadline_and_a_later_verdict_has_nobody_who_waits() {
    let (hook, queue) = opened();
    let memory = memory();
    let begun = Instant::now();
    let evaluation = hook.evaluate(request(&memory, "hello"));
    let late = async {
        let batch = queue.take_batch(8, AT_ONCE).unwrap();
        tokio::time::sleep(DEADLINE * 2).await;
        batch
    };
    let (verdict, mut batch) = tokio::join!(
        async {
            let verdict = evaluation.await;
            (verdict, begun.elapsed())
        },
        async {
            tokio::task::yield_now().await;
            late.await
        }
    );
    assert_eq!(verdict.0, Err(PolicyFailure::Deadline));
    assert!(
        verdict.1 >= DEADLINE && verdict.1 <= DEADLINE + Duration::from_millis(10),
        "{:?}",
        verdict.1
    );
    assert!(!batch.remove(0).respond(Verdict::Allow));
}

#[tokio::test(start_paused = true)]
async fn who_takes_a_batch_gets_nothing_of_requests_that_have_gone() {
    let (hook, queue) = opened();
    let memory = memory();
    assert_eq!(
        hook.evaluate(request(&memory, "gone")).await,
        Err(PolicyFailure::Deadline)
    );
    assert_eq!(hook.queued_requests(), 1);
    assert!(queue.take_batch(8, AT_ONCE).unwrap().is_empty());
    assert_eq!(hook.queued_requests(), 0);
    memory.room.shrink_reservation();
    assert_eq!(memory.used.get(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_fails_at_once_and_says_nothing_of_the_policys_health() {
    let (hook, _queue) = opened();
    let memory = memory();
    for _ in 0..QUEUE_CAPACITY {
        let (verdict, _) = tokio::sync::oneshot::channel();
        let request = request(&memory, "x");
        assert!(
            hook.sender
                .try_send(super::PolicyItem { request, verdict })
                .is_ok()
        );
    }
    let begun = Instant::now();
    for _ in 0..=MAX_CONSECUTIVE_FAILURES {
        assert_eq!(
            hook.evaluate(request(&memory, "hello")).await,
            Err(PolicyFailure::QueueFull)
        );
    }
    assert_eq!(begun.elapsed(), Duration::ZERO);
    assert!(!hook.breaker.is_open());
}

#[tokio::test(start_paused = true)]
async fn a_dead_evaluator_fails_what_it_had_taken_and_what_comes_at_once() {
    let (hook, queue) = opened();
    let memory = memory();
    let begun = Instant::now();
    let (taken, ()) = tokio::join!(hook.evaluate(request(&memory, "hello")), async {
        tokio::task::yield_now().await;
        drop(queue.take_batch(8, AT_ONCE));
        drop(queue);
    });
    assert_eq!(taken, Err(PolicyFailure::Dead));
    assert_eq!(
        hook.evaluate(request(&memory, "hello")).await,
        Err(PolicyFailure::Dead)
    );
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_fails_again_and_again_is_not_waited_for() {
    let (hook, _queue) = opened();
    let memory = memory();
    for _ in 0..MAX_CONSECUTIVE_FAILURES {
        assert_eq!(
            hook.evaluate(request(&memory, "x")).await,
            Err(PolicyFailure::Deadline)
        );
    }
    let begun = Instant::now();
    assert_eq!(
        hook.evaluate(request(&memory, "x")).await,
        Err(PolicyFailure::BreakerOpen)
    );
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_policy_without_an_evaluator_yet_keeps_its_requests_until_their_deadline() {
    let hooks = hooks("1");
    let memory = memory();
    let begun = Instant::now();
    assert_eq!(
        hooks[0].evaluate(request(&memory, "x")).await,
        Err(PolicyFailure::Deadline)
    );
    assert_eq!(begun.elapsed().as_millis() / 10, DEADLINE.as_millis() / 10);
}

#[test]
fn a_policy_that_stays_as_it_is_keeps_its_queue_and_one_that_changes_gets_another() {
    let before = hooks("1");
    let queue = before.open_queue("p").unwrap();
    let mut same = hooks("1");
    same.reuse_from(&before);
    assert!(Arc::ptr_eq(&before[0], &same[0]));
    assert!(same.open_queue("p").is_err());
    let mut other = hooks("2");
    other.reuse_from(&before);
    assert!(other.open_queue("p").is_ok());
    drop((before, same));
    assert!(queue.take_batch(1, AT_ONCE).is_none());
    assert!(other.open_queue("q").is_err());
}
