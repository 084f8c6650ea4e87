//! Consumption moves between workers through their files.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use proofgate_limits::{AdmittedReservation, Counts, Limit, Replay, SubjectKind, SubjectName, Totals};
use proofgate_wal::simulated::SimulatedDisk;
use support::{KEY, SECOND, START, file, start};

const DAY_SECONDS: u64 = 86_400;

fn admitted(seq: u64, ts: u64, reserved: u64) -> AdmittedReservation<'static> {
    AdmittedReservation {
        seq,
        ts,
        tenant: "acme",
        key: None,
        model: "large",
        reserved,
        reserved_cost: None,
        shared_plan: None,
    }
}

#[test]
fn two_workers_of_one_tenant_see_each_others_consumption() {
    let disk = SimulatedDisk::new();
    let (mut one, _) = start(&disk, 0, 0, false).unwrap();
    let (mut two, _) = start(&disk, 1, 0, false).unwrap();
    one.consume(300, START).unwrap();
    two.consume(200, START).unwrap();
    for worker in [&mut one, &mut two] {
        assert!(worker.publish(START).unwrap());
        assert!(!worker.publish(START).unwrap(), "nothing new to say");
    }
    for worker in [&mut one, &mut two] {
        assert_eq!(worker.look(START), []);
        assert_eq!(worker.left(START), 500);
    }
    two.consume(100, START + SECOND).unwrap();
    two.publish(START + SECOND).unwrap();
    one.look(START + SECOND);
    assert_eq!(one.left(START + SECOND), 400);
    assert_eq!(one.left(START + 61 * SECOND), 900);
}

#[test]
fn a_store_tells_what_all_workers_have_used_of_a_tenants_limits_while_it_counts() {
    let disk = SimulatedDisk::new();
    let (mut one, _) = start(&disk, 0, 0, false).unwrap();
    let (mut two, _) = start(&disk, 1, 0, false).unwrap();
    assert!(one.store.totals(START).is_empty());
    one.consume(300, START).unwrap();
    let mut held = two.limiter.admit(two.acme, KEY, 200, START).unwrap();
    two.limiter.mark_recorded(&mut held);
    two.records += 1;
    one.publish(START).unwrap();
    two.publish(START).unwrap();
    one.look(START);
    let acme = SubjectName {
        tenant: "acme".into(),
        kind: SubjectKind::Tenant,
    };
    let used = |after: u64| one.store.totals(START + after * SECOND)[&acme];
    let all = Totals {
        minute: Counts {
            requests: 2,
            tokens: 500,
            cost: 0,
        },
        day: Counts {
            tokens: 500,
            ..used(0).day
        },
        in_flight: 1,
        ..Totals::default()
    };
    assert_eq!(used(0), all);
    assert_eq!(used(60), all, "61 seconds are held");
    let of_the_day = Totals {
        minute: Counts::NONE,
        ..all
    };
    assert_eq!(used(61), of_the_day);
    let next_day = Totals {
        in_flight: 1,
        ..Totals::default()
    };
    assert_eq!(used(DAY_SECONDS), next_day);
    two.limiter.keep_reservation(held);
    two.publish(START + SECOND).unwrap();
    one.look(START + SECOND);
    assert_eq!(one.store.totals(START + SECOND)[&acme].in_flight, 0);
}

#[test]
fn a_file_that_has_not_changed_costs_an_open_and_a_read() {
    let disk = SimulatedDisk::new();
    let (mut one, _) = start(&disk, 0, 0, false).unwrap();
    let (mut two, _) = start(&disk, 1, 0, false).unwrap();
    two.consume(200, START).unwrap();
    two.publish(START).unwrap();
    one.look(START);
    let before = disk.calls();
    one.look(START);
    // Three lists, one open, one read.
    assert_eq!(disk.calls() - before, 5);
}

#[test]
fn a_successor_continues_after_an_orderly_end() {
    let disk = SimulatedDisk::new();
    let (mut before, _) = start(&disk, 0, 0, false).unwrap();
    before.consume(700, START).unwrap();
    before.store.finish();
    assert!(before.publish(START + SECOND).unwrap());
    let (mut after, found) = start(&disk, 0, 2, false).unwrap();
    assert_eq!(found.crashed, []);
    assert_eq!(after.left(START + 2 * SECOND), 300);
}

#[test]
fn a_crashed_predecessor_is_worked_out_once_and_for_everybody() {
    let disk = SimulatedDisk::new();
    let (mut other, _) = start(&disk, 1, 0, false).unwrap();
    let (mut before, _) = start(&disk, 0, 0, false).unwrap();
    before.consume(300, START).unwrap();
    let mut open = before.limiter.admit(before.acme, KEY, 100, START).unwrap();
    before.limiter.mark_recorded(&mut open);
    before.records += 1;
    before.publish(START).unwrap();
    other.look(START);
    assert_eq!(other.left(START), 600);
    // Records 4 and 5 are written, the state file is not: then the worker is killed.
    let now = START + 2 * SECOND;
    let (mut after, found) = start(&disk, 0, 2, false).unwrap();
    assert_eq!(after.left(now), 600, "what was published counts at once");
    let [state] = <[_; 1]>::try_from(found.crashed).unwrap();
    assert_eq!((state.through_seq, state.finished), (4, false));
    let mut replay = Replay::new(state);
    replay.record_admission(&admitted(1, START, 300));
    replay.record_completion(2, START, 1, None);
    replay.record_admission(&admitted(3, START, 100));
    replay.record_admission(&admitted(4, START + SECOND, 200));
    replay.record_completion(5, START + SECOND, 4, Some(150.into()));
    after.store.inherit(replay.finish(6, now), now);
    after.absorb(now);
    assert_eq!(after.left(now), 450);
    let places: Vec<_> = (0..4)
        .map(|_| after.limiter.admit(after.acme, KEY, 0, now).unwrap())
        .collect();
    assert_eq!(after.consume(0, now).unwrap_err().limit, Limit::Concurrency);
    places
        .into_iter()
        .for_each(|grant| after.limiter.refund(grant, false));
    assert!(after.publish(now).unwrap());
    other.look(now);
    assert_eq!(other.left(now), 450);

    // After the second crash too, only the second predecessor has to be recovered.
    after.consume(50, now).unwrap();
    after.publish(now).unwrap();
    let (mut third, found) = start(&disk, 0, 3, false).unwrap();
    assert_eq!(found.crashed.len(), 1);
    assert_eq!(found.crashed[0].origin, after.store.own_snapshot().origin);
    assert_eq!(third.left(now + SECOND), 400);
    // When nothing of the first one counts any more, it is still known to have ended.
    after.consume(1, START + 300 * SECOND).unwrap();
    after.publish(START + 300 * SECOND).unwrap();
    let (_, found) = start(&disk, 0, 301, false).unwrap();
    let crashed: Vec<_> = found.crashed.iter().map(|state| state.origin).collect();
    assert_eq!(
        crashed,
        [
            after.store.own_snapshot().origin,
            third.store.own_snapshot().origin
        ]
    );
    drop(open);
}

#[test]
fn a_worker_that_crashed_before_it_published_is_worked_out_from_its_log() {
    let disk = SimulatedDisk::new();
    let (mut before, _) = start(&disk, 0, 0, false).unwrap();
    before.consume(300, START).unwrap();
    let (_, found) = start(&disk, 0, 7200, false).unwrap();
    assert_eq!(found.crashed.len(), 1);
    assert_eq!(found.crashed[0].through_seq, 0);
}

#[test]
fn an_incarnation_whose_successor_began_more_than_a_month_ago_is_not_looked_at() {
    let disk = SimulatedDisk::new();
    let (mut first, _) = start(&disk, 0, 0, false).unwrap();
    first.consume(300, START).unwrap();
    first.publish(START).unwrap();
    let (second, _) = start(&disk, 0, 60, false).unwrap();
    let (_, found) = start(&disk, 0, 32 * 24 * 3600, false).unwrap();
    assert_eq!(
        found.crashed.iter().map(|state| state.origin).collect::<Vec<_>>(),
        [second.store.own_snapshot().origin]
    );
}

#[test]
fn a_worker_with_requests_in_flight_goes_on_saying_so() {
    let disk = SimulatedDisk::new();
    let (mut one, _) = start(&disk, 0, 0, false).unwrap();
    let (mut two, _) = start(&disk, 1, 0, false).unwrap();
    let mut places: Vec<_> = (0..4)
        .map(|_| one.limiter.admit(one.acme, KEY, 0, START).unwrap())
        .collect();
    places
        .iter_mut()
        .for_each(|grant| one.limiter.mark_recorded(grant));
    for second in 0..300 {
        let now = START + second * SECOND;
        one.publish(now).unwrap();
        two.look(now);
        assert!(
            two.limiter.admit(two.acme, KEY, 0, now).is_err(),
            "second {second}"
        );
    }
    // The worker becomes silent.
    let later = START + 300 * SECOND;
    two.look(later + 60 * SECOND);
    two.consume(0, later + 60 * SECOND).unwrap();
    drop(places);
}

#[test]
fn a_worker_whose_clock_is_set_right_goes_on_saying_what_is_in_flight() {
    let disk = SimulatedDisk::new();
    let (mut one, _) = start(&disk, 0, 0, false).unwrap();
    let ahead = START + 7200 * SECOND;
    let mut places: Vec<_> = (0..4)
        .map(|_| one.limiter.admit(one.acme, KEY, 0, ahead).unwrap())
        .collect();
    places
        .iter_mut()
        .for_each(|grant| one.limiter.mark_recorded(grant));
    one.publish(ahead).unwrap();
    one.limiter.roll_back_clock(START);
    one.publish(START).unwrap();
    let (mut two, _) = start(&disk, 1, 0, false).unwrap();
    for second in 0..300 {
        let now = START + second * SECOND;
        one.publish(now).unwrap();
        two.look(now);
        assert!(
            two.limiter.admit(two.acme, KEY, 0, now).is_err(),
            "second {second}"
        );
    }
    drop(places);
}

#[test]
fn new_limits_find_what_others_consumed() {
    let disk = SimulatedDisk::new();
    let (mut one, _) = start(&disk, 0, 0, false).unwrap();
    one.consume(300, START).unwrap();
    one.publish(START).unwrap();
    let (mut two, _) = start(&disk, 1, 0, false).unwrap();
    two.limiter.set_limits(&[]);
    assert_eq!(two.left(START), 0, "no limits");
    let (mut three, _) = start(&disk, 2, 0, false).unwrap();
    three.store.mark_all_changed();
    three.absorb(START);
    assert_eq!(three.left(START), 700);
}

#[test]
fn what_no_longer_counts_is_not_written() {
    let disk = SimulatedDisk::new();
    let (mut one, _) = start(&disk, 0, 0, false).unwrap();
    let empty = disk.read(&file(0, 0)).unwrap().len();
    one.consume(300, START).unwrap();
    one.publish(START).unwrap();
    assert!(disk.read(&file(0, 0)).unwrap().len() > empty);
    one.store.finish();
    one.store.write(START + 86_400 * SECOND).unwrap();
    assert!(disk.read(&file(0, 0)).unwrap().len() <= empty + 2);
}

/// On a real file system, in a directory with foreign files.
#[test]
fn files_of_others_in_the_directory_are_passed_over() {
    use proofgate_limit_store::LimitStore;
    use proofgate_wal::FileStorage;
    use std::sync::Arc;
    let gateway = tempfile::tempdir().unwrap();
    for name in ["notes", "7", "00"] {
        std::fs::write(gateway.path().join(name), "x").unwrap();
    }
    std::fs::create_dir_all(gateway.path().join("3/lost+found")).unwrap();
    let open = |shard: u32| {
        let dir = gateway
            .path()
            .join(shard.to_string())
            .join(support::ulid(shard, 0).to_string());
        std::fs::create_dir_all(&dir).unwrap();
        LimitStore::open(
            Arc::new(FileStorage),
            gateway.path(),
            shard,
            support::ulid(shard, 0),
            true,
            START,
        )
        .unwrap()
    };
    let mut one = open(3);
    let two = open(4);
    assert!(two.problems.is_empty(), "{:?}", two.problems);
    assert_eq!(one.store.poll(START), []);
    one.store.finish();
    assert!(one.store.write(START).unwrap());
}
