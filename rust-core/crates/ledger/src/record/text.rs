//! Text forms of digests in a record.

use super::header::Text;

pub(super) mod base64_hash {
    use super::Text;
    use crate::Hash;
    use base64::{Engine, engine::general_purpose::STANDARD};
    use serde::{Deserialize, Deserializer, Serializer, de::Error as _, ser::Error as _};

    pub fn serialize<S: Serializer>(hash: &Hash, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = [0u8; 44];
        STANDARD.encode_slice(hash, &mut text).map_err(S::Error::custom)?;
        serializer.serialize_str(std::str::from_utf8(&text).map_err(S::Error::custom)?)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Hash, D::Error> {
        let Text(text) = Text::deserialize(deserializer)?;
        crate::checkpoint::parse_hash(&text).ok_or_else(|| D::Error::custom("not 32 bytes of strict base64"))
    }
}

pub(super) mod hex {
    use super::Text;
    use serde::{Deserialize, Deserializer, Serializer, de::Error as _, ser::Error as _};

    const DIGITS: &[u8; 16] = b"0123456789abcdef";

    /// Serializes at most 32 bytes as hex.
    pub fn serialize<const N: usize, S: Serializer>(
        bytes: &[u8; N],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let mut text = [0u8; 64];
        for (pair, byte) in text.chunks_exact_mut(2).zip(bytes) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        serializer.serialize_str(std::str::from_utf8(&text[..2 * N]).map_err(S::Error::custom)?)
    }

    pub fn deserialize<'de, const N: usize, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<[u8; N], D::Error> {
        let Text(text) = Text::deserialize(deserializer)?;
        decode(&text).ok_or_else(|| D::Error::custom(format!("not {} lower-case hex digits", 2 * N)))
    }

    /// Decodes lower-case hex digits, exactly two for each of the `N` bytes.
    pub fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
        let digit = |c: u8| {
            DIGITS
                .iter()
                .position(|&d| d == c)
                .and_then(|at| u8::try_from(at).ok())
        };
        if text.len() != 2 * N {
            return None;
        }
        let mut bytes = [0u8; N];
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(bytes)
    }
}
