//! Service tiers, which affect prices: the tier that a request asks for, and the tier that served it.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};

/// Tier names with the standard price: OpenAI's `auto` and `default`, Anthropic's `auto`, `standard` and
/// `standard_only`, Groq's `on_demand`, Google's `standard`; inference locations without a surcharge (Anthropic,
/// `inference_geo`); Vertex AI's names for traffic that is paid by the token or prepaid.
const STANDARD: [&str; 10] = [
    "auto",
    "default",
    "standard",
    "standard_only",
    "on_demand",
    "provisioned_throughput",
    "unspecified",
    "traffic_type_unspecified",
    "global",
    "not_available",
];

/// Prefixes of Google's enum values, where they are written as names.
const PREFIXES: [&str; 2] = ["service_tier_", "on_demand_"];

/// The service tier that a request asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum RequestedTier<'b> {
    /// The standard tier, or the default of the provider account.
    #[default]
    Standard,
    /// Another tier.
    Named(Cow<'b, str>),
    /// Several different tiers, or an invalid name.
    Ambiguous,
}

impl<'b> RequestedTier<'b> {
    /// Combines it with the tier that another field asks for.
    pub(crate) fn combine(self, name: Cow<'b, str>) -> Self {
        let name = match strip_enum_prefix(&name) {
            Some(plain) => Cow::Owned(plain),
            None => name,
        };
        if STANDARD.contains(&&*name) {
            return self;
        }
        match self {
            RequestedTier::Standard => RequestedTier::Named(name),
            _ => RequestedTier::Ambiguous,
        }
    }
}

/// Returns the name without its enum prefix; `None` if it is not a valid name.
fn strip_enum_prefix(name: &str) -> Option<String> {
    if !name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return None;
    }
    let lower = name.to_ascii_lowercase();
    let rest = PREFIXES.iter().find_map(|prefix| lower.strip_prefix(prefix));
    Some(rest.map_or(lower.clone(), str::to_owned))
}

/// The service tier that a response reports, in at most [`ServiceTier::MAX_LEN`] bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ServiceTier {
    name: [u8; Self::MAX_LEN],
    length: u8,
}

impl ServiceTier {
    /// Maximum length of a name, in bytes; a longer one is truncated.
    pub const MAX_LEN: usize = 31;
    /// The standard tier.
    pub const STANDARD: Self = Self::from_short_name(b"standard");

    const fn from_short_name(name: &[u8]) -> Self {
        let mut bytes = [0; Self::MAX_LEN];
        let mut at = 0;
        while at < name.len() {
            bytes[at] = name[at];
            at += 1;
        }
        Self {
            name: bytes,
            length: name.len() as u8,
        }
    }

    /// Returns the tier with this name. All names of the standard tier give the same value.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let plain = strip_enum_prefix(name);
        let name = plain.as_deref().unwrap_or(name);
        if name.is_empty() || STANDARD.contains(&name) {
            return Self::STANDARD;
        }
        let mut end = name.len().min(Self::MAX_LEN);
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        Self::from_short_name(&name.as_bytes()[..end])
    }

    /// Returns its name; `standard` for the standard tier.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let bytes = self.name.get(..usize::from(self.length));
        bytes
            .and_then(|bytes| std::str::from_utf8(bytes).ok())
            .unwrap_or_default()
    }

    /// Whether it is the standard tier.
    #[must_use]
    pub fn is_standard(&self) -> bool {
        *self == Self::STANDARD
    }

    /// Combines it with another tier. Two different tiers give a name that no price has.
    pub(crate) fn combine(self, other: Self) -> Self {
        match (self.is_standard(), other.is_standard()) {
            (_, true) => self,
            (true, false) => other,
            (false, false) => Self::new(&format!("{}+{}", self.as_str(), other.as_str())),
        }
    }
}

impl std::fmt::Debug for ServiceTier {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:?}", self.as_str())
    }
}

impl<'de> Deserialize<'de> for ServiceTier {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::new(&Cow::<str>::deserialize(deserializer)?))
    }
}

#[cfg(test)]
mod tests {
    use super::{RequestedTier, ServiceTier};

    #[test]
    fn what_costs_as_much_as_none_is_the_standard_tier() {
        for name in [
            "auto",
            "default",
            "standard_only",
            "ON_DEMAND",
            "SERVICE_TIER_STANDARD",
            "",
        ] {
            assert!(ServiceTier::new(name).is_standard(), "{name}");
        }
        for (name, plain) in [
            ("priority", "priority"),
            ("SERVICE_TIER_PRIORITY", "priority"),
            ("ON_DEMAND_FLEX", "flex"),
            ("Fast", "fast"),
        ] {
            assert_eq!(ServiceTier::new(name).as_str(), plain);
            assert_eq!(
                RequestedTier::Standard.combine(name.into()),
                RequestedTier::Named(plain.into())
            );
        }
        assert_eq!(ServiceTier::new(&"é".repeat(40)).as_str().len(), 30);
    }

    #[test]
    fn two_tiers_at_once_are_none_that_has_a_price() {
        let fast = RequestedTier::Standard.combine("fast".into());
        assert_eq!(fast.clone().combine("auto".into()), fast);
        assert_eq!(fast.combine("us".into()), RequestedTier::Ambiguous);
        let both = ServiceTier::new("fast").combine(ServiceTier::new("us"));
        assert_eq!(both.as_str(), "fast+us");
        assert_eq!(ServiceTier::STANDARD.combine(both), both);
    }
}
