//! Trust policies: the known logs and witnesses, and the cosignatures that a checkpoint needs to be trusted
//! (c2sp.org/tlog-policy).
//!
//! ```text
//! log <vkey> [<url>]
//! witness <name> <vkey> [<url>]
//! group <name> all|any|<k> <name>...
//! quorum <name>|none
//! ```

use crate::{CosignatureKey, LedgerError, SignedCheckpoint, VerifyingKey};
use std::collections::BTreeMap;

/// Largest policy that is parsed, in bytes.
pub const MAX_POLICY_BYTES: usize = 64 * 1024;
/// Most logs, most witnesses and most groups in a policy. The format requires every implementation
/// to support this number.
const MAX_ITEMS: usize = 32;

/// A witness of a policy.
#[derive(Clone, Debug)]
pub struct PolicyWitness {
    /// Displayable form of the witness's name, which is a byte string without meaning outside the
    /// policy.
    pub name: String,
    /// Key of the witness.
    pub key: CosignatureKey,
    /// Submission prefix of the witness (c2sp.org/tlog-witness), if the policy has one.
    pub url: Option<String>,
}

/// A rule that cosignatures must satisfy.
#[derive(Clone, Debug)]
enum QuorumRule {
    Witness(usize),
    /// A group: this many of its members must have cosigned.
    Group(usize, Vec<QuorumRule>),
}

/// A trust policy.
#[derive(Clone, Debug)]
pub struct TrustPolicy {
    logs: Vec<VerifyingKey>,
    witnesses: Vec<PolicyWitness>,
    /// The rule that the cosignatures must satisfy; `None` if no cosignature is needed.
    quorum: Option<QuorumRule>,
}

/// The rule of a defined name, and whether the name was used. Each name may be used once.
struct Definition {
    rule: QuorumRule,
    used: bool,
}

impl TrustPolicy {
    /// Returns a policy without logs and witnesses, which requires no cosignature.
    #[must_use]
    pub fn unconditional() -> Self {
        Self {
            logs: Vec::new(),
            witnesses: Vec::new(),
            quorum: None,
        }
    }

    /// Parses a policy file.
    ///
    /// # Errors
    /// [`LedgerError::PolicyMalformed`] with the line and the reason. Logs have Ed25519 keys; witnesses have Ed25519 or
    /// ML-DSA-44 keys.
    pub fn parse(file: &[u8]) -> Result<Self, LedgerError> {
        let mut reader = PolicyParser::default();
        if file.len() > MAX_POLICY_BYTES {
            return Err(reader.error("the file is larger than 64 KiB"));
        }
        for line in file.split(|byte| *byte == b'\n') {
            reader.line += 1;
            if line.iter().any(|byte| matches!(byte, 0..=8 | 11..=31 | 127)) {
                return Err(reader.error("a control character other than tab"));
            }
            let words: Vec<&[u8]> = line
                .split(|byte| matches!(byte, b' ' | b'\t'))
                .filter(|word| !word.is_empty())
                .collect();
            match words.as_slice() {
                [] => {}
                [first, ..] if first.starts_with(b"#") => {}
                [keyword, rest @ ..] => reader.parse_line(keyword, rest)?,
            }
        }
        let Some(quorum) = reader.quorum.take() else {
            return Err(reader.error("there is no quorum line"));
        };
        Ok(Self {
            logs: reader.logs,
            witnesses: reader.witnesses,
            quorum,
        })
    }

    /// Returns the keys of the known logs. An empty list means that the policy does not restrict
    /// the logs.
    #[must_use]
    pub fn logs(&self) -> &[VerifyingKey] {
        &self.logs
    }

    /// Returns its witnesses, in the order of their lines.
    #[must_use]
    pub fn witnesses(&self) -> &[PolicyWitness] {
        &self.witnesses
    }

    /// Returns whether a quorum has cosigned. `cosigned` returns whether the witness with this
    /// index in [`Self::witnesses`] has cosigned.
    #[must_use]
    pub fn is_quorum(&self, cosigned: &dyn Fn(usize) -> bool) -> bool {
        fn is_satisfied(rule: &QuorumRule, cosigned: &dyn Fn(usize) -> bool) -> bool {
            match rule {
                QuorumRule::Witness(place) => cosigned(*place),
                QuorumRule::Group(least, members) => {
                    members
                        .iter()
                        .filter(|member| is_satisfied(member, cosigned))
                        .count()
                        >= *least
                }
            }
        }
        self.quorum
            .as_ref()
            .is_none_or(|quorum| is_satisfied(quorum, cosigned))
    }

    /// Returns whether a checkpoint's note carries the cosignatures of a quorum. The log's own
    /// signature is not checked.
    ///
    /// # Errors
    /// [`LedgerError::BadSignature`] when a line claims to be by a witness of the policy but does not verify.
    pub fn is_cosigned(&self, note: &SignedCheckpoint<'_>) -> Result<bool, LedgerError> {
        let mut cosigned = Vec::with_capacity(self.witnesses.len());
        for witness in &self.witnesses {
            cosigned.push(note.cosignature(&witness.key)?.is_some());
        }
        Ok(self.is_quorum(&|place| cosigned.get(place).copied().unwrap_or(false)))
    }
}

#[derive(Default)]
struct PolicyParser {
    line: usize,
    logs: Vec<VerifyingKey>,
    witnesses: Vec<PolicyWitness>,
    groups: usize,
    names: BTreeMap<Vec<u8>, Definition>,
    quorum: Option<Option<QuorumRule>>,
}

impl PolicyParser {
    fn error(&self, reason: impl Into<String>) -> LedgerError {
        LedgerError::PolicyMalformed {
            line: self.line,
            reason: reason.into(),
        }
    }

    fn parse_line(&mut self, keyword: &[u8], rest: &[&[u8]]) -> Result<(), LedgerError> {
        match (keyword, rest) {
            (b"log", [key]) => self.add_log(key),
            (b"log", [key, url]) => self.parse_text(url).and_then(|_| self.add_log(key)),
            (b"witness", [name, key]) => self.add_witness(name, key, None),
            (b"witness", [name, key, url]) => self.add_witness(name, key, Some(url)),
            (b"group", [name, least, members @ ..]) if !members.is_empty() => {
                self.add_group(name, least, members)
            }
            (b"quorum", [name]) => self.set_quorum(name),
            (b"log", _) => Err(self.error("expected: log VKEY [URL]")),
            (b"witness", _) => Err(self.error("expected: witness NAME VKEY [URL]")),
            (b"group", _) => Err(self.error("expected: group NAME all|any|K NAME...")),
            (b"quorum", _) => Err(self.error("expected: quorum NAME, or quorum none")),
            _ => Err(self.error("expected a line that begins with log, witness, group or quorum")),
        }
    }

    fn add_log(&mut self, key: &[u8]) -> Result<(), LedgerError> {
        let key =
            VerifyingKey::from_text(self.parse_text(key)?).map_err(|error| self.error(error.to_string()))?;
        if self.logs.iter().any(|known| known.is_same_key(&key)) {
            return Err(self.error("another log line has this public key"));
        }
        self.check_capacity(self.logs.len(), "logs")?;
        self.logs.push(key);
        Ok(())
    }

    fn add_witness(&mut self, name: &[u8], key: &[u8], url: Option<&[u8]>) -> Result<(), LedgerError> {
        let key = CosignatureKey::from_text(self.parse_text(key)?)
            .map_err(|error| self.error(error.to_string()))?;
        if self.witnesses.iter().any(|known| known.key.is_same_key(&key)) {
            return Err(self.error("another witness line has this public key"));
        }
        let place = self.witnesses.len();
        self.check_capacity(place, "witnesses")?;
        self.define_name(name, QuorumRule::Witness(place))?;
        let url = url
            .map(|url| self.parse_text(url))
            .transpose()?
            .map(str::to_owned);
        self.witnesses.push(PolicyWitness {
            name: String::from_utf8_lossy(name).into_owned(),
            key,
            url,
        });
        Ok(())
    }

    fn add_group(&mut self, name: &[u8], least: &[u8], members: &[&[u8]]) -> Result<(), LedgerError> {
        let count = members.len();
        let least = match least {
            b"any" => 1,
            b"all" => count,
            number => std::str::from_utf8(number)
                .ok()
                .and_then(crate::checkpoint::parse_decimal)
                .and_then(|number| usize::try_from(number).ok())
                .filter(|number| (1..=count).contains(number))
                .ok_or_else(|| {
                    self.error(format!(
                        "expected all, any, or a number of members from 1 to {count}"
                    ))
                })?,
        };
        self.check_capacity(self.groups, "groups")?;
        self.groups += 1;
        let members = members
            .iter()
            .map(|member| self.take_member(member))
            .collect::<Result<_, _>>()?;
        self.define_name(name, QuorumRule::Group(least, members))
    }

    fn set_quorum(&mut self, name: &[u8]) -> Result<(), LedgerError> {
        if self.quorum.is_some() {
            return Err(self.error("there is a quorum line already"));
        }
        self.quorum = Some(match name {
            b"none" => None,
            name => Some(self.lookup(name)?.rule.clone()),
        });
        Ok(())
    }

    fn define_name(&mut self, name: &[u8], rule: QuorumRule) -> Result<(), LedgerError> {
        if name == b"none" || self.names.contains_key(name) {
            return Err(self.error(format!("the name {} is taken", String::from_utf8_lossy(name))));
        }
        self.names.insert(name.to_vec(), Definition { rule, used: false });
        Ok(())
    }

    fn lookup(&mut self, name: &[u8]) -> Result<&mut Definition, LedgerError> {
        let shown = String::from_utf8_lossy(name);
        let unknown = self.error(format!("no line above defines {shown}"));
        self.names.get_mut(name).ok_or(unknown)
    }

    /// Takes the rule of a group's member. Each name may be a member only once, so that each
    /// witness counts only once.
    fn take_member(&mut self, name: &[u8]) -> Result<QuorumRule, LedgerError> {
        let shown = String::from_utf8_lossy(name);
        let again = self.error(format!("{shown} is a member of a group already"));
        let defined = self.lookup(name)?;
        match std::mem::replace(&mut defined.used, true) {
            false => Ok(defined.rule.clone()),
            true => Err(again),
        }
    }

    fn check_capacity(&self, there: usize, what: &str) -> Result<(), LedgerError> {
        match there < MAX_ITEMS {
            true => Ok(()),
            false => Err(self.error(format!("more than {MAX_ITEMS} {what}"))),
        }
    }

    fn parse_text<'t>(&self, word: &'t [u8]) -> Result<&'t str, LedgerError> {
        std::str::from_utf8(word).map_err(|_| self.error("a key or URL is not UTF-8"))
    }
}
