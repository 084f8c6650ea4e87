use std::rc::Rc;

use bytes::BufMut;
use prometheus_client::metrics::gauge::Gauge;

use super::{
    Buffer, MAX_GROWTH, MemoryBudget, MemoryExhausted, MemoryReservation, RETAINED_BYTES, UNRESERVED_BYTES,
};

fn budget(most: u64) -> (Rc<MemoryBudget>, Gauge) {
    let gauge = Gauge::default();
    (Rc::new(MemoryBudget::new(most, gauge.clone())), gauge)
}

#[test]
fn a_buffer_takes_its_share_before_it_grows_and_gives_it_back_with_its_memory() {
    let (budget, used) = budget(1 << 20);
    let mut buffer = Buffer::new(&budget);
    buffer.reserve_exact(UNRESERVED_BYTES).unwrap();
    assert_eq!(used.get(), 0);
    buffer.reserve_exact(UNRESERVED_BYTES + 1000).unwrap();
    assert_eq!(used.get(), 1000);
    buffer.extend(&[7; UNRESERVED_BYTES + 1001]).unwrap();
    assert_eq!(
        used.get() as usize,
        buffer.len() + buffer.available() - UNRESERVED_BYTES
    );
    drop(buffer);
    assert_eq!(used.get(), 0);
}

#[test]
fn what_has_no_room_is_refused_and_changes_nothing() {
    let (budget, used) = budget(13_333);
    let mut buffer = Buffer::new(&budget);
    buffer.extend(&[7; UNRESERVED_BYTES + 9000]).unwrap();
    let before = (used.get(), buffer.available());
    assert_eq!(buffer.extend(&[7; 1001]), Err(MemoryExhausted));
    assert_eq!(buffer.write(1001, |_| ()), Err(MemoryExhausted));
    assert_eq!((used.get(), buffer.available()), before);
    assert_eq!(buffer.len(), UNRESERVED_BYTES + 9000);
    // Growing in advance does not waste the last bytes of the budget.
    assert_eq!(buffer.extend(&[7; 1000]), Ok(()));
    assert_eq!(used.get(), 10_000);
    let mut other = Buffer::new(&budget);
    assert_eq!(other.extend(&[7; UNRESERVED_BYTES]), Ok(()));
    assert_eq!(other.extend(&[7; 1]), Err(MemoryExhausted));
}

#[test]
fn what_is_consumed_takes_its_memory_along() {
    let (budget, used) = budget(1 << 20);
    let mut buffer = Buffer::new(&budget);
    buffer.extend(&[7; 100_000]).unwrap();
    buffer.extend(b"next").unwrap();
    buffer.consume(100_000);
    assert_eq!(&buffer[..], b"next");
    assert_eq!(used.get(), 0);
    assert!(buffer.available() <= RETAINED_BYTES);
}

#[test]
fn a_large_buffer_grows_by_steps_and_not_by_its_own_size() {
    let (budget, _) = budget(1 << 30);
    let mut buffer = Buffer::new(&budget);
    for _ in 0..10_000 {
        buffer.extend(&[7; 1000]).unwrap();
        assert!(buffer.available() <= MAX_GROWTH, "{}", buffer.available());
    }
}

#[test]
fn no_more_is_read_into_a_buffer_than_its_share_covers() {
    let (budget, _) = budget(1 << 20);
    let mut buffer = Buffer::new(&budget);
    buffer.reserve_exact(10).unwrap();
    let room = buffer.available();
    assert_eq!(buffer.available_mut().remaining_mut(), room);
    buffer.available_mut().put_bytes(7, room);
    assert_eq!((buffer.len(), buffer.available()), (room, 0));
}

#[test]
fn a_smaller_budget_holds_for_what_comes_and_takes_nothing_away() {
    let (budget, used) = budget(120_000);
    let mut share = MemoryReservation::new(&budget);
    share.resize(UNRESERVED_BYTES + 90_000).unwrap();
    budget.set_limit(50_000);
    assert_eq!(share.resize(UNRESERVED_BYTES + 90_001), Err(MemoryExhausted));
    assert_eq!(used.get(), 90_000);
    share.resize(UNRESERVED_BYTES + 60_000).unwrap();
    assert_eq!(used.get(), 60_000);
    drop(share);
    assert_eq!(used.get(), 0);
}

#[test]
fn bodies_leave_a_quarter_to_what_every_exchange_needs() {
    let (budget, used) = budget(100_000);
    let mut bodies = MemoryReservation::new(&budget);
    bodies.resize(UNRESERVED_BYTES + 75_000).unwrap();
    assert_eq!(bodies.resize(UNRESERVED_BYTES + 75_001), Err(MemoryExhausted));
    let exchange = budget.reserve(25_000).unwrap();
    assert!(budget.reserve(1).is_err());
    assert_eq!(used.get(), 100_000);
    drop(exchange);
    assert!(budget.reserve(1).is_ok());
    assert_eq!(used.get(), 75_000);
}

#[test]
fn a_large_body_is_read_into_the_memory_of_the_one_before() {
    let (budget, used) = budget(1 << 30);
    let mut buffer = Buffer::new(&budget);
    buffer.extend(&[7; 1000]).unwrap();
    buffer.reserve_exact(400_000).unwrap();
    let memory = buffer.as_ptr();
    buffer.extend(&[8; 400_000]).unwrap();
    buffer.consume(401_000);
    assert_eq!((used.get(), buffer.available()), (0, 0));
    let mut other = Buffer::new(&budget);
    other.extend(b"begin").unwrap();
    other.reserve_exact(410_000).unwrap();
    assert_eq!((&other[..], other.as_ptr()), (&b"begin"[..], memory));
    assert_eq!(
        used.get() as usize,
        other.len() + other.available() - UNRESERVED_BYTES
    );
    drop(other);
    assert_eq!(used.get(), 0);
}

#[test]
fn what_comes_behind_a_large_body_is_kept_when_its_memory_goes() {
    let (budget, _) = budget(1 << 30);
    let mut buffer = Buffer::new(&budget);
    buffer.extend(&[7; 500_000]).unwrap();
    buffer.extend(b"next").unwrap();
    buffer.consume(500_000);
    assert_eq!(&buffer[..], b"next");
    assert!(buffer.available() <= RETAINED_BYTES);
}

#[test]
fn memory_that_waits_goes_back_when_others_need_its_room() {
    let (budget, used) = budget(1_000_000);
    let mut buffer = Buffer::new(&budget);
    buffer.reserve_exact(500_000).unwrap();
    drop(buffer);
    assert!(budget.cache.bytes() > 0);
    let exchange = budget.reserve(900_000).unwrap();
    assert_eq!((used.get(), budget.cache.bytes()), (900_000, 0));
    drop(exchange);
}
