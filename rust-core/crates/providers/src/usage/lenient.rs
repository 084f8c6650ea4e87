//! Optional details of a usage besides its totals. Providers differ in these details, so a detail
//! with an unexpected type does not make the totals unreadable.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeOwned, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// A value of the expected type, or the type's default.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct OrDefault<T>(pub(super) T);

impl<'de, T: DeserializeOwned + Default> Deserialize<'de> for OrDefault<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        Ok(OrDefault(serde_json::from_str(raw.get()).unwrap_or_default()))
    }
}

/// Audio tokens in Gemini's list of modalities.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct AudioTokens(pub(super) u64);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ModalityTokens<'m> {
    #[serde(borrow)]
    modality: Cow<'m, str>,
    #[serde(default)]
    token_count: u64,
}

impl<'de> Deserialize<'de> for AudioTokens {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Sum;
        impl<'de> Visitor<'de> for Sum {
            type Value = AudioTokens;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("tokens by modality")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<AudioTokens, A::Error> {
                let mut sum = 0u64;
                while let Some(item) = items.next_element::<ModalityTokens<'_>>()? {
                    if item.modality == "AUDIO" {
                        sum = sum.saturating_add(item.token_count);
                    }
                }
                Ok(AudioTokens(sum))
            }
        }
        deserializer.deserialize_seq(Sum)
    }
}
