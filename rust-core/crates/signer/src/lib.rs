//! Keys held by another process: a signer behind a Unix socket, such as a shim for a PKCS#11 token or a KMS, and the
//! key files that name it.
//!
//! Instead of a private key, a key file contains the line `SIGNER <vkey> <absolute path of the socket>`.
//!
//! **The protocol.** The client opens one connection per signature and closes it after the response.
//!
//! ```text
//! client   length of the vkey (2 bytes, big-endian), vkey; length of the message (4 bytes, big-endian), message
//! signer   0x00, the signature (64 bytes, RFC 8032 section 5.1.6)
//!          0x01, length (2 bytes, big-endian), reason for the refusal: one line of UTF-8, at most 512 bytes
//! ```
//!
//! Signing is not on the hot path, and no caller waits longer than [`SIGN_TIMEOUT`]: the exchange runs on its own
//! thread, one at a time.
#![forbid(unsafe_code)]

use proofgate_ledger::{KeySuccession, LedgerError, SignError, Signer, SigningKey, VerifyingKey};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// Maximum time to wait for a signature.
pub const SIGN_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum bytes of a refusal that are read.
const MAX_REFUSAL_BYTES: usize = 512;
const SIGNER_PREFIX: &str = "SIGNER ";

/// A signer behind a Unix socket.
pub struct SocketSigner {
    path: PathBuf,
    vkey: String,
    public: [u8; 32],
    timeout: Duration,
    /// Whether an exchange is still running, possibly after its caller stopped waiting.
    busy: Arc<AtomicBool>,
}

impl SocketSigner {
    /// Creates a signer that holds this key and listens at this path. Nothing is opened yet.
    #[must_use]
    pub fn new(path: &Path, key: &VerifyingKey, deadline: Duration) -> Self {
        Self {
            path: path.to_owned(),
            vkey: key.to_text(),
            public: key.point_bytes(),
            timeout: deadline,
            busy: Arc::default(),
        }
    }
}

impl Signer for SocketSigner {
    fn public_key(&self) -> [u8; 32] {
        self.public
    }

    fn sign(&self, message: &[u8]) -> Result<[u8; 64], SignError> {
        let told = |what: &str| SignError(format!("{}: {what}", self.path.display()));
        if self.busy.swap(true, Ordering::AcqRel) {
            return Err(told("it has not answered the previous request"));
        }
        let (answer, answered) = mpsc::sync_channel(1);
        let (path, vkey, message) = (self.path.clone(), self.vkey.clone(), message.to_vec());
        let (busy, deadline) = (Arc::clone(&self.busy), self.timeout);
        let thread = std::thread::Builder::new().name("proofgate-signer".to_owned());
        let asking = thread.spawn(move || {
            let asked = request_signature(&path, &vkey, &message, deadline);
            busy.store(false, Ordering::Release);
            // The caller may have stopped waiting.
            let _ = answer.send(asked);
        });
        if let Err(error) = asking {
            self.busy.store(false, Ordering::Release);
            return Err(told(&format!("cannot start a thread for the request: {error}")));
        }
        match answered.recv_timeout(self.timeout) {
            Ok(Ok(Ok(signature))) => Ok(signature),
            Ok(Ok(Err(refusal))) => Err(told(&format!("it refused: {refusal}"))),
            Ok(Err(error)) => Err(told(&error.to_string())),
            Err(_) => Err(told("it did not answer in time")),
        }
    }
}

/// Runs one exchange; returns the signature, or the reason for the refusal.
fn request_signature(
    path: &Path,
    vkey: &str,
    message: &[u8],
    deadline: Duration,
) -> io::Result<Result<[u8; 64], String>> {
    let too_long = |_| io::Error::other("the request is too long");
    let mut question = Vec::with_capacity(6 + vkey.len() + message.len());
    question.extend_from_slice(&u16::try_from(vkey.len()).map_err(too_long)?.to_be_bytes());
    question.extend_from_slice(vkey.as_bytes());
    question.extend_from_slice(&u32::try_from(message.len()).map_err(too_long)?.to_be_bytes());
    question.extend_from_slice(message);
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(deadline))?;
    stream.set_write_timeout(Some(deadline))?;
    stream.write_all(&question)?;
    let mut kind = [0; 1];
    stream.read_exact(&mut kind)?;
    match kind {
        [0] => {
            let mut signature = [0; 64];
            stream.read_exact(&mut signature)?;
            Ok(Ok(signature))
        }
        [1] => {
            let mut length = [0; 2];
            stream.read_exact(&mut length)?;
            let mut text = vec![0; usize::from(u16::from_be_bytes(length)).min(MAX_REFUSAL_BYTES)];
            stream.read_exact(&mut text)?;
            let text = String::from_utf8_lossy(&text);
            Ok(Err(text.chars().filter(|c| !c.is_control()).collect()))
        }
        [other] => Err(io::Error::other(format!(
            "its answer begins with the unknown kind {other}"
        ))),
    }
}

/// Parses the text of a key file, as [`SigningKey::from_rotation_text`] does, but also accepts keys held by a signer.
/// The signer is contacted, so that a key that cannot sign is refused.
///
/// # Errors
/// Same as [`SigningKey::from_rotation_text`]; [`LedgerError::SignerFailed`].
pub fn read_keys(text: &str) -> Result<(SigningKey, Option<SigningKey>), LedgerError> {
    SigningKey::from_rotation_text_with(text, &|line| match parse_signer_line(line)? {
        None => SigningKey::from_text(line),
        Some((key, path)) => {
            let signer = SocketSigner::new(path, &key, SIGN_TIMEOUT);
            SigningKey::from_signer(&key, Arc::new(signer))
        }
    })
}

/// Whether a text is the text of a key file with a key that can sign.
#[must_use]
pub fn is_secret_key_text(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with("PRIVATE+KEY+") || text.starts_with(SIGNER_PREFIX)
}

/// Parses the public half of the first key of a key file, with the lineage from its statements of succession. No signer
/// is contacted.
///
/// # Errors
/// Same as [`SigningKey::from_file_text`].
pub fn parse_public_key(text: &str) -> Result<VerifyingKey, LedgerError> {
    let first = text.trim_start().lines().next().unwrap_or_default().trim_end();
    let key = match parse_signer_line(first)? {
        None => SigningKey::from_text(first)?.verifying_key(),
        Some((key, _)) => key,
    };
    // The keys come before the first statement.
    let notes = KeySuccession::split_notes(text);
    let notes = notes.iter().filter(|note| !is_secret_key_text(note));
    let statements: Result<Vec<_>, _> = notes.map(|note| KeySuccession::verify(note)).collect();
    key.with_successions(&statements?)
}

/// Parses the key and the socket path in a line; `None` for any other line.
fn parse_signer_line(line: &str) -> Result<Option<(VerifyingKey, &Path)>, LedgerError> {
    let Some(rest) = line.strip_prefix(SIGNER_PREFIX) else {
        return Ok(None);
    };
    let form = LedgerError::KeyMalformed("not of the form SIGNER vkey /path/of/socket");
    let (vkey, path) = rest.split_once(' ').ok_or(form.clone())?;
    let path = Path::new(path);
    match path.is_absolute() {
        true => Ok(Some((VerifyingKey::from_text(vkey)?, path))),
        false => Err(form),
    }
}

#[cfg(test)]
mod tests;
