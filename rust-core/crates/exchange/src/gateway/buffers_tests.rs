use super::{RETAINED_BYTES, RequestBuffers};

#[test]
fn a_text_keeps_the_memory_that_the_next_one_can_use_and_no_more() {
    let mut reading = RequestBuffers::default();
    reading.text.reserve_steps(500_000).for_each(drop);
    reading.text.collect_plain_text(&"x".repeat(400_000));
    reading.shrink_text();
    assert!(reading.text.capacity() >= 500_000);
    reading
        .text
        .collect_plain_text("of a picture, this is all that is left");
    reading.shrink_text();
    assert!(reading.text.capacity() < 16 << 10);
    reading.text.collect_plain_text(&"x".repeat(RETAINED_BYTES + 1));
    reading.text.reserve_steps(2 * RETAINED_BYTES).for_each(drop);
    reading.text.collect_plain_text(&"x".repeat(RETAINED_BYTES + 1));
    reading.shrink_text();
    assert!(reading.text.capacity() < RETAINED_BYTES + (16 << 10));
}
