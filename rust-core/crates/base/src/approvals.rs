//! Approvals that let a model call a guarded tool although a tool text looks like instructions.
//!
//! An approval is `expires ‖ HMAC-SHA256(key, "proofgate/v1/approval" ‖ 0x00 ‖ tenant ‖ tool ‖ texts ‖ expires)`, truncated
//! to 16 bytes, in hex. The gateway returns it to the client together with the refusal, and the client can send it with a
//! later request; a model cannot. The key is random and never leaves the process: another process asks for approval again.

use hmac::{Hmac, KeyInit, Mac};
use proofgate_wire::Headers;
use rand::rngs::StdRng;
use rand::{RngCore, SeedableRng};
use sha2::{Digest, Sha256};

/// The request header field with approvals, separated by commas.
pub(crate) const APPROVE_HEADER: &str = "x-proofgate-approve";

/// The validity of an approval in seconds: about the duration of a task.
const LIFETIME_SECONDS: u64 = 24 * 3600;

const MAC_DOMAIN: &[u8] = b"proofgate/v1/approval\0";

/// Maximum number of a request's approvals that are checked.
const MAX_APPROVALS: usize = 16;

const MAC_BYTES: usize = 16;
const APPROVAL_BYTES: usize = size_of::<u64>() + MAC_BYTES;

/// An approval of some tools for some texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Approval([u8; APPROVAL_BYTES]);

/// The subject of an approval.
#[derive(Debug, Clone, Copy)]
pub struct ApprovalSubject<'a> {
    pub tenant: &'a str,
    /// The configuration entry that names the tools.
    pub tool: &'a str,
    /// The digest of the texts.
    pub texts_digest: &'a [u8; 32],
}

/// Issues and verifies approvals.
pub struct ApprovalIssuer(Hmac<Sha256>);

impl ApprovalIssuer {
    /// Creates an issuer with a random key.
    pub fn new() -> Self {
        let mut key = [0; 64];
        StdRng::from_os_rng().fill_bytes(&mut key);
        // The block size of SHA-256.
        Self(Hmac::new(&key.into()))
    }

    /// Issues an approval that is valid from `now` (Unix seconds).
    pub fn issue(&self, about: &ApprovalSubject<'_>, now: u64) -> Approval {
        let expires = now.saturating_add(LIFETIME_SECONDS).to_be_bytes();
        let mac = self.mac(about, expires).finalize().into_bytes();
        let mut approval = [0; APPROVAL_BYTES];
        approval[..expires.len()].copy_from_slice(&expires);
        approval[expires.len()..].copy_from_slice(&mac[..MAC_BYTES]);
        Approval(approval)
    }

    /// Whether an approval is valid for this subject and has not expired.
    pub fn is_valid(&self, approval: &Approval, about: &ApprovalSubject<'_>, now: u64) -> bool {
        let Some((expires, mac)) = approval.0.split_first_chunk() else {
            return false;
        };
        u64::from_be_bytes(*expires) > now && self.mac(about, *expires).verify_truncated_left(mac).is_ok()
    }

    fn mac(&self, about: &ApprovalSubject<'_>, expires: [u8; 8]) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        mac.update(MAC_DOMAIN);
        for text in [about.tenant, about.tool] {
            mac.update(&(text.len() as u64).to_be_bytes());
            mac.update(text.as_bytes());
        }
        mac.update(about.texts_digest);
        mac.update(&expires);
        mac
    }
}

impl Approval {
    /// Returns the approvals of a request. Only the first 16 are read; malformed ones are
    /// ignored.
    pub fn from_headers(headers: &Headers<'_>) -> Vec<Approval> {
        let values = headers
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case(APPROVE_HEADER));
        let words = values.flat_map(|(_, value)| value.split(|byte| *byte == b','));
        words
            .filter_map(|word| Self::parse(word.trim_ascii()))
            .take(MAX_APPROVALS)
            .collect()
    }

    fn parse(word: &[u8]) -> Option<Self> {
        let mut approval = [0; APPROVAL_BYTES];
        if word.len() != APPROVAL_BYTES * 2 {
            return None;
        }
        for (byte, digits) in approval.iter_mut().zip(word.chunks_exact(2)) {
            // A sign is not a digit, although parsing would accept it.
            let digits = digits.iter().all(u8::is_ascii_hexdigit).then_some(digits)?;
            *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        }
        Some(Self(approval))
    }

    /// Returns the ID for records: the first 8 bytes of the SHA-256 of the approval's bytes, in
    /// hex. The ID itself approves nothing.
    pub fn record_id(&self) -> String {
        hex(&Sha256::digest(self.0)[..8])
    }
}

impl std::fmt::Display for Approval {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&hex(&self.0))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABOUT: ApprovalSubject<'_> = ApprovalSubject {
        tenant: "acme",
        tool: "Bash",
        texts_digest: &[7; 32],
    };

    #[test]
    fn an_approval_is_for_one_tenant_one_entry_these_texts_and_a_day() {
        let (approvals, now) = (ApprovalIssuer::new(), 1_000_000);
        let approval = Approval::parse(approvals.issue(&ABOUT, now).to_string().as_bytes()).unwrap();
        assert!(approvals.is_valid(&approval, &ABOUT, now + LIFETIME_SECONDS - 1));
        assert!(!approvals.is_valid(&approval, &ABOUT, now + LIFETIME_SECONDS));
        for about in [
            ApprovalSubject {
                tenant: "acm",
                tool: "eBash",
                ..ABOUT
            },
            ApprovalSubject {
                tenant: "globex",
                ..ABOUT
            },
            ApprovalSubject {
                tool: "Write",
                ..ABOUT
            },
            ApprovalSubject {
                texts_digest: &[8; 32],
                ..ABOUT
            },
        ] {
            assert!(!approvals.is_valid(&approval, &about, now));
        }
        assert!(!ApprovalIssuer::new().is_valid(&approval, &ABOUT, now));
        for byte in 0..APPROVAL_BYTES {
            let mut forged = approval;
            forged.0[byte] ^= 1;
            // Also one with a later expiry.
            assert!(!approvals.is_valid(&forged, &ABOUT, now));
        }
    }

    #[test]
    fn what_is_no_approval_is_left_out() {
        for word in [
            "",
            "00",
            &"+0".repeat(APPROVAL_BYTES),
            &"zz".repeat(APPROVAL_BYTES),
            &"0".repeat(APPROVAL_BYTES * 2 + 2),
        ] {
            assert_eq!(Approval::parse(word.as_bytes()), None, "{word}");
        }
        assert_eq!(
            Approval::parse(&[b'0'; APPROVAL_BYTES * 2]),
            Some(Approval([0; APPROVAL_BYTES]))
        );
    }
}
