//! Trust policies: which logs and witnesses are known, and which cosignatures make a checkpoint believable
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

/// Largest policy that is looked at, in bytes.
pub const MAX_POLICY: usize = 64 * 1024;
/// Most logs, most witnesses and most groups: as many as the format asks everybody to support.
const MOST: usize = 32;

/// A witness of a policy.
#[derive(Clone, Debug)]
pub struct PolicyWitness {
    /// Its name in the policy, which means nothing outside. Names are octets; this is what can be shown of them.
    pub name: String,
    /// Its key.
    pub key: CosignatureKey,
    /// Its submission prefix (c2sp.org/tlog-witness).
    pub url: Option<String>,
}

/// What has to be there for something to count as cosigned.
#[derive(Clone, Debug)]
enum Rule {
    Witness(usize),
    /// At least so many of these.
    Group(usize, Vec<Rule>),
}

/// A policy.
#[derive(Clone, Debug)]
pub struct TrustPolicy {
    logs: Vec<VerifyingKey>,
    witnesses: Vec<PolicyWitness>,
    /// `None`: no cosignature is needed.
    quorum: Option<Rule>,
}

/// A name that was defined and, as it may be used once, still can be.
struct Defined {
    rule: Rule,
    used: bool,
}

impl TrustPolicy {
    /// The policy that knows nobody and needs no cosignature.
    #[must_use]
    pub fn unconditional() -> Self {
        Self {
            logs: Vec::new(),
            witnesses: Vec::new(),
            quorum: None,
        }
    }

    /// Reads a policy file.
    ///
    /// # Errors
    /// [`LedgerError::Policy`] with the line and what is wrong with it. Logs have keys of Ed25519; witnesses have those or keys of
    /// ML-DSA-44.
    pub fn parse(file: &[u8]) -> Result<Self, LedgerError> {
        let mut reader = Reader::default();
        if file.len() > MAX_POLICY {
            return Err(reader.refuse("the file is larger than 64 KiB"));
        }
        for line in file.split(|byte| *byte == b'\n') {
            reader.line += 1;
            if line.iter().any(|byte| matches!(byte, 0..=8 | 11..=31 | 127)) {
                return Err(reader.refuse("a control character other than tab"));
            }
            let words: Vec<&[u8]> = line
                .split(|byte| matches!(byte, b' ' | b'\t'))
                .filter(|word| !word.is_empty())
                .collect();
            match words.as_slice() {
                [] => {}
                [first, ..] if first.starts_with(b"#") => {}
                [keyword, rest @ ..] => reader.define(keyword, rest)?,
            }
        }
        let Some(quorum) = reader.quorum.take() else {
            return Err(reader.refuse("there is no quorum line"));
        };
        Ok(Self {
            logs: reader.logs,
            witnesses: reader.witnesses,
            quorum,
        })
    }

    /// The keys of the logs that it knows. None means that it does not say.
    #[must_use]
    pub fn logs(&self) -> &[VerifyingKey] {
        &self.logs
    }

    /// Its witnesses, in the order of their lines.
    #[must_use]
    pub fn witnesses(&self) -> &[PolicyWitness] {
        &self.witnesses
    }

    /// Whether the witnesses of which `cosigned` says so, by their place in [`Self::witnesses`], are a quorum.
    #[must_use]
    pub fn is_quorum(&self, cosigned: &dyn Fn(usize) -> bool) -> bool {
        fn holds(rule: &Rule, cosigned: &dyn Fn(usize) -> bool) -> bool {
            match rule {
                Rule::Witness(place) => cosigned(*place),
                Rule::Group(least, members) => {
                    members.iter().filter(|member| holds(member, cosigned)).count() >= *least
                }
            }
        }
        self.quorum.as_ref().is_none_or(|quorum| holds(quorum, cosigned))
    }

    /// Whether a checkpoint's note carries the cosignatures of a quorum. The log's own signature is not looked at.
    ///
    /// # Errors
    /// [`LedgerError::BadSignature`] when a line claims to be by a witness of the policy and does not verify.
    pub fn is_cosigned(&self, note: &SignedCheckpoint<'_>) -> Result<bool, LedgerError> {
        let mut cosigned = Vec::with_capacity(self.witnesses.len());
        for witness in &self.witnesses {
            cosigned.push(note.cosignature(&witness.key)?.is_some());
        }
        Ok(self.is_quorum(&|place| cosigned.get(place).copied().unwrap_or(false)))
    }
}

#[derive(Default)]
struct Reader {
    line: usize,
    logs: Vec<VerifyingKey>,
    witnesses: Vec<PolicyWitness>,
    groups: usize,
    names: BTreeMap<Vec<u8>, Defined>,
    quorum: Option<Option<Rule>>,
}

impl Reader {
    fn refuse(&self, reason: impl Into<String>) -> LedgerError {
        LedgerError::Policy {
            line: self.line,
            reason: reason.into(),
        }
    }

    fn define(&mut self, keyword: &[u8], rest: &[&[u8]]) -> Result<(), LedgerError> {
        match (keyword, rest) {
            (b"log", [key]) => self.log(key),
            (b"log", [key, url]) => self.text(url).and_then(|_| self.log(key)),
            (b"witness", [name, key]) => self.witness(name, key, None),
            (b"witness", [name, key, url]) => self.witness(name, key, Some(url)),
            (b"group", [name, least, members @ ..]) if !members.is_empty() => {
                self.group(name, least, members)
            }
            (b"quorum", [name]) => self.quorum(name),
            (b"log", _) => Err(self.refuse("expected: log VKEY [URL]")),
            (b"witness", _) => Err(self.refuse("expected: witness NAME VKEY [URL]")),
            (b"group", _) => Err(self.refuse("expected: group NAME all|any|K NAME...")),
            (b"quorum", _) => Err(self.refuse("expected: quorum NAME, or quorum none")),
            _ => Err(self.refuse("expected a line that begins with log, witness, group or quorum")),
        }
    }

    fn log(&mut self, key: &[u8]) -> Result<(), LedgerError> {
        let key = VerifyingKey::from_text(self.text(key)?).map_err(|error| self.refuse(error.to_string()))?;
        if self.logs.iter().any(|known| known.is_same_point(&key)) {
            return Err(self.refuse("another log line has this public key"));
        }
        self.room(self.logs.len(), "logs")?;
        self.logs.push(key);
        Ok(())
    }

    fn witness(&mut self, name: &[u8], key: &[u8], url: Option<&[u8]>) -> Result<(), LedgerError> {
        let key =
            CosignatureKey::from_text(self.text(key)?).map_err(|error| self.refuse(error.to_string()))?;
        if self.witnesses.iter().any(|known| known.key.is_same_key(&key)) {
            return Err(self.refuse("another witness line has this public key"));
        }
        let place = self.witnesses.len();
        self.room(place, "witnesses")?;
        self.name(name, Rule::Witness(place))?;
        let url = url.map(|url| self.text(url)).transpose()?.map(str::to_owned);
        self.witnesses.push(PolicyWitness {
            name: String::from_utf8_lossy(name).into_owned(),
            key,
            url,
        });
        Ok(())
    }

    fn group(&mut self, name: &[u8], least: &[u8], members: &[&[u8]]) -> Result<(), LedgerError> {
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
                    self.refuse(format!(
                        "expected all, any, or a number of members from 1 to {count}"
                    ))
                })?,
        };
        self.room(self.groups, "groups")?;
        self.groups += 1;
        let members = members
            .iter()
            .map(|member| self.take(member))
            .collect::<Result<_, _>>()?;
        self.name(name, Rule::Group(least, members))
    }

    fn quorum(&mut self, name: &[u8]) -> Result<(), LedgerError> {
        if self.quorum.is_some() {
            return Err(self.refuse("there is a quorum line already"));
        }
        self.quorum = Some(match name {
            b"none" => None,
            name => Some(self.known(name)?.rule.clone()),
        });
        Ok(())
    }

    fn name(&mut self, name: &[u8], rule: Rule) -> Result<(), LedgerError> {
        if name == b"none" || self.names.contains_key(name) {
            return Err(self.refuse(format!("the name {} is taken", String::from_utf8_lossy(name))));
        }
        self.names.insert(name.to_vec(), Defined { rule, used: false });
        Ok(())
    }

    fn known(&mut self, name: &[u8]) -> Result<&mut Defined, LedgerError> {
        let shown = String::from_utf8_lossy(name);
        let unknown = self.refuse(format!("no line above defines {shown}"));
        self.names.get_mut(name).ok_or(unknown)
    }

    /// A member of a group: each witness is to count in one way only.
    fn take(&mut self, name: &[u8]) -> Result<Rule, LedgerError> {
        let shown = String::from_utf8_lossy(name);
        let again = self.refuse(format!("{shown} is a member of a group already"));
        let defined = self.known(name)?;
        match std::mem::replace(&mut defined.used, true) {
            false => Ok(defined.rule.clone()),
            true => Err(again),
        }
    }

    fn room(&self, there: usize, what: &str) -> Result<(), LedgerError> {
        match there < MOST {
            true => Ok(()),
            false => Err(self.refuse(format!("more than {MOST} {what}"))),
        }
    }

    fn text<'t>(&self, word: &'t [u8]) -> Result<&'t str, LedgerError> {
        std::str::from_utf8(word).map_err(|_| self.refuse("a key or URL is not UTF-8"))
    }
}
