use proofgate_base::rejection::Rejection;
use proofgate_multipart::Boundary;
use proofgate_providers::Dialect;
use proptest::prelude::*;

use super::{LineSplitter, UploadedFile};
use crate::form::Form;

const LINE: &str =
    r#"{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{"model":"m","messages":[]}}"#;

/// The lines of a file with their numbers, and the number of bytes that may be sent at its end.
type Cut = (Vec<(u64, Vec<u8>)>, u64);

/// Splits a file that arrives in pieces of these lengths into lines of at most `most` bytes. The
/// error is the number of the first longer line.
fn cut(file: &[u8], pieces: &[usize], most: usize, takes: bool) -> Result<Cut, u64> {
    let mut lines = LineSplitter::new(most);
    let (mut found, mut at) = (Vec::new(), 0);
    let mut pieces = pieces.iter().cycle();
    while at < file.len() {
        let length = pieces.next().map_or(1, |length| (*length).max(1));
        let piece = &file[at..file.len().min(at + length)];
        let pushed = lines.push(piece, at as u64);
        at += piece.len();
        while let Some((number, range)) = lines.next().map_err(|long| long.number)? {
            found.push((number, lines.bytes[range].to_vec()));
        }
        pushed.map_err(|long| long.number)?;
        if takes {
            lines.take_complete();
        }
    }
    lines.finish();
    while let Some((number, range)) = lines.next().map_err(|long| long.number)? {
        found.push((number, lines.bytes[range].to_vec()));
    }
    lines.take_complete();
    Ok((found, lines.offset))
}

proptest! {
    #[test]
    fn a_file_has_the_same_lines_however_it_is_cut(
        file in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b' '), Just(b'\r'), any::<u8>()], 1..200),
        pieces in proptest::collection::vec(1_usize..20, 1..10),
        takes in any::<bool>(),
    ) {
        let whole: Vec<_> = file
            .split(|byte| *byte == b'\n')
            .enumerate()
            .filter(|(_, line)| !line.trim_ascii().is_empty())
            .map(|(at, line)| (at as u64 + 1, line.to_vec()))
            .collect();
        let (found, end) = cut(&file, &pieces, 200, takes).unwrap();
        prop_assert_eq!(found, whole);
        prop_assert_eq!(end, file.len() as u64);
    }

    #[test]
    fn no_line_is_longer_than_it_may_be_wherever_the_file_is_cut(
        lengths in proptest::collection::vec(0_usize..30, 1..10),
        pieces in proptest::collection::vec(1_usize..40, 1..10),
    ) {
        let file = lengths.iter().map(|length| "x".repeat(*length)).collect::<Vec<_>>().join("\n");
        let long = lengths.iter().position(|length| *length > 20).map(|at| at as u64 + 1);
        prop_assume!(!file.is_empty());
        prop_assert_eq!(cut(file.as_bytes(), &pieces, 20, true).err(), long);
    }

    #[test]
    fn a_line_is_read_as_a_request_at_any_cut(piece in 1_usize..300) {
        let file = [LINE, "", LINE].join("\r\n");
        let mut stored = UploadedFile::new(1000);
        stored.set_purpose("batch".into()).unwrap();
        let (mut at, mut lines) = (7_u64, Vec::new());
        for bytes in file.as_bytes().chunks(piece) {
            stored.push(bytes, at).unwrap();
            at += bytes.len() as u64;
            let taken = stored.take_lines();
            for line in taken.lines {
                prop_assert_eq!(line.dialect, Dialect::Chat);
                lines.push((line.number, taken.bytes[line.range].trim_ascii().to_vec()));
            }
            // An incomplete line is not sent.
            prop_assert!(stored.uninspected_from().is_none_or(|from| from < at));
        }
        stored.finish_file().unwrap();
        let taken = stored.take_lines();
        lines.extend(taken.lines.iter().map(|line| (line.number, taken.bytes[line.range.clone()].to_vec())));
        prop_assert_eq!(stored.uninspected_from(), None);
        prop_assert_eq!(lines, vec![(1, LINE.as_bytes().to_vec()), (3, LINE.as_bytes().to_vec())]);
    }
}

/// Returns a form with this file, and the offset of the file in it.
fn form_of(file: &str, purpose_first: bool) -> (Vec<u8>, usize) {
    let purpose = "--limit\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n";
    let head = "--limit\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n";
    let (before, behind) = if purpose_first {
        (purpose, "")
    } else {
        ("", purpose)
    };
    let form = format!("{before}{head}{file}\r\n{behind}--limit--\r\n");
    (form.into_bytes(), before.len() + head.len())
}

proptest! {
    #[test]
    fn of_a_file_only_lines_leave_that_were_handed_out_wherever_its_form_is_cut(
        ends in proptest::collection::vec(
            prop_oneof![Just("\n"), Just("\r\n"), Just("\n\r\n"), Just(" \r\n\n"), Just("\n \n")],
            1..5,
        ),
        last in prop_oneof![Just(""), Just(LINE), Just("\r")],
        pieces in proptest::collection::vec(1_usize..120, 1..8),
        purpose_first in any::<bool>(),
    ) {
        const DELIMITER: &[u8] = b"\r\n--limit";
        let file = ends.iter().map(|end| format!("{LINE}{end}")).collect::<String>() + last;
        let (body, begin) = form_of(&file, purpose_first);
        let boundary = Boundary::from_content_type(b"multipart/form-data; boundary=limit").unwrap();
        let mut form = Form::new(&boundary, Some(UploadedFile::new(1000)));
        let (mut at, mut taken, mut lines) = (0, 0, 0);
        let mut pieces = pieces.iter().cycle();
        while at < body.len() {
            let end = body.len().min(at + pieces.next().unwrap());
            form.push(&body[at..end]).unwrap();
            at = end;
            if let Some(whole) = form.take_lines() {
                prop_assert!(file.as_bytes()[taken..].starts_with(&whole.bytes));
                taken += whole.bytes.len();
                lines += whole.lines.len();
            }
            form.mark_inspected();
            let left = usize::try_from(form.releasable_bytes()).unwrap();
            prop_assert!(left <= at);
            let unseen = &body[(begin + taken).min(left)..left];
            prop_assert!(taken == file.len() || DELIMITER.starts_with(unseen), "{unseen:?}");
        }
        form.check_complete().unwrap();
        prop_assert_eq!((taken, form.releasable_bytes()), (file.len(), body.len() as u64));
        prop_assert_eq!(lines, ends.len() + usize::from(last == LINE));
    }
}

fn refused(result: Result<(), Rejection>) -> Option<&'static str> {
    result.err().map(|rejection| rejection.code)
}

#[test]
fn a_file_that_is_no_input_of_a_batch_is_refused_as_soon_as_it_is_said_to_be_one() {
    for (file, code) in [
        ("not json\n", "invalid_json"),
        ("[]\n", "invalid_json"),
        (&LINE.replace("POST", "GET"), "invalid_value"),
        (&LINE.replace("/v1/chat", "/v1/chut"), "invalid_value"),
        (
            &LINE.replace("/v1/chat/completions", "/v1/audio/transcriptions"),
            "invalid_value",
        ),
        (
            &LINE.replace("/v1/chat/completions", "/v1/messages"),
            "invalid_value",
        ),
        (&LINE.replace("\"a\"", "1"), "invalid_value"),
        (
            &LINE.replace("{\"model\":\"m\",\"messages\":[]}", "[]"),
            "invalid_value",
        ),
        (&LINE.replace("\"method\":\"POST\",", ""), "invalid_value"),
        (&LINE.replace("\"body\"", "\"params\""), "unserved_field"),
        (&LINE.replace("\"url\"", "\"URL\""), "ambiguous_name"),
        (
            &LINE.replace("\"url\"", "\"url\":\"/v1/embeddings\",\"url\""),
            "invalid_json",
        ),
        (&format!("{LINE}\n{LINE}{LINE}\n"), "invalid_json"),
        (&format!("{LINE}\n\r{LINE}\n"), "ambiguous_line"),
    ] {
        let mut before = UploadedFile::new(1000);
        before.set_purpose("batch".into()).unwrap();
        let said = before
            .push(file.as_bytes(), 0)
            .and_then(|()| before.finish_file());
        assert_eq!(refused(said), Some(code), "{file}");

        let mut behind = UploadedFile::new(1000);
        behind.push(file.as_bytes(), 0).unwrap();
        behind.finish_file().unwrap();
        assert_eq!(refused(behind.set_purpose("batch".into())), Some(code), "{file}");

        let mut other = UploadedFile::new(1000);
        other.push(file.as_bytes(), 0).unwrap();
        other.finish_file().unwrap();
        assert_eq!(refused(other.set_purpose("fine-tune".into())), None);
        assert!(!other.has_lines() && other.uninspected_from().is_none());
    }
}

#[test]
fn a_file_for_something_else_is_not_looked_at() {
    let mut stored = UploadedFile::new(10);
    stored.set_purpose("user_data".into()).unwrap();
    stored.start_file("file").unwrap();
    stored.push(&[0xff; 100], 0).unwrap();
    stored.finish_file().unwrap();
    assert!(!stored.has_lines() && stored.uninspected_from().is_none());
    stored.check_complete().unwrap();
}

#[test]
fn an_upload_has_one_file_and_one_purpose() {
    let mut stored = UploadedFile::new(10);
    assert_eq!(refused(stored.check_complete()), Some("invalid_form"));
    assert_eq!(refused(stored.start_file("image")), Some("invalid_form"));
    stored.start_file("file").unwrap();
    assert_eq!(refused(stored.start_file("file")), Some("invalid_form"));
    assert_eq!(refused(stored.check_complete()), Some("invalid_form"));
    for purpose in ["", "Batch", "batch ", "a.b"] {
        assert_eq!(
            refused(stored.set_purpose(purpose.into())),
            Some("invalid_form"),
            "{purpose}"
        );
    }
    stored.set_purpose("batch".into()).unwrap();
    assert_eq!(refused(stored.set_purpose("vision".into())), Some("invalid_form"));
    stored.check_complete().unwrap();
}
