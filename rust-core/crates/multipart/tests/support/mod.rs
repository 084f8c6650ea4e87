//! Parses a form as its receiver would.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proofgate_multipart::{Boundary, FormEvent, FormReader, MultipartError};

/// A part with its content: name, file name, bytes.
pub type Whole = (String, Option<String>, Vec<u8>);

pub fn boundary(text: &str) -> Boundary {
    Boundary::from_content_type(format!("multipart/form-data; boundary={text}").as_bytes()).unwrap()
}

/// Reads a body in pieces that end at `splits`.
pub fn read(body: &[u8], boundary: &Boundary, splits: &[usize]) -> Result<Vec<Whole>, MultipartError> {
    let mut ends: Vec<usize> = splits.iter().map(|split| split % (body.len() + 1)).collect();
    ends.push(body.len());
    ends.sort_unstable();
    let mut reader = FormReader::new(boundary);
    let (mut at, mut parts, mut in_part) = (0, Vec::<Whole>::new(), false);
    for end in ends {
        loop {
            let step = reader.read(&body[at..end])?;
            at += step.consumed;
            match step.event {
                Some(FormEvent::Part(part)) => {
                    assert!(!std::mem::replace(&mut in_part, true));
                    parts.push((part.name, part.file_name, Vec::new()));
                }
                Some(FormEvent::Data(data)) => {
                    assert!(in_part && !data.is_empty());
                    parts.last_mut().unwrap().2.extend_from_slice(data);
                }
                Some(FormEvent::PartEnd) => assert!(std::mem::replace(&mut in_part, false)),
                None => break,
            }
        }
        assert_eq!(at, end);
    }
    reader.finish()?;
    assert!(reader.is_done() && !in_part);
    Ok(parts)
}
