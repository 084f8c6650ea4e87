//! Properties that hold for every body.

mod support;

use proptest::prelude::*;
use support::{Whole, boundary, read};

/// Bytes on which readers disagree.
const SHARP: &[u8] = b"\r\n-b:;=\"\\ \t\0\xffx%*";

fn content() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(SHARP), 0..40)
}

fn part() -> impl Strategy<Value = Whole> {
    let name = "[a-z]{1,8}(\\[\\])?";
    (name, prop::option::of("[a-z .]{1,8}"), content())
}

fn write(parts: &[Whole], boundary: &str) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, file_name, content) in parts {
        body.extend_from_slice(
            format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"").as_bytes(),
        );
        if let Some(file_name) = file_name {
            body.extend_from_slice(format!("; filename=\"{file_name}\"").as_bytes());
        }
        body.extend_from_slice(b"\r\n\r\n");
        body.extend_from_slice(content);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    body
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read_however_it_is_split(
        parts in prop::collection::vec(part(), 1..5),
        splits in prop::collection::vec(any::<usize>(), 0..8),
    ) {
        // The boundary is in no content, whatever precedes it.
        let boundary_text = "b-limit";
        let body = write(&parts, boundary_text);
        prop_assert_eq!(read(&body, &boundary(boundary_text), &splits).unwrap(), parts);
    }

    #[test]
    fn the_verdict_does_not_depend_on_the_splits(
        parts in prop::collection::vec(part(), 1..4),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0..3_u8, prop::sample::select(SHARP)), 0..4),
        splits in prop::collection::vec(any::<usize>(), 0..8),
    ) {
        let mut body = write(&parts, "b");
        for (place, kind, byte) in edits {
            let at = place.index(body.len());
            match kind {
                0 => body[at] = byte,
                1 => body.insert(at, byte),
                _ => drop(body.remove(at)),
            }
        }
        let every: Vec<usize> = (0..body.len()).collect();
        let whole = read(&body, &boundary("b"), &[]);
        prop_assert_eq!(read(&body, &boundary("b"), &splits), whole.clone());
        prop_assert_eq!(read(&body, &boundary("b"), &every), whole);
    }

    #[test]
    fn of_a_form_that_is_read_the_boundary_stands_only_where_a_part_ends(
        content in content(),
    ) {
        let body = write(&[("a".to_owned(), None, content)], "b");
        if let Ok(parts) = read(&body, &boundary("b"), &[]) {
            for line in parts[0].2.split(|byte| matches!(byte, b'\r' | b'\n')) {
                prop_assert!(!line.starts_with(b"--b"));
            }
        }
    }

    #[test]
    fn no_body_panics(body in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&body, &boundary("b"), &[]);
    }
}
