//! A form reads the same however it is split, and nothing of a content is lost. The first byte of the input is the size
//! of a read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofgate_multipart::{Boundary, FormEvent, FormReader, MultipartError};

type Parts = Vec<(String, Option<String>, Vec<u8>)>;

fn read(boundary: &Boundary, body: &[u8], size: usize) -> Result<Parts, MultipartError> {
    let mut reader = FormReader::new(boundary);
    let mut parts = Parts::new();
    for mut piece in body.chunks(size) {
        loop {
            let step = reader.read(piece)?;
            match step.event {
                Some(FormEvent::Part(part)) => parts.push((part.name, part.file_name, Vec::new())),
                Some(FormEvent::Data(data)) => {
                    let part = parts.last_mut().expect("data stands in a part");
                    part.2.extend_from_slice(data);
                }
                Some(FormEvent::PartEnd) => {}
                None => break,
            }
            piece = &piece[step.consumed..];
        }
    }
    reader.finish()?;
    Ok(parts)
}

fuzz_target!(|input: &[u8]| {
    let Some((&size, body)) = input.split_first() else {
        return;
    };
    let boundary = Boundary::from_content_type(b"multipart/form-data; boundary=b").expect("it is one");
    let whole = read(&boundary, body, body.len().max(1));
    assert_eq!(read(&boundary, body, usize::from(size) + 1), whole);
    let Ok(parts) = whole else { return };
    let contents: usize = parts.iter().map(|part| part.2.len()).sum();
    assert!(!parts.is_empty() && contents < body.len());
});
