//! The text form of a key, and the rules for key names.

use crate::LedgerError;
use base64::{Engine, engine::general_purpose::STANDARD};
use sha2::{Digest, Sha256};

/// Algorithm byte of a log's key.
pub(crate) const LOG_ALGORITHM: u8 = 0x01;
/// Algorithm byte of a witness's Ed25519 key.
pub(crate) const WITNESS_ALGORITHM: u8 = 0x04;
/// Algorithm byte of a witness's ML-DSA-44 key.
pub(crate) const WITNESS_ML_DSA_ALGORITHM: u8 = 0x06;

/// Computes a key id: the first bytes of SHA-256 over the key's name, a newline, its algorithm and the public key.
pub(crate) fn key_id(name: &str, algorithm: u8, public: &[u8]) -> [u8; 4] {
    let mut sha = Sha256::new();
    sha.update(name.as_bytes());
    sha.update([b'\n', algorithm]);
    sha.update(public);
    let digest = sha.finalize();
    [digest[0], digest[1], digest[2], digest[3]]
}

/// Formats `<name>+<hash8>+<base64(algorithm ‖ key)>`.
pub(crate) fn key_text(name: &str, id: [u8; 4], algorithm: u8, key: &[u8]) -> String {
    let mut body = Vec::with_capacity(1 + key.len());
    body.push(algorithm);
    body.extend_from_slice(key);
    let text = format!("{name}+{:08x}+{}", u32::from_be_bytes(id), STANDARD.encode(&body));
    body.fill(0);
    text
}

pub(crate) fn check_name(name: &str) -> Result<(), LedgerError> {
    if name.is_empty()
        || name
            .chars()
            .any(|c| c.is_whitespace() || c.is_control() || c == '+')
    {
        return Err(LedgerError::KeyMalformed(
            "a key name must not contain white space, control characters or '+'",
        ));
    }
    Ok(())
}

pub(crate) fn check_origin(name: &str, origin: &str) -> Result<(), LedgerError> {
    let below = origin
        .strip_prefix(name)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if !below {
        return Err(LedgerError::OriginNotBelowKey {
            key: name.to_owned(),
            origin: origin.to_owned(),
        });
    }
    check_name(origin)
}

/// Splits `<name>+<hash8>+<base64(algorithm ‖ key)>` into its parts, for a key of `BYTES` bytes.
pub(crate) fn split_key_text<const BYTES: usize>(
    text: &str,
    algorithm: u8,
) -> Result<(String, [u8; 4], [u8; BYTES]), LedgerError> {
    let form = || LedgerError::KeyMalformed("not of the form name+hash+base64");
    // The base64 alphabet contains `+`, but a name does not.
    let mut parts = text.splitn(3, '+');
    let (name, id, body) = match (parts.next(), parts.next(), parts.next()) {
        (Some(name), Some(id), Some(body)) => (name, id, body),
        _ => return Err(form()),
    };
    if id.len() != 8
        || !id
            .bytes()
            .all(|c| c.is_ascii_digit() || (b'a'..=b'f').contains(&c))
    {
        return Err(form());
    }
    let id = u32::from_str_radix(id, 16).map_err(|_| form())?.to_be_bytes();
    let mut body = STANDARD.decode(body).map_err(|_| form())?;
    let key = match body.split_first() {
        Some((found, key)) if *found == algorithm => <[u8; BYTES]>::try_from(key).map_err(|_| form()),
        Some((&LOG_ALGORITHM, _)) => Err(LedgerError::KeyMalformed(
            "this is the Ed25519 key of a log; a witness key (type 0x04) is required",
        )),
        Some((&WITNESS_ALGORITHM, _)) => Err(LedgerError::KeyMalformed(
            "this is the key of a witness (type 0x04); the key of a log is required",
        )),
        Some((&WITNESS_ML_DSA_ALGORITHM, _)) => Err(LedgerError::KeyMalformed(
            "this is the ML-DSA-44 key of a witness (type 0x06); an Ed25519 key is required",
        )),
        _ => Err(LedgerError::KeyMalformed("not an Ed25519 key")),
    };
    body.fill(0);
    Ok((name.to_owned(), id, key?))
}
