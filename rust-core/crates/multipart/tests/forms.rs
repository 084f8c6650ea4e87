//! Forms that are accepted, and forms that are refused, each for one reason.

mod support;

use proofgate_multipart::{MAX_HEAD_BYTES, MAX_PARTS, MultipartError as E};
use support::{boundary, read};

fn refusal(body: &str) -> Option<E> {
    read(body.as_bytes(), &boundary("b"), &[]).err()
}

fn with_head(head: &str) -> Option<E> {
    refusal(&format!("--b\r\n{head}\r\n\r\nx\r\n--b--\r\n"))
}

const FIELD: &str = "Content-Disposition: form-data; name=\"a\"";
const FILE: &str = "Content-Disposition: form-data; name=\"a\"; filename=\"f\"";

fn with_content(content: &str) -> Option<E> {
    refusal(&format!("--b\r\n{FIELD}\r\n\r\n{content}\r\n--b--\r\n"))
}

#[test]
fn fields_and_files_are_read_in_their_order() {
    let body = "--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nwhisper-1\r\n\
                --b\r\ncontent-disposition:form-data;name=\"file\";filename=\"caf\u{e9} 1.mp3\"\r\n\
                Content-Type: audio/mpeg\r\n\r\n\0\r\n-\r\n--\r\n--\r\n\n\r--x\r\n\
                --b\r\nContent-Disposition: form-data; name=\"languages[]\"\r\n\
                Content-Type: text/plain; charset=UTF-8\r\n\r\n\r\n--b--";
    let expected = [
        ("model", None, &b"whisper-1"[..]),
        ("file", Some("caf\u{e9} 1.mp3"), b"\0\r\n-\r\n--\r\n--\r\n\n\r--x"),
        ("languages[]", None, b""),
    ]
    .map(|(name, file, content)| (name.to_owned(), file.map(str::to_owned), content.to_vec()));
    for end in ["", "\r\n"] {
        let body = format!("{body}{end}");
        assert_eq!(read(body.as_bytes(), &boundary("b"), &[]).unwrap(), expected);
    }
}

#[test]
fn nothing_stands_before_the_first_boundary_or_behind_the_last() {
    let form = format!("--b\r\n{FIELD}\r\n\r\nx\r\n--b--");
    assert_eq!(refusal(&form), None);
    assert_eq!(refusal(&format!("\r\n{form}")), Some(E::Preamble));
    assert_eq!(refusal(&format!("hello\r\n{form}")), Some(E::Preamble));
    assert_eq!(refusal(&format!("{form}\r\nbye")), Some(E::Epilogue));
    assert_eq!(refusal(&format!("{form}\r\n\r\n")), Some(E::Epilogue));
    assert_eq!(refusal(&format!("{form}\r")), Some(E::Epilogue));
    assert_eq!(refusal(&format!("{form}-")), Some(E::Epilogue));
    assert_eq!(refusal(&format!("{form} \r\n")), Some(E::Epilogue));
}

#[test]
fn a_boundary_is_followed_by_the_end_of_its_line() {
    assert_eq!(refusal("--b--"), Some(E::BoundaryLine), "a form has a part");
    assert_eq!(
        refusal(&format!("--b \r\n{FIELD}\r\n\r\nx\r\n--b--")),
        Some(E::BoundaryLine)
    );
    assert_eq!(
        refusal(&format!("--b\n{FIELD}\r\n\r\nx\r\n--b--")),
        Some(E::BoundaryLine)
    );
    assert_eq!(
        with_content("x\r\n--bc"),
        Some(E::BoundaryLine),
        "it is the beginning of a longer one"
    );
    assert_eq!(with_content("x\r\n--b\n"), Some(E::BoundaryLine));
    assert_eq!(with_content("x\r\n--b-x"), Some(E::BoundaryLine));
}

#[test]
fn a_boundary_that_only_some_readers_see_is_refused() {
    for content in [
        "x\n--b",
        "x\r--b",
        "--b",
        "--b--\r\n",
        "x\r\r--b",
        "x\r\n\n--b",
        "x\n--b--",
    ] {
        assert_eq!(with_content(content), Some(E::StrayBoundary), "{content:?}");
    }
    for content in ["x--b", "x\r\n --b", "x\n-b", "--", "x\n--c"] {
        assert_eq!(with_content(content), None, "{content:?}");
    }
}

#[test]
fn a_form_that_breaks_off_is_truncated() {
    let form = format!("--b\r\n{FILE}\r\n\r\nx\r\n--b--");
    for end in 0..form.len() {
        assert_eq!(refusal(&form[..end]), Some(E::Truncated), "{end}");
    }
}

#[test]
fn a_head_that_is_read_differently_is_refused() {
    for (head, error) in [
        ("Content-Type: text/plain", E::InvalidDisposition),
        ("", E::InvalidDisposition),
        ("Content-Disposition: form-data", E::InvalidDisposition),
        (
            "Content-Disposition: attachment; name=\"a\"",
            E::InvalidDisposition,
        ),
        (
            "Content-Disposition: form-data; filename=\"f\"",
            E::InvalidDisposition,
        ),
        ("Content-Disposition: form-data; name=a", E::InvalidDisposition),
        (
            "Content-Disposition: form-data; name=\"a\"; name=\"b\"",
            E::InvalidDisposition,
        ),
        (
            "Content-Disposition: form-data; filename=\"f\"; name=\"a\"",
            E::InvalidDisposition,
        ),
        (
            "Content-Disposition: form-data; name=\"a\"; filename*=UTF-8''f",
            E::InvalidDisposition,
        ),
        (
            "Content-Disposition: form-data; name=\"a\"; filename=\"f\"; filename*=UTF-8''g",
            E::InvalidDisposition,
        ),
        (
            "Content-Disposition: form-data; name*=\"a\"",
            E::InvalidDisposition,
        ),
        (
            "Content-Disposition: form-data; name=\"a\";",
            E::InvalidDisposition,
        ),
        (
            "Content-Disposition: form-data; name=\"a\" x",
            E::InvalidDisposition,
        ),
        ("Content-Disposition: form-data; name=\"a", E::InvalidDisposition),
        ("Content-Disposition: form-data; name=\"\"", E::InvalidName),
        ("Content-Disposition: form-data; name=\"a\\\"b\"", E::InvalidName),
        ("Content-Disposition: form-data; name=\"a%22\"", E::InvalidName),
        ("Content-Disposition: form-data; name=\"\u{e9}\"", E::InvalidName),
        (
            "Content-Disposition: form-data; name=\"_charset_\"",
            E::InvalidName,
        ),
        (
            "Content-Disposition: form-data; name=\"a\"; filename=\"\"",
            E::InvalidFileName,
        ),
        (
            "Content-Disposition: form-data; name=\"a\"; filename=\"C:\\f\"",
            E::InvalidFileName,
        ),
        (&format!("{FIELD}\r\n{FIELD}"), E::UnexpectedHeadField),
        (
            &format!("{FIELD}\r\nContent-Type: text/plain\r\nContent-Type: text/plain"),
            E::UnexpectedHeadField,
        ),
        (
            &format!("{FIELD}\r\nContent-Transfer-Encoding: base64"),
            E::UnexpectedHeadField,
        ),
        (
            &format!("{FIELD}\r\nContent-Disposition-Ignored: 1"),
            E::UnexpectedHeadField,
        ),
        (&format!("{FIELD}\r\nContent-Length: +1"), E::InvalidPartLength),
        (
            &format!("{FIELD}\r\nContent-Length: 1\r\nContent-Length: 1"),
            E::UnexpectedHeadField,
        ),
        (
            &format!("{FIELD}\r\nContent-Length: 99999999999999999999"),
            E::InvalidPartLength,
        ),
        (&format!("{FIELD};\r\n filename=\"f\""), E::InvalidHeadLine),
        (&format!("{FIELD}\r\n\tx: y"), E::InvalidHeadLine),
        (&format!("{FIELD}\nContent-Type: text/plain"), E::InvalidHeadLine),
        (&format!("{FIELD}\rContent-Type: text/plain"), E::InvalidHeadLine),
        (&format!("{FIELD}\r\nnonsense"), E::InvalidHeadLine),
        (
            &format!("{FIELD}\r\nContent-Type : text/plain"),
            E::InvalidHeadLine,
        ),
        (&format!("{FIELD}\0"), E::InvalidHeadLine),
        (
            &format!("{FIELD}\r\nContent-Type: application/octet-stream"),
            E::InvalidPartType,
        ),
        (
            &format!("{FIELD}\r\nContent-Type: text/plain; charset=utf-16"),
            E::InvalidPartType,
        ),
        (
            &format!("{FIELD}\r\nContent-Type: multipart/mixed; boundary=c"),
            E::InvalidPartType,
        ),
        (
            &format!("{FILE}\r\nContent-Type: multipart/mixed; boundary=c"),
            E::InvalidPartType,
        ),
        (
            &format!("{FILE}\r\nContent-Type: message/rfc822"),
            E::InvalidPartType,
        ),
        (&format!("{FILE}\r\nContent-Type: nonsense"), E::InvalidPartType),
        (&format!("{FILE}\r\nContent-Type:"), E::InvalidPartType),
    ] {
        assert_eq!(with_head(head), Some(error), "{head:?}");
    }
    assert_eq!(
        read(
            b"--b\r\nContent-Disposition: form-data; name=\"a\"; filename=\"\xff\"\r\n\r\n\r\n--b--",
            &boundary("b"),
            &[]
        ),
        Err(E::InvalidHeadLine)
    );
}

/// OkHttp, and so OpenAI's Java client, sends the length of each part; Apache's clients send an identity encoding.
#[test]
fn a_length_that_a_part_tells_is_held_against_its_content() {
    let part = |length: &str, content: &str| {
        let head = format!("{FIELD}\r\nContent-Length: {length}\r\nContent-Transfer-Encoding: Binary");
        refusal(&format!("--b\r\n{head}\r\n\r\n{content}\r\n--b--"))
    };
    for content in ["", "x", "two\r\nlines", "\r\n-", "\r\n--c", "\r\r\n"] {
        assert_eq!(part(&content.len().to_string(), content), None, "{content:?}");
        for wrong in [
            content.len() + 1,
            content.len().wrapping_sub(1),
            content.len() + 5,
        ] {
            assert_eq!(
                part(&wrong.to_string(), content),
                Some(E::InvalidPartLength),
                "{content:?}"
            );
        }
    }
}

#[test]
fn parts_and_their_heads_have_bounds() {
    let part = format!("--b\r\n{FIELD}\r\n\r\nx\r\n");
    assert_eq!(refusal(&format!("{}--b--", part.repeat(MAX_PARTS))), None);
    assert_eq!(
        refusal(&format!("{}--b--", part.repeat(MAX_PARTS + 1))),
        Some(E::TooManyParts)
    );
    let rest = MAX_HEAD_BYTES - FILE.len() - "\r\n\r\n".len();
    let file = |more: usize| FILE.replace("\"f\"", &format!("\"f{}\"", "g".repeat(more)));
    assert_eq!(with_head(&file(rest)), None);
    assert_eq!(with_head(&file(rest + 1)), Some(E::HeadTooLong));
}
