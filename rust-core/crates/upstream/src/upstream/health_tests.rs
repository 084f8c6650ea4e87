use super::circuit_breaker::{FAILURE_THRESHOLD, FIRST_PAUSE};
use super::*;

const MODEL: &str = "large";

fn is_available(health: &Health, now: Instant) -> bool {
    health.is_available(|| MODEL.into(), now)
}

fn begin(health: &Rc<Health>, now: Instant) -> InFlightPermit {
    health.start_request(now, MODEL, RateLimits::default(), 0, true)
}

fn fail(health: &Rc<Health>, now: Instant) {
    begin(health, now).record_verdict(Verdict::Failed, MODEL, now);
}

/// A provider that has just been paused.
fn paused(now: Instant) -> Rc<Health> {
    let health = Rc::new(Health::default());
    (0..FAILURE_THRESHOLD).for_each(|_| fail(&health, now));
    health
}

#[test]
fn failures_in_a_row_pause_a_provider_and_fewer_do_not() {
    let (health, now) = (Rc::new(Health::default()), Instant::now());
    for _ in 0..3 {
        (1..FAILURE_THRESHOLD).for_each(|_| fail(&health, now));
        assert!(is_available(&health, now));
        begin(&health, now).record_verdict(Verdict::Healthy, MODEL, now);
    }
    (0..FAILURE_THRESHOLD).for_each(|_| fail(&health, now));
    assert!(!is_available(&health, now));
}

#[test]
fn after_the_pause_one_request_is_let_through_and_its_success_ends_it() {
    let now = Instant::now();
    let (health, later) = (paused(now), now + FIRST_PAUSE);
    assert!(is_available(&health, later));
    let mut probe = begin(&health, later);
    assert!(!is_available(&health, later), "the probe is under way");
    // A request that is sent during the pause, because it has no other target, is not a probe.
    let mut other = begin(&health, later);
    other.record_verdict(Verdict::Inconclusive, MODEL, later);
    assert!(!is_available(&health, later));
    probe.record_verdict(Verdict::Healthy, MODEL, later);
    assert!(is_available(&health, later));
    (1..FAILURE_THRESHOLD).for_each(|_| fail(&health, later));
    assert!(is_available(&health, later), "failures count from zero again");
}

#[test]
fn each_probe_in_vain_doubles_the_pause_up_to_a_minute() {
    let mut now = Instant::now();
    let health = paused(now);
    for seconds in [5, 10, 20, 40, 60, 60] {
        let end = now + Duration::from_secs(seconds);
        assert!(!is_available(&health, end - Duration::from_millis(1)));
        assert!(is_available(&health, end));
        now = end;
        fail(&health, now);
    }
}

#[test]
fn a_probe_whose_client_goes_lets_the_next_one_try() {
    let now = Instant::now();
    let (health, later) = (paused(now), now + FIRST_PAUSE);
    drop(begin(&health, later));
    assert!(is_available(&health, later));
    assert_eq!(health.in_flight(), 0);
}

#[test]
fn an_answer_to_what_was_asked_after_the_pause_ends_it_while_the_probe_is_under_way() {
    let now = Instant::now();
    let (health, later) = (paused(now), now + FIRST_PAUSE);
    let mut probe = begin(&health, later);
    let after = later + Duration::from_secs(1);
    begin(&health, after).record_verdict(Verdict::Healthy, MODEL, after);
    assert!(is_available(&health, after));
    // The probe ends last, but was sent before the others.
    probe.record_verdict(Verdict::Failed, MODEL, after);
    assert!(is_available(&health, after));
}

#[test]
fn a_probe_that_hears_nothing_keeps_others_away_for_no_longer_than_the_pause_before_it() {
    let now = Instant::now();
    let (health, later) = (paused(now), now + FIRST_PAUSE);
    let first = begin(&health, later);
    let end = later + FIRST_PAUSE;
    assert!(!is_available(&health, end - Duration::from_millis(1)));
    assert!(is_available(&health, end));
    let second = begin(&health, end);
    drop(first);
    assert!(!is_available(&health, end), "the second probe is under way");
    drop(second);
    assert!(is_available(&health, end));
}

#[test]
fn for_what_a_client_still_sends_nobody_waits_and_its_failure_tells_as_much() {
    let now = Instant::now();
    let (health, later) = (paused(now), now + FIRST_PAUSE);
    let mut coming = health.start_request(later, MODEL, RateLimits::default(), 0, false);
    assert!(is_available(&health, later));
    coming.record_verdict(Verdict::Failed, MODEL, later);
    assert!(
        !is_available(&health, later + FIRST_PAUSE),
        "the pause is twice as long"
    );
    assert!(is_available(&health, later + 2 * FIRST_PAUSE));
}

#[test]
fn what_a_client_has_sent_in_the_end_is_waited_for() {
    let now = Instant::now();
    let (health, later) = (paused(now), now + FIRST_PAUSE);
    let mut coming = health.start_request(later, MODEL, RateLimits::default(), 0, false);
    let mut second = health.start_request(later, MODEL, RateLimits::default(), 0, false);
    coming.mark_complete(later);
    second.mark_complete(later);
    assert!(!is_available(&health, later));
    drop(second);
    assert!(!is_available(&health, later), "nobody waited for that one");
    drop(coming);
    assert!(is_available(&health, later));
}

#[test]
fn a_probe_is_waited_for_as_long_as_the_pause_before_it_was() {
    let mut now = Instant::now();
    let health = paused(now);
    for seconds in [5, 10, 20] {
        now += Duration::from_secs(seconds);
        fail(&health, now);
    }
    now += Duration::from_secs(40);
    let _silent = begin(&health, now);
    assert!(!is_available(&health, now + Duration::from_secs(39)));
    assert!(is_available(&health, now + Duration::from_secs(40)));
}

#[test]
fn an_answer_from_before_the_pause_does_not_end_it() {
    let now = Instant::now();
    let health = Rc::new(Health::default());
    let mut early = begin(&health, now);
    (0..FAILURE_THRESHOLD).for_each(|_| fail(&health, now));
    early.record_verdict(Verdict::Healthy, MODEL, now);
    assert!(!is_available(&health, now));
}

#[test]
fn a_provider_that_asks_for_a_pause_gets_it_but_not_for_longer_than_a_minute() {
    for (asked, given) in [(7, 7), (3600, 60)] {
        let (health, now) = (Rc::new(Health::default()), Instant::now());
        begin(&health, now).record_verdict(Verdict::Busy(Duration::from_secs(asked)), MODEL, now);
        let end = now + Duration::from_secs(given);
        assert!(!is_available(&health, end - Duration::from_millis(1)));
        assert!(is_available(&health, end));
    }
}

#[test]
fn of_ten_requests_one_may_be_sent_again_beyond_what_was_saved() {
    let (health, now) = (Rc::new(Health::default()), Instant::now());
    assert_eq!((0..100).filter(|_| health.take_retry()).count(), 10);
    (0..30).for_each(|_| drop(begin(&health, now)));
    assert_eq!((0..100).filter(|_| health.take_retry()).count(), 3);
}

#[test]
fn what_one_model_says_holds_for_no_other_one() {
    let now = Instant::now();
    for verdict in [Verdict::Busy(Duration::from_secs(30)), Verdict::Failed] {
        let health = Rc::new(Health::default());
        (0..FAILURE_THRESHOLD).for_each(|_| begin(&health, now).record_verdict(verdict, MODEL, now));
        assert!(!is_available(&health, now));
        assert!(health.is_available(|| "small".into(), now));
        assert!(health.is_reachable(now) && health.is_skipped(now));
    }
}

#[test]
fn a_provider_that_cannot_be_reached_is_passed_over_for_all_models_until_one_answers() {
    let (health, now) = (Rc::new(Health::default()), Instant::now());
    (0..FAILURE_THRESHOLD).for_each(|_| begin(&health, now).record_verdict(Verdict::Unreachable, MODEL, now));
    assert!(!health.is_available(|| "small".into(), now) && !health.is_reachable(now));
    let later = now + FIRST_PAUSE;
    let mut probe = health.start_request(later, "small", RateLimits::default(), 0, true);
    assert!(!is_available(&health, later), "the probe is under way");
    probe.record_verdict(Verdict::Healthy, "small", later);
    assert!(is_available(&health, later));
}

#[test]
fn a_model_that_answers_again_is_forgotten_and_of_many_that_do_not_only_so_many_are_remembered() {
    let (health, now) = (Rc::new(Health::default()), Instant::now());
    fail(&health, now);
    begin(&health, now).record_verdict(Verdict::Healthy, MODEL, now);
    assert!(health.models.borrow().is_empty());
    begin(&health, now).record_verdict(Verdict::Busy(Duration::from_secs(9)), MODEL, now);
    for number in 0..2 * MAX_MODELS {
        let name = format!("made-up-{number}");
        let mut attending = health.start_request(now, &name, RateLimits::default(), 0, true);
        attending.record_verdict(Verdict::Failed, &name, now);
    }
    assert_eq!(health.models.borrow().len(), MAX_MODELS);
    assert!(
        !is_available(&health, now),
        "its pause outlasts the failures of others"
    );
}
