//! Hashes as base64 in the auditor's files.

use base64::{Engine, engine::general_purpose::STANDARD};
use proofgate_ledger::Hash;
use serde::{Deserialize, Deserializer, Serializer, de::Error, ser::SerializeSeq};

fn decode<E: Error>(text: &str) -> Result<Hash, E> {
    let bytes = STANDARD.decode(text).map_err(E::custom)?;
    bytes.try_into().map_err(|_| E::custom("not 32 bytes"))
}

/// Encoding of one hash.
pub(crate) mod hash {
    use super::{Deserialize, Deserializer, Engine, Hash, STANDARD, Serializer};

    pub(crate) fn serialize<S: Serializer>(hash: &Hash, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&STANDARD.encode(hash))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Hash, D::Error> {
        super::decode(&String::deserialize(from)?)
    }
}

/// Encoding of a list of hashes.
pub(crate) mod hashes {
    use super::{Deserialize, Deserializer, Engine, Hash, STANDARD, SerializeSeq, Serializer};

    pub(crate) fn serialize<S: Serializer>(hashes: &[Hash], to: S) -> Result<S::Ok, S::Error> {
        let mut list = to.serialize_seq(Some(hashes.len()))?;
        for hash in hashes {
            list.serialize_element(&STANDARD.encode(hash))?;
        }
        list.end()
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Hash>, D::Error> {
        let texts: Vec<String> = Vec::deserialize(from)?;
        texts.iter().map(|text| super::decode(text)).collect()
    }
}
