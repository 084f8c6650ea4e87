//! Key destructions: statements that the retention job signs about destroyed shred keys, in the format of
//! `docs/reference/ledger-format.md`, section 9.

use crate::note::Note;
use crate::record::ShredKeyId;
use crate::statement::{Justification, MAX_STATEMENT_BYTES, StatementReader, check_reason};
use crate::{LedgerError, SigningKey, VerifyingKey};

const FORMAT: &str = "proofgate.dev/key-destruction@v2";

/// A statement that a tenant's shred key was destroyed. No salt that needs the key can be derived
/// any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyDestruction {
    /// Name of the ledger.
    pub ledger: String,
    /// The destroyed key.
    pub key: ShredKeyId,
    /// The tenant that owned the key.
    pub tenant: String,
    /// Time of signing, in unix microseconds.
    pub time: u64,
    /// Number of admissions on this volume that named the key at that time.
    pub exchanges: u64,
    /// Author of the destruction, and the reason for it.
    pub justification: Justification,
}

impl KeyDestruction {
    /// Returns the signed text: eight lines including the format line, or nine with a ticket. Each
    /// line ends in a newline.
    #[must_use]
    pub fn body(&self) -> String {
        format!(
            "{FORMAT}\n{}\nkey {}\ntenant {}\ndestroyed {}\nexchanges {}\n{}",
            self.ledger,
            self.key,
            self.tenant,
            self.time,
            self.exchanges,
            self.justification.lines()
        )
    }

    /// Signs the statement with the retention key under its own name and returns the note.
    ///
    /// # Errors
    /// [`LedgerError::StatementMalformed`] when a part of [`Self::justification`], or the tenant's name, is not one
    /// line of text; [`LedgerError::SignerFailed`].
    pub fn sign(&self, key: &SigningKey) -> Result<String, LedgerError> {
        self.justification.check()?;
        check_reason(&self.tenant)?;
        key.sign_note(&self.body())
    }

    /// Reads a signed note and verifies that the retention key signed it.
    ///
    /// # Errors
    /// Any error in the note, its text or its signature.
    pub fn verify(note: &str, key: &VerifyingKey) -> Result<Self, LedgerError> {
        let malformed = LedgerError::StatementMalformed;
        if note.len() > MAX_STATEMENT_BYTES {
            return Err(malformed("larger than 8 KiB"));
        }
        let note = Note::parse(note)?;
        let mut lines = StatementReader::new(note.text, FORMAT)?;
        let ledger = lines.next_line()?.to_owned();
        let id = lines.next_value("key")?.parse();
        let id = id.map_err(|_| malformed("a key's id must be 16 lower-case hex digits"))?;
        let tenant = lines.next_value("tenant")?;
        check_reason(tenant)?;
        let destruction = Self {
            ledger,
            key: id,
            tenant: tenant.to_owned(),
            time: lines.next_number("destroyed")?,
            exchanges: lines.next_number("exchanges")?,
            justification: lines.into_justification()?,
        };
        note.verify_signer(key, Some(destruction.time))?;
        Ok(destruction)
    }
}

#[cfg(test)]
mod tests {
    use super::KeyDestruction;
    use crate::record::ShredKeyId;
    use crate::{Justification, SigningKey};
    use proptest::prelude::*;

    fn key(name: &str) -> SigningKey {
        SigningKey::generate(name, [3; 32]).unwrap()
    }

    fn destruction() -> KeyDestruction {
        KeyDestruction {
            ledger: "proofgate.dev/team/llm".to_owned(),
            key: ShredKeyId([0xa3; 8]),
            tenant: "acme".to_owned(),
            time: 3,
            exchanges: 12,
            justification: Justification {
                author: "officer".to_owned(),
                reason: "the contract ended".to_owned(),
                ticket: None,
            },
        }
    }

    #[test]
    fn what_was_signed_is_read_back_and_no_other_key_is_believed() {
        let note = destruction().sign(&key("retention")).unwrap();
        let text = "proofgate.dev/key-destruction@v2\nproofgate.dev/team/llm\nkey a3a3a3a3a3a3a3a3\ntenant acme\n\
                    destroyed 3\nexchanges 12\nauthor officer\nreason the contract ended\n\n";
        assert!(note.starts_with(text));
        let read = KeyDestruction::verify(&note, &key("retention").verifying_key()).unwrap();
        assert_eq!(read, destruction());
        assert!(KeyDestruction::verify(&note, &key("other").verifying_key()).is_err());
    }

    #[test]
    fn a_line_more_or_another_form_of_the_id_is_refused() {
        let body = destruction().body();
        for text in [
            body.replace("a3a3a3a3a3a3a3a3", "A3A3A3A3A3A3A3A3"),
            body.replace("a3a3a3a3a3a3a3a3", "a3a3a3a3a3a3a3"),
            body.replace("tenant acme", "tenant "),
            format!("{body}more\n"),
            body.replace("exchanges 12\n", ""),
        ] {
            let note = key("retention").sign_note(&text).unwrap();
            assert!(
                KeyDestruction::verify(&note, &key("retention").verifying_key()).is_err(),
                "{text}"
            );
        }
        let named = KeyDestruction {
            tenant: "a\nb".to_owned(),
            ..destruction()
        };
        assert!(named.sign(&key("retention")).is_err());
    }

    proptest! {
        #[test]
        fn bytes_from_outside_are_read_or_refused(text in "\\PC{0,200}") {
            let _ = KeyDestruction::verify(&text, &key("retention").verifying_key());
            let signed = key("retention").sign_note(&format!("{text}\n")).unwrap();
            let _ = KeyDestruction::verify(&signed, &key("retention").verifying_key());
        }
    }
}
