//! What the records of a log say of its place in the chain.
//!
//! Only `open`, `takeover` and `seal` are read as JSON; of the others the kind is enough, which a worker writes first.

use proofgate_evidence::Ulid;
use proofgate_evidence::layout::parse_incarnation;
use proofgate_ledger::Hash;
use proofgate_ledger::record::{self, Record};
use serde::{Deserialize, Serialize};

/// What a log says of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Named {
    pub(crate) incarnation: Ulid,
    pub(crate) size: u64,
    #[serde(with = "crate::text::hash")]
    pub(crate) root: Hash,
    /// It was still being written: size and root are those of its newest checkpoint then.
    pub(crate) running: bool,
}

/// What was read of a log's records so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Facts {
    /// The origin that `open` states.
    pub(crate) origin: Option<String>,
    pub(crate) predecessor: Option<Named>,
    /// What `takeover` records say.
    pub(crate) takeovers: Vec<Named>,
    /// The last record is a seal.
    pub(crate) sealed: bool,
    /// The log that goes on, as the seal says.
    pub(crate) successor: Option<Ulid>,
    /// There is another record than `open`, `takeover` and `aborted`.
    pub(crate) served: bool,
}

/// What every record begins with, before its kind.
const BEFORE_KIND: &[u8] = b"{\"v\":1,\"kind\":\"";

impl Facts {
    /// Takes record `seq`.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub(crate) fn take(&mut self, seq: u64, payload: &[u8]) -> Result<(), String> {
        if self.sealed {
            return Err(format!("record {seq} follows a seal"));
        }
        match kind(payload) {
            Some(
                b"admission" | b"attempt" | b"completion" | b"rejection" | b"gap" | b"config" | b"analysis",
            ) if seq > 0 => {
                self.served = true;
                Ok(())
            }
            Some(b"aborted") if seq > 0 => Ok(()),
            _ => self.read(seq, payload),
        }
    }

    fn read(&mut self, seq: u64, payload: &[u8]) -> Result<(), String> {
        let record = record::parse(payload).map_err(|error| format!("record {seq}: {error}"))?;
        if record.seq() != seq {
            return Err(format!("record {seq} says that it is record {}", record.seq()));
        }
        let incarnation = |text: &str| {
            parse_incarnation(text).ok_or_else(|| format!("record {seq} names {text:?}, which is no log"))
        };
        match &record {
            Record::Open(open) if seq == 0 => {
                self.origin = Some(format!("{}/{}/{}", open.ledger, open.shard, open.incarnation));
                self.predecessor = match &open.predecessor {
                    None => None,
                    Some(named) => Some(Named {
                        incarnation: incarnation(&named.incarnation)?,
                        size: named.size,
                        root: named.root,
                        running: named.running,
                    }),
                };
            }
            Record::Open(_) => return Err(format!("record {seq} is a second open record")),
            _ if seq == 0 => return Err("the first record is no open record".to_owned()),
            Record::Takeover(takeover) => self.takeovers.push(Named {
                incarnation: incarnation(&takeover.incarnation)?,
                size: takeover.size,
                root: takeover.root,
                running: false,
            }),
            Record::Seal(seal) => {
                self.sealed = true;
                self.served = true;
                self.successor = seal.successor.as_deref().map(incarnation).transpose()?;
            }
            Record::Aborted(_) => {}
            _ => self.served = true,
        }
        Ok(())
    }

    /// How other logs ended, as this one says.
    pub(crate) fn ends(&self) -> impl Iterator<Item = &Named> {
        self.predecessor
            .iter()
            .filter(|named| !named.running)
            .chain(&self.takeovers)
    }
}

/// The kind of a record that is written as a worker writes it.
fn kind(payload: &[u8]) -> Option<&[u8]> {
    let rest = payload.strip_prefix(BEFORE_KIND)?;
    let end = rest.iter().take(32).position(|byte| *byte == b'"')?;
    Some(&rest[..end])
}
