use super::{KEPT, Reading};

#[test]
fn a_text_keeps_the_memory_that_the_next_one_can_use_and_no_more() {
    let mut reading = Reading::default();
    reading.text.make_ready(500_000).for_each(drop);
    reading.text.plain(&"x".repeat(400_000));
    reading.fit_text();
    assert!(reading.text.capacity() >= 500_000);
    reading.text.plain("of a picture, this is all that is left");
    reading.fit_text();
    assert!(reading.text.capacity() < 16 << 10);
    reading.text.plain(&"x".repeat(KEPT + 1));
    reading.text.make_ready(2 * KEPT).for_each(drop);
    reading.text.plain(&"x".repeat(KEPT + 1));
    reading.fit_text();
    assert!(reading.text.capacity() < KEPT + (16 << 10));
}
