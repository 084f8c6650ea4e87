//! Records: the leaves of a log, one struct per kind.
//!
//! A record is stored and hashed as compact JSON with the fields in the order of its struct, after `v` and `kind`.
//! Verifiers hash the stored bytes and never write them anew. Times are unix microseconds, sizes are bytes, durations
//! are microseconds. Strings are borrowed where they can be, so that encoding a record allocates nothing.

use crate::{Hash, LedgerError};
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

/// Largest encoded record in bytes: tlog-tiles entries carry a 16-bit length.
pub const MAX_RECORD: usize = 65_535;
/// The only version of the record format.
pub const VERSION: u8 = 1;

/// The first record of every log: who writes it, with what configuration, and which log came before it on the shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Open<'a> {
    /// Number of the record, 0-based; equals its leaf index.
    pub seq: u64,
    /// Unix microseconds.
    pub ts: u64,
    /// Name of the ledger, the first part of the origin.
    #[serde(borrow)]
    pub ledger: Cow<'a, str>,
    /// The shard, the second part of the origin.
    pub shard: u32,
    /// The ULID of this incarnation, the last part of the origin.
    #[serde(borrow)]
    pub incarnation: Cow<'a, str>,
    /// Version of the gateway.
    #[serde(borrow)]
    pub version: Cow<'a, str>,
    /// SHA-256 of the configuration, in hex.
    #[serde(with = "hex")]
    pub config: Hash,
    /// What recovery found of the incarnation before this one; null for the first on a shard.
    #[serde(borrow)]
    pub predecessor: Option<Predecessor<'a>>,
}

/// The tail of the preceding log, as recovery found it: the new log's checkpoints thereby cover it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Predecessor<'a> {
    /// ULID of the preceding incarnation.
    #[serde(borrow)]
    pub incarnation: Cow<'a, str>,
    /// Its number of records.
    pub size: u64,
    /// Its root at that size, base64.
    #[serde(with = "base64_hash")]
    pub root: Hash,
    /// Whether its last record is a seal.
    pub sealed: bool,
}

/// A request that was let through; written before any byte of it goes upstream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admission<'a> {
    /// Number of the record.
    pub seq: u64,
    /// Unix microseconds.
    pub ts: u64,
    /// Request id, as the client was told.
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    /// Tenant.
    #[serde(borrow)]
    pub tenant: Cow<'a, str>,
    /// First 8 hex digits of the API key's hash.
    #[serde(borrow)]
    pub key: Cow<'a, str>,
    /// Model asked for.
    #[serde(borrow)]
    pub model: Cow<'a, str>,
    /// Provider chosen.
    #[serde(borrow)]
    pub provider: Cow<'a, str>,
    /// Model name sent upstream.
    #[serde(borrow)]
    pub upstream_model: Cow<'a, str>,
    /// Endpoint, such as `chat.completions`.
    #[serde(borrow)]
    pub endpoint: Cow<'a, str>,
    /// Whether the response streams.
    pub stream: bool,
    /// Size of the request body in bytes.
    pub bytes: u64,
    /// Commitment to the request body, base64.
    #[serde(with = "base64_hash")]
    pub request: Hash,
    /// SHA-256 of the configuration in force, in hex.
    #[serde(with = "hex")]
    pub config: Hash,
}

/// How an exchange ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The whole response was relayed.
    Complete,
    /// The upstream failed or broke off.
    UpstreamError,
    /// The upstream was too slow.
    UpstreamTimeout,
    /// The client went away.
    ClientDisconnect,
    /// The ledger stopped, so the rest of the response was withheld.
    LedgerStopped,
    /// The worker was drained before the end.
    Drained,
    /// The gateway failed while serving it.
    InternalError,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Self; 7] = [
        Self::Complete,
        Self::UpstreamError,
        Self::UpstreamTimeout,
        Self::ClientDisconnect,
        Self::LedgerStopped,
        Self::Drained,
        Self::InternalError,
    ];

    /// The outcome's name in a record.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::UpstreamError => "upstream_error",
            Self::UpstreamTimeout => "upstream_timeout",
            Self::ClientDisconnect => "client_disconnect",
            Self::LedgerStopped => "ledger_stopped",
            Self::Drained => "drained",
            Self::InternalError => "internal_error",
        }
    }
}

/// Tokens as the provider counted them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt_tokens: u64,
    /// Tokens of the answer.
    pub completion_tokens: u64,
}

/// The end of an admitted exchange; written before the last byte of the response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completion<'a> {
    /// Number of the record.
    pub seq: u64,
    /// Unix microseconds.
    pub ts: u64,
    /// Request id.
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    /// Number of the admission record in the same log.
    pub admission: u64,
    /// Status sent to the client.
    pub status: u16,
    /// Status received from the upstream, if any came.
    pub upstream_status: Option<u16>,
    /// How it ended.
    pub outcome: Outcome,
    /// Size of the response body in bytes.
    pub bytes: u64,
    /// Commitment to the response body, base64, with the salt of the admission.
    #[serde(with = "base64_hash")]
    pub response: Hash,
    /// Tokens, where the provider told them.
    pub usage: Option<Usage>,
    /// From admission to here, in microseconds.
    pub duration_us: u64,
}

/// A request that was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejection<'a> {
    /// Number of the record.
    pub seq: u64,
    /// Unix microseconds.
    pub ts: u64,
    /// Request id.
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    /// Tenant, when it was known.
    pub tenant: Option<Cow<'a, str>>,
    /// Status sent.
    pub status: u16,
    /// Stable machine code of the refusal.
    #[serde(borrow)]
    pub code: Cow<'a, str>,
    /// Endpoint, when it was known.
    pub endpoint: Option<Cow<'a, str>>,
    /// Bytes of the request that were read.
    pub bytes: u64,
}

/// Closes an exchange that an earlier incarnation admitted and never completed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Aborted<'a> {
    /// Number of the record.
    pub seq: u64,
    /// Unix microseconds.
    pub ts: u64,
    /// Request id.
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    /// ULID of the incarnation that admitted it.
    #[serde(borrow)]
    pub incarnation: Cow<'a, str>,
    /// Number of the admission record in that incarnation's log.
    pub admission: u64,
}

/// Says that records are missing, how many and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap<'a> {
    /// Number of the record.
    pub seq: u64,
    /// Unix microseconds.
    pub ts: u64,
    /// When the first missing record would have been written.
    pub first_ts: u64,
    /// When the last missing record would have been written.
    pub last_ts: u64,
    /// How many are missing.
    pub count: u64,
    /// Why.
    #[serde(borrow)]
    pub reason: Cow<'a, str>,
}

/// The last record of a log that was ended on purpose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seal<'a> {
    /// Number of the record.
    pub seq: u64,
    /// Unix microseconds.
    pub ts: u64,
    /// Why the log ends.
    #[serde(borrow)]
    pub reason: Cow<'a, str>,
    /// Records before this one.
    pub records: u64,
}

/// A record of any kind.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each variant is its struct")]
pub enum Record<'a> {
    Open(Open<'a>),
    Admission(Admission<'a>),
    Completion(Completion<'a>),
    Rejection(Rejection<'a>),
    Aborted(Aborted<'a>),
    Gap(Gap<'a>),
    Seal(Seal<'a>),
}

macro_rules! kinds {
    ($($kind:ident = $name:literal),* $(,)?) => {
        $(
            impl $kind<'_> {
                /// Appends the record's JSON to `out`; on error `out` is as it was.
                ///
                /// # Errors
                /// [`LedgerError::RecordTooLarge`] above [`MAX_RECORD`] bytes.
                pub fn encode_into(&self, out: &mut Vec<u8>) -> Result<(), LedgerError> {
                    encode($name, self, out)
                }
            }
        )*

        impl Record<'_> {
            /// Name of the kind, as in the `kind` field.
            #[must_use]
            pub fn kind(&self) -> &'static str {
                match self { $(Self::$kind(_) => $name),* }
            }

            /// Number of the record, 0-based.
            #[must_use]
            pub fn seq(&self) -> u64 {
                match self { $(Self::$kind(record) => record.seq),* }
            }

            /// When it was made, in unix microseconds.
            #[must_use]
            pub fn ts(&self) -> u64 {
                match self { $(Self::$kind(record) => record.ts),* }
            }

            /// Appends the record's JSON to `out`; on error `out` is as it was.
            ///
            /// # Errors
            /// [`LedgerError::RecordTooLarge`] above [`MAX_RECORD`] bytes.
            pub fn encode_into(&self, out: &mut Vec<u8>) -> Result<(), LedgerError> {
                match self { $(Self::$kind(record) => record.encode_into(out)),* }
            }
        }

        fn parse_kind<'a>(kind: &str, bytes: &'a [u8]) -> Result<Record<'a>, LedgerError> {
            match kind {
                $($name => serde_json::from_slice(bytes).map(Record::$kind).map_err(malformed),)*
                _ => Err(LedgerError::RecordKind(kind.chars().take(64).collect())),
            }
        }
    };
}

kinds!(
    Open = "open",
    Admission = "admission",
    Completion = "completion",
    Rejection = "rejection",
    Aborted = "aborted",
    Gap = "gap",
    Seal = "seal",
);

impl Record<'_> {
    /// The request id, of the kinds that have one.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        match self {
            Self::Admission(record) => Some(&record.id),
            Self::Completion(record) => Some(&record.id),
            Self::Rejection(record) => Some(&record.id),
            Self::Aborted(record) => Some(&record.id),
            Self::Open(_) | Self::Gap(_) | Self::Seal(_) => None,
        }
    }
}

/// Reads one record. Fields that this version does not know are tolerated, kinds are not.
///
/// # Errors
/// [`LedgerError::RecordTooLarge`], [`LedgerError::RecordKind`], or [`LedgerError::RecordMalformed`] on anything that
/// is not exactly one JSON object with the kind's fields, on another version, and on a repeated key anywhere in it.
pub fn parse(bytes: &[u8]) -> Result<Record<'_>, LedgerError> {
    if bytes.len() > MAX_RECORD {
        return Err(LedgerError::RecordTooLarge { bytes: bytes.len() });
    }
    let shape: Shape<'_> = serde_json::from_slice(bytes).map_err(malformed)?;
    if shape.version != VERSION {
        return Err(LedgerError::RecordMalformed(format!(
            "version {} is not {VERSION}",
            shape.version
        )));
    }
    parse_kind(&shape.kind, bytes)
}

#[derive(Serialize)]
struct Envelope<'a, T> {
    v: u8,
    kind: &'static str,
    #[serde(flatten)]
    body: &'a T,
}

fn encode<T: Serialize>(kind: &'static str, body: &T, out: &mut Vec<u8>) -> Result<(), LedgerError> {
    let start = out.len();
    let written = serde_json::to_writer(
        &mut *out,
        &Envelope {
            v: VERSION,
            kind,
            body,
        },
    )
    .map_err(malformed);
    let bytes = out.len() - start;
    let checked = match written {
        Ok(()) if bytes > MAX_RECORD => Err(LedgerError::RecordTooLarge { bytes }),
        other => other,
    };
    if checked.is_err() {
        out.truncate(start);
    }
    checked
}

fn malformed(error: serde_json::Error) -> LedgerError {
    LedgerError::RecordMalformed(error.to_string())
}

/// What the first pass over a record finds: its kind and version, and that no key is repeated.
struct Shape<'a> {
    version: u8,
    kind: Cow<'a, str>,
}

/// A string that borrows from the input when it holds no escape.
#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Shape<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Shape<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Shape<'de>, A::Error> {
                let (mut version, mut kind) = (None, None);
                let mut keys = Vec::with_capacity(16);
                while let Some(Text(key)) = map.next_key()? {
                    match &*key {
                        "v" => version = Some(map.next_value()?),
                        "kind" => kind = Some(map.next_value::<Text<'de>>()?.0),
                        _ => map.next_value_seed(UniqueKeys)?,
                    }
                    keys.push(key);
                }
                keys.sort_unstable();
                if keys.windows(2).any(|pair| pair[0] == pair[1]) {
                    return Err(A::Error::custom("a key is repeated"));
                }
                let version = version.ok_or_else(|| A::Error::missing_field("v"))?;
                let kind = kind.ok_or_else(|| A::Error::missing_field("kind"))?;
                Ok(Shape { version, kind })
            }
        }
        deserializer.deserialize_map(Object)
    }
}

/// Reads any value and forgets it, refusing objects with a repeated key.
struct UniqueKeys;

impl<'de> DeserializeSeed<'de> for UniqueKeys {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for UniqueKeys {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<(), A::Error> {
        while sequence.next_element_seed(UniqueKeys)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut keys = BTreeSet::new();
        while let Some(key) = map.next_key::<Text<'de>>()? {
            if !keys.insert(key) {
                return Err(A::Error::custom("a key is repeated"));
            }
            map.next_value_seed(UniqueKeys)?;
        }
        Ok(())
    }
}

mod base64_hash {
    use super::{Deserializer, Hash, Serializer, Text};
    use base64::{Engine, engine::general_purpose::STANDARD};
    use serde::{Deserialize, de::Error as _, ser::Error as _};

    pub(super) fn serialize<S: Serializer>(hash: &Hash, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = [0u8; 44];
        STANDARD.encode_slice(hash, &mut text).map_err(S::Error::custom)?;
        serializer.serialize_str(std::str::from_utf8(&text).map_err(S::Error::custom)?)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Hash, D::Error> {
        let Text(text) = Text::deserialize(deserializer)?;
        crate::checkpoint::parse_hash(&text).ok_or_else(|| D::Error::custom("not 32 bytes of strict base64"))
    }
}

mod hex {
    use super::{Deserializer, Hash, Serializer, Text};
    use serde::{Deserialize, de::Error as _, ser::Error as _};

    const DIGITS: &[u8; 16] = b"0123456789abcdef";

    pub(super) fn serialize<S: Serializer>(hash: &Hash, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = [0u8; 64];
        for (pair, byte) in text.chunks_exact_mut(2).zip(hash) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        serializer.serialize_str(std::str::from_utf8(&text).map_err(S::Error::custom)?)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Hash, D::Error> {
        let Text(text) = Text::deserialize(deserializer)?;
        let digit = |c: u8| {
            DIGITS
                .iter()
                .position(|&d| d == c)
                .and_then(|at| u8::try_from(at).ok())
        };
        let mut hash = [0u8; 32];
        if text.len() != 64 {
            return Err(D::Error::custom("not 64 lower-case hex digits"));
        }
        for (byte, pair) in hash.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            match (digit(pair[0]), digit(pair[1])) {
                (Some(high), Some(low)) => *byte = high << 4 | low,
                _ => return Err(D::Error::custom("not 64 lower-case hex digits")),
            }
        }
        Ok(hash)
    }
}
