#![allow(clippy::unwrap_used, reason = "a test may stop at the first failure")]

use super::{SocketSigner, parse_public_key, read_keys};
use proofgate_ledger::{Checkpoint, KeySuccession, LedgerError, Signer, SigningKey};
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

const LEDGER: &str = "a.example/b";

/// A token's response to the message that it is asked to sign.
type Answer = fn(&[u8]) -> Vec<u8>;

fn refuses(_: &[u8]) -> Vec<u8> {
    b"\x01\x00\x0bno\nsessions".to_vec()
}

fn is_wrong(_: &[u8]) -> Vec<u8> {
    vec![0; 65]
}

fn ends(_: &[u8]) -> Vec<u8> {
    vec![0; 9]
}

fn is_none(_: &[u8]) -> Vec<u8> {
    b"HTTP/1.1 400".to_vec()
}

fn read(stream: &mut UnixStream, bytes: usize) -> Option<Vec<u8>> {
    let mut read = vec![0; bytes];
    stream.read_exact(&mut read).ok()?;
    Some(read)
}

fn question(stream: &mut UnixStream) -> Option<Vec<u8>> {
    let length = read(stream, 2)?;
    read(stream, usize::from(u16::from_be_bytes([length[0], length[1]])))?;
    let length = read(stream, 4)?;
    read(stream, u32::from_be_bytes(length.try_into().ok()?) as usize)
}

/// Runs a signer that responds with `answer` as long as the test runs.
fn serve(path: &Path, answer: impl Fn(&[u8]) -> Vec<u8> + Send + 'static) {
    let listener = UnixListener::bind(path).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            if let Some(message) = question(&mut stream) {
                let _ = stream.write_all(&answer(&message));
            }
        }
    });
}

/// A token that signs each message with this key.
fn token(seed: u8) -> impl Fn(&[u8]) -> Vec<u8> + Send {
    let key = ed25519_dalek::SigningKey::from_bytes(&[seed; 32]);
    move |message| [&[0][..], &ed25519_dalek::Signer::sign(&key, message).to_bytes()].concat()
}

fn key(seed: u8) -> SigningKey {
    SigningKey::generate(LEDGER, [seed; 32]).unwrap()
}

fn line(seed: u8, socket: &Path) -> String {
    format!(
        "SIGNER {} {}",
        key(seed).verifying_key().to_text(),
        socket.display()
    )
}

fn socket(dir: &tempfile::TempDir, name: &str) -> PathBuf {
    dir.path().join(name)
}

#[test]
fn what_a_signer_signs_verifies_and_what_is_derived_of_it_is_the_same_at_each_start() {
    let dir = tempfile::tempdir().unwrap();
    let path = socket(&dir, "s");
    serve(&path, token(1));
    let (held, former) = read_keys(&line(1, &path)).unwrap();
    assert!(former.is_none());
    let checkpoint = Checkpoint {
        origin: format!("{LEDGER}/0/x"),
        size: 1,
        root: [7; 32],
    };
    let note = checkpoint.sign(&held).unwrap();
    assert_eq!(note, checkpoint.sign(&key(1)).unwrap());
    let (again, _) = read_keys(&line(1, &path)).unwrap();
    assert_eq!(
        again.derive("purpose", b"context"),
        held.derive("purpose", b"context")
    );
    assert_ne!(
        held.derive("purpose", b"context"),
        key(1).derive("purpose", b"context")
    );
    assert!(!format!("{held:?}").contains(path.to_str().unwrap()));
}

#[test]
fn a_key_of_a_signer_follows_one_of_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = socket(&dir, "s");
    serve(&path, token(2));
    let (held, _) = read_keys(&line(2, &path)).unwrap();
    let statement = KeySuccession::sign(&key(1), &held, 1, 2).unwrap();
    let text = format!("{}\n{}\n\n{statement}", line(2, &path), key(1).to_text());
    let (following, former) = read_keys(&text).unwrap();
    assert_eq!(following.verifying_key().lineage().len(), 2);
    assert_eq!(former.unwrap().verifying_key(), key(1).verifying_key());
    let public = parse_public_key(&text).unwrap();
    assert_eq!(
        (public.to_text(), public.lineage().len()),
        (key(2).verifying_key().to_text(), 2)
    );
    assert!(parse_public_key(&text.replace("until 2", "until 3")).is_err());
}

#[test]
fn a_signer_that_refuses_errs_or_holds_another_key_is_told_as_one() {
    let dir = tempfile::tempdir().unwrap();
    let answers: [(&str, Answer, &str); 4] = [
        ("refuses", refuses, "it refused: nosessions"),
        ("wrong", is_wrong, "does not verify"),
        ("ends", ends, "failed to fill"),
        ("none", is_none, "its answer begins with the unknown kind 72"),
    ];
    for (name, answer, told) in answers {
        let path = socket(&dir, name);
        serve(&path, answer);
        let Err(LedgerError::SignerFailed(why)) = read_keys(&line(1, &path)) else {
            unreachable!("{name} signs");
        };
        assert!(why.contains(told), "{name}: {why}");
    }
    let path = socket(&dir, "another");
    serve(&path, token(3));
    assert!(read_keys(&line(1, &path)).is_err());
    assert!(matches!(
        read_keys(&line(1, &socket(&dir, "nobody"))),
        Err(LedgerError::SignerFailed(_))
    ));
}

#[test]
fn a_signer_that_signs_one_message_in_two_ways_is_none() {
    let dir = tempfile::tempdir().unwrap();
    let path = socket(&dir, "s");
    let turn = std::sync::atomic::AtomicU8::new(0);
    let sign = token(1);
    serve(&path, move |message| {
        match turn.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            0 => sign(message),
            _ => vec![0; 65],
        }
    });
    let Err(LedgerError::SignerFailed(why)) = read_keys(&line(1, &path)) else {
        unreachable!("it signs");
    };
    assert!(why.contains("two different ways"), "{why}");
}

#[test]
fn nobody_waits_for_a_silent_signer_and_it_is_asked_once_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let path = socket(&dir, "s");
    let listener = UnixListener::bind(&path).unwrap();
    let signer = SocketSigner::new(&path, &key(1).verifying_key(), Duration::from_millis(20));
    let mut told = Vec::new();
    while !told.iter().any(|why: &String| why.contains("previous")) {
        told.push(signer.sign(b"message").unwrap_err().to_string());
    }
    drop(listener);
    assert!(
        told.iter()
            .all(|why| why.contains("in time") || why.contains("previous") || why.contains("os error")),
        "{told:?}"
    );
}

#[test]
fn a_line_that_names_no_signer_is_refused() {
    let vkey = key(1).verifying_key().to_text();
    for text in [
        "SIGNER",
        "SIGNER ",
        &format!("SIGNER {vkey}"),
        &format!("SIGNER {vkey} relative"),
        "SIGNER x /s",
    ] {
        assert!(read_keys(text).is_err(), "{text}");
        assert!(parse_public_key(text).is_err(), "{text}");
    }
}
