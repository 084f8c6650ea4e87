//! The name of a service tier, small enough to be part of every `Usage`.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The provider's name of a service tier.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TierName {
    bytes: [u8; Self::MAX_LEN],
    length: u8,
}

impl TierName {
    /// Longest name, in bytes; a longer one is truncated.
    pub const MAX_LEN: usize = 31;

    /// Stores a name.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let mut length = name.len().min(Self::MAX_LEN);
        while !name.is_char_boundary(length) {
            length -= 1;
        }
        let mut bytes = [0; Self::MAX_LEN];
        bytes[..length].copy_from_slice(&name.as_bytes()[..length]);
        TierName {
            bytes,
            length: length as u8,
        }
    }

    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let name = self.bytes.get(..usize::from(self.length));
        name.and_then(|name| std::str::from_utf8(name).ok())
            .unwrap_or_default()
    }
}

impl fmt::Debug for TierName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), formatter)
    }
}

impl Serialize for TierName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for TierName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(TierName::new(&Cow::<str>::deserialize(deserializer)?))
    }
}
